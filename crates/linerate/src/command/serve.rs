//! `linerate serve`: the other end of a test.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
#[cfg(feature = "web")]
use std::sync::Arc;
#[cfg(feature = "web")]
use std::thread::Scope;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use linerate_core::record::{DEFAULT_PORT, Failure, Fault, Via};
use linerate_core::units::parse_span;
use linerate_engine::foreign::iperf2::{AddressValidation, TrustedNetwork};
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{ClientTestEnd, LogEntry, MeasurementServer, ServeOptions};
#[cfg(feature = "web")]
use linerate_server::web::{Outer, WebOptions};
#[cfg(feature = "web")]
use linerate_store::{Store, default_path};
use linerate_sys::netlink::RouteSocket;
use linerate_sys::service;
use linerate_sys::stop::{HangUp, Stop};
use linerate_sys::tcp;
use linerate_sys::xdp::EchoReflector;
use tracing::level_filters::LevelFilter;

use super::certificate::CertificateFlags;
#[cfg(feature = "web")]
use super::certificate::ServerCertificate;
#[cfg(feature = "web")]
use super::measure::this_tool;
use super::policy;
#[cfg(feature = "web")]
use super::serve_export::{ExportFlags, hand_on};
#[cfg(feature = "web")]
use super::serve_hub::Mesh;
use super::serve_hub::MeshFlags;
use super::serve_stamp::StampFlags;
use crate::exit::Outcome;
use crate::personality::iperf3::GuardFlags;
use crate::{log, manager, output};

/// Flags of `linerate serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Port to listen on, TCP and UDP
    #[arg(short, long, default_value_t = DEFAULT_PORT)]
    port: u16,
    /// Address to listen on [default: all]
    #[arg(short = 'B', long, value_name = "ADDRESS")]
    bind: Option<IpAddr>,
    /// Maximum concurrent tests; concurrent tests disturb each other
    #[arg(long, value_name = "N", default_value_t = ServerLimits::default().tests)]
    max_tests: usize,
    /// Maximum streams per test, both directions together
    #[arg(long, value_name = "N", default_value_t = ServerLimits::default().streams)]
    max_streams: u16,
    /// Maximum duration of a test
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_span)]
    max_duration: Duration,
    /// Also serve clients of these programs, as PROGRAM[:PORT],...: iperf3, iperf2 (includes ttcp),
    /// nuttcp; none disables all [default: all, each on its usual port if that is free]
    #[arg(long, value_name = "LIST", value_parser = parse_foreign)]
    foreign: Option<Foreign>,
    #[command(flatten)]
    stamp: StampFlags,
    /// Let two hosts behind NAT that know one word meet here (UDP, the server's port), and pass on
    /// their STAMP packets where no hole can be punched
    #[arg(long)]
    meet: bool,
    /// Answer pings (ICMP echo) in the driver of this interface, before the kernel's IP (XDP);
    /// needs root
    #[arg(long, value_name = "INTERFACE")]
    xdp: Option<String>,
    /// Allow iperf 2's UDP -R to clients in NETWORK, at most RATE (default 10M) to all of them
    /// together, although their source address is unverified: 192.168.0.0/16=500M
    #[arg(long, value_name = "NETWORK[=RATE]")]
    udp_reverse_to: Vec<TrustedNetwork>,
    /// Queue iperf3 clients for this long before refusing them as busy (nuttcp clients always queue
    /// 30 s; linerate clients retry with --wait)
    #[arg(long = "queue-time", alias = "queue", value_name = "TIME", default_value = "0s",
          value_parser = parse_span)]
    queue: Duration,
    /// Let in whom this file names (linerate policy); SIGHUP reads it again
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Let in everybody on a public address, without a policy
    #[arg(long, conflicts_with = "policy")]
    open: bool,
    /// Exit after one test
    #[arg(short = '1', long)]
    one_off: bool,
    #[command(flatten)]
    web: WebFlags,
    /// Form of the log: text, or json (one object a line, figures with their units)
    #[arg(long, value_name = "FORM", default_value = "text")]
    log: log::Form,
    /// Minimum level of log lines: error, warn (clients without a result), info (tests), debug
    /// (connections, decisions) or trace (first messages)
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = log_level())]
    log_level: LevelFilter,
    #[command(flatten)]
    guard: GuardFlags,
}

