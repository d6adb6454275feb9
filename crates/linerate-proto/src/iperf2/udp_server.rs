//! The server's side of a UDP test, of iperf 2 or ttcp: when what comes is over, when the server
//! begins to send, and when it is done.
//!
//! Datagrams are counted and answered beside the machine (`UdpTally`), which looks at the counts.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use linerate_core::time::MonoTime;

use super::{Mode, UdpTally};
use crate::dialect::{Beat, FlowState, Input, Machine, Output, Wants};

/// A sender of iperf 2 that is silent for this long is gone.
pub const UDP_SILENCE_MAX: Duration = Duration::from_secs(5);
/// A client whose test has ended is answered again until it was silent for this long.
pub const UDP_ENDED_MAX: Duration = Duration::from_secs(1);
/// How often the data is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// On which terms a client is served.
#[derive(Clone, Copy, Debug)]
pub struct UdpTerms {
    /// Who sends, and when.
    pub mode: Mode,
    /// A client that is silent for so long is gone.
    pub silence_max: Duration,
    /// Time between samples; none for no samples.
    pub interval: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Running,
    /// The test is over; ends that come again are answered.
    Lingering {
        until: MonoTime,
    },
    Over,
}

/// The server's machine, from a client's first datagram on.
///
/// In a [`FlowState`] `received` is the bytes that came, `complete` that the client's end did, and
/// `done` that what the server sends is sent, and reported where the client does that.
pub struct UdpServer {
    terms: UdpTerms,
    stage: Stage,
    out: VecDeque<Output<Self>>,
    beat: Option<Beat>,
    /// What had come, and when the last of it did.
    came: (u64, MonoTime),
    /// The server is to send, does, and was told to end that.
    asked: bool,
    sends: bool,
    ends: bool,
    stopped: bool,
}

impl UdpServer {
    /// Of a client whose first datagram came at `begin`.
    pub fn new(begin: MonoTime, terms: UdpTerms) -> Self {
        Self {
            terms,
            stage: Stage::Running,
            out: VecDeque::new(),
            beat: terms.interval.map(|interval| Beat::new(begin, interval, Duration::ZERO)),
            came: (0, begin),
            asked: false,
            sends: false,
            ends: false,
            stopped: false,
        }
    }

    /// Of one whose test is over, by what came of it.
    pub fn lingering(now: MonoTime, tally: &UdpTally) -> Self {
        let came = (tally.came(now).bytes, tally.last);
        let (mode, silence_max) = (Mode::Forward, UDP_ENDED_MAX);
        let terms = UdpTerms { mode, silence_max, interval: None };
        let stage = Stage::Lingering { until: now + UDP_SILENCE_MAX };
        Self { stage, came, ..Self::new(now, terms) }
    }

    fn look(&mut self, now: MonoTime, flow: &FlowState) {
        if flow.received != self.came.0 {
            self.came = (flow.received, now);
        }
        let silent = now.since(self.came.1) >= self.terms.silence_max;
        match self.stage {
            Stage::Running => self.run(now, flow, silent),
            Stage::Lingering { until } if silent || self.stopped || now >= until => self.finish(),
            Stage::Lingering { .. } | Stage::Over => {}
        }
    }

    fn run(&mut self, now: MonoTime, flow: &FlowState, silent: bool) {
        if let Some(beat) = &mut self.beat {
            beat.due(now, &mut self.out);
        }
        let due = match self.terms.mode {
            Mode::Forward => false,
            Mode::Reverse | Mode::FullDuplex | Mode::Dual => true,
            Mode::TradeOff => flow.complete,
        };
        if due && !std::mem::replace(&mut self.asked, true) {
            // What is due now may begin at once: it is looked at again then.
            return self.out.push_back(Output::Open);
        }
        let receives = self.terms.mode != Mode::Reverse;
        let gone = receives && silent && !flow.complete;
        if self.sends && (gone || self.stopped) && !std::mem::replace(&mut self.ends, true) {
            self.out.push_back(Output::StopSending);
        }
        let over = !receives || flow.complete || silent || self.stopped;
        if over && (flow.done || !self.sends) {
            self.finish();
        }
    }

    fn finish(&mut self) {
        self.out.push_back(Output::Finished);
        self.stage = Stage::Over;
    }
}

impl Machine for UdpServer {
    type Request = Infallible;
    type Terms = Infallible;
    type Refusal = Infallible;
    type Report = Infallible;
    type News = Infallible;
    type PeerFault = Infallible;

    fn handle(&mut self, now: MonoTime, input: Input<'_, Self>) {
        match input {
            Input::Opened => self.sends = true,
            Input::Look(flow) => self.look(now, &flow),
            Input::Stop => self.stopped = true,
            Input::GiveUp(_) => self.stage = Stage::Over,
            Input::Bytes(_) | Input::Closed => {}
            Input::Decided(Ok(never) | Err(never)) | Input::Tell(never) => match never {},
            Input::Counted(never) => match *never {},
        }
    }

