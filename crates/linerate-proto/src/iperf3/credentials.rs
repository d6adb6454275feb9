//! Credentials as iperf3's clients send them, and the file of authorised users that a server
//! checks them against. Left out: keys, encryption, digests, the clock.
//!
//! The text is encrypted with the server's RSA key and sent as base64 (RFC 4648 §4) in the
//! parameters. Observed on iperf3 3.12; its padding is PKCS#1 v1.5, and OAEP since 3.17.

/// Bytes of the longest text of credentials: the most that an RSA key of 8192 bits can encrypt.
const TEXT_BYTES_MAX: usize = 1024;
/// Bytes of the longest token that is read: 8192 bits in base64 are 1368.
const TOKEN_BYTES_MAX: usize = 2048;
/// Bytes of a SHA-256 digest.
const DIGEST_BYTES: usize = 32;

/// User, password and time in a client's token.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Name of the user.
    pub user: String,
    /// Password in clear text.
    pub password: String,
    /// Time at which the client made the token, in seconds since 1970.
    pub time_s: i64,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { user, time_s, .. } = self;
        f.debug_struct("Credentials").field("user", user).field("time_s", time_s).finish()
    }
}

impl Credentials {
    /// The clear text of the token.
    pub fn to_text(&self) -> String {
        // The two and three spaces are iperf3's, which reads with the same pattern.
        format!("user: {}\npwd:  {}\nts:   {}", self.user, self.password, self.time_s)
    }

    /// Parses the decrypted text; `None` where it has another form.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let text = std::str::from_utf8(text).ok()?;
        let (user, rest) = text.strip_prefix("user: ")?.split_once("\npwd:  ")?;
        let (password, time) = rest.rsplit_once("\nts:   ")?;
        let time_s = time.trim_end_matches('\0').parse().ok()?;
        Some(Self { user: user.to_owned(), password: password.to_owned(), time_s })
    }

    /// Text whose SHA-256 digest is in the file of users: `{user}password`, including the braces.
    pub fn salted(&self) -> String {
        format!("{{{}}}{}", self.user, self.password)
    }

    /// True if the token's time is within `skew_s` seconds of `now_s`.
    pub const fn is_timely(&self, now_s: i64, skew_s: u64) -> bool {
        now_s.abs_diff(self.time_s) <= skew_s
    }
}

/// An invalid line in a file of users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {0} is not a name, a comma and the 64 digits of a SHA-256 digest")]
pub struct UsersError(
    /// Number of the line, from 1.
    pub usize,
);

/// Authorised users, each with the digest of name and password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Users(Vec<(String, [u8; DIGEST_BYTES])>);

impl Users {
    /// Parses `name,digest` lines; empty lines and comments (#) are skipped.
    /// # Errors
    /// The first line of another form.
    pub fn parse(text: &str) -> Result<Self, UsersError> {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let users = lines.map(|(number, line)| {
            let (name, digest) = line.split_once(',').ok_or(UsersError(number))?;
            let digest = parse_digest(digest.trim()).ok_or(UsersError(number))?;
            Ok((name.trim().to_owned(), digest))
        });
        users.collect::<Result<_, _>>().map(Self)
    }

    /// True if the user has this digest. Every entry is compared to its end, so that the time does
    /// not reveal which digits agree.
    pub fn has_digest(&self, user: &str, digest: &[u8]) -> bool {
        let differ = |known: &[u8; DIGEST_BYTES]| {
            let pairs = known.iter().zip(digest);
            digest.len() != DIGEST_BYTES
                || pairs.fold(0, |differ, (one, other)| differ | (one ^ other)) != 0
        };
        self.0.iter().fold(false, |has, (name, known)| has | (name == user) & !differ(known))
    }