/// Answers to browsers: page, store and certificate.
#[derive(Debug, clap::Args)]
struct WebFlags {
    /// Answer no HTTP: by default a browser finds a page on the server's port, and tests from there
    #[arg(long)]
    no_web: bool,
    /// Answer HTTP without the page: the API alone
    #[arg(long, conflicts_with = "no_web")]
    no_page: bool,
    /// Keep results of browsers in this store [default: as other commands]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["no_save", "no_web"])]
    store: Option<PathBuf>,
    #[command(flatten)]
    mesh: MeshFlags,
    /// Keep no results of browsers
    #[arg(long)]
    no_save: bool,
    /// Let pages of this site (scheme and host, or any) run speed tests against this server, its
    /// own and those of other programs; without it only clients that are no page do, and its own
    /// page
    #[arg(long, value_name = "ORIGIN|any", conflicts_with = "no_web", value_parser = parse_origin)]
    allow_origin: Vec<String>,
    /// Answer browsers that ask for this host by name; any answers to every name. Without it they
    /// are answered by address, by a name of one label or of .local, .internal or .home.arpa, and
    /// over TLS: a page of another name could read here through its visitor (DNS rebinding)
    #[arg(long, value_name = "NAME|any", conflicts_with = "no_web", value_parser = parse_host_name)]
    allow_host: Vec<String>,
    /// Name a linerate server outside this network: the page then measures which leg is worse, to
    /// here or from here on. The policy has to let clients measure to it (measure_to), and it has
    /// to let this page in (--allow-origin)
    #[arg(long, value_name = "HOST[:PORT]", requires = "policy",
          conflicts_with_all = ["no_web", "no_page"])]
    outer: Option<String>,
    #[command(flatten)]
    certificate: CertificateFlags,
    /// Let pages measure loss and jitter, too, by datagrams over QUIC (WebTransport) on this UDP
    /// port; 0 takes a free one [default: off]
    #[arg(long, value_name = "PORT", conflicts_with = "no_web")]
    quic_port: Option<u16>,
    #[cfg(feature = "web")]
    #[command(flatten)]
    export: ExportFlags,
}

impl WebFlags {
    /// True when it names files that SIGHUP reads again.
    const fn is_reread(&self) -> bool {
        self.certificate.is_reread() || self.mesh.mesh.is_some()
    }
}

/// `https://example.org:8080`, as a browser sends it, or `any`.
fn parse_origin(text: &str) -> Result<String, String> {
    let wrong = || format!("{text}: an origin is https://HOST or http://HOST:PORT, or any");
    let host = text.split_once("://").filter(|pair| matches!(pair.0, "http" | "https"));
    let plain = |host: &str| !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ']);
    let is_one = text == "any" || host.is_some_and(|(_, host)| plain(host));
    is_one.then(|| text.to_ascii_lowercase()).ok_or_else(wrong)
}

/// `speed.example`, without a port, or `any`.
fn parse_host_name(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let is_name = !text.is_empty() && text.bytes().all(plain);
    let wrong = || format!("{text}: a name of a host is speed.example, without a port, or any");
    is_name.then(|| text.to_ascii_lowercase()).ok_or_else(wrong)
}

/// Options of the HTTP server from the flags; none with `--no-web`.
#[cfg(feature = "web")]
fn web_options(flags: &WebFlags) -> Result<Option<WebOptions>, Failure> {
    if flags.no_web {
        return Ok(None);
    }
    let store = match &flags.store {
        _ if flags.no_save => None,
        Some(path) => Some(path.clone()),
        // Without a home directory, as services often are, nothing is kept unless a file is named.
        None => default_path().ok(),
    };
    // One that cannot be opened is told now, not after the first test.
    // No program is at work on the runs that a killed one left.
    let settled = |path| Store::open(path).and_then(|mut store| store.settle_runs());
    let opened = store.as_deref().map(settled);
    let store = match opened {
        Some(Err(failure)) if flags.store.is_some() => {
            let way_out = failure.next_step.clone();
            let way_out = way_out.unwrap_or_else(|| "name another with --store".to_owned());
            return Err(failure.advise(format!("{way_out}, or --no-save")));
        }
        Some(Err(failure)) => {
            output::print_note(&format!("linerate: keeps no results of browsers: {failure}"));
            None
        }
        _ => store,
    };
    let origins = flags.allow_origin.clone();
    Ok(Some(WebOptions { page: !flags.no_page, store, tool: this_tool(), origins }))
}

