//! Whether the figures that the other end tells can be: nobody receives more than was sent, sends
//! less than came, is busy for longer than the test lasted, or sends what no window, no buffer and
//! no port had room for. What a peer says is shown as a result, so one that cannot be right is
//! none.
//!
//! The same for every protocol and for either end: the reports of both ends are held against each
//! other, and the samples of the other end against what this one moved. Left out: figures that may
//! be, as datagrams that were lost on the way from a sender without a pace.

use linerate_core::record::{
    DatagramsSent, Direction, EndReport, Failure, Fault, FlowEnd, FlowSide, Plan, ServerPlan,
    UdpTest, Via,
};
use linerate_core::units::BitRate;

use super::Sample;
use super::account::{Account, Connection, client_side, server_side};

/// The most bytes that a stream may begin with and the other end counts: headers, cookies.
const HEAD_BYTES_MAX: u64 = 4096;
/// A sender that is cancelled in its last write leaves that out (iperf3 3.16 and newer), a block of
/// 1 MiB at most.
const UNCOUNTED_BYTES_MAX: u64 = 1 << 20;
/// Bytes under way of a stream of TCP: the largest window (RFC 7323 §2.3, 2^30) and the largest
/// send buffer (net.ipv4.tcp_wmem is an int).
const UNDER_WAY_BYTES_MAX: u64 = (1 << 30) + (1 << 31);
/// Bytes that a sender or a proxy on the way holds whatever this end's window is: 16 times what
/// Linux lets a send buffer grow to (net.ipv4.tcp_wmem, 4 MiB).
const HELD_BYTES_MAX: u64 = 64 << 20;
/// Windows of this end that a sender can hold besides: a send buffer grows to twice the congestion
/// window (`tcp_sndbuf_expand`) and up to three bytes for one of payload, the congestion window to
/// twice what is on the path (`tcp_is_cwnd_limited`), and that to the window.
const WINDOWS_UNDER_WAY: u64 = 2 * 3 * 2 + 1;
/// A clock may go wrong by this much of a test, and be read late.
const CLOCK_SLACK_NS: u64 = 1_000_000_000;
/// Processors of a host that does not tell how many it has (CONFIG_NR_CPUS of Linux).
const CPUS_MAX: u64 = 8192;
/// Bits a second that leave no host by one stream: twice the fastest Ethernet (IEEE P802.3dj, 1.6
/// Tbit/s).
const PORT_BPS_MAX: u64 = 3_200_000_000_000;
/// Datagrams a second that leave no host by one stream: the shortest frames of 100 Gbit/s are
/// 148,809,523 a second (RFC 5180 appendix A).
const DATAGRAMS_PER_SECOND_MAX: u64 = 150_000_000;
/// A pace may leave out headers, and is caught up with after a stop.
const PACE_FACTOR: u128 = 2;

/// The first figure of the server that cannot be, in a test that took `elapsed_ns` at this client.
pub(super) fn contradiction(plan: &Plan, account: &Account, elapsed_ns: u64) -> Option<Failure> {
    let figures = Figures {
        own: &account.local,
        told: &account.remote,
        told_samples: &account.remote_samples,
        side_of: client_side,
        cpus: account.ends.get(1).and_then(|end| end.cpus),
    };
    first_contradiction(plan, account, &figures, elapsed_ns)
}

/// The first figure of a client that cannot be, in a test that took `elapsed_ns` at this server.
pub(crate) fn of_client(plan: &Plan, account: &Account, elapsed_ns: u64) -> Option<Failure> {
    let figures = Figures {
        own: &account.remote,
        told: &account.local,
        told_samples: &[],
        side_of: server_side,
        cpus: None,
    };
    first_contradiction(plan, account, &figures, elapsed_ns)
}

/// The reason why the server cannot have moved `bytes` in a direction, in all streams
/// together; none where it can.
pub(crate) fn of_sum(plan: &Plan, account: &Account, way: Direction, bytes: u64) -> Option<String> {
    let end = FlowEnd { bytes, bytes_measured: bytes, ..FlowEnd::default() };
    let figures = Figures {
        own: &account.local,
        told: &[EndReport::from_flow_end(way, 0, end)],
        told_samples: &[],
        side_of: client_side,
        cpus: None,
    };
    reason(plan, account, &figures, 0)
}

