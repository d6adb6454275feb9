//! What a run of probes says of its own worth: stamps that did not come, probes that left late or
//! not at all, answers that this host dropped, a clock that is too coarse.

use linerate_core::record::{Caveat, CaveatCode, Failure, Fault, MetricId, Stat, Summary};
use linerate_sys::echo_socket::EchoKind;

use super::{PingOutcome, PingSession, Tick};

/// Share of sends that may be late before it is told.
const LATE_SHARE: f64 = 0.01;

impl PingSession<'_, '_> {
    pub(super) fn note_missing_stamps(&mut self, size: u32, answered: u64, outcome: &PingOutcome) {
        let missing = answered.saturating_sub(outcome.paired);
        if missing > 0 {
            self.caveat(Caveat::new(
                CaveatCode::StampsMissing,
                format!(
                    "{missing} of {answered} answers of {size} bytes have no usable pair of \
                     kernel timestamps ({} of them were impossible)",
                    outcome.impossible
                ),
                "the kernel's times rest on fewer samples; no probe was lost by it",
            ));
        }
    }

    /// Adds the caveats of probes without a whole split.
    pub(super) fn note_broken_splits(&mut self, size: u32, outcome: &PingOutcome) {
        let without = outcome.paired - outcome.split;
        if without > 0 {
            self.caveat(Caveat::new(
                CaveatCode::StampsMissing,
                format!(
                    "{without} of {} probes of {size} bytes with kernel timestamps have none \
                     before the queueing discipline, or one that cannot be",
                    outcome.paired
                ),
                "the split of the round trip rests on the others",
            ));
        }
        if let Some(step_ns) = outcome.stepped_ns {
            self.caveat(Caveat::new(
                CaveatCode::ClockStepped,
                format!("civil time was set by {:+.6} s meanwhile", step_ns as f64 / 1e9),
                "round trips are by the monotonic clock and hold; repeat for the split and for \
                 one-way delays",
            ));
        }
    }

    /// Adds the share of replies that a queue marked, as their ECN bits say.
    pub(super) fn note_marks(&mut self, size: u32, marked: u64, answered: u64) {
        if self.plan.ecn.is_some() && answered > 0 {
            let ratio = marked as f64 / answered as f64;
            let row = Summary::from_value(MetricId::CongestionMarked, Stat::Value, ratio)
                .with_n(answered);
            self.record.summary.push(row.at_payload(size));
        }
    }

    pub(super) fn note_late_sends(&mut self, late: u64, sent: u64) {
        if late as f64 > sent as f64 * LATE_SHARE {
            self.caveat(Caveat::new(
                CaveatCode::LateSends,
                format!("{late} of {sent} probes left late"),
                "use a longer interval (-i), or --wait-mode spin",
            ));
        }
    }

    /// A raw socket's count holds what its filter keeps away too (seen on Linux 6.18), so it says
    /// nothing there.
    pub(super) fn note_drops(&mut self, lost: u64) {
        let elsewhere = self.wire.socket().elsewhere();
        if elsewhere > 0 {
            self.caveat(Caveat::new(
                CaveatCode::ReceiveDrops,
                format!("{elsewhere} replies came in on other receive queues and were not taken"),
                "give the interface one queue (ethtool -L INTERFACE combined 1), or ping without \
                 --xdp",
            ));
        }
        let drops = u64::from(self.wire.socket().dropped_packets().unwrap_or(0)).min(lost);
        if drops > 0 && self.kind != EchoKind::IcmpRaw {
            self.caveat(Caveat::new(
                CaveatCode::ReceiveDrops,
                format!("{drops} of {lost} lost replies were dropped by this host's socket buffer"),
                "use a smaller --window, or raise net.core.rmem_max",
            ));
        }
    }

    /// Probes that never left are no loss of the path.
    pub(super) fn note_unsent(&mut self, unsent: u64, sent: u64) -> Result<(), Failure> {
        if unsent == 0 {
            return Ok(());
        }
        let all = unsent + sent;
        let reason =
            format!("{unsent} of {all} probes were not sent: this host's own queue dropped them");
        let advice = "send smaller probes (-s), or lengthen the queue: ip link set INTERFACE \
                      txqueuelen 1000";
        if sent == 0 {
            return Err(
                Failure::new(Fault::System, "ping", self.target_name(), reason).advise(advice)
            );
        }
        self.caveat(Caveat::new(CaveatCode::OwnInterfaceDrops, reason, advice));
        Ok(())
    }

    pub(super) fn note_clock(&mut self, tick: Option<Tick>) {
        let Some(tick) = tick else { return };
        let fastest = self.record.summary.iter().filter(|row| row.metric == MetricId::Rtt);
        let fastest = fastest.filter(|row| row.stat == Stat::P50).map(|row| row.value);
        let Some(median_ns) = fastest.min_by(f64::total_cmp) else { return };
        if tick.step_ns * 10.0 > median_ns {
            self.caveat(Caveat::new(
                CaveatCode::CoarseClock,
                format!(
                    "the clock steps by {:.0} ns, more than a tenth of the median of {median_ns} ns",
                    tick.step_ns
                ),
                "run `linerate doctor clock`; the tsc clock source has finer steps",
            ));
        }
    }
}
