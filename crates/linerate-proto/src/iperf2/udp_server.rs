//! The server's side of a UDP test of iperf 2 or ttcp: the end of the client's data, the start of
//! the server's data, and the end of the test. The server's datagrams other than data are in
//! [`super::udp_back`].
//!
//! `UdpTally` counts and answers the client's datagrams; the machine reads its counters.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use linerate_core::time::MonoTime;

use super::udp_back::Back;
use super::{Mode, UdpBack, UdpReport, UdpTally};
use crate::dialect::{FlowState, Input, Machine, Output, TestIntervalTimer, Wants};

/// Silence from which a sender of iperf 2 counts as gone.
pub const UDP_SILENCE_MAX: Duration = Duration::from_secs(5);
/// Silence after which a client whose test has ended is no longer answered.
pub const UDP_ENDED_MAX: Duration = Duration::from_secs(1);
/// Interval of checks of the counters.
const LOOK: Duration = Duration::from_millis(10);

/// Terms of a UDP test at the server.
#[derive(Clone, Copy, Debug)]
pub struct UdpTerms {
    /// Direction of the data.
    pub mode: Mode,
    /// Silence from which the client counts as gone.
    pub silence_max: Duration,
    /// Time between two samples; `None` for no samples.
    pub interval: Option<Duration>,
    /// Terms of the server's stream, where the client wants data.
    pub back: Option<UdpBack>,
}

/// State of the server's stream that its owner reports to the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpServerNews {
    /// Port unreachable: the client does not listen yet.
    Refused,
    /// All data has been sent: the number of datagrams, including the first.
    Sent(u64),
}

#[derive(Clone, Copy, Debug)]
enum Iperf2UdpServerStage {
    Running,
    /// The test is over; repeated ends are still answered.
    Lingering {
        until: MonoTime,
    },
    Over,
}

/// State machine of the server of a UDP test, from the client's first datagram on.
///
/// In a [`FlowState`], `received` is the bytes received, and `complete` is true once the client's
/// end has arrived.
pub struct UdpServer {
    terms: UdpTerms,
    stage: Iperf2UdpServerStage,
    out: VecDeque<Output<Self>>,
    beat: Option<TestIntervalTimer>,
    /// Bytes received, and the time of the last change.
    came: (u64, MonoTime),
    /// The server's stream has been requested from the caller.
    asked: bool,
    back: Option<Back<Self>>,
    stopped: bool,
}

impl UdpServer {
    /// A server for a client whose first datagram arrived at `begin`.
    pub fn new(begin: MonoTime, terms: UdpTerms) -> Self {
        Self {
            terms,
            stage: Iperf2UdpServerStage::Running,
            out: VecDeque::new(),
            beat: terms
                .interval
                .map(|interval| TestIntervalTimer::new(begin, interval, Duration::ZERO)),
            came: (0, begin),
            asked: false,
            back: None,
            stopped: false,
        }
    }

    /// A server for a client whose test is over, which only answers repeated ends.
    pub fn lingering(now: MonoTime, tally: &UdpTally) -> Self {
        let came = (tally.arrivals(now).bytes, tally.last);
        let (mode, silence_max) = (Mode::Forward, UDP_ENDED_MAX);
        let terms = UdpTerms { mode, silence_max, interval: None, back: None };
        let stage = Iperf2UdpServerStage::Lingering { until: now + UDP_SILENCE_MAX };
        Self { stage, came, ..Self::new(now, terms) }
    }

    fn check_state(&mut self, now: MonoTime, flow: &FlowState) {
        if flow.received != self.came.0 {
            self.came = (flow.received, now);
        }
        let silent = now.duration_since(self.came.1) >= self.terms.silence_max;
        match self.stage {
            Iperf2UdpServerStage::Running => self.run(now, flow, silent),
            Iperf2UdpServerStage::Lingering { until } if silent || self.stopped || now >= until => {
                self.finish()
            }
            Iperf2UdpServerStage::Lingering { .. } | Iperf2UdpServerStage::Over => {}
        }
    }

