//! Searches for the capacity between the engine and the server, over emulated paths in
//! laboratories. What the path itself counted is exact; the rate found is held to its ceiling only
//! where the record says that nothing of this machine stood in the way.
//!
//! A server of an older version is told from what it does not say.
//!
//! Laboratories need the privilege to make network namespaces and /dev/net/tun; they say so and
//! pass when it is absent.
#![allow(clippy::print_stdout, reason = "a skipped test is to be seen")]

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Mutex, PoisonError};

use linerate_core::lab::LabPlan;
use linerate_core::record::{
    CapacitySearch, CaveatCode, Direction, Event, Fault, Finish, HeaderLayer, MeasurementEnd,
    MetricId, Record, RecordStatus, SearchDelay, SearchPlan, SearchStep, ServerPlan, Stat,
    TcpDirections, Tool, UdpPlan, UdpTest,
};
use linerate_core::units::BitRate;
use linerate_engine::context::Context;
use linerate_engine::lab::Lab;
use linerate_engine::throughput;
use linerate_proto::native::{Accept, Decoder, Hello, HelloKind, Message, Token, encode};
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{MeasurementServer, ServeOptions};
use linerate_sys::stop::Stop;
use linerate_sys::userns;

const V4: &str = "10.0.1.2";
const V6: &str = "fd00:0:0:1::2";
const MS: u64 = 1_000_000;

/// Two hosts with a path between them.
fn lab(path: &str) -> Option<Lab> {
    crate::turn::take();
    if !userns::may_make_networks() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return None;
    }
    if std::fs::metadata("/dev/net/tun").is_err() {
        println!("skipped: there is no /dev/net/tun");
        return None;
    }
    let text = format!(
        "host = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n\
         link = [{{ ends = [\"a\", \"b\"], path = {{ {path} }} }}]\n"
    );
    let plan = LabPlan::from_toml(&text, "test.toml").expect("a plan");
    Some(Lab::build_from_plan(&plan).expect("the laboratory stands"))
}

struct AskOnDrop<'a>(&'a Stop);

impl Drop for AskOnDrop<'_> {
    fn drop(&mut self) {
        self.0.request_stop();
    }
}

/// Two seconds in sub-intervals of a quarter of one.
fn plan(directions: TcpDirections) -> UdpPlan {
    UdpPlan {
        test: UdpTest {
            directions,
            finish: Finish::TimeNs(2000 * MS),
            interval_ns: 250 * MS,
            pace: None,
            search: Some(SearchPlan::default()),
            ..UdpTest::default()
        },
        ..UdpPlan::default()
    }
}

/// Serves on host `b` and searches from host `a`; with the sub-intervals as they were told.
fn search_in(lab: &Lab, address: &str, plan: &UdpPlan) -> (Record, usize) {
    let address: IpAddr = address.parse().expect("an address");
    let local = SocketAddr::new(address, 0);
    let options =
        ServeOptions { local, limits: ServerLimits::default(), foreign: Foreign::without_ports() };
    let server =
        lab.run_on("b", || MeasurementServer::bind(&options)).expect("runs").expect("binds");
    let stop = Stop::new();
    std::thread::scope(|scope| {
        scope.spawn(|| lab.run_on("b", || server.run(&stop, &|_| {})));
        let _ends = AskOnDrop(&stop);
        let port = server.local_addr().expect("bound").port();
        let plan =
            UdpPlan { server: ServerPlan::new(None, address.to_string(), port), ..plan.clone() };
        let run = move || {
            let mut told = 0;
            let mut watch =
                |event: &Event| told += usize::from(matches!(event, Event::SubInterval(_)));
            let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
            let mut context = Context { tool, stop: Stop::new(), watch: &mut watch };
            let record = throughput::run_udp(&plan, &mut context);
            (record, told)
        };
        lab.run_on("a", run).expect("the host runs it")
    })
}

