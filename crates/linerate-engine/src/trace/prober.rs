//! Sends probes by a schedule and gives each its answer: the one loop of a trace.

use std::collections::HashMap;

use linerate_core::record::Failure;

use super::network::{Network, TraceAnswer, TraceProbe};

/// A probe with its time, since the start of the schedule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shot {
    pub(super) after_ns: u64,
    pub(super) probe: TraceProbe,
    /// The round that it belongs to; none where any lateness puts off those behind it.
    pub(super) round: Option<ProbeRound>,
}

/// A round of probes, one to each hop. One that is late is put off with all behind it: rounds
/// caught up with at once would find the routers' buckets of answers empty, which looks like loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProbeRound {
    pub(super) number: u64,
    /// Later than this a probe is late; up to it, those behind keep their times.
    pub(super) late_ns_max: u64,
}

/// The outcome of a probe.
#[derive(Clone, Debug)]
pub(super) struct ProbeOutcome {
    pub(super) probe: TraceProbe,
    /// Since the start of the trace; none where this host's own link did not take it.
    pub(super) sent_ns: Option<u64>,
    pub(super) answer: Option<TraceAnswer>,
}

/// The probes of one trace.
#[derive(Debug)]
pub(super) struct TraceProber<N> {
    pub(super) network: N,
    began_ns: u64,
    pub(super) timeout_ns: u64,
    next: u16,
    /// Rounds put off, whole or their rest, because this host was late.
    pub(super) late_rounds: u64,
    /// The last of them.
    last_late: Option<u64>,
}

impl<N: Network> TraceProber<N> {
    pub(super) fn new(network: N, timeout_ns: u64) -> Self {
        let began_ns = network.now_ns();
        Self { network, began_ns, timeout_ns, next: 0, late_rounds: 0, last_late: None }
    }

    /// Sends the probes one every `gap_ns`, and waits for the last answer or its time-out.
    pub(super) fn send_all(
        &mut self,
        probes: impl IntoIterator<Item = TraceProbe>,
        gap_ns: u64,
    ) -> Result<Vec<ProbeOutcome>, Failure> {
        let shots = probes.into_iter().enumerate();
        let shots = shots.map(|(index, probe)| Shot {
            after_ns: index as u64 * gap_ns,
            probe,
            round: None,
        });
        self.run(&shots.collect::<Vec<_>>(), || false)
    }

    /// Sends probes by their times, until the last is answered or given up, or `ended`. Probes that
    /// were not sent by then are left out. A late probe puts off those behind it, which keep their
    /// distance.
    pub(super) fn run(
        &mut self,
        shots: &[Shot],
        mut ended: impl FnMut() -> bool,
    ) -> Result<Vec<ProbeOutcome>, Failure> {
        let mut start_ns = self.network.now_ns();
        let mut outcomes: Vec<ProbeOutcome> = Vec::with_capacity(shots.len());
        let mut open: HashMap<u16, usize> = HashMap::new();
        let mut last_ns = start_ns;
        let mut left = shots;
        loop {
            let over = self.network.stopped() || ended();
            let next = left.first().filter(|_| !over);
            let now_ns = self.network.now_ns();
            let due_ns = next.map(|shot| start_ns + shot.after_ns);
            if let (Some(shot), Some(due_ns)) = (next, due_ns)
                && due_ns <= now_ns
            {
                let late_ns = now_ns - due_ns;
                start_ns += self.put_off_ns(shot.round, late_ns);
                left = &left[1..];
                let number = self.next;
                self.next = self.next.wrapping_add(1);
                let probe = TraceProbe { number, ..shot.probe };
                let sent = self.network.send_probe(&probe)?;
                last_ns = now_ns;
                if sent {
                    open.insert(number, outcomes.len());
                }
                let sent_ns = sent.then(|| now_ns.saturating_sub(self.began_ns));
                outcomes.push(ProbeOutcome { probe, sent_ns, answer: None });
                self.take_answers(now_ns, &mut open, &mut outcomes);
                continue;
            }
            let given_up_ns = last_ns + self.timeout_ns;
            if due_ns.is_none() && (open.is_empty() || now_ns >= given_up_ns || over) {
                break;
            }
            self.take_answers(due_ns.unwrap_or(given_up_ns), &mut open, &mut outcomes);
        }
        Ok(outcomes)
    }

    /// Time by which a probe that is so late puts off those behind it.
    fn put_off_ns(&mut self, round: Option<ProbeRound>, late_ns: u64) -> u64 {
        let Some(ProbeRound { number, late_ns_max }) = round else { return late_ns };
        if late_ns <= late_ns_max {
            return 0;
        }
        self.late_rounds += u64::from(self.last_late.replace(number) != Some(number));
        late_ns
    }

    /// Sends one probe without waiting for its answer: whether this host's own link takes it.
    pub(super) fn send_without_wait(&mut self, probe: TraceProbe) -> Result<bool, Failure> {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.network.send_probe(&TraceProbe { number, ..probe })
    }

    /// Lets time pass; late answers are not kept.
    pub(super) fn pause_discarding(&mut self, span_ns: u64) {
        let until_ns = self.network.now_ns() + span_ns;
        while self.network.now_ns() < until_ns && !self.network.stopped() {
            self.network.answers(until_ns);
        }
    }

    fn take_answers(
        &mut self,
        until_ns: u64,
        open: &mut HashMap<u16, usize>,
        outcomes: &mut [ProbeOutcome],
    ) {
        for answer in self.network.answers(until_ns) {
            // A duplicate may know what the first did not: the raw socket quotes the header.
            let Some(outcome) = open
                .remove(&answer.number)
                .map(|index| &mut outcomes[index])
                .filter(|_| answer.rtt_ns <= self.timeout_ns)
            else {
                continue;
            };
            outcome.answer = Some(answer);
        }
    }
}
