//! Whether the figures that the other end tells can be: nobody receives more than was sent, is busy
//! for longer than the test lasted, or sends what no window and no buffer had room for. What a
//! peer says is shown as a result, so one that cannot be right is none.
//!
//! The same for every protocol: the reports of both ends are held against each other, and the
//! samples of the other end against what this one sent. Left out: figures that may be.

use linerate_core::record::{Direction, EndReport, Failure, Fault, FlowEnd, Plan, Side};

use super::Sample;
use super::account::{Account, client_side};

/// What a stream may begin with, and another end counts: headers, cookies.
const HEAD_BYTES_MAX: u64 = 4096;
/// Bytes under way of a stream of TCP: the largest window (RFC 7323 §2.3, 2^30) and the largest
/// send buffer (net.ipv4.tcp_wmem is an int).
const UNDER_WAY_BYTES_MAX: u64 = (1 << 30) + (1 << 31);
/// A clock may go wrong by this much of a test, and be read late.
const CLOCK_SLACK_NS: u64 = 1_000_000_000;
/// Processors of a host that does not tell how many it has (CONFIG_NR_CPUS of Linux).
const CPUS_MAX: u64 = 8192;

/// The first figure of the other end that cannot be, in a test that took `elapsed_ns` here.
pub(super) fn contradiction(plan: &Plan, account: &Account, elapsed_ns: u64) -> Option<Failure> {
    let server = match plan {
        Plan::Tcp(plan) => &plan.server,
        Plan::Udp(plan) => &plan.server,
        _ => return None,
    };
    let limits = Limits {
        elapsed_ns: elapsed_ns + elapsed_ns / 100 + CLOCK_SLACK_NS,
        cpus: account.ends.get(1).and_then(|end| end.cpus).map_or(CPUS_MAX, u64::from).max(1),
        // A path may deliver a datagram twice, which other programs count.
        copies: if account.size_bytes > 0 && server.via.is_some() { 2 } else { 1 },
    };
    let reason = [Direction::Up, Direction::Down]
        .into_iter()
        .find_map(|way| limits.bytes(account, way))
        .or_else(|| account.remote.iter().find_map(|report| limits.times(&report.end)))
        .or_else(|| limits.samples(account))?;
    let reason = format!("the other end's figures contradict this end's: {reason}");
    Some(Failure::new(Fault::PeerMisbehaved, "take the result of", &server.host, reason))
}

/// What can be.
struct Limits {
    elapsed_ns: u64,
    cpus: u64,
    copies: u64,
}

impl Limits {
    /// Payload of a direction, all streams together: some programs tell no more.
    fn bytes(&self, account: &Account, way: Direction) -> Option<String> {
        let here = own_bytes(account, way)?;
        let streams = account.connections.iter().filter(|it| it.direction == way).count().max(1);
        let streams = streams as u64;
        let reports = || of_way(&account.remote, way);
        let sum = |pick: fn(&FlowEnd) -> u64| -> u128 {
            reports().map(|report| u128::from(pick(&report.end))).sum()
        };
        let there = sum(|end| end.bytes).max(sum(|end| end.bytes_measured));
        if client_side(way) == Side::Sender {
            let most = self.received_max(here, streams);
            if there > most {
                return Some(format!("it received {there} bytes of {here} that were sent"));
            }
            let lost = sum(|end| end.received_datagrams.as_ref().map_or(0, |it| it.all.lost));
            let datagrams = u128::from(here / u64::from(account.size_bytes.max(1)));
            return (lost > datagrams)
                .then(|| format!("it lost {lost} datagrams of {datagrams} that were sent"));
        }
        // What became of datagrams that did not come, nobody here can say.
        let most = u128::from(here) + u128::from(streams * UNDER_WAY_BYTES_MAX);
        (account.size_bytes == 0 && there > most).then(|| {
            format!("it sent {there} bytes, of which {here} came, more than can be under way")
        })
    }

    fn received_max(&self, sent_bytes: u64, streams: u64) -> u128 {
        u128::from(sent_bytes) * u128::from(self.copies) + u128::from(streams * HEAD_BYTES_MAX)
    }

