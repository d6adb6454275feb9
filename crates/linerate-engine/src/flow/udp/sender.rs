//! The loop that sends datagrams, one thread a stream.
//!
//! Several datagrams go in one buffer where the kernel cuts them (UDP_SEGMENT), several buffers in
//! one call; they share the time that they carry. Cost on a loopback of Linux 6.18: 3.8 µs for a
//! datagram of its own, 0.06 to 0.3 µs for one of a joined buffer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use linerate_core::record::{
    DatagramCounts, DatagramsSent, Direction, Finish, PaceKept, PacedBy, SentDatagrams, UdpTest,
};
use linerate_core::time::MonoTime;
use linerate_sys::clock::{monotonic, sleep_until};
use linerate_sys::datagram_socket::{
    BUFFER_BYTES, DatagramSocket, JOINED_MAX, SENDS_MAX, SendBatch, is_refused_by_link,
    is_unjoinable,
};
use linerate_sys::poll;
use linerate_sys::thread::{current_cost, current_id, tighten_timer_slack};

use super::credit::PATIENCE;
use super::egress::Egress;
use super::evenness::Evenness;
use super::keep_alive::{KeepAlive, silent};
use super::layout::{DatagramLayout, Leaving};
use super::queue_limit::{self, QueueLimit};
use super::schedule::{LEAD_NS, SendSchedule};
use super::search_sender::Steering;
use super::socket::{CALL_TIMEOUT, buffer_bytes_max, header_bytes, is_pause};
use crate::failure::words_of;
use crate::flow::budget::Budget;
use crate::flow::endpoint::{StreamOutcome, StreamProgress, Switches};
use crate::flow::tcp::cost_since;
use crate::flow::tcp::span::MeasuredSpan;

/// Bytes and joined buffers of one call of a sender without a pace: enough to spare calls, and few
/// enough to stay in the cache.
const FAST_BYTES: usize = 256 << 10;
const FAST_BUFFERS: usize = 8;

/// Batches before the end of the receiver's room at which the sender begins to look for more.
const ROOM_LOOK: u64 = 8;

/// Datagrams that kernels before 6.9 take in one buffer.
const OLD_JOINED_MAX: usize = 64;

/// Joined buffers that are held ready for a paced sender.
const PACED_BUFFERS: usize = 16;

/// The sending thread of one stream.
pub(super) struct UdpStreamSender {
    pub(super) socket: Arc<DatagramSocket>,
    pub(super) request: UdpTest,
    pub(super) place: (Direction, u16),
    pub(super) tag: u16,
    pub(super) layout: DatagramLayout,
    /// The bytes that every datagram begins with, where its layout leaves them alone.
    pub(super) head: Arc<[u8]>,
    /// Round-trip time of the control connection, where known.
    pub(super) rtt: Option<Duration>,
    /// Datagrams that leave at once within the pace.
    pub(super) burst: Option<u32>,
    /// Datagrams that the streams of a direction have left to send, where their number ends the
    /// test.
    pub(super) budget: Budget,
    pub(super) switches: Arc<Switches>,
    pub(super) progress: Arc<StreamProgress>,
    /// Sets the pace while the stream runs.
    pub(super) steering: Option<Arc<Steering>>,
}

/// Where the sending stands.
struct SendingState {
    begin: MonoTime,
    deadline: MonoTime,
    batch: SendBatch,
    /// The most datagrams of one buffer.
    joined_most: usize,
    egress: Egress,
    queue_limit: QueueLimit,
    /// Each call has one buffer: of several, a call does not tell which one the link refused.
    singly: bool,
    schedule: Option<SendSchedule>,
    evenness: Evenness,
    keep_alive: KeepAlive,
    looked: MonoTime,
    account: SentDatagrams,
    /// When the datagrams of the present batch leave, `together` of them at each time.
    times: Vec<MonoTime>,
    together: usize,
    /// When the first datagram after the omitted span left, and when sending was over.
    measured_from: Option<MonoTime>,
    end: MonoTime,
    calls: u64,
    /// Time without room at the receiver, and since when there is none now.
    held_ns: u64,
    waits: Option<MonoTime>,
}

