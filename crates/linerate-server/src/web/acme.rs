//! A certificate by ACME (RFC 8555): ordered from an authority, proven over TLS on the server's own
//! port (tls-alpn-01, RFC 8737), and renewed when a third of its life is left.
//!
//! Account, chain and key are files of one folder, readable by their owner alone; a server that
//! starts again goes on with them.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, ChallengeType, Error, Identifier, NewAccount,
    NewOrder, Order, OrderStatus, Problem, RetryPolicy,
};
use linerate_core::record::{Failure, Fault};
use linerate_outbound::Authority;
use linerate_sys::clock::{realtime_ns, sleep};
use linerate_sys::stop::Stop;
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::CertifiedKey;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::tls::{Tls, provider};

mod client;

/// Directory of the authority Let's Encrypt (RFC 8555 §7.1.1).
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

const CHAIN: &str = "chain.pem";
const KEY: &str = "key.pem";
const ACCOUNT: &str = "account.json";

/// An order takes so long at the most.
const ORDER_WITHIN: Duration = Duration::from_secs(300);
/// For each wait of an order, of which there are two.
const POLL_WITHIN: Duration = Duration::from_secs(120);
/// After an order that failed: authorities count failures (five an hour at Let's Encrypt).
const AGAIN_S: (i64, i64) = (60, 12 * 3600);
/// Between two looks whether something is to be done.
const LOOK: Duration = Duration::from_millis(500);

/// Whose certificate is kept, and by whom.
#[derive(Debug)]
pub struct Acme {
    names: Vec<String>,
    directory: String,
    contact: Option<String>,
    folder: PathBuf,
    authority: Authority,
}

/// Why there is no certificate.
type Why = String;

impl Acme {
    /// For these names, by the authority whose directory is at an address, whose own certificate
    /// the authorities of a file vouch for, or those of this host; its files are in a folder.
    /// # Errors
    /// When the folder cannot be made, the file holds no authority, a name is none of the DNS, or
    /// the directory is not at an `https://` address.
    pub fn new(
        names: &[String],
        directory: &str,
        contact: Option<&str>,
        folder: &Path,
        authority: Option<&Path>,
    ) -> Result<Self, Failure> {
        if !directory.starts_with("https://") {
            let reason = "the directory of an authority is at https://HOST/PATH (RFC 8555 §6.1)";
            return Err(Failure::new(Fault::Usage, "ask", directory, reason));
        }
        if let Some(name) = names.iter().find(|name| !is_name(name)) {
            let reason = "authorities vouch for full names of the DNS, as speed.example.org";
            return Err(Failure::new(Fault::Usage, "order a certificate for", name, reason));
        }
        let failed = |error| {
            Failure::new(Fault::System, "keep certificates in", folder.display().to_string(), error)
                .advise("name another folder with --acme-folder")
        };
        let authority = Authority::read(authority)?;
        std::fs::create_dir_all(folder).map_err(failed)?;
        Ok(Self {
            names: names.iter().map(|name| name.to_ascii_lowercase()).collect(),
            directory: directory.to_owned(),
            contact: contact.map(|contact| format!("mailto:{contact}")),
            folder: folder.to_owned(),
            authority,
        })
    }

    /// TLS by what is in the folder; without a certificate in it no handshake succeeds yet.
    /// # Errors
    /// When TLS cannot be begun.
    pub fn load_tls(&self) -> Result<Tls, Failure> {
        let tls = Tls::without(&self.folder.join(CHAIN), &self.folder.join(KEY))?;
        if self.due_s(&tls).is_some() {
            tls.reload()?;
        }
        Ok(tls)
    }

    /// Keeps the certificate valid until `stop`.
    pub fn renew_until_stop(&self, tls: &Tls, stop: &Stop) {
        let mut waits_s = AGAIN_S.0;
        let mut not_before_s = i64::MIN;
        while !stop.is_requested() {
            let at_s = now_s();
            if at_s >= self.due_s(tls).unwrap_or(i64::MIN) && at_s >= not_before_s {
                match self.order_now(tls, stop) {
                    Ok(()) => {
                        waits_s = AGAIN_S.0;
                        tracing::info!("{} vouches for {}", self.directory, self.names.join(", "));
                    }
                    Err(why) => {
                        let names = self.names.join(", ");
                        tracing::error!("no certificate for {names}: {why}; again in {waits_s} s");
                        not_before_s = now_s() + waits_s;
                        waits_s = (2 * waits_s).min(AGAIN_S.1);
                    }
                }
            }
            sleep(LOOK);
        }
    }

    /// When the certificate in the folder is to be renewed; none where there is none for the names.
    fn due_s(&self, tls: &Tls) -> Option<i64> {
        let chain = std::fs::read(tls.certificate_files().0).ok()?;
        let leaf = rustls::pki_types::CertificateDer::from_pem_slice(&chain).ok()?;
        PrivateKeyDer::from_pem_file(tls.certificate_files().1).ok()?;
        due_s(&leaf, &self.names)
    }

