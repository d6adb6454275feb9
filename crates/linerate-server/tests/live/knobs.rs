//! What a laboratory's host and a test ask of TCP, seen in what the kernel then does: options of
//! the SYN, first windows, packets on the way back, flows in the background.
//!
//! Needs the privilege to make network namespaces; says so and passes when it is absent.
#![allow(clippy::print_stdout, reason = "a skipped test is to be seen")]

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use linerate_core::lab::LabPlan;
use linerate_core::record::{
    Direction, Finish, MetricId, Record, ServerPlan, Stat, SynOptions, TcpDirections, TcpPlan,
    TcpSettings, TcpTest, Tool,
};
use linerate_core::units::BitRate;
use linerate_engine::context::Context;
use linerate_engine::lab::Lab;
use linerate_engine::throughput;
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{MeasurementServer, ServeOptions};
use linerate_sys::stop::Stop;
use linerate_sys::{tcp, userns};

/// Two hosts and a cable; the first has these settings. Without offload every segment is a packet.
fn cable(settings: &str) -> String {
    format!(
        r#"
host = [{{ name = "a", tcp = {{ {settings} }} }}, {{ name = "b" }}]
link = [{{ ends = ["a", "b"], offload = false }}]
"#
    )
}

/// A laboratory, or none where the host does not allow one.
fn lab(text: &str) -> Option<Lab> {
    crate::turn::take();
    if !userns::may_make_networks() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return None;
    }
    let plan = LabPlan::from_toml(text, "test.toml").expect("a plan");
    Some(Lab::build_from_plan(&plan).expect("the laboratory stands"))
}

/// Ends the server also when the test ends by a panic.
struct AskOnDrop<'a>(&'a Stop);

impl Drop for AskOnDrop<'_> {
    fn drop(&mut self) {
        self.0.request_stop();
    }
}

/// Measures from `a` to a server on `b`, one plan after the other.
fn measured(lab: &Lab, plans: &[TcpPlan]) -> Vec<Record> {
    let target = lab.address_of("b").expect("it has an address");
    let options = ServeOptions {
        local: SocketAddr::new(target, 0),
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
        let measure = |plan: &TcpPlan| {
            let plan =
                TcpPlan { server: ServerPlan::new(None, target.to_string(), port), ..plan.clone() };
            let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
            let run = || {
                let stop = Stop::new();
                let mut context = Context { tool, stop, watch: &mut |_| {} };
                throughput::run_tcp(&plan, &mut context)
            };
            let record = lab.run_on("a", run).expect("runs");
            assert_eq!(record.failure, None);
            record
        };
        plans.iter().map(measure).collect()
    })
}

fn small() -> TcpPlan {
    TcpPlan {
        test: TcpTest {
            finish: Finish::Bytes(200_000),
            congestion_control: Some("reno".to_owned()),
            ..TcpTest::default()
        },
        ..TcpPlan::default()
    }
}

/// The SYN of `a` and its settings as the record has them.
fn syn_under(settings: &str) -> Option<(SynOptions, TcpSettings, Record)> {
    let lab = lab(&cable(settings))?;
    let record = measured(&lab, &[small()]).remove(0);
    let syn = record.flows[0].syn.expect("the server saves the SYN");
    let told = record.ends[0].tcp.clone().expect("the client tells its settings");
    Some((syn, told, record))
}

#[test]
fn options_that_a_host_does_without_are_not_on_its_syn() {
    let Some((syn, told, _)) = syn_under("") else { return };
    assert!(syn.sack_permitted && syn.timestamps && syn.window_scale.is_some() && !syn.ecn);
    assert_eq!(told.no_metrics_save, Some(1), "a run inherits nothing from the one before");
    let (syn, told, record) = syn_under("sack = false").expect("as before");
    assert!(!syn.sack_permitted && syn.timestamps && syn.window_scale.is_some());
    assert_eq!(told.sack, Some(0));
    assert_eq!(record.ends[1].tcp.as_ref().and_then(|tcp| tcp.sack), Some(1), "b is left alone");
    let (syn, told, _) = syn_under("timestamps = false, ecn = true").expect("as before");
    assert!(!syn.timestamps && syn.sack_permitted && syn.ecn);
    assert_eq!((told.timestamps, told.ecn), (Some(0), Some(1)));
}

#[test]
fn without_window_scaling_no_window_is_above_65535_bytes() {
    let Some((syn, told, record)) = syn_under("window_scaling = false") else { return };
    assert_eq!(syn.window_scale, None);
    assert_eq!(told.window_scaling, Some(0));
    let sender = record.flows[0].sender.as_ref().expect("it told");
    let info = sender.tcp_info.expect("Linux tells");
    assert_eq!((info.snd_wscale, info.rcv_wscale), (Some(0), Some(0)));
    let offered = sender.window_offered_bytes_max.expect("kernel 5.4");
    assert!(offered <= 65_535, "{offered}");
}