impl UdpStreamSender {
    /// Sends until the time, the datagrams or the patience is over; then says that it is there
    /// until it is told to leave.
    pub(super) fn run(self) -> StreamOutcome {
        let before = current_cost();
        self.progress.thread.store(current_id(), Ordering::Relaxed);
        if self.request.pace.is_some() {
            tighten_timer_slack();
        }
        let mut sending = self.begin_sending(monotonic());
        if let Some(steering) = &self.steering {
            steering.begin_sending(sending.begin);
        }
        let mut failure = self.send_all(&mut sending).err();
        self.socket.tell_refusals(false);
        let span_ns = sending.span_ns();
        let cost = cost_since(before);
        self.finish(&sending, span_ns);
        self.progress.failed.store(failure.is_some(), Ordering::Release);
        self.progress.done.store(true, Ordering::Release);
        failure = failure.or_else(|| self.linger(&mut sending));
        let joined = sending.account.joined > 0;
        let whole_ns = sending.whole_ns();
        let kept = |it: SendSchedule| PaceKept {
            paced_by: if it.is_kept_by_kernel() { PacedBy::Fq } else { PacedBy::UserSpace },
            ..sending.evenness.pace_kept(whole_ns, it.forgiven_ns())
        };
        // The many paces of a search have no mean one.
        let pace = sending.schedule.filter(|_| self.steering.is_none()).map(kept);
        let held_ns = sending.keep_alive.credit().is_granted().then_some(sending.held_ns);
        let whole = self.fits_packets();
        let interface_drops = sending.egress.dropped().filter(|_| whole);
        let size = u64::from(self.request.size_bytes);
        let account = SentDatagrams { pace, held_ns, interface_drops, ..sending.account };
        StreamOutcome {
            measured: MeasuredSpan {
                begin: sending.measured_from.unwrap_or_default(),
                span_ns,
                bytes: account.measured.saturating_mul(size),
                bytes_total: account.count.saturating_mul(size),
            },
            sent: Some(account),
            io_calls: sending.calls,
            cost,
            failure,
            technique: if joined { "sendmmsg, joined" } else { "sendmmsg" }.to_owned(),
            ..StreamOutcome::default()
        }
    }

    fn begin_sending(&self, begin: MonoTime) -> SendingState {
        let size = self.request.size_bytes as usize;
        let egress = Egress::from_socket(&self.socket);
        self.socket.tell_refusals(true);
        let schedule = self.schedule(begin, &egress);
        if let Some(bytes) = self.send_room(schedule.as_ref(), &egress) {
            // Less than that holds the sender back, which the record tells.
            let _ = self.socket.set_send_room(bytes);
        }
        let most = self.joined();
        let count = match &schedule {
            Some(_) if self.steering.is_some() => (most * FAST_BUFFERS).max(SENDS_MAX),
            Some(schedule) => schedule.batch_size(most * PACED_BUFFERS),
            None if most > 1 => most * (FAST_BYTES / (most * size)).clamp(1, FAST_BUFFERS),
            None => SENDS_MAX,
        };
        let steady = schedule.filter(|_| self.steering.is_none());
        let joined = steady.map_or(most, |schedule| schedule.buffer(most)).min(count);
        let cut = joined > 1 && self.socket.cut_sends(self.request.size_bytes as u16);
        let joined = if cut { joined } else { 1 };
        let mut batch = SendBatch::new(size, joined, count, pattern);
        let length = self.head.len().min(size);
        let head = &self.head[..length];
        batch.datagrams_mut().for_each(|datagram| datagram[..length].copy_from_slice(head));
        self.sending(begin, batch, egress, schedule)
    }

