//! The loop that takes datagrams in, one thread a stream, and counts each by its number.
//!
//! One call takes up to 64 buffers, each of one datagram or of several joined ones (UDP_GRO). The
//! kernel's count of drops and its time of arrival come with every buffer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use linerate_core::record::{
    DatagramCounts, DatagramsSent, DelayVariation, Direction, ReceivedDatagrams, UdpTest,
};
use linerate_core::stats::{JitterRfc3550, Thinned};
use linerate_core::time::MonoTime;
use linerate_proto::native::{UdpArrivalOrder, UdpTracker};
use linerate_sys::clock::{monotonic, realtime_offset_ns};
use linerate_sys::datagram_socket::{DatagramSocket, ReceiveBatch, ReceivedUdpBuffer};
use linerate_sys::thread::{current_cost, current_id};

use super::credit::{Grants, ReceiverRoom};
use super::keep_alive::{KeepAlive, silent};
use super::layout::{DatagramHead, DatagramLayout, ParsedDatagram};
use super::patience::Patience;
use super::search::SearchEnd;
use super::search_receiver::Reporter;
use super::socket::is_pause;
use crate::failure::words_of;
use crate::flow::contradiction;
use crate::flow::endpoint::{StreamOutcome, StreamProgress, Switches};
use crate::flow::tcp::cost_since;
use crate::flow::tcp::span::MeasuredSpan;

/// Once the sender is done and something is missing, this long without an arrival is the end.
const QUIET_MISSING: Duration = Duration::from_millis(500);

/// Once everything is there, copies may follow this soon.
const QUIET_COMPLETE: Duration = Duration::from_millis(50);

/// However much still arrives, this long after the sender is done is the end.
const DRAIN_MAX: Duration = Duration::from_secs(10);

/// Number of datagrams after which it is known how they come.
const STAMPED_DATAGRAMS: u64 = 1000;

/// The receiving thread of one stream.
pub(super) struct UdpStreamReceiver {
    pub(super) socket: Arc<DatagramSocket>,
    pub(super) request: UdpTest,
    pub(super) tag: u16,
    pub(super) layout: DatagramLayout,
    pub(super) switches: Arc<Switches>,
    pub(super) progress: Arc<StreamProgress>,
    /// Since when datagrams are taken in by the kernel: the thread may have to wait for a
    /// processor.
    pub(super) opened: MonoTime,
    /// The statuses that the receiver sends, where the stream is a search.
    pub(super) search: Option<Arc<SearchEnd>>,
}

/// Where the receiving stands.
struct Receiving {
    reporter: Option<Reporter>,
    tracker: UdpTracker,
    keep_alive: KeepAlive,
    delay: TransitTimes,
    strays: u64,
    joined: u64,
    joined_max: u64,
    /// In the last buffer.
    joined_now: u64,
    /// The receive buffer that the kernel granted the socket.
    room_bytes: u64,
    /// The kernel tells times of arrival.
    stamped: bool,
    /// First and last arrival of what is measured.
    measured: Option<(MonoTime, MonoTime)>,
    last: MonoTime,
    calls: u64,
    /// Where the sender's clock stood, in layouts whose stamps do not count from its start.
    first_stamp_ns: Option<u64>,
}

impl UdpStreamReceiver {
    /// Takes datagrams until the sender has told that it is done and nothing more comes.
    pub(super) fn run(self) -> StreamOutcome {
        let before = current_cost();
        self.progress.thread.store(current_id(), Ordering::Relaxed);
        let may_join = self.request.joined && !self.request.taken_singly;
        let joins = may_join && self.socket.join_receives();
        let mut receiving = Receiving::starting_at(monotonic(), &self);
        let failure = self.receive_all(&mut receiving).err();
        let sent = self.progress.datagrams_sent();
        // Nobody sent for longer than this end listened.
        let listened_ns = contradiction::with_slack(monotonic().nanos_since(self.opened));
        let reported_ns = sent.map(|sent| sent.span_ns).filter(|ns| *ns <= listened_ns);
        let reported_ns = reported_ns.unwrap_or(0);
        if let Some(reporter) = &mut receiving.reporter {
            reporter.end_last_span(reported_ns, &receiving.tracker);
        }
        let arrival_ns = receiving.measured.map_or(0, |(first, last)| last.nanos_since(first));
        let received = self.account(&receiving);
        let size = u64::from(self.request.size_bytes);
        self.progress.failed.store(failure.is_some(), Ordering::Release);
        self.progress.done.store(true, Ordering::Release);
        StreamOutcome {
            measured: MeasuredSpan {
                begin: receiving.measured.map_or_else(MonoTime::default, |(first, _)| first),
                // A stream that nothing delays takes as long to arrive as to be sent, the time of
                // the last datagram among it; one that a queue holds up takes longer.
                span_ns: if receiving.measured.is_some() { reported_ns.max(arrival_ns) } else { 0 },
                bytes: received.measured.received.saturating_mul(size),
                bytes_total: received.all.received.saturating_mul(size),
            },
            received: Some(received),
            io_calls: receiving.calls,
            cost: cost_since(before),
            failure,
            technique: if joins { "recvmmsg, joined" } else { "recvmmsg" }.to_owned(),
            ..StreamOutcome::default()
        }
    }