#[test]
fn buffers_and_defaults_of_a_host_are_in_the_record_as_they_were_set() {
    let settings = "rmem_max_bytes = 2097152, wmem_max_bytes = 65536, congestion_control = \
                    \"reno\", slow_start_after_idle = false, no_metrics_save = false, \
                    early_retransmit = 0, recovery = 0, mtu_probing = 1";
    let Some((_, told, record)) = syn_under(settings) else { return };
    let end = &record.ends[0];
    assert_eq!(end.tcp_rmem_bytes.map(|triple| triple[2]), Some(2_097_152));
    assert_eq!(end.tcp_wmem_bytes.map(|triple| triple[2]), Some(65_536));
    assert_eq!(end.congestion_control_default.as_deref(), Some("reno"));
    assert_eq!((told.slow_start_after_idle, told.no_metrics_save), (Some(0), Some(0)));
    assert_eq!((told.early_retransmit, told.recovery), (Some(0), Some(0)));
    assert_eq!(told.mtu_probing, Some(1));
}

#[test]
fn a_setting_that_cannot_be_had_is_one_line_that_names_it() {
    if lab(&cable("")).is_none() {
        return;
    }
    let text = cable("congestion_control = \"no_such_thing\"");
    let plan = LabPlan::from_toml(&text, "test.toml").expect("a plan");
    let failure =
        Lab::build_from_plan(&plan).expect_err("there is no such congestion control").to_string();
    assert!(failure.contains("congestion_control = no_such_thing on host a"), "{failure}");
    assert!(!failure.contains('\n'), "{failure}");
}

#[test]
fn the_initial_window_is_that_of_the_hosts_routes() {
    let of = |settings: &str, down: bool| {
        let lab = lab(&cable(settings))?;
        let directions = if down { TcpDirections::Down } else { TcpDirections::Up };
        let record =
            measured(&lab, &[TcpPlan { test: TcpTest { directions, ..small().test }, ..small() }])
                .remove(0);
        let sender = record.flows[0].sender.as_ref().expect("it told");
        let told = record.ends[0].tcp.as_ref().and_then(|tcp| tcp.initial_window);
        Some((sender.initial_window_segments, told))
    };
    let Some(default) = of("", false) else { return };
    // Ten segments (RFC 6928) since Linux 2.6.39.
    assert_eq!(default, (Some(10), None));
    assert_eq!(of("initial_window = 2", false), Some((Some(2), Some(2))));
    assert_eq!(of("initial_window = 32", false), Some((Some(32), Some(32))));
    // The sender is b, which keeps its own.
    assert_eq!(of("initial_window = 2", true), Some((Some(10), Some(2))));
}

#[test]
fn the_first_flight_has_the_segments_of_the_initial_window() {
    let flight = |segments: u32| {
        let slow = cable(&format!("initial_window = {segments}, congestion_control = \"reno\""));
        let lab = lab(&slow.replace("offload", "rate = \"100 kbit/s\", offload"))?;
        let target = lab.address_of("b").expect("it has an address");
        let listen = || TcpListener::bind((target, 0)).expect("binds");
        let listener = lab.run_on("b", listen).expect("runs");
        let address = listener.local_addr().expect("bound");
        let info = lab.run_on("a", move || {
            let mut stream = TcpStream::connect(address).expect("connects");
            stream.set_nonblocking(true).expect("a socket may");
            let taken = stream.write(&[0; 65_536]).expect("an empty send buffer takes some");
            assert!(taken >= 10 * 1448, "{taken}");
            tcp::tcp_info(stream.as_fd()).expect("Linux tells")
        });
        info.expect("runs").data_segs_out
    };
    // Two frames pass the shaper at once; their acknowledgements let four more follow, and the
    // next takes 1514 x 8 bits / 100 kbit/s = 121 ms.
    // A busy machine may look late, when more have followed: the least of some tries counts.
    let least = |segments: u32| {
        let seen = (0..5).map_while(|_| flight(segments));
        seen.scan(false, |near, count| {
            let goes_on = !*near;
            *near = count <= segments + 4;
            goes_on.then_some(count)
        })
        .min()
    };
    let Some(two) = least(2) else { return };
    assert!((2..=6).contains(&two), "{two}");
    let ten = least(10).expect("as before");
    assert!((10..=14).contains(&ten), "{ten}");
}