fn first_contradiction(
    plan: &Plan,
    account: &Account,
    figures: &Figures<'_>,
    elapsed_ns: u64,
) -> Option<Failure> {
    let server = match plan {
        Plan::Tcp(plan) => &plan.server,
        Plan::Udp(plan) => &plan.server,
        _ => return None,
    };
    let reason = account.contradiction.clone();
    let reason = reason.or_else(|| self::reason(plan, account, figures, elapsed_ns))?;
    Some(failure(&server.host, &reason))
}

fn reason(
    plan: &Plan,
    account: &Account,
    figures: &Figures<'_>,
    elapsed_ns: u64,
) -> Option<String> {
    let (server, omit_ns, pace) = match plan {
        Plan::Tcp(plan) => (&plan.server, plan.test.omit_ns, None),
        Plan::Udp(plan) => (&plan.server, plan.test.omit_ns, stream_pace(&plan.test)),
        _ => return None,
    };
    let elapsed_ns = with_slack(elapsed_ns);
    let limits = PlausibleLimits {
        elapsed_ns,
        cpus: figures.cpus.map_or(CPUS_MAX, u64::from).max(1),
        // A path may deliver a datagram twice, which other programs count.
        copies: if account.size_bytes > 0 && server.via.is_some() { 2 } else { 1 },
        size_bytes: account.size_bytes,
        connections: &account.connections,
        tells_all_sent: tells_all_sent(server, omit_ns),
        stream_bytes_max: sent_bytes_max(pace, elapsed_ns),
    };
    let mut ways = [Direction::Up, Direction::Down].into_iter();
    ways.find_map(|way| limits.impossible_bytes(figures, way))
        .or_else(|| figures.told.iter().find_map(|report| limits.impossible_times(&report.end)))
        .or_else(|| limits.samples(figures))
}

/// The failure of a test with an end whose figures cannot be.
pub(crate) fn failure(peer: &str, reason: &str) -> Failure {
    let reason = format!("the other end's figures contradict this end's: {reason}");
    Failure::new(Fault::PeerMisbehaved, "take the result of", peer, reason)
}

/// The sentence that a server's log adds about a client whose figures cannot be true.
pub(crate) fn left_out(reason: &str) -> String {
    format!("the client's figures contradict these and are left out: {reason}")
}

/// True where a sender's count has all bytes that left it: other programs leave out those of the
/// omitted span, and some tell what came.
fn tells_all_sent(server: &ServerPlan, omit_ns: u64) -> bool {
    match server.via {
        None => true,
        Some(via) => via == Via::Iperf3 && omit_ns == 0,
    }
}

/// The pace of each stream; that of a search is found in the test.
fn stream_pace<Size>(test: &UdpTest<Size>) -> Option<BitRate> {
    test.pace.filter(|pace| test.search.is_none() && pace.bits_per_sec() > 0)
}

/// A time as another clock may have it.
pub(crate) const fn with_slack(elapsed_ns: u64) -> u64 {
    elapsed_ns.saturating_add(elapsed_ns / 100).saturating_add(CLOCK_SLACK_NS)
}

/// Datagrams that can have been sent between two that came, `elapsed_ns` one after the other: the
/// first may have waited for a second longer on its way.
pub(crate) fn datagrams_max(elapsed_ns: u64) -> u64 {
    let elapsed_ns = u128::from(with_slack(elapsed_ns));
    let most = u128::from(DATAGRAMS_PER_SECOND_MAX) * elapsed_ns / 1_000_000_000;
    u64::try_from(most).unwrap_or(u64::MAX)
}

/// Why a sender cannot have sent `datagrams`, of which `came` had come `silent_ns` before; none
/// where it can.
pub(crate) fn of_jump(datagrams: u64, came: u64, silent_ns: u64) -> Option<String> {
    let most = came.saturating_add(datagrams_max(silent_ns));
    (datagrams > most).then(|| {
        let silent = seconds(silent_ns);
        format!("it sent {datagrams} datagrams, {came} of them {silent} before")
    })
}

/// Payload that a stream can have sent in a time.
fn sent_bytes_max(pace: Option<BitRate>, elapsed_ns: u64) -> u128 {
    let port = u128::from(PORT_BPS_MAX);
    let bps = pace.map_or(port, |pace| u128::from(pace.bits_per_sec()) * PACE_FACTOR).min(port);
    bps * u128::from(elapsed_ns) / 8_000_000_000
}