    fn run(&mut self, now: MonoTime, flow: &FlowState, silent: bool) {
        if let Some(beat) = &mut self.beat {
            beat.push_due_outputs(now, &mut self.out);
        }
        let due = match self.terms.mode {
            Mode::Forward => false,
            Mode::Reverse | Mode::FullDuplex | Mode::Dual => true,
            Mode::TradeOff => flow.complete,
        };
        if due && !std::mem::replace(&mut self.asked, true) {
            // The caller opens the stream and checks again at once.
            return self.out.push_back(Output::Open);
        }
        let receives = self.terms.mode != Mode::Reverse;
        let gone = receives && silent && !flow.complete;
        let ends = gone || self.stopped;
        self.with_back(|back| {
            if ends {
                back.stop_sending();
            }
            back.check_state(now);
        });
        let over = !receives || flow.complete || silent || self.stopped;
        if over && self.back.as_ref().is_none_or(Back::is_over) {
            self.finish();
        }
    }

    fn with_back(&mut self, act: impl FnOnce(&mut Back<Self>)) {
        if let Some(back) = &mut self.back {
            act(back);
            self.out.append(&mut back.out);
        }
    }

    fn finish(&mut self) {
        self.out.push_back(Output::Finished);
        self.stage = Iperf2UdpServerStage::Over;
    }
}

impl Machine for UdpServer {
    type Request = Infallible;
    type Terms = Infallible;
    type Refusal = Infallible;
    /// The client's report on the server's stream.
    type Report = UdpReport;
    type News = UdpServerNews;
    type PeerFault = Infallible;

    fn handle(&mut self, now: MonoTime, input: Input<'_, Self>) {
        match input {
            Input::Opened => {
                self.back = self.terms.back.map(|terms| Back::new(now, terms));
                self.with_back(|_| {});
            }
            Input::Look(flow) => self.check_state(now, &flow),
            Input::Stop => self.stopped = true,
            Input::GiveUp(_) => self.stage = Iperf2UdpServerStage::Over,
            Input::Bytes(bytes) => self.with_back(|back| back.read_report(bytes)),
            Input::Tell(UdpServerNews::Refused) => self.with_back(|back| back.retry_first(now)),
            Input::Tell(UdpServerNews::Sent(sent)) => {
                self.with_back(|back| back.begin_end(now, sent));
            }
            Input::Closed | Input::Counted(_) => {}
            Input::Decided(Ok(never) | Err(never)) => match never {},
        }
    }

    fn poll(&mut self) -> Option<Output<Self>> {
        self.out.pop_front()
    }