/// An address of this host that a browser on it can open.
#[cfg(feature = "web")]
fn at_hand(local: SocketAddr) -> SocketAddr {
    let ip = match local.ip() {
        any if any.is_unspecified() => IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
        one => one,
    };
    SocketAddr::new(ip, local.port())
}

/// Lines with the URLs of the page, or of the API: on this host, then at each address that other
/// hosts reach.
#[cfg(feature = "web")]
fn page_lines(page: bool, local: SocketAddr, own: &[IpAddr]) -> Vec<String> {
    let path = if page { "" } else { "api/v1/server" };
    let here = at_hand(local);
    let url = |at: SocketAddr| format!("http://{at}/{path}");
    let others = own.iter().map(|ip| SocketAddr::new(*ip, local.port()));
    let others: Vec<String> =
        others.filter(|at| *at != here).take(ADDRESSES_MAX).map(url).collect();
    let what = if page { "a browser finds the page" } else { "no page; the API is" };
    let mut lines = vec![format!("linerate: {what} at {}", url(here))];
    if !others.is_empty() {
        lines.push(format!("linerate: from another host: {}", others.join(" or ")));
    }
    lines
}

/// Lets hosts behind NAT meet here, with --meet, and prints a line.
fn let_meet(server: &mut MeasurementServer, asked: bool) -> Result<(), Failure> {
    if asked {
        server.let_meet()?;
        let port = server.local_addr()?.port();
        output::print_note(&format!("linerate: hosts behind NAT meet on UDP port {port}"));
    }
    Ok(())
}

/// Puts the reflector of echo requests on an interface and prints a line.
fn reflect_echo(interface: &str) -> Result<EchoReflector, Failure> {
    let failed = |reason: linerate_sys::Error| {
        Failure::new(Fault::System, "answer pings by XDP on", interface, reason.source)
            .advise("it takes root, and an Ethernet interface without another XDP program")
    };
    let mut socket = RouteSocket::open().map_err(failed)?;
    let index = socket.link_by_name(interface).map_err(failed)?.index;
    let own = socket.addresses().map_err(failed)?.into_iter();
    let own: Vec<IpAddr> = own.filter(|(of, _)| *of == index).map(|(_, addr)| addr).collect();
    let reflector = EchoReflector::attach(index, &own).map_err(failed)?;
    let place = if reflector.is_native() { "in the driver" } else { "behind the driver" };
    output::print_note(&format!("linerate: answers pings on {interface} by XDP, {place}"));
    if socket.link_by_name(interface).is_ok_and(|link| link.kind.as_deref() == Some("veth")) {
        output::print_note(
            "linerate: over a veth these answers reach only an end with XDP: linerate ping --xdp",
        );
    }
    Ok(reflector)
}

fn log_level() -> impl TypedValueParser<Value = LevelFilter> {
    PossibleValuesParser::new(log::LEVELS).try_map(|level| level.parse::<LevelFilter>())
}

/// Answers HTTP unless it is switched off, and prints the addresses of the page.
#[cfg(feature = "web")]
fn answer_browsers(
    server: &mut MeasurementServer,
    flags: &WebFlags,
    local: SocketAddr,
) -> Result<Option<ServerCertificate>, Failure> {
    let Some(options) = web_options(flags)? else { return Ok(None) };
    let page = options.page;
    server.serve_web(options);
    server.allow_hosts(&flags.allow_host);
    if let Some(text) = &flags.outer {
        let wrong = |reason: String| Failure::new(Fault::Usage, "serve with", "--outer", reason);
        server.name_outer(Outer::parse(text).map_err(wrong)?);
    }
    hand_on(server, &flags.export);
    let quic_port = flags.quic_port.map(|port| server.serve_datagrams(port)).transpose()?;
    let certificate = ServerCertificate::read(&flags.certificate)?;
    let at = at_hand(local);
    page_lines(page, local, &own_addresses(local)).iter().for_each(|line| output::print_note(line));
    if let Some(port) = quic_port {
        let port = port.unwrap_or_default();
        output::print_note(&format!(
            "linerate: pages measure loss by WebTransport on UDP port {port}"
        ));
    }
    if let Some(ServerCertificate { tls, .. }) = &certificate {
        server.serve_tls(Arc::clone(tls));
        output::print_note(&format!(
            "linerate: and over TLS at https://{at}/, but for speed tests"
        ));
    }
    Ok(certificate)
}