/// Why a sender of datagrams cannot have sent what it says that it did, `elapsed_ns` after the
/// start of the test; none where it can.
pub(crate) fn of_sender(test: &UdpTest, told: &DatagramsSent, elapsed_ns: u64) -> Option<String> {
    let elapsed_ns = with_slack(elapsed_ns);
    if told.span_ns > elapsed_ns {
        return Some(measured_until(told.span_ns, elapsed_ns));
    }
    if told.measured > told.datagrams {
        let DatagramsSent { measured, datagrams, .. } = told;
        return Some(format!("it counts {measured} of {datagrams} datagrams"));
    }
    let size_bytes = u128::from(test.size_bytes.max(1));
    // One more, for a test of no time.
    let most = sent_bytes_max(stream_pace(test), elapsed_ns) / size_bytes + 1;
    let host_most = u128::from(DATAGRAMS_PER_SECOND_MAX) * u128::from(elapsed_ns) / 1_000_000_000;
    let most = most.min(host_most + 1);
    (u128::from(told.datagrams) > most)
        .then(|| format!("it sent {} datagrams, more than {most} can be", told.datagrams))
}

fn measured_until(ns: u64, elapsed_ns: u64) -> String {
    format!("it measured until {}, and the test took {}", seconds(ns), seconds(elapsed_ns))
}

fn seconds(ns: u64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

/// The figures of this end, and those that the other one tells.
struct Figures<'a> {
    own: &'a [EndReport],
    told: &'a [EndReport],
    /// Samples that the other end told, one list an interval.
    told_samples: &'a [Vec<Sample>],
    /// The side of this end in a direction.
    side_of: fn(Direction) -> FlowSide,
    /// Processors of the other end, where it tells them.
    cpus: Option<u32>,
}

/// The limits within which the other end's figures can be true.
struct PlausibleLimits<'a> {
    elapsed_ns: u64,
    cpus: u64,
    copies: u64,
    /// Payload of each datagram in bytes; 0 over TCP.
    size_bytes: u32,
    connections: &'a [Connection],
    /// A sender's count has all that left it.
    tells_all_sent: bool,
    /// Payload that a stream can have sent in the time.
    stream_bytes_max: u128,
}

