//! `linerate policy`: whom a server lets in, checked and explained, and tokens for it.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_core::policy::{Act, Policy, PolicyRequest, Program, TestKind, is_public};
use linerate_core::record::{Failure, Fault};
use linerate_core::time::WallTime;
use linerate_core::units::{BitRate, Bytes, parse_span};
use linerate_proto::digest::sha256;
use linerate_server::listen::MeasurementServer;
use linerate_store::Forgotten;
use linerate_sys::clock::{random_bytes, wall_time};
use linerate_sys::netlink::RouteSocket;

use super::quantity::rate_with_unit;
use crate::exit::Outcome;
use crate::{output, paths};

/// Flags of `linerate policy`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: PolicyCommand,
}

#[derive(Debug, clap::Subcommand)]
enum PolicyCommand {
    /// Read a policy file and say whether a server would start with it
    Check {
        /// The policy
        file: PathBuf,
    },
    /// Say which rule decides about a client, and why
    Explain(Explain),
    /// Delete from a store what the policy no longer keeps, as a server that has it does
    Prune(Prune),
    /// Make a token: printed once, its hash is for the policy file
    Token {
        /// How rules name it
        #[arg(long, value_name = "NAME")]
        name: String,
        /// Refuse it from this day on: 2027-01-31
        #[arg(long, value_name = "DAY")]
        expires: Option<String>,
    },
}

/// Results to remove.
#[derive(Debug, clap::Args)]
struct Prune {
    /// The policy, with [keep]
    file: PathBuf,
    /// The store [default: this user's]
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// Only say how many results would go
    #[arg(long)]
    dry_run: bool,
}

/// A question to a policy.
#[derive(Debug, clap::Args)]
struct Explain {
    /// The policy
    file: PathBuf,
    /// Address of the client
    #[arg(long, value_name = "ADDRESS")]
    from: IpAddr,
    /// Token that the client shows
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Kind of test, or the list of results
    #[arg(long, value_name = "TEST", default_value = "tcp",
          value_parser = ["tcp", "udp", "trace", "results"])]
    test: String,
    /// Instead of a test: a measurement from the server to this address, as the page's "Run from
    /// here" asks for
    #[arg(long, value_name = "ADDRESS",
          conflicts_with_all = ["test", "program", "rate", "time", "streams"])]
    measure_to: Option<IpAddr>,
    /// Program that it asks with
    #[arg(long, value_name = "PROGRAM", default_value = "linerate",
          value_parser = ["linerate", "iperf3", "iperf2", "nuttcp", "http"])]
    program: String,
    /// Rate of the test, all streams of a direction together [default: as fast as it goes]
    #[arg(long, value_name = "RATE", value_parser = rate_with_unit)]
    rate: Option<BitRate>,
    /// Duration of the test
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_span)]
    time: Duration,
    /// Streams of the test
    #[arg(long, value_name = "N", default_value_t = 1)]
    streams: usize,
}

/// Runs `linerate policy` by its flags.
pub(crate) fn run(args: Args) -> Outcome {
    match args.what {
        PolicyCommand::Check { file } => {
            let policy = read(&file)?;
            let (rules, tokens) = (policy.rules.len(), policy.tokens.len());
            let kept = policy.keep.map(|keep| format!("; results are kept {keep}"));
            let kept = kept.unwrap_or_default();
            output::print_line(&format!(
                "{}: {rules} rules, {tokens} tokens{kept}",
                file.display()
            ));
            Ok(0)
        }
        PolicyCommand::Explain(asked) => explain(&asked),
        PolicyCommand::Prune(asked) => prune_store(&asked),
        PolicyCommand::Token { name, expires } => make_token(&name, expires.as_deref()),
    }
}

/// Reads a policy.
/// # Errors
/// The file, the line, the key, what is wrong and what is allowed.
pub(crate) fn read(file: &Path) -> Result<Policy, Failure> {
    let failed =
        |why: String| Failure::new(Fault::Usage, "read policy", file.display().to_string(), why);
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| paths::unreadable("read policy", file, &error))?;
    Policy::from_toml(&text).map_err(failed)
}