/// Answers browsers, and the agents of a mesh.
#[cfg(feature = "web")]
fn answer_web(
    server: &mut MeasurementServer,
    flags: &WebFlags,
    local: SocketAddr,
) -> Result<(Option<ServerCertificate>, Option<Mesh>), Failure> {
    let certificate = answer_browsers(server, flags, local)?;
    Ok((certificate, Mesh::open_hub(server, &flags.mesh, flags.store.as_deref())?))
}

/// Watches the mesh and keeps the certificate, where there are any, until `stop`.
#[cfg(feature = "web")]
fn keep_up<'scope>(
    scope: &'scope Scope<'scope, '_>,
    certificate: Option<&'scope ServerCertificate>,
    mesh: Option<&'scope Mesh>,
    stop: &'scope Stop,
) {
    mesh.into_iter().for_each(|mesh| mesh.spawn_workers(scope, stop));
    certificate
        .into_iter()
        .for_each(|certificate| drop(scope.spawn(|| certificate.keep_valid(stop))));
}

/// Reads certificate and plan again, where there are any.
#[cfg(feature = "web")]
fn read_again(certificate: Option<&ServerCertificate>, mesh: Option<&Mesh>) {
    certificate.into_iter().for_each(ServerCertificate::read_again);
    mesh.into_iter().for_each(Mesh::read_plan_again);
}

/// Runs `work` at each SIGHUP.
fn on_hang_up(hang_up: &HangUp, stop: &Stop, work: impl Fn()) {
    while !stop.is_requested() {
        linerate_sys::clock::sleep(LOOK);
        if hang_up.take_signal() {
            work();
        }
    }
}

fn say_ports(server: &MeasurementServer, local: SocketAddr) {
    let echo = if server.echoes() { "TCP tests and UDP echo" } else { "TCP tests" };
    output::print_note(&format!("linerate: serving on {local}, {echo}"));
    if !server.echoes() {
        output::print_note("linerate: no UDP echo: another program has that UDP port");
    }
}

fn say_others(server: &MeasurementServer) {
    let others = server.foreign().map(|(via, port)| format!("{via} on port {port}"));
    let others: Vec<_> = others.collect();
    if !others.is_empty() {
        output::print_note(&format!("linerate: answers {} too", others.join(", ")));
    }
}

fn say_limits(limits: ServerLimits) {
    output::print_note(&format!(
        "linerate: limits: {} at once, {} streams, {} s a test, {} connections; Ctrl-C ends",
        if limits.tests == 1 { "1 test".to_owned() } else { format!("{} tests", limits.tests) },
        limits.streams,
        limits.duration.as_secs(),
        limits.connections
    ));
}

/// The line of a server whose clients of iperf3 sign in.
const ASKS_CLIENTS: &str =
    "linerate: asks clients of iperf3 who they are, those of others do not say";