    fn receive_all(&self, receiving: &mut Receiving) -> Result<(), String> {
        let mut batch = ReceiveBatch::new();
        let paced = self.request.pace.is_some();
        let mut patience = Patience::new(paced);
        let mut grants = self.grants().then(Grants::default);
        loop {
            let result = patience.receive(&mut batch, &self.socket);
            let now = monotonic();
            receiving.calls += 1;
            match result {
                Ok(()) => {
                    // What a pace allows is told at the end.
                    if !paced {
                        let before =
                            if receiving.has_arrivals() { receiving.last } else { self.opened };
                        let ahead_max = contradiction::datagrams_max(now.nanos_since(before));
                        receiving.tracker.allow_ahead(ahead_max);
                    }
                    for arrived in batch.arrived() {
                        receiving.take_buffer(&arrived, now, self);
                    }
                    self.progress.show_received(receiving.counts(), now);
                    if !paced {
                        receiving.spare_stamps(&self.socket);
                    }
                }
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(format!("receive: {}", words_of(&error))),
            }
            if let Some(grants) = &mut grants {
                self.send_grant(receiving, grants, now);
            }
            if let Some(reporter) = &mut receiving.reporter {
                reporter.send_due_status(&self.socket, now, &receiving.tracker);
            }
            if self.is_over(receiving, now) {
                return Ok(());
            }
            if self.layout.own && receiving.keep_alive.send_if_due(&self.socket, now) {
                return Err(silent());
            }
        }
    }

    /// Tells the sender how far it can go from the start, before it can start: the thread of a
    /// receiver may have to wait for a processor.
    ///
    /// The kernel notes the times of arrival from here on, for the same reason.
    pub(super) fn prepare(&self) {
        self.socket.note_arrivals();
        if self.grants() {
            let window = self.window(self.socket.buffers().1.unwrap_or(0), 1);
            let grant = Grants::default().due_grant(0, window, MonoTime::default());
            let grant = grant.map(|grant| grant.to_bytes(self.tag));
            // The thread tells it again.
            grant.iter().for_each(|bytes| drop(self.socket.send(bytes)));
        }
    }

    /// True where the sender is told how far it can go.
    const fn grants(&self) -> bool {
        self.layout.own && self.request.pace.is_none()
    }

    fn window(&self, room_bytes: u64, joined: u64) -> ReceiverRoom {
        ReceiverRoom::from_socket_room(room_bytes, self.request.size_bytes.into(), joined)
    }

    /// Tells the sender how far it can go, when it is time.
    fn send_grant(&self, receiving: &mut Receiving, grants: &mut Grants, now: MonoTime) {
        let window = self.window(receiving.room_bytes, receiving.joined_now);
        if let Some(grant) = grants.due_grant(receiving.tracker.next_expected(), window, now) {
            receiving.keep_alive.send_grant(&self.socket, grant, now);
        }
    }

    /// True where nothing more is to be waited for.
    fn is_over(&self, receiving: &Receiving, now: MonoTime) -> bool {
        if self.switches.halted() {
            return true;
        }
        let Some((sent, told)) = self.progress.sent_since() else { return false };
        let complete = receiving.tracker.received() >= sent.datagrams;
        is_drained(now, told, receiving.last, complete)
    }

    fn account(&self, receiving: &Receiving) -> ReceivedDatagrams {
        let sent = self
            .progress
            .datagrams_sent()
            .map(|sent| (sent.datagrams, self.measured(&sent, receiving)));
        let drops = self.socket.dropped_buffers();
        let (all, measured) = receiving.tracker.tallies(sent, drops, receiving.joined_max);
        ReceivedDatagrams {
            size_bytes: self.request.size_bytes,
            all,
            measured,
            strays: receiving.strays,
            joined: receiving.joined,
            joined_max: receiving.joined_most(),
            socket_drops: drops.map(u64::from),
            delay: receiving.delay.variation(),
        }
    }
}