#[test]
fn a_host_alone_has_its_initial_window_on_its_loopback() {
    let Some(lab) = lab(r#"host = [{ name = "b", tcp = { initial_window = 3 } }]"#) else { return };
    let listen = || TcpListener::bind(("127.0.0.1", 0)).expect("binds");
    let listener = lab.run_on("b", listen).expect("runs");
    let address = listener.local_addr().expect("bound");
    let info = lab.run_on("b", move || {
        let stream = TcpStream::connect(address).expect("connects");
        tcp::tcp_info(stream.as_fd()).expect("Linux tells")
    });
    assert_eq!(info.expect("runs").snd_cwnd, Some(3));
}

#[test]
fn the_flow_in_the_background_has_its_rate_and_the_test_its_bytes() {
    let Some(lab) = lab(&cable("")) else { return };
    let pace = Some(BitRate::from_bits_per_sec(40_000_000));
    let background = Some(BitRate::from_bits_per_sec(35_000_000));
    let base = TcpPlan { test: TcpTest { pace, background, ..small().test }, ..small() };
    let by_time = Finish::TimeNs(1_000_000_000);
    let plans = [
        TcpPlan { test: TcpTest { finish: by_time, ..base.test.clone() }, ..base.clone() },
        TcpPlan {
            test: TcpTest { finish: by_time, directions: TcpDirections::Down, ..base.test.clone() },
            ..base.clone()
        },
        // A window of the test's own is not the background's: 16 KiB would hold it back.
        TcpPlan {
            test: TcpTest { finish: by_time, window_bytes: Some(16_384), ..base.test.clone() },
            ..base.clone()
        },
        TcpPlan {
            test: TcpTest { finish: Finish::Bytes(5_000_019), streams: 2, ..base.test },
            ..base
        },
    ];
    let records = measured(&lab, &plans);
    for (record, plan) in records.iter().zip(&plans) {
        let (ahead, back) = match plan.test.directions {
            TcpDirections::Down => (Direction::Down, Direction::Up),
            _ => (Direction::Up, Direction::Down),
        };
        let rate =
            record.summary_value(MetricId::Background, Stat::Value, Some(back)).expect("measured");
        // A host that is taken from a virtual machine for a while falls behind, and nothing makes
        // it faster; none and a rate of its own are far outside.
        assert!((0.6..=1.05).contains(&(rate / 35e6)), "{rate} bit/s of {plan:?}");
        let flow = record.background.as_ref().expect("it is kept");
        assert_eq!(flow.direction, back);
        assert!(flow.sender.is_some() && flow.receiver.is_some());
        // It is told apart from the test.
        assert!(record.flows.iter().all(|flow| flow.direction == ahead));
        assert_eq!(record.flows.len(), usize::from(plan.test.streams));
        assert_eq!(record.summary_value(MetricId::Goodput, Stat::Value, Some(back)), None);
        assert!(record.series.iter().all(|series| series.direction == Some(ahead)));
    }
    let bytes = records[3].summary_value(MetricId::Bytes, Stat::Value, Some(Direction::Up));
    assert_eq!(bytes, Some(5_000_019.0));
}

#[test]
fn small_reads_send_more_segments_back() {
    let Some(lab) = lab(&cable("")) else { return };
    let plan = |read_bytes| TcpPlan {
        test: TcpTest {
            finish: Finish::Bytes(4_000_000),
            window_bytes: Some(16_384),
            read_bytes,
            ..small().test
        },
        ..small()
    };
    let records = measured(&lab, &[plan(None), plan(Some(512))]);
    let value = |record: &Record, metric| {
        record.summary_value(metric, Stat::Value, Some(Direction::Up)).expect("Linux tells")
    };
    for record in &records {
        assert_eq!(value(record, MetricId::Bytes), 4_000_000.0);
        let receiver = record.flows[0].receiver.as_ref().expect("it told");
        let out = receiver.tcp_info.and_then(|info| info.segs_out).expect("kernel 4.2");
        assert_eq!(value(record, MetricId::ReturnSegments), f64::from(out));
    }
    let calls = |record: &Record| record.flows[0].receiver.as_ref().map_or(0, |end| end.io_calls);
    // 4,000,000 bytes in reads of 512 at most.
    assert!(calls(&records[1]) >= 7813, "{}", calls(&records[1]));
    assert!(calls(&records[1]) > calls(&records[0]));
    let [whole, small] = [&records[0], &records[1]].map(|r| value(r, MetricId::ReturnRatio));
    println!("segments back per segment: {whole} by default, {small} in reads of 512 bytes");
}