    fn schedule(&self, begin: MonoTime, egress: &Egress) -> Option<SendSchedule> {
        let schedule =
            SendSchedule::starting_at(self.request.pace?, self.request.size_bytes as usize, begin);
        let schedule = schedule.in_bursts(self.burst);
        if self.steering.is_some() {
            // What the kernel holds back already would leave at a rate that is steered away from.
            return Some(schedule.always_gentle());
        }
        let by_kernel = self.burst.is_none() && egress.holds_back() && self.socket.time_sends();
        Some(if by_kernel { schedule.kept_by_kernel() } else { schedule })
    }

    /// Room for what is to wait on this host, where that is more than the kernel's default: all of
    /// what a search offers, what the kernel holds back for a pace, and what a fast link is late
    /// to tell of.
    fn send_room(&self, schedule: Option<&SendSchedule>, egress: &Egress) -> Option<u64> {
        if self.request.window_bytes.is_some() {
            return None;
        }
        let size = self.request.size_bytes as usize;
        let paced = schedule.filter(|schedule| schedule.is_kept_by_kernel()).and(self.request.pace);
        let wanted = match (paced, egress.speed_bps) {
            _ if self.steering.is_some() => 2 * buffer_bytes_max(&self.request),
            (Some(pace), _) => {
                queue_limit::of_span(pace.bits_per_sec(), u128::from(LEAD_NS) * 2, size)
            }
            (None, speed) => queue_limit::of_link(speed?, size),
        };
        let wanted = wanted.min(2 * buffer_bytes_max(&self.request));
        self.socket.send_room().is_none_or(|room| wanted > room.room_bytes.into()).then_some(wanted)
    }

    fn sending(
        &self,
        begin: MonoTime,
        batch: SendBatch,
        egress: Egress,
        schedule: Option<SendSchedule>,
    ) -> SendingState {
        let elastic = schedule.is_none() && self.request.window_bytes.is_none();
        let began = self.socket.send_room().filter(|_| elastic);
        let deadline = match self.request.finish {
            Finish::TimeNs(ns) => begin.as_nanos().saturating_add(self.request.omit_ns + ns),
            Finish::Bytes(_) | Finish::Buffers(_) => u64::MAX,
        };
        SendingState {
            begin,
            deadline: MonoTime::from_nanos(deadline),
            joined_most: batch.joined(),
            batch,
            queue_limit: QueueLimit::for_datagram_size(
                self.request.size_bytes as usize,
                egress.queues(),
                began,
                begin,
            ),
            egress,
            singly: false,
            schedule,
            evenness: Evenness::starting_at(begin),
            keep_alive: KeepAlive::starting_at(self.tag, begin),
            looked: begin,
            account: SentDatagrams {
                size_bytes: self.request.size_bytes,
                refused: Some(0),
                refusals: Some(0),
                ..SentDatagrams::default()
            },
            times: Vec::with_capacity(SENDS_MAX),
            together: 0,
            measured_from: None,
            end: begin,
            calls: 0,
            held_ns: 0,
            waits: None,
        }
    }

    /// Datagrams that may go in one buffer: as many as an IP packet of the largest size holds, and
    /// none beside it where each is longer than the route's packets.
    fn joined(&self) -> usize {
        if !self.request.joined || !self.fits_packets() {
            return 1;
        }
        let size = self.request.size_bytes as usize;
        ((BUFFER_BYTES - 1 - self.header_bytes()) / size).clamp(1, JOINED_MAX)
    }

    /// True where each datagram leaves in one packet.
    fn fits_packets(&self) -> bool {
        let bytes = self.request.size_bytes as usize + self.header_bytes();
        self.socket.mtu_bytes().is_none_or(|mtu| bytes <= mtu as usize)
    }

    fn header_bytes(&self) -> usize {
        let local = self.socket.local_address().map(|address| address.ip());
        local.map_or(0, |address| header_bytes(address) as usize)
    }