/// What holds of every search however busy the machine is.
fn check(record: &Record, told: usize, packet_bytes: u32) -> CapacitySearch {
    assert_eq!(record.failure, None);
    assert_eq!(record.status, RecordStatus::Ok);
    let found = record.search.clone().expect("a search was asked for");
    let direction = found.direction;
    assert_eq!(found.packet_bytes, packet_bytes);
    assert_eq!(told, found.sub_intervals.len(), "each was told as it ended");
    let indices: Vec<u32> = found.sub_intervals.iter().map(|row| row.span.index).collect();
    // Eight of a quarter of a second in 2 s, less those that a busy machine could not fill.
    assert_eq!(indices, (0..told as u32).collect::<Vec<u32>>());
    assert!(told <= 8, "{told}");
    assert!(told > 0 || disturbed(record), "not one whole sub-interval: {:?}", record.caveats);
    let flow = &record.flows[0];
    let received = flow.receiver.as_ref().and_then(|end| end.received_datagrams.as_ref());
    let sent = flow.sender.as_ref().and_then(|end| end.sent_datagrams.as_ref());
    let (received, sent) = (received.expect("it reports"), sent.expect("it reports"));
    assert_eq!(sent.count, received.all.received + received.all.lost);
    assert_eq!((received.strays, sent.pace), (0, None));
    // The path's own count has the few packets of the control connection, too.
    let path = record.paths[0].carrying(direction).expect("it carries data");
    assert!(received.all.received <= path.delivered_packets, "{received:?} over {path:?}");
    let in_rows: u64 = found.sub_intervals.iter().map(|row| row.span.received).sum();
    assert!(received.all.received > 0 && in_rows <= received.all.received, "{received:?}");
    for row in &found.sub_intervals {
        let bps = row.span.received as f64 * f64::from(packet_bytes) * 8.0 / 0.25;
        assert!((row.ip_bps - bps).abs() < 1e-3, "{row:?}");
    }
    let most = found.sub_intervals.iter().map(|row| row.ip_bps).fold(0.0, f64::max);
    let value = record.summary_value(MetricId::IpCapacity, Stat::Value, Some(direction));
    assert_eq!(value, (told > 0).then_some(most));
    assert_eq!(found.best_interval().map(|row| row.ip_bps), value);
    assert!(found.trials.is_sorted_by_key(|trial| trial.t_ns));
    assert!(found.trials.last().is_some_and(|last| last.sent <= sent.count));
    found
}

/// Whether something of this machine stood in the way, by the record's own word.
fn disturbed(record: &Record) -> bool {
    let own = [CaveatCode::EmulatorLate, CaveatCode::RunQueueWait, CaveatCode::StolenTime];
    record.caveats.iter().any(|caveat| own.contains(&caveat.code))
}

/// Two searches at once would take each other's processors.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Searches that a busy machine may spoil before what they say of it is enough: whole searches over
/// emulated paths in virtual time have their rates judged in `linerate_core::search`.
const SEARCHES: u32 = 3;

/// Searches until the rate found is within its bounds of the ceiling, and fails when it is not
/// though nothing of this machine stood in the way. An emulator that is late lets a sub-interval
/// have what belongs to the one before, and a receiver without a processor loses what it is sent.
/// All else is held of each search: no more arrives than the path carries in the time that all of
/// it took. None where each of some searches was spoilt, and said so.
fn searched(
    lab: &Lab,
    address: &str,
    plan: &UdpPlan,
    ip_bps: f64,
) -> Option<(Record, CapacitySearch)> {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut searches = 0;
    loop {
        let (record, told) = search_in(lab, address, plan);
        let found = check(&record, told, 1500);
        let share = share_of_ceiling(&record, ip_bps);
        assert!(arrived_bits(&record) <= ip_bps * record.duration_ns as f64 / 1e9);
        searches += 1;
        // Eight of them, less one that began late.
        let is_right = share.is_some_and(|share| (0.5..=1.1).contains(&share))
            && found.sub_intervals.len() >= 7
            && found.confirmed_ns.is_some();
        if is_right {
            return Some((record, found));
        }
        assert!(disturbed(&record), "{share:?} of the ceiling: {:?}", found.sub_intervals);
        if searches == SEARCHES {
            return None;
        }
    }
}

