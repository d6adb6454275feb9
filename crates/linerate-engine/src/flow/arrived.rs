//! Whether anything arrived: a test in which a direction carried nothing has measured no rate,
//! whoever the other end is.

use linerate_core::record::{Direction, EndReport, Failure, Fault, FlowSide, Plan};

use super::account::{Account, client_side};

/// The failure of a test in which a direction carried nothing at all: connections were made, so
/// small packets pass, and what it measured is no rate. One over TCP may have been `stopped`
/// before.
pub(super) fn nothing_arrived(plan: &Plan, account: &Account, stopped: bool) -> Option<Failure> {
    let Plan::Tcp(plan) = plan else { return account.nothing_received() };
    let mut ways = plan.test.directions.each_direction().iter().filter(|_| !stopped);
    let silent = *ways.find(|way| received(account, **way) == Some(0))?;
    let (attempt, sent) = match silent {
        Direction::Up => ("move data to", &account.local),
        Direction::Down => ("move data from", &account.remote),
    };
    let sent: u64 = of_way(sent, silent).map(|report| report.end.bytes).sum();
    let reason = match sent {
        // A server of iperf 2 does not tell.
        0 => "nothing arrived".to_owned(),
        sent => format!("nothing arrived of the {sent} bytes that were sent"),
    };
    Some(Failure::new(Fault::Unreachable, attempt, &plan.server.host, reason).advise(
        "connections are established, so small packets pass; if the path drops large ones, -M 536 \
         works and `linerate ping -s 1400 --dont-fragment` fails",
    ))
}

/// True where it is known of every direction of a test over TCP that it carried nothing.
pub(super) fn nothing_at_all(plan: &Plan, account: &Account) -> bool {
    let Plan::Tcp(plan) = plan else { return false };
    plan.test.directions.each_direction().iter().all(|way| received(account, *way) == Some(0))
}

/// Payload that an account has as received in a direction, before the measured span or in it; none
/// where no end told. Where the receiver never tells, its kernel's acknowledgements stand for it.
fn received(account: &Account, way: Direction) -> Option<u64> {
    let all = |report: &EndReport| report.end.bytes.max(report.end.bytes_measured);
    match client_side(way) {
        FlowSide::Receiver => of_way(&account.local, way).map(all).reduce(u64::saturating_add),
        FlowSide::Sender => {
            let there = of_way(&account.remote, way).map(all).reduce(u64::saturating_add);
            let acknowledged = of_way(&account.local, way).map(|report| report.end.bytes_measured);
            let heads =
                acknowledged.map(|acknowledged| acknowledged.saturating_sub(account.head_bytes));
            there.or_else(|| heads.reduce(u64::saturating_add).filter(|_| account.one_sided))
        }
    }
}

fn of_way(reports: &[EndReport], way: Direction) -> impl Iterator<Item = &EndReport> {
    reports.iter().filter(move |report| report.direction == way)
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{FlowEnd, ServerPlan, TcpDirections, TcpPlan, TcpTest};

    use super::*;

    fn report(direction: Direction, bytes: u64, bytes_measured: u64) -> EndReport {
        let end = FlowEnd { bytes, bytes_measured, ..FlowEnd::default() };
        EndReport::from_flow_end(direction, 0, end)
    }

    fn reason(directions: TcpDirections, account: &Account) -> Option<String> {
        let plan = TcpPlan {
            server: ServerPlan::new(None, "192.0.2.1", 5210),
            test: TcpTest { directions, ..TcpTest::default() },
            ..TcpPlan::default()
        };
        nothing_arrived(&Plan::Tcp(plan), account, false).map(|failure| failure.to_string())
    }

    #[test]
    fn nothing_received_is_a_failure_in_either_direction() {
        use Direction::{Down, Up};
        let local = vec![report(Up, 700, 700), report(Down, 50, 50)];
        let remote = vec![report(Up, 0, 0), report(Down, 50, 50)];
        let mut account = Account { local, remote, ..Account::default() };
        let up = reason(TcpDirections::Up, &account).expect("nothing of 700");
        assert!(up.contains("nothing arrived of the 700 bytes"), "{up}");
        assert_eq!(reason(TcpDirections::Down, &account), None);
        assert!(reason(TcpDirections::Both, &account).is_some(), "one way of two");
        account.local[1] = report(Down, 0, 0);
        assert!(reason(TcpDirections::Down, &account).is_some());
        // What came, came: that none of it fell into the measured span is no outage.
        account.local[1] = report(Down, 50, 0);
        assert_eq!(reason(TcpDirections::Down, &account), None);
    }

    #[test]
    fn an_end_that_tells_nothing_is_not_one_that_received_nothing() {
        let local = vec![report(Direction::Up, 700, 700)];
        let silent = Account { local, ..Account::default() };
        assert_eq!(reason(TcpDirections::Up, &silent), None);
        assert!(!nothing_at_all(&Plan::Tcp(TcpPlan::default()), &silent));
    }

    #[test]
    fn what_the_senders_kernel_saw_acknowledged_stands_for_a_receiver_that_never_tells() {
        // Two streams, each begun with a header of 60 bytes, which small packets carry.
        let of = |acknowledged: [u64; 2]| {
            let local = acknowledged.map(|bytes| report(Direction::Up, 9000, bytes)).to_vec();
            Account { local, one_sided: true, head_bytes: 60, ..Account::default() }
        };
        let nothing = reason(TcpDirections::Up, &of([60, 60])).expect("headers alone");
        assert!(nothing.contains("of the 18000 bytes"), "{nothing}");
        assert!(reason(TcpDirections::Up, &of([0, 31])).is_some());
        assert_eq!(reason(TcpDirections::Up, &of([60, 61])), None);
        // A server that tells a sum is believed.
        let told = Account { remote: vec![report(Direction::Up, 0, 0)], ..of([9000, 9000]) };
        assert!(reason(TcpDirections::Up, &told).is_some());
    }
}