impl UdpStreamReceiver {
    /// The datagrams that the sender sent after the omitted span. Where the stamps do not count
    /// from its start, its own account of that begins at another moment than the receiver's.
    fn measured(&self, sent: &DatagramsSent, receiving: &Receiving) -> u64 {
        let all = sent.datagrams.max(receiving.tracker.next_expected());
        let here = receiving.tracker.sent_after_omitted(all);
        here.filter(|_| !self.layout.stamps_from_start).unwrap_or(sent.measured)
    }
}

impl Receiving {
    fn starting_at(now: MonoTime, receiver: &UdpStreamReceiver) -> Self {
        let reporter =
            |search: &Arc<SearchEnd>| Reporter::starting_at(now, Arc::clone(search), receiver.tag);
        Self {
            reporter: receiver.search.as_ref().map(reporter),
            tracker: UdpTracker::new(receiver.request.omit_ns),
            keep_alive: KeepAlive::starting_at(receiver.tag, now),
            delay: TransitTimes::new(),
            strays: 0,
            joined: 0,
            joined_max: 1,
            joined_now: 1,
            stamped: true,
            room_bytes: receiver.socket.buffers().1.unwrap_or(0),
            measured: None,
            last: now,
            calls: 0,
            first_stamp_ns: None,
        }
    }

    /// Takes one buffer in.
    fn take_buffer(
        &mut self,
        arrived: &ReceivedUdpBuffer<'_>,
        now: MonoTime,
        receiver: &UdpStreamReceiver,
    ) {
        let size = arrived.joined_bytes.unwrap_or(arrived.bytes.len()).max(1);
        let count = arrived.bytes.len().div_ceil(size) as u64;
        self.joined_now = count;
        if count > 1 {
            self.joined += count;
            self.joined_max = self.joined_max.max(count);
        }
        let mut first = true;
        let mut datagrams = arrived.bytes.chunks(size);
        while let Some(datagram) = datagrams.next() {
            let head = match receiver.layout.read(datagram, receiver.tag) {
                ParsedDatagram::Data(head) => self.unwrapped_head(head, &receiver.layout),
                // It may come again, for fear that it is lost.
                ParsedDatagram::Last(_) if receiver.progress.datagrams_sent().is_some() => continue,
                ParsedDatagram::Last(head) => {
                    let head = self.unwrapped_head(head, &receiver.layout);
                    if !self.tracker.is_plausible(head.number) {
                        self.strays += 1;
                        continue;
                    }
                    receiver.progress.tell_sent(sent_until(head), now);
                    head
                }
                ParsedDatagram::Alive => {
                    self.keep_alive.note_heard(now);
                    continue;
                }
                ParsedDatagram::Opening => continue,
                ParsedDatagram::Stray => {
                    self.strays += 1;
                    continue;
                }
            };
            self.keep_alive.note_heard(now);
            if datagram.len() != receiver.request.size_bytes as usize {
                self.strays += 1;
                continue;
            }
            if std::mem::take(&mut first)
                && let Some(drops) = arrived.drops
            {
                let DatagramHead { number, stamp_ns } = head;
                self.tracker.note_drops(drops, number, stamp_ns, self.joined_max);
            }
            self.take_datagram(head, arrived, now, receiver);
            let whole = datagrams.clone().take_while(|datagram| datagram.len() == size);
            let followers = receiver.layout.followers(whole, head, receiver.tag);
            if followers > 0 && self.tracker.count_run(head.number + 1, followers, head.stamp_ns) {
                datagrams.nth(followers as usize - 1);
            }
        }
        if arrived.bytes.is_empty() {
            self.strays += 1;
        }
    }

    /// The number and time that a head stands for.
    #[inline]
    fn unwrapped_head(&mut self, head: DatagramHead, layout: &DatagramLayout) -> DatagramHead {
        let number = layout.unwrapped(head.number, self.tracker.next_expected());
        if layout.stamps_from_start {
            return DatagramHead { number, ..head };
        }
        let base = *self.first_stamp_ns.get_or_insert(head.stamp_ns);
        DatagramHead { number, stamp_ns: head.stamp_ns.saturating_sub(base) }
    }