    /// Times of a stream.
    fn times(&self, end: &FlowEnd) -> Option<String> {
        let seconds = |ns: u64| format!("{:.3} s", ns as f64 / 1e9);
        let test = seconds(self.elapsed_ns);
        let last_ns = end.span_start_ns.saturating_add(end.span_ns);
        if last_ns > self.elapsed_ns {
            return Some(format!(
                "it measured until {}, and the test took {test}",
                seconds(last_ns)
            ));
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

    /// What it told while the test ran.
    fn samples(&self, account: &Account) -> Option<String> {
        let up = own_bytes(account, Direction::Up);
        let streams = account.connections.len() as u64;
        account.remote_samples.iter().find_map(|interval| {
            if let Some(late) = interval.iter().find(|sample| sample.t_ns > self.elapsed_ns) {
                let seconds = late.t_ns as f64 / 1e9;
                return Some(format!("an interval of it ended after {seconds:.3} s"));
            }
            let received = interval.iter().filter(|it| it.direction == Direction::Up);
            let there: u128 = received.map(|it: &Sample| u128::from(it.bytes)).sum();
            let here = up.filter(|here| there > self.received_max(*here, streams))?;
            Some(format!("it received {there} bytes of {here} that were sent"))
        })
    }
}

/// Payload that this end's kernel took over or handed out in a direction; none where this end has
/// no whole account of it.
fn own_bytes(account: &Account, way: Direction) -> Option<u64> {
    if of_way(&account.local, way).any(|report| report.failure.is_some()) {
        return None;
    }
    of_way(&account.local, way).map(|report| report.end.bytes).reduce(u64::saturating_add)
}

fn of_way(reports: &[EndReport], way: Direction) -> impl Iterator<Item = &EndReport> {
    reports.iter().filter(move |report| report.direction == way)
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{
        DatagramTally, ReceivedDatagrams, ServerPlan, TcpPlan, UdpPlan, Via,
    };

    use super::*;
    use crate::flow::account::Connection;

    const SECOND: u64 = 1_000_000_000;

    fn report(direction: Direction, end: FlowEnd) -> EndReport {
        EndReport::of(direction, 0, end)
    }

    /// A test of 1.2 s in which this end moved 12.5 MB in `way` and the other end tells `end`.
    fn told(plan: &Plan, way: Direction, end: FlowEnd) -> Option<String> {
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

    fn tcp() -> Plan {
        let server = ServerPlan::new(None, "192.0.2.1", 5210);
        Plan::Tcp(TcpPlan { server, ..TcpPlan::default() })
    }

    fn udp(via: Option<Via>) -> Plan {
        let server = ServerPlan::new(via, "192.0.2.1", 5210);
        Plan::Udp(UdpPlan { server, ..UdpPlan::default() })
    }

    fn end(bytes: u64, span_ns: u64) -> FlowEnd {
        FlowEnd { bytes, bytes_measured: bytes, span_ns, ..FlowEnd::default() }
    }

    #[test]
    fn a_receiver_has_no_more_than_was_sent() {
        assert_eq!(told(&tcp(), Direction::Up, end(12_500_000, SECOND)), None);
        assert_eq!(told(&tcp(), Direction::Up, end(12_500_000 + 60, SECOND)), None, "a header");
        for bytes in [12_600_000, u64::MAX] {
            let text = told(&tcp(), Direction::Up, end(bytes, SECOND)).expect("more than was sent");
            let expected = "the other end's figures contradict this end's: it received";
            assert!(text.contains(expected), "{text}");
        }
        let measured = FlowEnd { bytes_measured: u64::MAX, ..end(12_500_000, SECOND) };
        assert!(told(&tcp(), Direction::Up, measured).is_some());
    }

    #[test]
    fn copies_of_datagrams_count_where_the_other_program_counts_them() {
        let twice = || end(25_000_000, SECOND);
        assert_eq!(told(&udp(Some(Via::Iperf3)), Direction::Up, twice()), None);
        assert!(told(&udp(None), Direction::Up, twice()).is_some());
        let lost = |lost| {
            let all = DatagramTally { lost, ..DatagramTally::default() };
            let received_datagrams = Some(ReceivedDatagrams { all, ..Default::default() });
            told(&udp(None), Direction::Up, FlowEnd { received_datagrams, ..end(0, SECOND) })
        };
        // 12.5 MB are 12,500 datagrams of 1000 bytes.
        assert_eq!(lost(12_500), None);
        assert!(lost(12_501).is_some());
    }

    #[test]
    fn a_sender_has_not_sent_what_no_buffer_can_have_held() {
        // A buffer of 100 MB that was full at the end.
        assert_eq!(told(&tcp(), Direction::Down, end(112_500_000, SECOND)), None);
        // 10 TB in a second are 80 Tbit/s.
        assert!(told(&tcp(), Direction::Down, end(10_000_000_000_000, SECOND)).is_some());
    }

    #[test]
    fn no_time_is_longer_than_the_test() {
        let with = |end| told(&tcp(), Direction::Up, end);
        assert!(with(end(1000, 4 * SECOND)).is_some());
        assert!(with(end(1000, u64::MAX)).is_some());
        let spent = |ns| with(FlowEnd { cpu_user_ns: Some(ns), ..end(1000, SECOND) });
        assert_eq!(spent(SECOND), None);
        assert!(spent(u64::MAX).is_some());
        let waited = FlowEnd { run_queue_wait_ns: Some(u64::MAX), ..end(1000, SECOND) };
        assert!(with(waited).is_some());
    }

    #[test]
    fn an_interval_of_more_than_was_sent_is_none() {
        let mut account =
            Account { local: vec![report(Direction::Up, end(1000, SECOND))], ..Account::default() };
        let sample = |bytes, t_ns| Sample { bytes, ..Sample::of(Direction::Up, 0, t_ns) };
        account.remote_samples = vec![vec![sample(900, SECOND)]];
        assert_eq!(contradiction(&tcp(), &account, SECOND), None);
        account.remote_samples.push(vec![sample(u64::MAX, SECOND)]);
        assert!(contradiction(&tcp(), &account, SECOND).is_some());
        account.remote_samples[1] = vec![sample(900, u64::MAX)];
        assert!(contradiction(&tcp(), &account, SECOND).is_some());
    }
}