    /// Orders a certificate, shows it from then on, and keeps it in the folder.
    /// # Errors
    /// In words, when there is none in five minutes or `stop` was asked; what was shown before
    /// stays.
    pub fn order_now(&self, tls: &Tls, stop: &Stop) -> Result<(), String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let ended = async {
            while !stop.is_requested() {
                tokio::time::sleep(LOOK).await;
            }
        };
        let ordered = runtime.block_on(async {
            tokio::select! {
                done = tokio::time::timeout(ORDER_WITHIN, self.order_certificate(tls)) =>
                    done.unwrap_or_else(|_| Err(format!("no end in {} s", ORDER_WITHIN.as_secs()))),
                () = ended => Err("the server ends".to_owned()),
            }
        });
        tls.set_proofs(HashMap::new());
        let (chain, key) = ordered?;
        // The key first: a chain without its key is never shown.
        self.write(KEY, key.as_bytes())?;
        self.write(CHAIN, chain.as_bytes())?;
        tls.reload().map_err(|failure| failure.to_string())
    }

    /// A chain and its key, PEM.
    async fn order_certificate(&self, tls: &Tls) -> Result<(String, String), Why> {
        let account = self.account().await?;
        let names: Vec<_> = self.names.iter().cloned().map(Identifier::Dns).collect();
        let mut order = account.new_order(&NewOrder::new(&names)).await.map_err(error_text)?;
        prove_names(&mut order, tls).await?;
        let waits = RetryPolicy::new().timeout(POLL_WITHIN);
        match order.poll_ready(&waits).await {
            Ok(OrderStatus::Ready) => {}
            Ok(_) => return Err(refusal(&mut order).await),
            Err(Error::Api(problem)) => return Err(unproven(problem.detail.as_deref())),
            Err(error) => return Err(error_text(error)),
        }
        let key = order.finalize().await.map_err(error_text)?;
        let chain = order.poll_certificate(&waits).await.map_err(error_text)?;
        Ok((chain, key))
    }

    /// The account of the folder, of this authority; a new one where there is none.
    async fn account(&self) -> Result<Account, Why> {
        let http = || Box::new(client::AcmeClient(self.authority.clone()));
        let file = self.folder.join(ACCOUNT);
        if let Ok(text) = std::fs::read(&file)
            && let Ok((directory, kept)) =
                serde_json::from_slice::<(String, AccountCredentials)>(&text)
            && directory == self.directory
        {
            return Account::builder_with_http(http())
                .from_credentials(kept)
                .await
                .map_err(error_text);
        }
        let contact: Vec<&str> = self.contact.iter().map(String::as_str).collect();
        let asked = NewAccount {
            contact: &contact,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let made = Account::builder_with_http(http());
        let made = made.create(&asked, self.directory.clone(), None).await.map_err(error_text)?;
        let (account, credentials) = made;
        let text = serde_json::to_vec(&(&self.directory, &credentials));
        self.write(ACCOUNT, &text.map_err(|error| error.to_string())?)?;
        Ok(account)
    }

    /// A file of the folder, whole or as it was before.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Why> {
        let failed = |error: &dyn std::fmt::Display| {
            format!("{}: {error}", self.folder.join(name).display())
        };
        // Readable by its owner alone (mkstemp(3)).
        let file = tempfile::NamedTempFile::new_in(&self.folder);
        let mut file = file.map_err(|error| failed(&error))?;
        let written = file.write_all(bytes).and_then(|()| file.as_file().sync_all());
        written.map_err(|error| failed(&error))?;
        file.persist(self.folder.join(name)).map_err(|error| failed(&error.error))?;
        Ok(())
    }
}

/// Shows a proof for each name that the authority has none for.
async fn prove_names(order: &mut Order, tls: &Tls) -> Result<(), Why> {
    let mut proofs = HashMap::new();
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.map_err(error_text)?;
        if authorization.status == AuthorizationStatus::Valid {
            continue;
        }
        let challenge = authorization.challenge(ChallengeType::TlsAlpn01);
        let mut challenge = challenge.ok_or("it offers no tls-alpn-01 (RFC 8737)")?;
        let name = challenge.identifier().to_string();
        let proof = proof_certificate(&name, challenge.key_authorization().digest().as_ref())?;
        proofs.insert(name, proof);
        tls.set_proofs(proofs.clone());
        challenge.set_ready().await.map_err(refused_at_once)?;
    }
    Ok(())
}