/// The rate found as a share of the ceiling, which is `ip_bps`.
fn share_of_ceiling(record: &Record, ip_bps: f64) -> Option<f64> {
    let ceiling = record.ceiling.as_ref().expect("the path tells its rate");
    assert_eq!((ceiling.metric, ceiling.layer), (MetricId::IpCapacity, HeaderLayer::Ip));
    let value = ceiling.value.expect("and its framing");
    assert!((value / ip_bps - 1.0).abs() < 1e-6, "{value} beside {ip_bps}");
    ceiling.share
}

/// What arrived in packets of 1500 bytes.
fn arrived_bits(record: &Record) -> f64 {
    let receiver = record.flows[0].receiver.as_ref().expect("it reports");
    let received = receiver.received_datagrams.as_ref().expect("it reports").all.received;
    received as f64 * 1500.0 * 8.0
}

#[test]
fn a_bottleneck_is_found_by_its_losses_in_both_directions_and_families() {
    let Some(lab) = lab("rate = \"50 Mbit/s\", delay = \"5 ms\"") else { return };
    let ways = [(V4, TcpDirections::Up, Direction::Up), (V6, TcpDirections::Down, Direction::Down)];
    for (address, directions, direction) in ways {
        // Ethernet takes 18 + 20 bytes beside a packet of 1500.
        let ip_bps = 50e6 * 1500.0 / 1538.0;
        let found = searched(&lab, address, &plan(directions), ip_bps);
        let Some((record, found)) = found else { continue };
        // Ten rows a status are 400 Mbit/s in two seconds.
        assert_eq!(found.direction, direction);
        let path = record.paths[0].carrying(direction).expect("it carries data");
        assert!(path.lost_packets() > 10, "{path:?}");
    }
}

#[test]
fn a_faster_bottleneck_is_found_too() {
    let Some(lab) = lab("rate = \"200 Mbit/s\", delay = \"2 ms\"") else { return };
    searched(&lab, V4, &plan(TcpDirections::Up), 200e6 * 1500.0 / 1538.0);
}

#[test]
fn the_delay_of_a_deep_queue_stops_the_rate_and_nothing_is_lost() {
    // 20 Mbit/s and five seconds of room: a rate beyond the link's shows in the delay alone.
    let path = "rate = \"20 Mbit/s\", delay = \"5 ms\", buffer = \"5 s\"";
    let Some(lab) = lab(path) else { return };
    for delay in [SearchDelay::RoundTrip, SearchDelay::OneWay] {
        let search = Some(SearchPlan { delay, ..SearchPlan::default() });
        let plan = UdpPlan {
            test: UdpTest { search, ..plan(TcpDirections::Up).test },
            ..plan(TcpDirections::Up)
        };
        let found = searched(&lab, V4, &plan, 20e6 * 1500.0 / 1538.0);
        let Some((record, found)) = found else { continue };
        let path = record.paths[0].carrying(Direction::Up).expect("it carries data");
        assert_eq!(path.lost_packets(), 0);
        let down = |step| matches!(step, SearchStep::Down | SearchStep::Back);
        let late = found.trials.iter().filter(|trial| down(trial.step));
        let high = |delay: Option<u64>| delay > Some(90 * MS);
        assert!(late.clone().count() >= 3);
        // Losses of this host's own sockets may have stopped it once in a while.
        let here = record.summary_value(MetricId::DatagramsLost, Stat::Value, Some(Direction::Up));
        assert!(late.clone().all(|trial| high(trial.delay_ns)) || here > Some(0.0));
    }
}