    fn wait_conditions(&self) -> Wants {
        let beat = self.beat.map(|beat| beat.next());
        let back = self.back.as_ref().and_then(Back::wake_at);
        let reads = self.back.as_ref().is_some_and(Back::reads_datagrams);
        Wants { wake_at: beat.into_iter().chain(back).min(), look: LOOK, reads }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iperf2::{ClientHeader, Iperf2Amount, Iperf2DatagramLayout};

    const SECOND: Duration = Duration::from_secs(1);

    fn time_at_second(seconds: u64) -> MonoTime {
        MonoTime::default() + SECOND * seconds as u32
    }

    fn server(mode: Mode) -> UdpServer {
        let header = ClientHeader::new(mode, Iperf2Amount::Bytes(1000));
        let (size_bytes, most, wall_offset_ns) = (100, u64::MAX, 0);
        let back = Some(UdpBack { header, size_bytes, most, wall_offset_ns });
        let (silence_max, interval) = (UDP_SILENCE_MAX, None);
        UdpServer::new(time_at_second(0), UdpTerms { mode, silence_max, interval, back })
    }

    /// What a look at the data brings: `O`pen, `B`egin to send, a datagram beside data (`D`),
    /// `S`top sending, the client's `R`eport, the `E`nd of what is sent, `F`inished.
    fn outputs_at_second(server: &mut UdpServer, second: u64, flow: FlowState) -> String {
        look_at(server, time_at_second(second), flow)
    }

    fn look_at(server: &mut UdpServer, now: MonoTime, flow: FlowState) -> String {
        server.handle(now, Input::Look(flow));
        let outputs = std::iter::from_fn(|| server.poll());
        let letter = |output| match output {
            Output::Open => 'O',
            Output::Start => 'B',
            Output::Send(_) => 'D',
            Output::Peer(_) => 'R',
            Output::Ended => 'E',
            Output::StopSending => 'S',
            Output::Finished => 'F',
            _ => '?',
        };
        outputs.map(letter).collect()
    }

    /// What a second's looks bring.
    fn ends_of(server: &mut UdpServer, second: u64) -> String {
        let looks =
            (0..100).map(|at_10_ms| time_at_second(second) + Duration::from_millis(10) * at_10_ms);
        looks.map(|now| look_at(server, now, NONE)).collect()
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
        assert_eq!(outputs_at_second(&mut ends, 1, NONE), "");
        assert_eq!(outputs_at_second(&mut ends, 2, FlowState { complete: true, ..NONE }), "F");
        let mut silent = server(Mode::Forward);
        assert_eq!(outputs_at_second(&mut silent, 1, NONE), "");
        assert_eq!(outputs_at_second(&mut silent, 5, FlowState { received: 101, ..NONE }), "");
        assert_eq!(outputs_at_second(&mut silent, 9, FlowState { received: 101, ..NONE }), "");
        assert_eq!(outputs_at_second(&mut silent, 10, FlowState { received: 101, ..NONE }), "F");
        let mut stopped = server(Mode::Forward);
        stopped.handle(time_at_second(1), Input::Stop);
        assert_eq!(outputs_at_second(&mut stopped, 1, NONE), "F");
    }

    #[test]
    fn it_sends_at_once_or_in_a_trade_off_after_the_client() {
        for mode in [Mode::Reverse, Mode::FullDuplex, Mode::Dual] {
            assert_eq!(outputs_at_second(&mut server(mode), 0, NONE), "O", "{mode:?}");
        }
        let mut trades = server(Mode::TradeOff);
        assert_eq!(outputs_at_second(&mut trades, 0, NONE), "");
        let over = FlowState { complete: true, ..NONE };
        assert_eq!(outputs_at_second(&mut trades, 1, over), "O");
        trades.handle(time_at_second(1), Input::Opened);
        assert_eq!(outputs_at_second(&mut trades, 1, over), "D");
        assert_eq!(outputs_at_second(&mut trades, 2, over), "B");
        trades.handle(time_at_second(3), Input::Tell(UdpServerNews::Sent(10)));
        assert_eq!(outputs_at_second(&mut trades, 3, over), "D");
        let report = UdpReport { datagrams: 11, ..UdpReport::default() };
        trades
            .handle(time_at_second(3), Input::Bytes(&report.to_bytes(Iperf2DatagramLayout::Wide)));
        assert_eq!(outputs_at_second(&mut trades, 3, over), "REF");
    }

    #[test]
    fn a_first_datagram_that_is_refused_is_sent_again_for_a_second() {
        let ms = |ms| time_at_second(0) + Duration::from_millis(ms);
        let mut dual = server(Mode::Dual);
        assert_eq!(outputs_at_second(&mut dual, 0, NONE), "O");
        dual.handle(time_at_second(0), Input::Opened);
        let mut sent = 0;
        for now in 0..1100 {
            let outputs = look_at(&mut dual, ms(now), NONE);
            if outputs == "B" {
                // 10 ms after each refusal, which came 1 ms after its datagram.
                assert_eq!((now, sent), (1001, 91));
                return;
            }
            if outputs == "D" {
                sent += 1;
                dual.handle(ms(now + 1), Input::Tell(UdpServerNews::Refused));
            }
        }
        panic!("it does not begin");
    }

    #[test]
    fn an_end_is_said_until_the_report_or_for_two_seconds_and_thrice_where_none_comes() {
        let ms = |ms| time_at_second(0) + Duration::from_millis(ms);
        for (mode, most, expected) in [
            (Mode::Dual, u64::MAX, (200, 2000)),
            (Mode::Dual, 3, (3, 2000)),
            (Mode::Reverse, u64::MAX, (3, 20)),
            (Mode::FullDuplex, 2, (2, 10)),
        ] {
            let over = FlowState { complete: true, ..NONE };
            let mut back = server(mode);
            back.terms.back.as_mut().expect("it sends").most = most;
            assert_eq!(outputs_at_second(&mut back, 0, NONE), "O");
            back.handle(time_at_second(0), Input::Opened);
            let begun =
                look_at(&mut back, time_at_second(0), NONE) + &look_at(&mut back, ms(20), NONE);
            assert_eq!(begun, if mode == Mode::Dual { "DB" } else { "B" });
            back.handle(time_at_second(1), Input::Tell(UdpServerNews::Sent(10)));
            let mut said = 0;
            let end = (1000..4000).find(|now| {
                let outputs = look_at(&mut back, ms(*now), over);
                said += outputs.matches('D').count();
                outputs.contains("EF")
            });
            assert_eq!((said, end), (expected.0, Some(1000 + expected.1)), "{mode:?} {most}");
        }
    }

    #[test]
    fn who_falls_silent_before_its_end_is_sent_no_more() {
        let mut both = server(Mode::FullDuplex);
        assert_eq!(outputs_at_second(&mut both, 0, NONE), "O");
        both.handle(time_at_second(0), Input::Opened);
        assert_eq!(outputs_at_second(&mut both, 4, NONE), "B");
        assert_eq!(outputs_at_second(&mut both, 5, NONE), "S");
        assert_eq!(outputs_at_second(&mut both, 6, NONE), "", "it is told once");
        both.handle(time_at_second(7), Input::Tell(UdpServerNews::Sent(10)));
        assert_eq!(ends_of(&mut both, 7), "DDDEF");
        // One that asked for data alone says nothing more, and is sent all.
        let mut reverse = server(Mode::Reverse);
        assert_eq!(outputs_at_second(&mut reverse, 0, NONE), "O");
        reverse.handle(time_at_second(0), Input::Opened);
        assert_eq!(outputs_at_second(&mut reverse, 60, NONE), "B");
        reverse.handle(time_at_second(61), Input::Tell(UdpServerNews::Sent(10)));
        assert_eq!(ends_of(&mut reverse, 61), "DDDEF");
    }

    #[test]
    fn a_client_that_may_not_be_sent_anything_in_time_is_done_without() {
        let mut both = server(Mode::FullDuplex);
        assert_eq!(outputs_at_second(&mut both, 0, NONE), "O");
        assert_eq!(outputs_at_second(&mut both, 1, FlowState { complete: true, ..NONE }), "F");
    }

    #[test]
    fn ends_are_answered_until_a_second_of_silence_or_for_five() {
        let mut tally = UdpTally::from_first_datagram(&[0; 200], time_at_second(0));
        tally.count_datagram(&[0; 200], time_at_second(3), 0);
        let flow = |received| FlowState { received, ..NONE };
        let mut lingers = UdpServer::lingering(time_at_second(3), &tally);
        assert_eq!(outputs_at_second(&mut lingers, 3, flow(200)), "");
        assert_eq!(outputs_at_second(&mut lingers, 4, flow(200)), "F");
        let mut again = UdpServer::lingering(time_at_second(3), &tally);
        for second in 4..8 {
            assert_eq!(outputs_at_second(&mut again, second, flow(200 + second)), "");
        }
        assert_eq!(outputs_at_second(&mut again, 8, flow(208)), "F");
    }
}