    /// Number of users.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// True if no user is authorised.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Parses 64 hexadecimal digits.
fn parse_digest(text: &str) -> Option<[u8; DIGEST_BYTES]> {
    let digits = text.as_bytes();
    let mut digest = [0; DIGEST_BYTES];
    if digits.len() != 2 * DIGEST_BYTES {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
    for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(digest)
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes as base64 (RFC 4648 §4), padded, without line ends.
pub fn to_base64(bytes: &[u8]) -> String {
    let group = |group: &[u8]| -> [char; 4] {
        let bits =
            group.iter().zip([16, 8, 0]).fold(0, |all, (byte, at)| all | u32::from(*byte) << at);
        std::array::from_fn(|at| match at <= group.len() {
            true => char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize]),
            false => '=',
        })
    };
    bytes.chunks(3).flat_map(group).collect()
}

/// Decodes base64; white space is skipped, so that the body of a PEM file is accepted. `None` where
/// the text is no base64.
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    let text: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let digits = text.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1);
    if text.len() - digits > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in text[..digits].chunks(4) {
        let value = |byte: &u8| DIGITS.iter().position(|digit| digit == byte);
        let mut bits = 0;
        for (byte, at) in group.iter().zip([18, 12, 6, 0]) {
            bits |= u32::try_from(value(byte)?).ok()? << at;
        }
        let whole = bits.to_be_bytes();
        bytes.extend_from_slice(&whole[1..group.len()]);
    }
    Some(bytes)
}

/// Encrypted bytes of a token; `None` where it is too long or no base64.
pub fn token_bytes(token: &str) -> Option<Vec<u8>> {
    (token.len() <= TOKEN_BYTES_MAX).then(|| from_base64(token)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        // RFC 4648 §10.
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(to_base64(bytes.as_bytes()), text);
            assert_eq!(from_base64(text).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        assert_eq!(from_base64("Zm9v\nYmFy\r\n").as_deref(), Some(&b"foobar"[..]));
        for wrong in
            ["Z", "Zg=", "Zg===", "====", "Z===", "Zm9v-===", "Zm=v", "Zm9vYg==Zm9v", "\u{e9}a=="]
        {
            assert_eq!(from_base64(wrong), None, "{wrong}");
        }
        assert_eq!(token_bytes(&"A".repeat(4096)), None);
    }

    #[test]
    fn the_text_is_iperf3s() {
        let credentials =
            Credentials { user: "mario".into(), password: "rossi".into(), time_s: 1_700_000_000 };
        let text = "user: mario\npwd:  rossi\nts:   1700000000";
        assert_eq!(credentials.to_text(), text);
        assert_eq!(Credentials::parse(text.as_bytes()), Some(credentials.clone()));
        assert!(!format!("{credentials:?}").contains("rossi"));
        assert_eq!(credentials.salted(), "{mario}rossi");
        for wrong in ["", "user: a", "user: a\npwd:  b", "user: a\npwd:  b\nts:   x", "\u{0}"] {
            assert_eq!(Credentials::parse(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(Credentials::parse(&[0xff; 40]), None);
    }

    #[test]
    fn clocks_may_differ_by_the_threshold() {
        let credentials = Credentials { user: String::new(), password: String::new(), time_s: 100 };
        for (now_s, timely) in [(100, true), (110, true), (90, true), (111, false), (89, false)] {
            assert_eq!(credentials.is_timely(now_s, 10), timely, "{now_s}");
        }
        let never = Credentials { time_s: i64::MIN, ..credentials };
        assert!(!never.is_timely(i64::MAX, 10));
    }

    #[test]
    fn users_are_read_as_iperf3_has_them() {
        // The example of iperf3's documentation: {mario}rossi.
        let mario = "bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b";
        let text = format!("# who may measure\n\nmario,{mario}\r\nluigi, {mario}\n");
        let users = Users::parse(&text).expect("two users");
        let digest = parse_digest(mario).expect("64 digits");
        assert_eq!((users.len(), users.is_empty()), (2, false));
        assert!(users.has_digest("mario", &digest) && users.has_digest("luigi", &digest));
        assert!(!users.has_digest("peach", &digest) && !users.has_digest("mario", &[0; 32]));
        assert!(!users.has_digest("mario", &[]) && !users.has_digest("mario", &digest[..31]));
        let wrong = ["mario", "mario,12", &format!("a,{mario}\nb,{}", "z".repeat(64))];
        for (text, line) in wrong.into_iter().zip([1, 1, 2]) {
            assert_eq!(Users::parse(text), Err(UsersError(line)), "{text}");
        }
    }
}