    fn send_all(&self, sending: &mut SendingState) -> Result<(), String> {
        loop {
            let now = monotonic();
            if now >= sending.deadline || self.switches.stopped() {
                return Ok(());
            }
            if now.duration_since(sending.looked) >= CALL_TIMEOUT
                && self.check_signs_of_life(sending, now)
            {
                return Err(silent());
            }
            if let (Some(steering), Some(schedule)) = (&self.steering, &mut sending.schedule) {
                schedule.set_rate(steering.payload_pace(), now);
            }
            let wake = sending.schedule.map(|schedule| schedule.wake_time());
            let wake = wake.filter(|wake| *wake > now);
            if let Some(wake) = wake {
                sleep_until(wake.min(sending.deadline).min(now + CALL_TIMEOUT));
                continue;
            }
            let capacity = sending.batch.capacity();
            let batch = sending.schedule.map(|schedule| schedule.batch_size(capacity));
            let wanted = self.receiver_room(sending, batch.unwrap_or(capacity), now);
            if wanted == 0 {
                continue;
            }
            let wanted = self.fit_link_room(sending, wanted);
            let granted = self.budget.take_up_to(wanted);
            let planned = sending.plan_departures(granted, now);
            let result = self.send_batch(sending, planned);
            let sent = *result.as_ref().unwrap_or(&0);
            self.budget.give_back(granted - sent);
            self.count_departures(sending, sent);
            result?;
            if planned == 0 {
                return Ok(());
            }
        }
    }

    /// Sends `count` datagrams at the times that are planned; fewer when the sender is to stop.
    fn send_batch(&self, sending: &mut SendingState, count: usize) -> Result<usize, String> {
        self.write_heads(sending, count);
        let mut sent = 0;
        while sent < count {
            let most = sending.at_once(count - sent);
            let result = sending.send_batch(&self.socket, sent, sent + most);
            sending.calls += 1;
            match result {
                Ok(taken) => {
                    sending.note_joined(taken);
                    if taken < most {
                        self.held_up(sending);
                    }
                    sent += taken;
                }
                Err(error) if is_refused_by_link(&error) => sent += self.refused(sending, most),
                Err(error) if is_pause(&error) => {
                    if self.switches.stopped() || self.check_signs_of_life(sending, monotonic()) {
                        return Ok(sent);
                    }
                }
                Err(error) if is_unjoinable(&error) && sending.batch.joined() > 1 => {
                    // Times are those of buffers as they were planned.
                    sending.schedule = sending.schedule.map(SendSchedule::kept_by_sender);
                    self.join_fewer(&mut sending.batch);
                    sending.joined_most = sending.batch.joined();
                }
                Err(error) => return Err(format!("send: {}", words_of(&error))),
            }
        }
        Ok(sent)
    }

    /// Number of the `wanted` datagrams that find room before the link; joins them to fit.
    fn fit_link_room(&self, sending: &mut SendingState, wanted: usize) -> usize {
        let by_kernel = sending.schedule.is_some_and(|schedule| schedule.is_kept_by_kernel());
        if sending.joined_most == 1 || by_kernel || !sending.queue_limit.bounds_joining() {
            return wanted;
        }
        let Some(room) = self.socket.send_room() else { return wanted };
        let (count, joined) = sending.queue_limit.fit_datagrams(room, wanted, sending.joined_most);
        sending.batch.set_joined(joined);
        count
    }

    /// The datagrams of a first buffer that the link refused: sent, and dropped by this host.
    fn refused(&self, sending: &mut SendingState, most: usize) -> usize {
        let count = most.min(sending.batch.joined());
        let now = monotonic();
        if self.measures(sending) {
            *sending.account.refused.get_or_insert_default() += count as u64;
            *sending.account.refusals.get_or_insert_default() += 1;
        }
        sending.singly = true;
        let less = self.socket.send_room().and_then(|room| sending.queue_limit.refused(room, now));
        self.set_room(less);
        count
    }

    /// A call ended before the last of its buffers. Unless it had waited for room for all of the
    /// socket's time-out, the link refused one, which is then sent again.
    fn held_up(&self, sending: &mut SendingState) {
        let begun = sending.times.first();
        let since = begun.map_or(Duration::ZERO, |at| monotonic().duration_since(*at));
        if !sending.singly && since < CALL_TIMEOUT && self.measures(sending) {
            *sending.account.refusals.get_or_insert_default() += 1;
        }
        sending.singly = true;
    }