/// Runs `linerate serve` by its flags.
pub(crate) fn run(args: Args) -> Outcome {
    log::install_logger(args.log_level, args.log);
    let stop = Stop::on_signals()?;
    linerate_sys::open_files::raise_limit();
    let reflector = args.stamp.options()?;
    let guard = args.guard.login_guard()?;
    let limits = ServerLimits {
        tests: args.max_tests,
        streams: args.max_streams,
        duration: args.max_duration,
        queue: args.queue,
        ..ServerLimits::default()
    };
    let foreign = args.foreign.unwrap_or(Foreign::Usual);
    let (handed_over, local) = handed_over(args.bind, args.port)?;
    let policy = args.policy.as_deref().map(policy::read).transpose()?;
    if policy.is_none() {
        policy::check_exposure(local, args.open)?;
    }
    let is_reread = args.policy.is_some() || args.web.is_reread();
    let hang_up = is_reread.then(HangUp::listen).transpose()?;
    let mut server = bind_server(handed_over, &ServeOptions { local, limits, foreign })?;
    let (local, limits) = (server.local_addr()?, server.limits());
    args.stamp.reflect(&mut server, reflector)?;
    let_meet(&mut server, args.meet)?;
    let _reflector = args.xdp.as_deref().map(reflect_echo).transpose()?;
    #[cfg(feature = "web")]
    let (certificate, mesh) = answer_web(&mut server, &args.web, local)?;
    // Nothing that may fail comes after it: who reads this line may send.
    say_ports(&server, local);
    say_others(&server);
    invitation(local).iter().for_each(|line| output::print_note(line));
    say_limits(limits);
    server.trust_udp(AddressValidation::default().with_networks(&args.udp_reverse_to));
    if let Some(guard) = guard {
        server.guard_iperf3(guard);
        output::print_note(ASKS_CLIENTS);
    }
    let one_off = args.one_off.then(|| stop.clone());
    let on_client = move |entry: &LogEntry<'_>| {
        let LogEntry { peer, line, ways, .. } = entry;
        let ways = linerate_core::tree::to_json(ways).unwrap_or_default();
        if let ClientTestEnd::Failed(_) = entry.ending {
            tracing::warn!(%peer, %ways, "{line}");
            return;
        }
        tracing::info!(%peer, %ways, "{line}");
        one_off.iter().for_each(Stop::request_stop);
    };
    if let Some(policy) = policy {
        server.set_policy(policy);
    }
    manager::notify("READY=1");
    std::thread::scope(|scope| {
        #[cfg(feature = "web")]
        keep_up(scope, certificate.as_ref(), mesh.as_ref(), &stop);
        scope.spawn(|| manager::tell_of_the_end(&stop));
        if let Some(hang_up) = &hang_up {
            scope.spawn(|| {
                on_hang_up(hang_up, &stop, || {
                    args.policy.iter().for_each(|file| policy::read_again(file, &server));
                    #[cfg(feature = "web")]
                    read_again(certificate.as_ref(), mesh.as_ref());
                });
            });
        }
        server.run(&stop, &on_client);
    });
    Ok(0)
}

/// The listener that the service manager opened, and the address to listen at: its, or as asked.
fn handed_over(
    bind: Option<IpAddr>,
    port: u16,
) -> Result<(Option<TcpListener>, SocketAddr), Failure> {
    let listener = service::handed_over();
    let asked = || SocketAddr::new(bind.unwrap_or_else(tcp::any_address_here), port);
    let at = |listener: TcpListener| {
        let local = listener.local_addr()?;
        Ok((Some(listener), local))
    };
    let found = listener.and_then(|listener| listener.map_or_else(|| Ok((None, asked())), at));
    found.map_err(|error: std::io::Error| {
        Failure::new(Fault::System, "take over", "the sockets of the service manager", error)
            .advise("give the .socket unit one ListenStream= with a port")
    })
}

fn bind_server(
    handed_over: Option<TcpListener>,
    options: &ServeOptions,
) -> Result<MeasurementServer, Failure> {
    match handed_over {
        Some(listener) => MeasurementServer::from_listener(listener, options),
        None => MeasurementServer::bind(options),
    }
}

/// Interval at which the stop flag is read.
const LOOK: Duration = Duration::from_millis(100);

/// Addresses that are listed; a host of containers has hundreds.
const ADDRESSES_MAX: usize = 6;

/// Addresses of this host that others can reach a listener at.
fn own_addresses(local: SocketAddr) -> Vec<IpAddr> {
    let here = || {
        let found = RouteSocket::open().and_then(|mut socket| socket.addresses());
        found.unwrap_or_default().into_iter().map(|(_, addr)| addr)
    };
    match local.ip() {
        any if any.is_unspecified() => here().filter(|addr| is_reachable(*addr, any)).collect(),
        one => vec![one],
    }
}

/// Commands to type on another host, one for each address of this host that it can reach.
fn invitation(local: SocketAddr) -> Vec<String> {
    let addresses = own_addresses(local);
    let port = local.port();
    let line = |addr: &IpAddr| {
        let target = match (addr, port) {
            (addr, DEFAULT_PORT) => addr.to_string(),
            (addr, port) => SocketAddr::new(*addr, port).to_string(),
        };
        format!("linerate: from another host: linerate tcp {target}")
    };
    let mut lines: Vec<String> = addresses.iter().take(ADDRESSES_MAX).map(line).collect();
    if lines.is_empty() {
        lines.push("linerate: this host has no address that others can reach".to_owned());
    }
    if let Some(more) = addresses.len().checked_sub(ADDRESSES_MAX).filter(|more| *more > 0) {
        lines.push(format!("linerate: and at {more} more addresses (ip address)"));
    }
    lines
}

