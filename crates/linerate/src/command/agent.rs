//! `linerate agent`: a host of a mesh.

use std::path::PathBuf;
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_core::schedule::Span;
use linerate_core::units::Bytes;
use linerate_mesh::{AgentOptions, Authority, HubAddress, JoinToken, JoinedAgent};
use linerate_store::default_path;
use linerate_sys::stop::Stop;

use super::schedule::{AGENT_STORE, accept};
use crate::exit::Outcome;
use crate::{manager, output};

/// Flags of `linerate agent`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Hub: https://HOST[:PORT] or http://HOST[:PORT], where linerate serve --mesh runs; or the
    /// broker that it hears, tls://[USER:PASSWORD@]HOST[:PORT] or nats://...
    #[arg(long, value_name = "URL", env = "LINERATE_HUB", hide_env_values = true)]
    join: HubAddress,
    /// Token of linerate mesh token, for the first time
    #[arg(long, value_name = "TOKEN", env = "LINERATE_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Believe the hub's certificate by the authority in this file (PEM) [default: this host's]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Keep results here until the hub has them [default: agent.db beside the store of other
    /// commands]
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// Keep at most this much there: beyond it samples of the oldest results go first, then results
    #[arg(long, value_name = "SIZE", default_value = "1GB")]
    spool: Bytes,
    /// End after this long
    #[arg(long = "for", value_name = "TIME", value_parser = parse_plan_time)]
    for_: Option<Duration>,
}

fn parse_plan_time(text: &str) -> Result<Duration, String> {
    Span::try_from(text.to_owned()).map(|span| span.0)
}

/// Runs `linerate agent` by its flags.
pub(crate) fn run(args: Args) -> Outcome {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(Fault::System, "find", "this program", error.to_string()))?;
    let token = args
        .token
        .as_deref()
        .map(JoinToken::read)
        .transpose()
        .map_err(|reason| Failure::new(Fault::Usage, "join", args.join.to_string(), reason))?;
    let store = match args.store {
        Some(path) => path,
        // Apart from other results: what is stored at the hub is dropped here.
        None => default_path()?.with_file_name(AGENT_STORE),
    };
    let secure = args.join.is_secure();
    let authority = secure.then(|| Authority::read(args.ca.as_deref())).transpose()?;
    match (secure, args.join.is_broker()) {
        (true, _) => {}
        (false, false) => output::print_note(
            "linerate: without TLS the agent's secret can be read on the way: use https",
        ),
        (false, true) => {
            output::print_note(
                "linerate: without TLS what agents say can be read on the way: use tls",
            );
        }
    }
    let stop = Stop::on_signals()?;
    let ready = stop.clone();
    let options = AgentOptions {
        hub: args.join,
        token,
        authority,
        store,
        spool: args.spool,
        program,
        for_: args.for_,
        accept,
        say: output::print_note,
        ready: Box::new(move || manager::tell_of_begin_and_end(&ready)),
    };
    let Some(agent) = JoinedAgent::join_mesh(options, stop.clone())? else {
        manager::report_stopping(&stop);
        output::print_note("ended before the hub answered");
        return Ok(3);
    };
    let (mesh, name) = agent.name();
    output::print_note(&format!("agent {name} of mesh {mesh} runs; Ctrl-C ends it"));
    let ended = agent.run();
    manager::report_stopping(&stop);
    let ended = ended?;
    output::print_note(&format!(
        "ended: {} results, {} runs without one; {} are kept for the hub",
        ended.good, ended.without, ended.waiting
    ));
    Ok(0)
}