    /// True where the datagrams that are to leave now count.
    fn measures(&self, sending: &SendingState) -> bool {
        let at = sending.times.first().copied().unwrap_or(sending.begin);
        at.nanos_since(sending.begin) >= self.request.omit_ns
    }

    fn set_room(&self, bytes: Option<u64>) {
        // Where the kernel refuses, the room stays what it was.
        bytes.iter().for_each(|bytes| drop(self.socket.set_send_room(*bytes)));
    }

    /// Numbers the datagrams; those that leave together carry one time.
    fn write_heads(&self, sending: &mut SendingState, count: usize) {
        let numbers = sending.account.count..;
        let mut datagrams = sending.batch.datagrams_mut().take(count).zip(numbers);
        for &at in &sending.times {
            let since_start_ns = at.nanos_since(sending.begin);
            for (datagram, number) in datagrams.by_ref().take(sending.together) {
                self.layout.write(datagram, Leaving { number, since_start_ns, at }, self.tag);
            }
        }
    }

    /// Joins fewer datagrams: as many as older kernels take in a buffer, then one.
    fn join_fewer(&self, batch: &mut SendBatch) {
        batch.set_joined(if batch.joined() > OLD_JOINED_MAX { OLD_JOINED_MAX } else { 1 });
        if batch.joined() == 1 {
            // A size that is set is held against the route's packets also for single datagrams.
            self.socket.cut_sends(0);
        }
    }

    /// Counts datagrams that left at the times that were planned.
    fn count_departures(&self, sending: &mut SendingState, sent: usize) {
        let mut rest = sent;
        for index in 0..sending.times.len() {
            let count = rest.min(sending.together);
            self.note_departure(sending, count, sending.times[index]);
            rest -= count;
        }
        let count = sending.account.count;
        let counts = DatagramCounts { datagrams: count, next: count, ..DatagramCounts::default() };
        self.progress.show_counts(counts);
    }

    fn note_departure(&self, sending: &mut SendingState, count: usize, at: MonoTime) {
        if count == 0 {
            return;
        }
        sending.account.count += count as u64;
        if at.nanos_since(sending.begin) >= self.request.omit_ns {
            sending.account.measured += count as u64;
            if sending.measured_from.is_none() && self.request.omit_ns > 0 {
                sending.egress.count_from_here();
            }
            // By the schedule, a stream that keeps it takes a gap for each datagram.
            let from = sending.schedule.as_ref().map_or(at, SendSchedule::scheduled);
            sending.measured_from.get_or_insert(from);
        }
        sending.keep_alive.note_sent(at);
        if let Some(schedule) = &mut sending.schedule {
            schedule.note_sent(count, at);
            sending.evenness.note_sent(count, at);
        }
        sending.end =
            sending.schedule.as_ref().map_or_else(monotonic, SendSchedule::scheduled).max(at);
    }

    /// Takes signs of life; true when the other end fell silent.
    fn check_signs_of_life(&self, sending: &mut SendingState, now: MonoTime) -> bool {
        sending.looked = now;
        self.socket.forget_errors();
        self.set_room(sending.queue_limit.grow_room(now));
        if !self.layout.own {
            return false;
        }
        match &self.steering {
            Some(steering) => {
                steering.last_heard().into_iter().for_each(|at| sending.keep_alive.note_heard(at))
            }
            None => sending.keep_alive.listen(&self.socket, now),
        }
        sending.keep_alive.send_if_due(&self.socket, now)
    }