/// True when other hosts may reach an address of this one: not loopback, and not link-local, which
/// needs the client's interface. An IPv6 listener on all addresses takes IPv4, too.
const fn is_reachable(addr: IpAddr, listener: IpAddr) -> bool {
    match addr {
        IpAddr::V4(addr) => !addr.is_loopback() && !addr.is_link_local(),
        IpAddr::V6(addr) => {
            listener.is_ipv6() && !addr.is_loopback() && !addr.is_unicast_link_local()
        }
    }
}

/// Reads a list of programs and ports, `iperf2,nuttcp:6000`, or `none`.
fn parse_foreign(text: &str) -> Result<Foreign, String> {
    if text == "none" {
        return Ok(Foreign::without_ports());
    }
    let one = |item: &str| {
        let (name, port) =
            item.split_once(':').map_or((item, None), |(name, port)| (name, Some(port)));
        let via: Via = name.parse()?;
        if via == Via::Http {
            return Err("http: it is answered on the server's own port; see --no-web".to_owned());
        }
        // Both use one port and are told apart by their first bytes.
        let via = if via == Via::Ttcp { Via::Iperf2 } else { via };
        let port = port.map_or_else(|| Ok(via.default_port()), str::parse);
        Ok((via, port.map_err(|_| format!("{item}: a port is 0 to 65535"))?))
    };
    text.split(',').map(one).collect::<Result<_, String>>().map(Foreign::These)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allow_origin_takes_what_a_browser_sends_as_the_origin_of_a_page() {
        assert_eq!(
            parse_origin("https://Speed.example:8443"),
            Ok("https://speed.example:8443".to_owned())
        );
        assert_eq!(parse_origin("any"), Ok("any".to_owned()));
        for text in ["speed.example", "https://", "https://a/b", "ftp://a", "*", ""] {
            assert!(parse_origin(text).is_err(), "{text} for --allow-origin");
        }
    }

    #[test]
    #[cfg(feature = "web")]
    fn a_browser_of_another_host_is_told_an_address_that_it_can_open() {
        let own = ["192.0.2.1", "2001:db8::1"].map(|text| text.parse().expect("an address"));
        let lines = |page, local: &str, own: &[IpAddr]| {
            page_lines(page, local.parse().expect("an address"), own).join("\n")
        };
        assert_eq!(
            lines(true, "[::]:5210", &own),
            "linerate: a browser finds the page at http://127.0.0.1:5210/\n\
             linerate: from another host: http://192.0.2.1:5210/ or http://[2001:db8::1]:5210/"
        );
        assert_eq!(
            lines(true, "192.0.2.1:6000", &own[..1]),
            "linerate: a browser finds the page at http://192.0.2.1:6000/"
        );
        assert!(lines(false, "127.0.0.1:1", &[]).ends_with("http://127.0.0.1:1/api/v1/server"));
    }

    #[test]
    fn allow_host_takes_a_name_without_a_port() {
        assert_eq!(parse_host_name("Speed.example"), Ok("speed.example".to_owned()));
        for text in ["", "speed.example:80", "http://speed.example", "[::1]", "a b"] {
            assert!(parse_host_name(text).is_err(), "{text} for --allow-host");
        }
    }

    #[test]
    fn a_client_is_told_an_address_that_it_can_reach_with_the_port_where_it_is_unusual() {
        let line = |local: &str| invitation(local.parse().expect("an address")).join("\n");
        let start = "linerate: from another host: linerate tcp ";
        assert_eq!(line("192.0.2.1:5210"), format!("{start}192.0.2.1"));
        assert_eq!(line("192.0.2.1:6000"), format!("{start}192.0.2.1:6000"));
        assert_eq!(line("[2001:db8::1]:6000"), format!("{start}[2001:db8::1]:6000"));
        let reachable = |addr: &str, listener: &str| {
            is_reachable(addr.parse().expect("one"), listener.parse().expect("another"))
        };
        assert!(reachable("192.0.2.1", "::") && reachable("fd00::2", "::"));
        assert!(!reachable("fd00::2", "0.0.0.0"), "it listens on IPv4 alone");
        for addr in ["127.0.0.1", "::1", "fe80::1", "169.254.1.1"] {
            assert!(!reachable(addr, "::"), "{addr}");
        }
    }
}