/// The self-signed certificate of RFC 8737 §3 for one name, with the digest of the key
/// authorization.
fn proof_certificate(name: &str, digest: &[u8]) -> Result<Arc<CertifiedKey>, Why> {
    let say = |error: rcgen::Error| error.to_string();
    let mut params = CertificateParams::new(vec![name.to_owned()]).map_err(say)?;
    params.custom_extensions.push(CustomExtension::new_acme_identifier(digest));
    let key = KeyPair::generate().map_err(say)?;
    let certificate = params.self_signed(&key).map_err(say)?;
    let secret = PrivateKeyDer::try_from(key.serialize_der())?;
    let key =
        provider().key_provider.load_private_key(secret).map_err(|fault| fault.to_string())?;
    // Not checked by `CertifiedKey::from_der`, which does not know the extension.
    Ok(Arc::new(CertifiedKey::new(vec![certificate.der().clone()], key)))
}

/// Why an authority does not believe that the names are this server's.
async fn refusal(order: &mut Order) -> Why {
    let mut authorizations = order.authorizations();
    while let Some(Ok(authorization)) = authorizations.next().await {
        let mut errors =
            authorization.challenges.iter().filter_map(|challenge| challenge.error.as_ref());
        if let Some(error) = errors.next() {
            return unproven(error.detail.as_deref());
        }
    }
    unproven(None)
}

fn unproven(said: Option<&str>) -> Why {
    let said = said.unwrap_or("it gives no reason");
    format!(
        "not proven: {said}; the authority connects to port 443 of each name: it has to lead here"
    )
}

/// The reason of an authority that has looked for the proof before it answers.
fn refused_at_once(error: Error) -> Why {
    match error {
        Error::Api(problem) if is_of_validation(&problem) => unproven(problem.detail.as_deref()),
        other => error_text(other),
    }
}

/// True for the types of a proof that the authority did not find (RFC 8555 §6.7).
fn is_of_validation(problem: &Problem) -> bool {
    let name = problem.r#type.as_deref().and_then(|urn| urn.rsplit(':').next());
    let of_validation = ["caa", "connection", "dns", "incorrectResponse", "tls", "unauthorized"];
    name.is_some_and(|name| of_validation.contains(&name))
}

fn error_text(error: Error) -> Why {
    error.to_string()
}

/// True for two labels or more of letters, digits and hyphens (RFC 1123 §2.1) that are no IPv4
/// address.
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let plain = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        (1..=63).contains(&label.len()) && plain && !label.starts_with('-') && !label.ends_with('-')
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit());
    name.len() <= 253 && name.contains('.') && name.split('.').all(is_label) && !is_number
}

fn now_s() -> i64 {
    i64::try_from(realtime_ns() / 1_000_000_000).unwrap_or(i64::MAX)
}

/// When a third of a certificate's life is left, seconds since 1970-01-01 UTC; none where it is not
/// for all of the names.
fn due_s(certificate: &[u8], names: &[String]) -> Option<i64> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let alternative = certificate.subject_alternative_name().ok()??;
    let is_for = |name: &String| {
        alternative.value.general_names.iter().any(|general_name| match general_name {
            GeneralName::DNSName(dns) => dns.eq_ignore_ascii_case(name),
            _ => false,
        })
    };
    let validity = certificate.validity();
    let (from, to) = (validity.not_before.timestamp(), validity.not_after.timestamp());
    names.iter().all(is_for).then(|| from + (to - from) / 3 * 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_for_full_names_alone() {
        for name in ["speed.example.org", "xn--bcher-kva.example", "a.b", "1.2.3.x4"] {
            assert!(is_name(name), "{name}");
        }
        let long = format!("{}.example", "a".repeat(64));
        for name in
            ["", "localhost", "bad name!", "a..b", "-a.b", "a-.b", "192.0.2.1", "*.a.b", &long]
        {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn an_authority_that_looks_before_it_answers_says_not_proven_too() {
        let refused = |kind: &str| {
            let detail = "Failed to connect to 192.0.2.1:443";
            let json =
                format!(r#"{{"type":"urn:ietf:params:acme:error:{kind}","detail":"{detail}"}}"#);
            refused_at_once(Error::Api(serde_json::from_str(&json).expect("a problem")))
        };
        let said = refused("unauthorized");
        assert!(said.starts_with("not proven: Failed to connect to 192.0.2.1:443; "), "{said}");
        assert!(!refused("rateLimited").contains("not proven"));
    }

    #[test]
    fn a_certificate_is_renewed_with_a_third_of_its_life_left_and_at_once_for_another_name() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tls/one.pem");
        let leaf = rustls::pki_types::CertificateDer::from_pem_file(&file).expect("testdata");
        let is = |names: &[&str]| {
            due_s(&leaf, &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        // openssl x509 -noout -dates -ext subjectAltName
        assert_eq!(is(&["localhost", "one.test"]), Some(3_897_931_282));
        assert_eq!(is(&["localhost", "speed.example"]), None);
        assert_eq!(due_s(b"none", &[]), None);
    }
}