impl PlausibleLimits<'_> {
    /// Payload of a direction, all streams together: some programs tell no more.
    fn impossible_bytes(&self, figures: &Figures<'_>, way: Direction) -> Option<String> {
        let here = own_bytes(figures, way)?;
        let reports = || of_way(figures.told, way);
        reports().next()?;
        let sum = |pick: fn(&FlowEnd) -> u64| -> u128 {
            reports().map(|report| u128::from(pick(&report.end))).sum()
        };
        let there = sum(|end| end.bytes).max(sum(|end| end.bytes_measured));
        if (figures.side_of)(way) == FlowSide::Receiver {
            let too_little = self.sent_too_little(way, here, there);
            return too_little.or_else(|| self.sent_too_much(figures, way, there));
        }
        if there > self.received_max(here, way) {
            return Some(format!("it received {there} bytes of {here} that were sent"));
        }
        let lost =
            sum(|end| end.received_datagrams.as_ref().map_or(0, |datagrams| datagrams.all.lost));
        let datagrams = u128::from(here / u64::from(self.size_bytes.max(1)));
        (lost > datagrams)
            .then(|| format!("it lost {lost} datagrams of {datagrams} that were sent"))
    }

    /// The other end says that it sent less than came.
    fn sent_too_little(&self, way: Direction, here: u64, there: u128) -> Option<String> {
        let uncounted = self.streams(way) * (HEAD_BYTES_MAX + UNCOUNTED_BYTES_MAX);
        let too_little = self.tells_all_sent && there + u128::from(uncounted) < u128::from(here);
        too_little.then(|| format!("it sent {there} bytes, and {here} came"))
    }

    /// The other end says that it sent more than can be, for what came of it.
    fn sent_too_much(&self, figures: &Figures<'_>, way: Direction, there: u128) -> Option<String> {
        let here = own_bytes(figures, way)?;
        if self.size_bytes > 0 {
            // What became of datagrams that did not come, nobody here can say.
            let most = self.stream_bytes_max * u128::from(self.streams(way));
            return (there > most)
                .then(|| format!("it sent {there} bytes, more than {most} can be"));
        }
        let under_way = of_way(figures.own, way).map(|own| under_way_max(&own.end)).sum::<u64>();
        let most = u128::from(here) + u128::from(under_way);
        (there > most).then(|| {
            format!("it sent {there} bytes, of which {here} came, more than can be under way")
        })
    }

    fn streams(&self, way: Direction) -> u64 {
        let of_way = self.connections.iter().filter(|connection| connection.direction == way);
        of_way.count().max(1) as u64
    }

    fn received_max(&self, sent_bytes: u64, way: Direction) -> u128 {
        let heads = self.streams(way) * HEAD_BYTES_MAX;
        u128::from(sent_bytes) * u128::from(self.copies) + u128::from(heads)
    }

    /// Times of a stream.
    fn impossible_times(&self, end: &FlowEnd) -> Option<String> {
        let test = seconds(self.elapsed_ns);
        let last_ns = end.span_start_ns.saturating_add(end.span_ns);
        if last_ns > self.elapsed_ns {
            return Some(measured_until(last_ns, self.elapsed_ns));
        }
        let spent = [end.cpu_user_ns, end.cpu_system_ns].into_iter().flatten();
        let spent = spent.fold(0, u64::saturating_add);
        if spent > self.elapsed_ns.saturating_mul(self.cpus) {
            let spent = seconds(spent);
            return Some(format!("it spent {spent} on {} CPUs in {test}", self.cpus));
        }
        let waits = [end.run_queue_wait_ns, end.blocked_ns, end.asleep_ns];
        let wait = waits.into_iter().flatten().find(|ns| *ns > self.elapsed_ns)?;
        Some(format!("a thread waited {} there in {test}", seconds(wait)))
    }

    /// The reason why a sample that the other end told while the test ran cannot be true; none
    /// where all can.
    fn samples(&self, figures: &Figures<'_>) -> Option<String> {
        figures.told_samples.iter().find_map(|interval| {
            if let Some(late) = interval.iter().find(|sample| sample.t_ns > self.elapsed_ns) {
                return Some(format!("an interval of it ended after {}", seconds(late.t_ns)));
            }
            let mut ways = [Direction::Up, Direction::Down].into_iter();
            ways.find_map(|way| self.interval(figures, interval, way))
        })
    }

    fn interval(
        &self,
        figures: &Figures<'_>,
        interval: &[Sample],
        way: Direction,
    ) -> Option<String> {
        let here = own_bytes(figures, way)?;
        let moved = interval.iter().filter(|sample| sample.direction == way);
        let there: u128 = moved.map(|it: &Sample| u128::from(it.bytes)).sum();
        if (figures.side_of)(way) == FlowSide::Receiver {
            return self.sent_too_much(figures, way, there);
        }
        (there > self.received_max(here, way))
            .then(|| format!("it received {there} bytes of {here} that were sent"))
    }
}

/// Payload that a sender can have written and this end, which receives, has not read.
fn under_way_max(own: &FlowEnd) -> u64 {
    let granted = own.rcvbuf_bytes.got.unwrap_or(0);
    let window = granted.max(own.window_advertised_bytes_max.unwrap_or(0));
    // The sender's buffer is asked to be as large, and doubled by the kernel.
    let fixed = own.rcvbuf_bytes.asked.unwrap_or(0).saturating_mul(2);
    let most = window.saturating_mul(WINDOWS_UNDER_WAY).saturating_add(fixed);
    most.saturating_add(HELD_BYTES_MAX).min(UNDER_WAY_BYTES_MAX)
}

/// Payload that this end's kernel took over or handed out in a direction; none where this end has
/// no whole account of it.
fn own_bytes(figures: &Figures<'_>, way: Direction) -> Option<u64> {
    if of_way(figures.own, way).any(|report| report.failure.is_some()) {
        return None;
    }
    of_way(figures.own, way).map(|report| report.end.bytes).reduce(u64::saturating_add)
}