    #[inline]
    fn take_datagram(
        &mut self,
        head: DatagramHead,
        arrived: &ReceivedUdpBuffer<'_>,
        now: MonoTime,
        receiver: &UdpStreamReceiver,
    ) {
        if let Some(reporter) = &mut self.reporter {
            reporter.arriving(head.stamp_ns, arrived.arrived_ns, now, &self.tracker);
        }
        match self.tracker.count_datagram(head.number, head.stamp_ns) {
            // In order of arrival, not of numbers (RFC 3550 §6.4.1).
            UdpArrivalOrder::Ahead | UdpArrivalOrder::Behind => {
                self.delay.record(head.stamp_ns, arrived.arrived_ns, now);
            }
            UdpArrivalOrder::Duplicate | UdpArrivalOrder::TooOld => {}
            UdpArrivalOrder::Implausible => {
                self.strays += 1;
                return;
            }
        }
        self.last = now;
        if head.stamp_ns >= receiver.request.omit_ns {
            // The first ones may have no stamp: the kernel is a moment late to begin with it.
            let came = self.came_at(arrived, now, receiver.opened);
            let first = self.measured.map_or(came, |(first, _)| first.min(came));
            self.measured = Some((first, now));
        }
    }

    /// When a datagram came that was read at `now`: a thread that had no processor finds it late.
    fn came_at(
        &self,
        arrived: &ReceivedUdpBuffer<'_>,
        now: MonoTime,
        opened: MonoTime,
    ) -> MonoTime {
        let came_ns = arrived.arrived_ns.map(|ns| ns.cast_signed() - self.delay.offset_ns);
        let came_ns = came_ns.and_then(|ns| u64::try_from(ns).ok());
        came_ns.map_or(now, |ns| MonoTime::from_nanos(ns).max(opened).min(now))
    }

    /// Does without the kernel's times of arrival where as fast as possible each datagram comes by
    /// itself: they take a quarter of what a receiver spends on one.
    fn spare_stamps(&mut self, socket: &DatagramSocket) {
        let singly = self.joined == 0 && self.tracker.received() >= STAMPED_DATAGRAMS;
        if self.stamped && singly {
            self.stamped = false;
            socket.leave_arrival_times();
        }
    }

    /// True once a datagram of the stream came.
    fn has_arrivals(&self) -> bool {
        self.tracker.received() > 0
    }

    /// The most datagrams that came in one buffer.
    fn joined_most(&self) -> u32 {
        if self.has_arrivals() { u32::try_from(self.joined_max).unwrap_or(u32::MAX) } else { 0 }
    }

    fn counts(&self) -> DatagramCounts {
        let (all, _) = self.tracker.tallies(None, None, self.joined_max);
        DatagramCounts {
            datagrams: all.received,
            next: self.tracker.next_expected(),
            duplicates: all.duplicates,
            reordered: all.reordered,
            lost_here: all.lost_here,
            jitter_ns: self.delay.jitter_ns(),
        }
    }
}

/// True where nothing more is to be waited for at `now`, of a sender that was `told` to be done
/// then; the `last` datagram came then, and perhaps it is all `complete`.
pub(crate) fn is_drained(now: MonoTime, told: MonoTime, last: MonoTime, complete: bool) -> bool {
    let quiet = if complete { QUIET_COMPLETE } else { QUIET_MISSING };
    now.duration_since(last.max(told)) >= quiet || now.duration_since(told) >= DRAIN_MAX
}

/// The total that a sender has sent, by its last datagram. The stream knows whose it is.
fn sent_until(last: DatagramHead) -> DatagramsSent {
    let datagrams = last.number.saturating_add(1);
    let (direction, flow, span_ns) = (Direction::Down, 0, last.stamp_ns);
    DatagramsSent { direction, flow, datagrams, measured: datagrams, span_ns }
}

/// How the transit times of a stream vary. Datagrams that carry the same time were sent in one
/// call, one right after the other: the first of them counts.
struct TransitTimes {
    jitter: JitterRfc3550,
    samples: Thinned,
    last_stamp_ns: Option<u64>,
    /// The time that CLOCK_REALTIME shows when CLOCK_MONOTONIC shows 0, for arrivals without the
    /// kernel's time. A step of the former between two arrivals would show as one jump.
    offset_ns: i64,
    kernel: u64,
}

impl TransitTimes {
    fn new() -> Self {
        Self {
            jitter: JitterRfc3550::default(),
            samples: Thinned::default(),
            last_stamp_ns: None,
            offset_ns: realtime_offset_ns(),
            kernel: 0,
        }
    }

    #[inline]
    fn record(&mut self, stamp_ns: u64, arrived_ns: Option<u64>, now: MonoTime) {
        if self.last_stamp_ns.replace(stamp_ns) == Some(stamp_ns) {
            return;
        }
        self.kernel += u64::from(arrived_ns.is_some());
        let arrived = match arrived_ns {
            Some(ns) => ns.cast_signed(),
            None => self.offset_ns.saturating_add(now.as_nanos().cast_signed()),
        };
        let transit = arrived.saturating_sub(stamp_ns.cast_signed());
        self.jitter.record(transit);
        self.samples.record(transit);
    }