fn explain(asked: &Explain) -> Outcome {
    let policy = read(&asked.file)?;
    let kind = match asked.test.as_str() {
        "udp" => TestKind::Udp,
        "trace" => TestKind::Trace,
        _ => TestKind::Tcp,
    };
    let program = match asked.program.as_str() {
        "iperf3" => Program::Iperf3,
        "iperf2" => Program::Iperf2,
        "nuttcp" => Program::Nuttcp,
        "http" => Program::Http,
        _ => Program::Linerate,
    };
    let rate_bps = asked.rate.map(BitRate::bits_per_sec);
    let (time, streams) = (Some(asked.time), asked.streams);
    let act = match (asked.measure_to, asked.test.as_str()) {
        (Some(target), _) => Act::MeasureTo(target),
        (None, "results") => Act::Results,
        _ => Act::Test { kind, program, rate_bps, time, streams },
    };
    let token = asked.token.as_ref().map(|token| sha256(token.as_bytes()));
    let decision = policy.decide(&PolicyRequest { from: asked.from, token, now: wall_time(), act });
    let rule = decision.rule.map_or_else(
        || "no rule has this client".to_owned(),
        |rule| format!("rule {:?} decides", rule.name),
    );
    let (verdict, code) = match &decision.refused {
        None => ("allowed".to_owned(), 0),
        Some(why) => (format!("refused: {why}"), 1),
    };
    output::print_line(&format!("{verdict} ({rule})"));
    if asked.test == "results" {
        let kept = policy.keep.as_ref().map_or_else(|| "all".to_owned(), ToString::to_string);
        output::print_line(&format!("results are kept: {kept}"));
    }
    if asked.measure_to.is_some() {
        let networks = decision.rule.map(|rule| &rule.measure_to[..]).unwrap_or_default();
        let networks: Vec<String> = networks.iter().map(ToString::to_string).collect();
        let networks = if networks.is_empty() { "nobody".to_owned() } else { networks.join(", ") };
        output::print_line(&format!("measures from here to: {networks}"));
    }
    Ok(code)
}

fn prune_store(asked: &Prune) -> Outcome {
    let Some(keep) = read(&asked.file)?.keep else {
        let object = asked.file.display().to_string();
        let failure = Failure::new(Fault::Usage, "prune by", object, "it has no [keep]");
        return Err(failure.advise("say what stays: time = \"90d\", count or bytes").into());
    };
    let mut store = paths::filled(asked.store.as_deref())?;
    let place = store.path().display().to_string();
    let mut gone = Forgotten::default();
    loop {
        let step = match asked.dry_run {
            true => store.would_forget(&keep, wall_time())?,
            false => store.forget(&keep, wall_time())?,
        };
        (gone.results, gone.bytes) = (gone.results + step.results, gone.bytes + step.bytes);
        if !step.more {
            break;
        }
    }
    let (results, bytes) = (gone.results, Bytes::new(gone.bytes).transferred());
    let went = if asked.dry_run { "would go" } else { "deleted" };
    output::print_line(&format!(
        "{place}: {results} results {went}, {bytes} of records; kept: {keep}"
    ));
    Ok(0)
}

fn make_token(name: &str, expires: Option<&str>) -> Outcome {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || !name.chars().all(plain) {
        let reason = "letters, digits, - _ and . are allowed";
        return Err(Failure::new(Fault::Usage, "name a token", name, reason).into());
    }
    if let Some(day) = expires {
        let dated = day.starts_with(|c: char| c.is_ascii_digit()) && day.len() >= 10;
        let end = WallTime::from_user_text(day, wall_time())
            .ok()
            .filter(|end| dated && *end > wall_time());
        if end.is_none() {
            let reason = "it is no day to come; write 2027-01-31";
            return Err(Failure::new(Fault::Usage, "let a token expire", day, reason).into());
        }
    }
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let secret = hex(&random_bytes::<32>());
    let digest = hex(&sha256(secret.as_bytes()));
    let end = expires.map(|day| format!("expires = \"{day}\"\n")).unwrap_or_default();
    output::print_note(&format!("linerate: the token, shown once: Authorization: Bearer {secret}"));
    output::print_text(&format!("[[token]]\nname = \"{name}\"\nsha256 = \"{digest}\"\n{end}"));
    Ok(0)
}

/// Refuses to serve the Internet without a policy, unless that is asked for.
pub(crate) fn check_exposure(local: SocketAddr, open: bool) -> Result<(), Failure> {
    if open {
        return Ok(());
    }
    let public = match local.ip() {
        any if any.is_unspecified() => {
            let found = RouteSocket::open().and_then(|mut socket| socket.addresses());
            // Where the kernel tells no addresses, nothing is known to be public.
            let found = found.unwrap_or_default().into_iter().map(|(_, address)| address);
            found
                .filter(|address| any.is_ipv6() || address.is_ipv4())
                .find(|address| is_public(*address))
        }
        one => Some(one).filter(|address| is_public(*address)),
    };
    let Some(public) = public else { return Ok(()) };
    let reason = format!("{public} is a public address, and no policy says who may test");
    let failure = Failure::new(Fault::Usage, "serve on", local.to_string(), reason);
    Err(failure.advise("--policy FILE; or --bind ADDRESS of an internal network; or --open"))
}

/// Reads the policy again; a bad one changes nothing.
pub(crate) fn read_again(file: &Path, server: &MeasurementServer) {
    match read(file) {
        Ok(policy) => {
            server.set_policy(policy);
            tracing::info!("policy {} is in force from now on", file.display());
        }
        Err(failure) => tracing::error!("the policy stays as it was: {failure}"),
    }
}