#[test]
fn a_policer_is_found_by_what_it_loses() {
    let path = "delay = \"5 ms\", policer = { rate = \"30 Mbit/s\", burst = \"50 kB\" }";
    let Some(lab) = lab(path) else { return };
    let (record, told) = search_in(&lab, V4, &plan(TcpDirections::Up));
    let found = check(&record, told, 1500);
    // 30 Mbit/s and one bucket of 50 kB, by whatever clock.
    let most = 30e6 * record.duration_ns as f64 / 1e9 + 400_000.0;
    assert!(arrived_bits(&record) <= most, "{} of {most}", arrived_bits(&record));
    if disturbed(&record) {
        // The rate that a policer leaves is judged in virtual time, as those of links.
        return;
    }
    assert!(found.confirmed_ns.is_some());
    let path = record.paths[0].carrying(Direction::Up).expect("it carries data");
    let policed = path.lost.iter().find(|loss| loss.cause == "policed");
    assert!(policed.is_some_and(|loss| loss.packets > 10), "{path:?}");
    // For a quarter of a second the bucket is 1.6 Mbit/s more.
    let most = found.best_interval().expect("something arrived").ip_bps;
    assert!(most <= 33e6, "{most}");
}

#[test]
fn independent_losses_below_the_threshold_do_not_stop_the_rate() {
    // Two of 208 packets in a status at 50 Mbit/s, of ten that are taken for none. Above the limit
    // of what may be offered nothing else could.
    let Some(lab) = lab("rate = \"1 Gbit/s\", delay = \"5 ms\", loss = \"1%\"") else { return };
    let rate_max = Some(BitRate::from_bits_per_sec(50_000_000));
    let search = Some(SearchPlan { rate_max, ..SearchPlan::default() });
    let plan = UdpPlan {
        test: UdpTest { search, ..plan(TcpDirections::Up).test },
        ..plan(TcpDirections::Up)
    };
    let (record, told) = search_in(&lab, V4, &plan);
    let found = check(&record, told, 1500);
    let highest = found.trials.iter().map(|trial| trial.row).max();
    assert!(highest <= Some(50), "{highest:?}");
    if disturbed(&record) {
        // What else is lost then is this host's.
        return;
    }
    assert_eq!(highest, Some(50));
    let path = record.paths[0].carrying(Direction::Up).expect("it carries data");
    let random = path.lost.iter().find(|loss| loss.cause == "random").map_or(0, |it| it.packets);
    let lost = record.summary_value(MetricId::DatagramsLost, Stat::Value, Some(Direction::Up));
    // The path's count has the few packets of the control connection, too.
    assert!(random > 0 && lost.is_some_and(|lost| lost > 0.0 && lost <= random as f64));
}

/// A server that accepts any UDP test and names no feature.
fn older_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        let (mut control, _) = listener.accept().expect("the client connects");
        let mut hello = [0; 16];
        control.read_exact(&mut hello).expect("a hello");
        control.write_all(&Hello::new(HelloKind::Control).to_bytes()).expect("sent");
        let mut decoder = Decoder::default();
        let mut bytes = [0; 4096];
        while !matches!(decoder.next_message(), Ok(Some(Message::UdpRequest { .. }))) {
            match control.read(&mut bytes) {
                Ok(count) if count > 0 => decoder.push(&bytes[..count]),
                _ => return,
            }
        }
        let accept = Accept {
            token: Token([1; 16]).to_hex(),
            data_port: 0,
            udp_ports: vec![address.port()],
            host_id: None,
            end: MeasurementEnd::default(),
            features: Vec::new(),
        };
        let accept = encode(&Message::Accept(Box::new(accept))).expect("a short message");
        control.write_all(&accept).expect("sent");
        // The client leaves.
        let _ = control.read(&mut bytes);
    });
    address
}

#[test]
fn a_server_that_knows_no_search_is_left_before_anything_is_measured() {
    let server = older_server();
    let plan = UdpPlan {
        server: ServerPlan::new(None, server.ip().to_string(), server.port()),
        ..plan(TcpDirections::Up)
    };
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let mut context = Context { tool, stop: Stop::new(), watch: &mut |_| {} };
    let record = throughput::run_udp(&plan, &mut context);
    assert_eq!(record.status, RecordStatus::Error);
    let failure = record.failure.expect("it names no features");
    assert_eq!(failure.fault, Fault::PeerIncompatible);
    assert!(failure.to_string().contains("the server does not know it"), "{failure}");
}