    /// How many of `wanted` datagrams the receiver has room for, as far as it told: 0 after a wait
    /// that ends for the caller to look around.
    fn receiver_room(&self, sending: &mut SendingState, wanted: usize, now: MonoTime) -> usize {
        if sending.schedule.is_some() || !self.layout.own {
            return wanted;
        }
        let left = |sending: &SendingState, now: MonoTime| {
            let (count, elapsed) = (sending.account.count, now.duration_since(sending.begin));
            sending.keep_alive.credit().datagrams_left(count, elapsed, self.rtt).unwrap_or(u64::MAX)
        };
        let wanted = wanted as u64;
        // A look takes a call: some batches before the limit is soon enough.
        let granted = sending.keep_alive.credit().is_granted();
        if !granted || left(sending, now) < ROOM_LOOK * wanted {
            sending.keep_alive.listen(&self.socket, now);
        }
        let room = left(sending, now).min(wanted);
        if room > 0 {
            sending.waits = None;
            return room as usize;
        }
        let since = *sending.waits.get_or_insert(now);
        if now.duration_since(since) >= PATIENCE {
            sending.waits = None;
            return wanted as usize;
        }
        let patience = CALL_TIMEOUT.min(sending.deadline.duration_since(now));
        // The receiver's next word ends the wait.
        let _ = poll::readable(&*self.socket, patience);
        sending.held_ns += monotonic().nanos_since(now);
        0
    }

    /// Tells what was sent in all.
    fn finish(&self, sending: &SendingState, span_ns: u64) {
        let (direction, flow) = self.place;
        let (datagrams, measured) = (sending.account.count, sending.account.measured);
        let sent = DatagramsSent { direction, flow, datagrams, measured, span_ns };
        self.progress.tell_sent(sent, monotonic());
    }

    /// Says that this end is there until it is told to leave.
    fn linger(&self, sending: &mut SendingState) -> Option<String> {
        while self.layout.own && !self.switches.halted() {
            let now = monotonic();
            if self.check_signs_of_life(sending, now) {
                self.progress.failed.store(true, Ordering::Release);
                return Some(silent());
            }
            sleep_until(now + CALL_TIMEOUT);
        }
        None
    }
}

impl SendingState {
    /// Plans when `count` datagrams leave: all now, or where the kernel paces each buffer at its
    /// own time, as far as the test's time goes. Gives how many that are.
    fn plan_departures(&mut self, count: usize, now: MonoTime) -> usize {
        self.times.clear();
        self.together = count;
        let kernels = self.schedule.filter(SendSchedule::is_kept_by_kernel);
        let Some(mut schedule) = kernels else {
            self.times.push(now);
            return count;
        };
        self.together = self.batch.joined();
        let mut planned = 0;
        while planned < count && self.times.len() < SENDS_MAX {
            let at = schedule.next_due().max(now);
            if at >= self.deadline {
                break;
            }
            let part = self.together.min(count - planned);
            schedule.note_sent(part, at);
            self.times.push(at);
            planned += part;
        }
        planned
    }

    /// Hands datagrams up to `count` to the kernel, with the times of buffers where it paces.
    fn send_batch(
        &self,
        socket: &DatagramSocket,
        sent: usize,
        count: usize,
    ) -> std::io::Result<usize> {
        match self.schedule {
            Some(schedule) if schedule.is_kept_by_kernel() => {
                let times = &self.times[sent / self.together..];
                self.batch.send_at(socket, sent, times, count - sent)
            }
            _ => self.batch.send_datagrams(socket, sent, count - sent),
        }
    }

    /// Datagrams of the next call, at most `rest`.
    fn at_once(&self, rest: usize) -> usize {
        let buffers = if self.singly { 1 } else { SENDS_MAX };
        rest.min(buffers * self.batch.joined())
    }

    /// Counts datagrams that the kernel took in one call.
    fn note_joined(&mut self, taken: usize) {
        let most = taken.min(self.batch.joined());
        if most > 1 {
            self.account.joined += taken as u64;
            self.account.joined_max = self.account.joined_max.max(most as u32);
        }
    }

    /// Time of sending what is measured.
    fn span_ns(&self) -> u64 {
        self.measured_from.map_or(0, |from| self.end.nanos_since(from))
    }

    /// Time of sending everything.
    fn whole_ns(&self) -> u64 {
        self.end.nanos_since(self.begin)
    }
}

/// Contents are never looked at: a multiplicative sequence, not compressible by runs.
fn pattern(at: usize) -> u8 {
    ((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}