    fn jitter_ns(&self) -> Option<u64> {
        self.jitter.jitter_ns().map(|ns| ns.round() as u64)
    }

    fn variation(&self) -> Option<DelayVariation> {
        let (low, high) = self.samples.extremes()?;
        let sorted = self.samples.above_smallest();
        Some(DelayVariation {
            n: self.samples.count(),
            jitter_ns: self.jitter_ns(),
            pdv_p50_ns: sorted.quantile(0.5),
            pdv_p99_ns: sorted.quantile(0.99),
            pdv_max_ns: Some(high.abs_diff(low)),
            // The kernel begins to stamp some milliseconds after it was asked.
            kernel_stamps: self.kernel * 2 > self.samples.count(),
        })
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{Finish, UdpPlan, UdpTest};

    use super::*;
    use crate::flow::udp::client::checked_request;
    use crate::flow::udp::endpoint::open_socket;
    use crate::flow::udp::layout::Leaving;

    const SIZE: usize = 100;
    const SPACING: Duration = Duration::from_millis(20);

    /// Two sockets of a test that are connected to each other.
    fn connected_sockets(request: &UdpTest) -> [DatagramSocket; 2] {
        let local = ([127, 0, 0, 1], 0).into();
        let ends = [(); 2].map(|()| open_socket(request, local).expect("a socket"));
        let address = |end: &DatagramSocket| end.local_address().expect("bound");
        ends[0].connect(address(&ends[1])).expect("connected");
        ends[1].connect(address(&ends[0])).expect("connected");
        ends
    }

    /// Waits until the kernel stamps datagrams when they come, which it begins some time after the
    /// first socket asked; the one that is given back keeps it at that.
    fn stamping(request: &UdpTest) -> DatagramSocket {
        let [sender, receiver] = connected_sockets(request);
        receiver.note_arrivals();
        let mut batch = ReceiveBatch::new();
        loop {
            sender.send(&[1]).expect("sent");
            linerate_sys::clock::sleep(SPACING);
            let offset_ns = realtime_offset_ns();
            batch.receive(&receiver).expect("it came before");
            let now_ns = monotonic().as_nanos().cast_signed() + offset_ns;
            let stamps: Vec<_> = batch.arrived().filter_map(|arrived| arrived.arrived_ns).collect();
            if stamps.iter().any(|ns| now_ns - ns.cast_signed() > 10_000_000) {
                return receiver;
            }
        }
    }

    /// A stream to a receiver whose thread is not there before the last datagram has come: what it
    /// makes of it, and the least time between the first and the last, in ns.
    fn of_a_late_thread(request: UdpTest, count: u64) -> (MeasuredSpan, u64) {
        let _stamping = stamping(&request);
        let [sender, socket] = connected_sockets(&request);
        let receiver = UdpStreamReceiver {
            socket: Arc::new(socket),
            request,
            tag: 7,
            layout: DatagramLayout { own: false, ..DatagramLayout::OWN },
            switches: Arc::default(),
            progress: Arc::default(),
            opened: monotonic(),
            search: None,
        };
        receiver.prepare();
        let begin = monotonic();
        let (mut first, mut last) = (None, begin);
        for number in 0..count {
            linerate_sys::clock::sleep_until(begin + SPACING * number as u32);
            let mut datagram = [0; SIZE];
            let since_start_ns = monotonic().nanos_since(begin);
            let leaving = Leaving { number, since_start_ns, at: monotonic() };
            receiver.layout.write(&mut datagram, leaving, 7);
            last = monotonic();
            sender.send(&datagram).expect("sent");
            first.get_or_insert_with(monotonic);
        }
        let least_ns = last.nanos_since(first.unwrap_or(last));
        let (direction, flow, span_ns) = (Direction::Down, 0, 0);
        let sent = DatagramsSent { direction, flow, datagrams: count, measured: count, span_ns };
        receiver.progress.tell_sent(sent, monotonic());
        (receiver.run().measured, least_ns)
    }

    #[test]
    fn a_thread_that_comes_late_has_the_time_in_which_datagrams_came() {
        let request = checked_request(&UdpPlan::default()).expect("sound");
        let finish = Finish::TimeNs(1_000_000_000);
        let request = UdpTest { size_bytes: SIZE as u32, finish, ..request };
        let (measured, least_ns) = of_a_late_thread(request, 6);
        assert_eq!(measured.bytes, 600);
        // The sender tells of no time. The two clocks are read one after the other.
        assert!(measured.span_ns + 1_000_000 >= least_ns, "{measured:?} of {least_ns} ns");
    }
}