    fn poll(&mut self) -> Option<Output<Self>> {
        self.out.pop_front()
    }

    fn wants(&self) -> Wants {
        let wake_at = self.beat.map(|beat| beat.next());
        Wants { wake_at, look: LOOK, reads: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u64) -> MonoTime {
        MonoTime::default() + SECOND * seconds as u32
    }

    fn server(mode: Mode) -> UdpServer {
        UdpServer::new(at(0), UdpTerms { mode, silence_max: UDP_SILENCE_MAX, interval: None })
    }

    /// What a look at the data brings: `O`pen, `S`top sending, `F`inished.
    fn look(server: &mut UdpServer, second: u64, flow: FlowState) -> String {
        server.handle(at(second), Input::Look(flow));
        let outputs = std::iter::from_fn(|| server.poll());
        let letter = |output| match output {
            Output::Open => 'O',
            Output::StopSending => 'S',
            Output::Finished => 'F',
            _ => '?',
        };
        outputs.map(letter).collect()
    }

    const NONE: FlowState = FlowState {
        received: 100,
        moved: 0,
        complete: false,
        delivered: false,
        settled: false,
        done: false,
    };

    #[test]
    fn a_server_that_only_receives_ends_with_the_client_or_after_five_seconds_of_silence() {
        let mut ends = server(Mode::Forward);
        assert_eq!(look(&mut ends, 1, NONE), "");
        assert_eq!(look(&mut ends, 2, FlowState { complete: true, ..NONE }), "F");
        let mut silent = server(Mode::Forward);
        assert_eq!(look(&mut silent, 1, NONE), "");
        assert_eq!(look(&mut silent, 5, FlowState { received: 101, ..NONE }), "");
        assert_eq!(look(&mut silent, 9, FlowState { received: 101, ..NONE }), "");
        assert_eq!(look(&mut silent, 10, FlowState { received: 101, ..NONE }), "F");
        let mut stopped = server(Mode::Forward);
        stopped.handle(at(1), Input::Stop);
        assert_eq!(look(&mut stopped, 1, NONE), "F");
    }

    #[test]
    fn it_sends_at_once_or_in_a_trade_off_after_the_client() {
        for mode in [Mode::Reverse, Mode::FullDuplex, Mode::Dual] {
            assert_eq!(look(&mut server(mode), 0, NONE), "O", "{mode:?}");
        }
        let mut trades = server(Mode::TradeOff);
        assert_eq!(look(&mut trades, 0, NONE), "");
        let over = FlowState { complete: true, ..NONE };
        assert_eq!(look(&mut trades, 1, over), "O");
        trades.handle(at(1), Input::Opened);
        assert_eq!(look(&mut trades, 2, over), "");
        assert_eq!(look(&mut trades, 3, FlowState { done: true, ..over }), "F");
    }

    #[test]
    fn who_falls_silent_before_its_end_is_sent_no_more() {
        let mut both = server(Mode::FullDuplex);
        assert_eq!(look(&mut both, 0, NONE), "O");
        both.handle(at(0), Input::Opened);
        assert_eq!(look(&mut both, 4, NONE), "");
        assert_eq!(look(&mut both, 5, NONE), "S");
        assert_eq!(look(&mut both, 6, NONE), "", "it is told once");
        assert_eq!(look(&mut both, 7, FlowState { done: true, ..NONE }), "F");
        // One that asked for data alone says nothing more, and is sent all.
        let mut reverse = server(Mode::Reverse);
        assert_eq!(look(&mut reverse, 0, NONE), "O");
        reverse.handle(at(0), Input::Opened);
        assert_eq!(look(&mut reverse, 60, NONE), "");
        assert_eq!(look(&mut reverse, 61, FlowState { done: true, ..NONE }), "F");
    }

    #[test]
    fn a_client_that_may_not_be_sent_anything_in_time_is_done_without() {
        let mut both = server(Mode::FullDuplex);
        assert_eq!(look(&mut both, 0, NONE), "O");
        assert_eq!(look(&mut both, 1, FlowState { complete: true, ..NONE }), "F");
    }

    #[test]
    fn ends_are_answered_until_a_second_of_silence_or_for_five() {
        let mut tally = UdpTally::of(&[0; 200], at(0));
        tally.take(&[0; 200], at(3), 0);
        let flow = |received| FlowState { received, ..NONE };
        let mut lingers = UdpServer::lingering(at(3), &tally);
        assert_eq!(look(&mut lingers, 3, flow(200)), "");
        assert_eq!(look(&mut lingers, 4, flow(200)), "F");
        let mut again = UdpServer::lingering(at(3), &tally);
        for second in 4..8 {
            assert_eq!(look(&mut again, second, flow(200 + second)), "");
        }
        assert_eq!(look(&mut again, 8, flow(208)), "F");
    }
}