fn of_way(reports: &[EndReport], way: Direction) -> impl Iterator<Item = &EndReport> {
    reports.iter().filter(move |report| report.direction == way)
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{
        Asked, DatagramTally, ReceivedDatagrams, ServerPlan, TcpPlan, TcpTest, UdpPlan,
    };

    use super::*;
    use crate::flow::account::Connection;

    const SECOND: u64 = 1_000_000_000;

    fn report(direction: Direction, end: FlowEnd) -> EndReport {
        EndReport::from_flow_end(direction, 0, end)
    }

    /// A test of 1.2 s in which this end moved 12.5 MB in `way` and the other end tells `end`.
    fn reason_against_end(plan: &Plan, way: Direction, end: FlowEnd) -> Option<String> {
        let (bytes, span_ns) = (12_500_000, SECOND);
        let own = FlowEnd { bytes, bytes_measured: bytes, span_ns, ..FlowEnd::default() };
        let connection = Connection {
            direction: way,
            flow: 0,
            client_addr: String::new(),
            server_addr: String::new(),
        };
        let account = Account {
            connections: vec![connection],
            local: vec![report(way, own)],
            remote: vec![report(way, end)],
            size_bytes: if matches!(plan, Plan::Udp(_)) { 1000 } else { 0 },
            ..Account::default()
        };
        contradiction(plan, &account, SECOND * 12 / 10).map(|failure| {
            assert_eq!(failure.exit_code(), 3);
            failure.to_string()
        })
    }

    fn tcp_plan() -> Plan {
        let server = ServerPlan::new(None, "192.0.2.1", 5210);
        Plan::Tcp(TcpPlan { server, ..TcpPlan::default() })
    }

    fn udp_plan(via: Option<Via>) -> Plan {
        let server = ServerPlan::new(via, "192.0.2.1", 5210);
        Plan::Udp(UdpPlan { server, ..UdpPlan::default() })
    }

    fn flow_end(bytes: u64, span_ns: u64) -> FlowEnd {
        FlowEnd { bytes, bytes_measured: bytes, span_ns, ..FlowEnd::default() }
    }

    #[test]
    fn a_receiver_has_no_more_than_was_sent() {
        assert_eq!(
            reason_against_end(&tcp_plan(), Direction::Up, flow_end(12_500_000, SECOND)),
            None
        );
        assert_eq!(
            reason_against_end(&tcp_plan(), Direction::Up, flow_end(12_500_000 + 60, SECOND)),
            None,
            "a header"
        );
        for bytes in [12_600_000, u64::MAX] {
            let text = reason_against_end(&tcp_plan(), Direction::Up, flow_end(bytes, SECOND))
                .expect("more than was sent");
            let expected = "the other end's figures contradict this end's: it received";
            assert!(text.contains(expected), "{text}");
        }
        let measured = FlowEnd { bytes_measured: u64::MAX, ..flow_end(12_500_000, SECOND) };
        assert!(reason_against_end(&tcp_plan(), Direction::Up, measured).is_some());
    }

    #[test]
    fn copies_of_datagrams_count_where_the_other_program_counts_them() {
        let twice = || flow_end(25_000_000, SECOND);
        assert_eq!(reason_against_end(&udp_plan(Some(Via::Iperf3)), Direction::Up, twice()), None);
        assert!(reason_against_end(&udp_plan(None), Direction::Up, twice()).is_some());
        let lost = |lost| {
            let all = DatagramTally { lost, ..DatagramTally::default() };
            let received_datagrams = Some(ReceivedDatagrams { all, ..Default::default() });
            reason_against_end(
                &udp_plan(None),
                Direction::Up,
                FlowEnd { received_datagrams, ..flow_end(0, SECOND) },
            )
        };
        // 12.5 MB are 12,500 datagrams of 1000 bytes.
        assert_eq!(lost(12_500), None);
        assert!(lost(12_501).is_some());
    }

    #[test]
    fn a_sender_has_not_sent_what_no_buffer_can_have_held() {
        // A buffer of 50 MB that was full at the end.
        assert_eq!(
            reason_against_end(&tcp_plan(), Direction::Down, flow_end(62_500_000, SECOND)),
            None
        );
        // One of 100 MB that nobody asked for; 10 TB in a second are 80 Tbit/s.
        for bytes in [112_500_000, 10_000_000_000_000] {
            assert!(
                reason_against_end(&tcp_plan(), Direction::Down, flow_end(bytes, SECOND)).is_some()
            );
        }
        let under_way = |asked, got| {
            let rcvbuf_bytes = Asked { asked, got };
            under_way_max(&FlowEnd { rcvbuf_bytes, ..FlowEnd::default() })
        };
        // 64 MiB, and 13 windows of 6 MiB; a buffer of 100 MB that was asked for, twice as large.
        assert_eq!(under_way(None, None), 67_108_864);
        assert_eq!(under_way(None, Some(6 << 20)), 148_897_792);
        assert_eq!(under_way(Some(100_000_000), None), 267_108_864);
        assert_eq!(under_way(Some(u64::MAX), Some(u64::MAX)), 3_221_225_472);
    }

    #[test]
    fn a_sum_of_all_streams_is_held_against_all_of_them() {
        let local = [0, 1]
            .map(|flow| EndReport::from_flow_end(Direction::Up, flow, flow_end(1_000_000, SECOND)));
        let account = Account { local: local.to_vec(), ..Account::default() };
        let of = |bytes| of_sum(&tcp_plan(), &account, Direction::Up, bytes);
        assert_eq!(of(2_000_000), None);
        let text = of(3_000_000).expect("more than both sent");
        assert_eq!(text, "it received 3000000 bytes of 2000000 that were sent");
    }

    #[test]
    fn a_sender_has_sent_what_came() {
        let came = 12_500_000;
        assert_eq!(reason_against_end(&tcp_plan(), Direction::Down, flow_end(came, SECOND)), None);
        // A block that was written and not counted.
        assert_eq!(
            reason_against_end(&tcp_plan(), Direction::Down, flow_end(came - (1 << 20), SECOND)),
            None
        );
        let text = reason_against_end(&tcp_plan(), Direction::Down, flow_end(1_000_000, SECOND))
            .expect("less than came");
        assert!(text.ends_with("it sent 1000000 bytes, and 12500000 came"), "{text}");
        assert!(
            reason_against_end(&udp_plan(None), Direction::Down, flow_end(1_000_000, SECOND))
                .is_some()
        );
        // iperf3 leaves out the omitted span, and the others tell what came.
        let of = |via, omit_ns| {
            let server = ServerPlan::new(Some(via), "192.0.2.1", 5201);
            let test = TcpTest { omit_ns, ..TcpTest::default() };
            let plan = Plan::Tcp(TcpPlan { server, test, ..TcpPlan::default() });
            reason_against_end(&plan, Direction::Down, flow_end(1_000_000, SECOND)).is_some()
        };
        assert_eq!(
            [(Via::Iperf3, 0), (Via::Iperf3, 1), (Via::Nuttcp, 0)].map(|pair| of(pair.0, pair.1)),
            [true, false, false]
        );
    }

    #[test]
    fn a_sender_of_datagrams_has_sent_no_more_than_its_pace_or_a_port_allows() {
        let of = |mbps: Option<u64>, bytes: u64| {
            let Plan::Udp(mut plan) = udp_plan(None) else { panic!("a plan of UDP") };
            plan.test.pace = mbps.map(|mbps| BitRate::from_bits_per_sec(mbps * 1_000_000));
            reason_against_end(&Plan::Udp(plan), Direction::Down, flow_end(bytes, SECOND)).is_some()
        };
        // 100 Mbit/s are 12.5 MB in a second; of 10 TB in 1.2 s they are none, nor of any port.
        assert!(!of(Some(100), 12_500_000) && !of(Some(100), 25_000_000));
        assert!(of(Some(100), 1_000_000_000) && !of(None, 1_000_000_000));
        assert!(of(None, 10_000_000_000_000));
    }

    #[test]
    fn what_a_sender_of_datagrams_tells_of_itself_holds_together() {
        let Plan::Udp(plan) = udp_plan(None) else { panic!("a plan of UDP") };
        // 1 Mbit/s in datagrams of 1000 bytes: 125 a second.
        let test = plan.test.with_size(1000);
        let of = |datagrams, measured, span_ns| {
            let direction = Direction::Up;
            let told = DatagramsSent { direction, flow: 0, datagrams, measured, span_ns };
            of_sender(&test, &told, SECOND)
        };
        assert_eq!(of(125, 100, SECOND), None);
        assert!(of(125, 126, SECOND).is_some_and(|text| text == "it counts 126 of 125 datagrams"));
        assert!(of(u64::MAX, 0, SECOND).is_some_and(|text| text.contains("more than")));
        assert!(of(125, 125, u64::MAX).is_some_and(|text| text.contains("the test took")));
        // A search has no pace of its own, and its first one says nothing.
        let test = UdpTest { search: Some(Default::default()), ..test };
        let (direction, flow) = (Direction::Up, 0);
        let (datagrams, measured, span_ns) = (1_000_000, 0, SECOND);
        let told = DatagramsSent { direction, flow, datagrams, measured, span_ns };
        assert_eq!(of_sender(&test, &told, SECOND), None);
        // A host sends 150 million a second and no 2^32, however short they are.
        let test = UdpTest { size_bytes: 32, ..test };
        let told = DatagramsSent { datagrams: 1 << 32, ..told };
        assert!(of_sender(&test, &told, SECOND).is_some());
    }

    #[test]
    fn no_datagrams_are_sent_between_two_that_no_host_sends_in_the_time() {
        // 150 million a second, and a second that the first may have waited.
        assert_eq!(datagrams_max(SECOND), 301_500_000);
        // After a minute a jump of 2^32 is none of the moment since the last arrival.
        let came = 60_000;
        assert_eq!(of_jump(came + 1, came, 0), None);
        assert_eq!(of_jump(came + 100_000_000, came, SECOND), None);
        let text = of_jump(came + (1 << 32), came, SECOND).expect("far too many");
        assert_eq!(text, "it sent 4295027296 datagrams, 60000 of them 1.000 s before");
        assert_eq!(of_jump(1 << 32, 0, 28 * SECOND), None, "nothing came for 28 s");
    }

    #[test]
    fn a_server_holds_the_figures_of_its_client_against_its_own() {
        let of = |way, client: FlowEnd| {
            let own = report(way, flow_end(12_500_000, SECOND));
            let account = Account {
                local: vec![report(way, client)],
                remote: vec![own],
                ..Account::default()
            };
            of_client(&tcp_plan(), &account, SECOND).is_some()
        };
        for way in [Direction::Up, Direction::Down] {
            assert!(!of(way, flow_end(12_500_000, SECOND)), "{way:?}");
            assert!(of(way, flow_end(u64::MAX, SECOND)), "{way:?}");
            assert!(of(way, flow_end(12_500_000, u64::MAX)), "{way:?}");
        }
        assert!(of(Direction::Up, flow_end(1_000_000, SECOND)), "it sent less than came");
        assert!(!of(Direction::Down, flow_end(1_000_000, SECOND)), "the rest may be on its way");
    }

    #[test]
    fn no_time_is_longer_than_the_test() {
        let with = |end| reason_against_end(&tcp_plan(), Direction::Up, end);
        assert!(with(flow_end(1000, 4 * SECOND)).is_some());
        assert!(with(flow_end(1000, u64::MAX)).is_some());
        let spent = |ns| with(FlowEnd { cpu_user_ns: Some(ns), ..flow_end(1000, SECOND) });
        assert_eq!(spent(SECOND), None);
        assert!(spent(u64::MAX).is_some());
        let waited = FlowEnd { run_queue_wait_ns: Some(u64::MAX), ..flow_end(1000, SECOND) };
        assert!(with(waited).is_some());
    }

    #[test]
    fn an_interval_of_more_than_was_sent_is_none() {
        let mut account = Account {
            local: vec![report(Direction::Up, flow_end(1000, SECOND))],
            ..Account::default()
        };
        let sample = |bytes, t_ns| Sample { bytes, ..Sample::empty_at(Direction::Up, 0, t_ns) };
        account.remote_samples = vec![vec![sample(900, SECOND)]];
        assert_eq!(contradiction(&tcp_plan(), &account, SECOND), None);
        account.remote_samples.push(vec![sample(u64::MAX, SECOND)]);
        assert!(contradiction(&tcp_plan(), &account, SECOND).is_some());
        account.remote_samples[1] = vec![sample(900, u64::MAX)];
        assert!(contradiction(&tcp_plan(), &account, SECOND).is_some());
    }
}
