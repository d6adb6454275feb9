//! Options of SYN and SYN-ACK that a packet filter between two kernels removes or changes, in a
//! laboratory: each is named with the segment that it was taken from, and none where nothing is
//! taken.
//!
//! Needs the privilege to make network namespaces, and nft(8); says so and passes without.
#![allow(clippy::print_stdout, reason = "a skipped test is to be seen")]

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Stdio};

use linerate_core::explain::explain;
use linerate_core::lab::LabPlan;
use linerate_core::record::{
    Finish, Handshake, OptionChange, ServerPlan, TcpDirections, TcpOption, TcpPlan, TcpTest, Tool,
};
use linerate_engine::context::Context;
use linerate_engine::lab::Lab;
use linerate_engine::throughput;
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{MeasurementServer, ServeOptions};
use linerate_sys::stop::Stop;
use linerate_sys::userns;

/// Both ask for ECN, so that there is something to remove.
const LAB: &str = "host = [{ name = \"a\", tcp = { ecn = true } },\n\
                   { name = \"b\", tcp = { ecn = true } }]\n\
                   link = [{ ends = [\"a\", \"b\"], offload = false }]\n";

/// What arrives at a host passes this rule first. Whether nft could be run.
fn filter(lab: &Lab, host: &str, rule: &str) -> bool {
    let rules = format!(
        "table inet strip\ndelete table inet strip\ntable inet strip {{\n chain arriving {{\n type \
         filter hook prerouting priority -300\n {rule}\n }}\n }}\n"
    );
    let done = lab.run_on(host, || {
        let mut nft = Command::new("nft").args(["-f", "-"]).stdin(Stdio::piped()).spawn()?;
        nft.stdin.take().expect("a pipe").write_all(rules.as_bytes())?;
        nft.wait()
    });
    match done.expect("the host runs it") {
        Ok(status) => assert!(status.success(), "nft: {status}: {rule}"),
        Err(error) => {
            println!("skipped: nft is not installed ({error})");
            return false;
        }
    }
    true
}

struct AskOnDrop<'a>(&'a Stop);

impl Drop for AskOnDrop<'_> {
    fn drop(&mut self) {
        self.0.request_stop();
    }
}

/// What a short test from `a` to `b` says of the handshake, by the verdict of its direction.
fn seen(lab: &Lab, directions: TcpDirections, test: TcpTest) -> Vec<OptionChange> {
    let address: IpAddr = lab.address_of("b").expect("it has a link");
    let options = ServeOptions {
        local: SocketAddr::new(address, 0),
        limits: ServerLimits::default(),
        foreign: Foreign::without_ports(),
    };
    let server =
        lab.run_on("b", || MeasurementServer::bind(&options)).expect("runs").expect("binds");
    let port = server.local_addr().expect("bound").port();
    let stop = Stop::new();
    std::thread::scope(|scope| {
        scope.spawn(|| lab.run_on("b", || server.run(&stop, &|_| {})));
        let _ends = AskOnDrop(&stop);
        let plan = TcpPlan {
            server: ServerPlan::new(None, address.to_string(), port),
            test: TcpTest { directions, finish: Finish::Bytes(2_000_000), ..test },
            ..TcpPlan::default()
        };
        let run = || {
            let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
            let mut context = Context { tool, stop: Stop::new(), watch: &mut |_| {} };
            throughput::run_tcp(&plan, &mut context)
        };
        let record = lab.run_on("a", run).expect("the host runs it");
        assert_eq!(record.failure, None);
        let verdicts = explain(&record);
        let [verdict] = verdicts.as_slice() else { panic!("one direction: {verdicts:?}") };
        verdict.handshake.clone()
    })
}

const SYN: &str = "tcp flags & (syn | ack) == syn";
const SYN_ACK: &str = "tcp flags & (syn | ack) == (syn | ack)";

/// The rule's own words for what it does, and what is to be seen of it. Values are not compared
/// where the kernel chooses them.
fn cases() -> [(&'static str, TcpOption, Option<u32>); 5] {
    [
        ("reset tcp option window", TcpOption::WindowScale, None),
        ("reset tcp option sack-perm", TcpOption::Sack, None),
        ("reset tcp option timestamp", TcpOption::Timestamps, None),
        ("tcp option maxseg size set 1200", TcpOption::Mss, Some(1200)),
        ("tcp flags set", TcpOption::Ecn, None),
    ]
}

fn check(lab: &Lab, host: &str, segment: Handshake) -> bool {
    let (matches, bare) =
        if segment == Handshake::Syn { (SYN, " syn") } else { (SYN_ACK, " syn | ack") };
    for (number, (action, option, arrived)) in cases().into_iter().enumerate() {
        let value = if option == TcpOption::Ecn { bare } else { "" };
        if !filter(lab, host, &format!("{matches} {action}{value}")) {
            return false;
        }
        // A client that takes the server's scaled window for a plain one sends 64 bytes at a time.
        let directions = match option {
            TcpOption::WindowScale => TcpDirections::Down,
            _ => [TcpDirections::Up, TcpDirections::Down][number % 2],
        };
        let changes = seen(lab, directions, TcpTest::default());
        let [change] = changes.as_slice() else { panic!("{segment:?} {action}: {changes:?}") };
        let found = (change.segment, change.option, change.arrived);
        assert_eq!(found, (segment, option, arrived), "{action}: {change:?}");
        // 1500 bytes less the headers of IPv4 and TCP, or of IPv6.
        let sent = [Some(1460), Some(1440)];
        assert!(option != TcpOption::Mss || sent.contains(&change.sent), "{change:?}");
    }
    true
}

/// A host that does without an option is no device that removes it.
#[test]
fn what_a_host_does_not_offer_or_accept_was_not_removed() {
    crate::turn::take();
    if !userns::may_make_networks() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return;
    }
    let off = "tcp = { window_scaling = false, sack = false, timestamps = false, ecn = false }";
    let hosts = [
        format!("{{ name = \"a\", {off} }}, {{ name = \"b\" }}"),
        format!("{{ name = \"a\", tcp = {{ ecn = true }} }}, {{ name = \"b\", {off} }}"),
    ];
    for hosts in hosts {
        let text = format!("host = [{hosts}]\nlink = [{{ ends = [\"a\", \"b\"] }}]\n");
        let plan = LabPlan::from_toml(&text, "test.toml").expect("a plan");
        let lab = Lab::build_from_plan(&plan).expect("the laboratory stands");
        for directions in [TcpDirections::Up, TcpDirections::Down] {
            assert_eq!(seen(&lab, directions, TcpTest::default()), [], "{text}");
        }
    }
}

#[test]
fn what_a_device_takes_from_a_handshake_is_named_with_the_segment() {
    crate::turn::take();
    if !userns::may_make_networks() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return;
    }
    let plan = LabPlan::from_toml(LAB, "test.toml").expect("a plan");
    let lab = Lab::build_from_plan(&plan).expect("the laboratory stands");
    for directions in [TcpDirections::Up, TcpDirections::Down] {
        assert_eq!(seen(&lab, directions, TcpTest::default()), [], "nothing is on the way");
        // What the user made small is no device's work.
        let small = TcpTest { mss_bytes: Some(900), ..TcpTest::default() };
        assert_eq!(seen(&lab, directions, small), []);
    }
    if check(&lab, "b", Handshake::Syn) {
        filter(&lab, "b", "accept");
        check(&lab, "a", Handshake::SynAck);
    }
}
