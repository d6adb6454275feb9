//! The loops that move bytes, one thread a stream.
//!
//! Floor per iteration: one send or receive call, one clock reading and one look at the processor
//! (both without entering the kernel, about 25 ns each). At the default of 512 KiB a write, 40
//! Gbit/s are 9,500 calls a second; what costs is in the kernel: two copies of each byte (0.02 to
//! 0.05 ns a byte each from a near cache, 0.1 from another core's), and about 5 us of protocol work
//! for each packet of 64 KiB, its acknowledgement among it. On a machine with 2 MiB of second-level
//! cache a core (Linux 6.18, loopback, CUBIC, November 2026) writes of 512 KiB gave 52 Gbit/s where
//! 64 KiB gave 36 to 45. Reads of 512 KiB, with a low-water mark of as much, cost 15 % less
//! processor time than 256 KiB where both ends shared a core, and on two cores the same.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use linerate_core::record::{Direction, Finish};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_sys::clock::{monotonic, sleep_until};
use linerate_sys::poll::readable;
use linerate_sys::tcp::{set_receive_low_water, waiting};
use linerate_sys::thread::{ThreadCost, current_cost, current_id, tighten_timer_slack};

use super::cpu_trace::CpuTrace;
use super::delivery::Delivery;
use super::low_water::LowWater;
use super::pace::StreamPacer;
use super::receive_method::{Framing, ReceiveMethod, Treatment};
use super::round_robin::Turns;
use super::send_method::{Payload, SendMethod};
use super::span::{Extent, MeasuredSpan, SpanMeter};
use crate::failure::words_of;
use crate::flow::budget::Budget;
use crate::flow::endpoint::{StreamOutcome, StreamProgress, Switches};

/// Time for which a receiver goes on reading what is still on the way after its span ended.
pub(crate) const DRAIN_NS: u64 = 2_000_000_000;

/// Blocking calls come back this often to look at the flags.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_millis(100);

/// The receiving thread of one stream.
pub(crate) struct TcpStreamReceiver {
    pub(crate) stream: Arc<TcpStream>,
    pub(crate) finish: Finish,
    pub(crate) omit_ns: u64,
    /// When the test began at this end.
    pub(crate) started: MonoTime,
    /// Which span is measured.
    pub(crate) extent: Extent,
    /// Time for which it goes on reading after its span; without one it reads until it is told to
    /// leave.
    pub(crate) drain_ns: Option<u64>,
    /// The kernel chooses the window; one that was asked for is not to be disturbed.
    pub(crate) autotuned: bool,
    /// How bytes are taken; where the test names the size of a read, one follows every wake-up.
    pub(crate) treatment: Treatment,
    /// The framing that the payload is wrapped in; none where the stream is payload alone.
    pub(crate) framing: Option<Box<dyn Framing>>,
    /// The processor to stay on.
    pub(crate) cpu: Option<u32>,
    pub(crate) switches: Arc<Switches>,
    pub(crate) progress: Arc<StreamProgress>,
}

impl TcpStreamReceiver {
    /// Reads until the sender is done.
    pub(crate) fn run(mut self) -> StreamOutcome {
        let before = current_cost();
        self.progress.begin_transfer(current_id(), monotonic());
        let mut cpu_trace = CpuTrace::begin_on_cpu(self.cpu);
        let framing = self.framing.take();
        // A mark would hold the end of a message back until more comes, which waits for its answer.
        let marked = framing.is_none() && self.autotuned && self.treatment.call_bytes().is_none();
        let receive_method = match framing {
            Some(framing) => Ok(ReceiveMethod::framed(framing)),
            None => ReceiveMethod::from_treatment(&self.treatment),
        };
        let mut receive_method = match receive_method {
            Ok(receive_method) => receive_method,
            Err(error) => {
                self.progress.done.store(true, Ordering::Release);
                return StreamOutcome::failed(error.to_string());
            }
        };
        let mut meter = SpanMeter::new(self.finish, self.omit_ns, self.started, self.extent);
        let mut low_water = LowWater::starting_at(monotonic(), receive_method.mark_max());
        let (io_calls, failure) = match self.await_first_byte() {
            Ok(Some(now)) => {
                meter.readable(now, waiting(&self.stream).bytes);
                low_water = LowWater::starting_at(now, receive_method.mark_max());
                let low_water = marked.then_some(&mut low_water);
                self.read_all(&mut receive_method, &mut meter, low_water, &mut cpu_trace)
            }
            Ok(None) => (0, None),
            Err(error) => (0, Some(format!("wait: {}", words_of(&error)))),
        };
        let measured = meter.finish(monotonic());
        self.progress.done.store(true, Ordering::Release);
        let mark = if low_water.was_raised() { ", low-water mark" } else { "" };
        StreamOutcome {
            measured,
            io_calls,
            cost: cost_since(before),
            asleep_ns: Some(self.progress.asleep_ns()),
            failure,
            technique: format!("{}{mark}", receive_method.technique()),
            contents: Some(receive_method.contents()),
            verified: receive_method.verified(),
            cpus: cpu_trace.into_cpus(),
            ..StreamOutcome::default()
        }
    }

    /// The time when the first byte is there; `None` when the test is over before.
    fn await_first_byte(&self) -> io::Result<Option<MonoTime>> {
        while !self.switches.halted() {
            if readable(&*self.stream, CALL_TIMEOUT)? {
                return Ok(Some(monotonic()));
            }
        }
        Ok(None)
    }

    fn read_all(
        &self,
        receive_method: &mut ReceiveMethod,
        meter: &mut SpanMeter,
        mut low_water: Option<&mut LowWater>,
        cpu_trace: &mut CpuTrace,
    ) -> (u64, Option<String>) {
        let begin = monotonic();
        let mut calls = 0;
        let mut total = 0;
        let deadline = meter.deadline();
        let give_up = deadline.zip(self.drain_ns);
        let give_up = give_up.map(|(end, drain_ns)| end.as_nanos().saturating_add(drain_ns));
        let mut now = begin;
        loop {
            let over = deadline.is_some_and(|end| now > end);
            let result = receive_method.receive_bytes(&self.stream, over);
            now = monotonic();
            calls += 1;
            cpu_trace.note_current_cpu();
            match result {
                Ok(0) => return (calls, None),
                Ok(count) => {
                    meter.read(now, count, || waiting(&self.stream));
                    let mark = low_water.as_mut().and_then(|marks| marks.read(now, count));
                    if let Some(mark) = mark {
                        set_receive_low_water(&self.stream, mark.cast_signed());
                    }
                    total += count as u64;
                    self.progress.bytes.store(total, Ordering::Relaxed);
                }
                Err(error) if is_pause(&error) => {}
                Err(error) => return (calls, Some(format!("read: {}", words_of(&error)))),
            }
            let drained = give_up.is_some_and(|end| now.as_nanos() > end);
            if drained || self.switches.halted() {
                linerate_sys::tcp::reset_on_close(&self.stream);
                return (calls, None);
            }
            self.keep_pace(begin, total, meter.deadline());
        }
    }

    /// Waits until the next read is due, where the test has a pace for reads; what is left once
    /// the measured span is over is read at once.
    fn keep_pace(&self, begin: MonoTime, total: u64, end: Option<MonoTime>) {
        let Some(pace) = self.treatment.read_pace else { return };
        let ns = u128::from(total) * 8 * 1_000_000_000 / u128::from(pace.bits_per_sec().max(1));
        let due = begin + Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
        let due = end.map_or(due, |end| due.min(end));
        loop {
            let now = monotonic();
            if now >= due || self.switches.halted() {
                return;
            }
            sleep_until(due.min(now + CALL_TIMEOUT));
        }
    }
}

/// The sending thread of one stream.
pub(crate) struct Sender {
    pub(crate) stream: Arc<TcpStream>,
    pub(crate) payload: Arc<Payload>,
    /// Which stream it is.
    pub(crate) place: (Direction, u16),
    /// The processor to stay on.
    pub(crate) cpu: Option<u32>,
    pub(crate) finish: Finish,
    pub(crate) omit_ns: u64,
    pub(crate) pace: Option<BitRate>,
    /// Whole buffers that are written at once within the pace.
    pub(crate) burst: Option<u32>,
    /// Close this direction at the end; where the end is told otherwise, the stream stays open.
    pub(crate) closes: bool,
    /// A buffer that was begun is written to its end: the other end counts whole ones.
    pub(crate) whole_buffers: bool,
    /// Bytes that the streams of a direction have left to send, where bytes end the test.
    pub(crate) budget: Budget,
    /// The bytes sent before the payload that count as payload: the header of another protocol.
    /// They are not in the budget.
    pub(crate) head: Vec<u8>,
    /// The streams take turns at whole buffers.
    pub(crate) turns: Option<Turns>,
    /// The count of acknowledged bytes, where nobody else counts: this end measures what its kernel
    /// saw acknowledged.
    pub(crate) delivery: Option<Delivery>,
    /// When it began, where all streams count the same time; else when it gets to run.
    pub(crate) begin: Option<MonoTime>,
    pub(crate) switches: Arc<Switches>,
    pub(crate) progress: Arc<StreamProgress>,
}

/// Where what counts of a sending stream begins.
struct CountingStart {
    delivery: Option<Delivery>,
    /// When the omitted span was over, and what had been written by then.
    from: Option<(MonoTime, u64)>,
}

impl Sender {
    /// Writes until the time, the bytes or the patience is over, then closes this direction where
    /// that is how the receiver learns of the end.
    pub(crate) fn run(self) -> StreamOutcome {
        let before = current_cost();
        self.progress.begin_transfer(current_id(), monotonic());
        let mut cpu_trace = CpuTrace::begin_on_cpu(self.cpu);
        let payload = Arc::clone(&self.payload);
        let (direction, flow) = self.place;
        let mut send_method = match payload.send_method(&self.stream, direction, flow) {
            Ok(send_method) => send_method,
            Err(error) => {
                // The receiver is not left to wait for what will not come.
                let _ = self.stream.shutdown(Shutdown::Both);
                self.progress.done.store(true, Ordering::Release);
                return StreamOutcome::failed(error.to_string());
            }
        };
        let begin = self.begin.unwrap_or_else(monotonic);
        if self.pace.is_some() {
            tighten_timer_slack();
        }
        let mut counted = CountingStart { delivery: self.delivery, from: None };
        let (total, io_calls, failure) =
            self.write_all(begin, &mut send_method, &mut cpu_trace, &mut counted);
        if let Some(seen) = &mut counted.delivery {
            seen.written(monotonic(), &self.stream);
        }
        if self.closes {
            let _ = self.stream.shutdown(Shutdown::Write);
        }
        let sent = self.measured(&counted, begin, total);
        let halt = || self.switches.halted();
        let measured = counted.delivery.map_or(sent, |seen| seen.finish(&self.stream, sent, halt));
        let zero_copy_sends = send_method.settle(&self.stream, halt);
        self.progress.done.store(true, Ordering::Release);
        StreamOutcome {
            measured,
            io_calls,
            cost: cost_since(before),
            asleep_ns: Some(self.progress.asleep_ns()),
            failure,
            technique: send_method.technique().to_owned(),
            contents: Some(send_method.contents()),
            zero_copy_sends,
            cpus: cpu_trace.into_cpus(),
            ..StreamOutcome::default()
        }
    }

    /// The span from `begin` until now: the bytes written in it, and its time.
    fn measured(&self, counted: &CountingStart, begin: MonoTime, total: u64) -> MeasuredSpan {
        let from = if self.omit_ns == 0 { Some((begin, 0)) } else { counted.from };
        // Stopped before the omitted span was over.
        let nothing = MeasuredSpan { begin, bytes_total: total, ..MeasuredSpan::default() };
        from.map_or(nothing, |(begin, before)| MeasuredSpan {
            begin,
            span_ns: monotonic().nanos_since(begin),
            bytes: total - before,
            bytes_total: total,
        })
    }

    /// Takes note of the end of the omitted span, when `total` bytes were written.
    #[inline]
    fn note_omitted_end(
        &self,
        counted: &mut CountingStart,
        now: MonoTime,
        begin: MonoTime,
        total: u64,
    ) {
        if self.omit_ns > 0 && counted.from.is_none() && now.nanos_since(begin) >= self.omit_ns {
            counted.from = Some((now, total));
            if let Some(seen) = &mut counted.delivery {
                seen.begin_measured_span(now, &self.stream);
            }
        }
    }

    fn write_all(
        &self,
        begin: MonoTime,
        send_method: &mut SendMethod<'_>,
        cpu_trace: &mut CpuTrace,
        counted: &mut CountingStart,
    ) -> (u64, u64, Option<String>) {
        let deadline = match self.finish {
            Finish::TimeNs(ns) => begin.as_nanos().saturating_add(self.omit_ns).saturating_add(ns),
            Finish::Bytes(_) | Finish::Buffers(_) => u64::MAX,
        };
        if let Some(turns) = &self.turns {
            let deadline = MonoTime::from_nanos(deadline);
            return self.write_in_turn(begin, deadline, turns, send_method, counted);
        }
        let pacer = self.pace.map(|rate| StreamPacer::starting_at(rate, begin));
        let mut pacer = pacer.map(|pacer| pacer.in_bursts(self.burst));
        let whole = self.payload.length();
        let (mut total, mut calls) = (self.head.len() as u64, 0);
        if let Err(error) = io::Write::write_all(&mut &*self.stream, &self.head) {
            return (0, calls, Some(format!("write: {}", words_of(&error))));
        }
        // What is left of a buffer that has to be written to its end.
        let mut begun = 0;
        loop {
            let now = monotonic();
            let over = now.as_nanos() >= deadline || self.switches.stopped();
            if over && (begun == 0 || self.switches.halted()) {
                return (total, calls, None);
            }
            self.note_omitted_end(counted, now, begin, total);
            let due = pacer.map(|pacer| pacer.next_due()).filter(|due| !over && *due > monotonic());
            if let Some(due) = due {
                self.sleep_for_pace(due.min(MonoTime::from_nanos(deadline)));
                continue;
            }
            let paced = pacer.filter(|_| !over).map_or(whole, |pacer| pacer.write_bytes(whole));
            if begun == 0 {
                begun = self.budget.take_up_to(if self.whole_buffers { whole } else { paced });
            }
            if begun == 0 {
                return (total, calls, None);
            }
            let result = send_method.send(&self.stream, paced.min(begun));
            calls += 1;
            cpu_trace.note_current_cpu();
            let sent = *result.as_ref().unwrap_or(&0);
            begun -= sent;
            if !self.whole_buffers {
                self.budget.give_back(std::mem::take(&mut begun));
            }
            total += sent as u64;
            self.progress.bytes.store(total, Ordering::Relaxed);
            if let Some(pacer) = &mut pacer {
                pacer.note_written(sent);
            }
            if let Err(error) = result
                && !is_pause(&error)
            {
                return (total, calls, Some(format!("write: {}", words_of(&error))));
            }
        }
    }

    /// Sleeps until `due` to keep the pace, or until the flags are to be looked at.
    fn sleep_for_pace(&self, due: MonoTime) {
        let before = monotonic();
        sleep_until(due.min(next_flag_check()));
        self.progress.add_sleep_time(monotonic().nanos_since(before));
    }

    /// Writes whole buffers until the streams agree that it is over.
    fn write_in_turn(
        &self,
        begin: MonoTime,
        deadline: MonoTime,
        turns: &Turns,
        send_method: &mut SendMethod<'_>,
        counted: &mut CountingStart,
    ) -> (u64, u64, Option<String>) {
        let mut pacer = self.pace.map(|rate| StreamPacer::starting_at(rate, begin));
        let whole = self.payload.length();
        let (mut total, mut calls, mut sent) = (0, 0, 0);
        while turns.another(sent, monotonic() >= deadline || self.switches.stopped()) {
            let mut left = whole;
            while left > 0 {
                if self.switches.halted() {
                    return (total, calls, None);
                }
                self.note_omitted_end(counted, monotonic(), begin, total);
                if let Some(due) =
                    pacer.map(|pacer| pacer.next_due()).filter(|due| *due > monotonic())
                {
                    self.sleep_for_pace(due);
                    continue;
                }
                let wanted = pacer.map_or(left, |pacer| pacer.write_bytes(left));
                calls += 1;
                let count = match send_method.send(&self.stream, wanted) {
                    Ok(count) => count,
                    Err(error) if is_pause(&error) => 0,
                    Err(error) => {
                        return (total, calls, Some(format!("write: {}", words_of(&error))));
                    }
                };
                left -= count;
                total += count as u64;
                self.progress.bytes.store(total, Ordering::Relaxed);
                if let Some(pacer) = &mut pacer {
                    pacer.note_written(count);
                }
            }
            sent += 1;
        }
        (total, calls, None)
    }
}

/// A sleep is cut here to look at the flags.
fn next_flag_check() -> MonoTime {
    monotonic() + CALL_TIMEOUT
}

/// The call came back to let the loop look at its flags (EAGAIN, socket(7)). A connection that
/// the kernel gave up is another matter (ETIMEDOUT).
fn is_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, WouldBlock};
    matches!(error.kind(), Interrupted | WouldBlock)
}

/// The processor time that the calling thread has used since `before`.
pub(crate) fn cost_since(before: ThreadCost) -> ThreadCost {
    let after = current_cost();
    let spent = |after: Option<u64>, before: Option<u64>| Some(after?.saturating_sub(before?));
    ThreadCost {
        user_ns: spent(after.user_ns, before.user_ns),
        system_ns: spent(after.system_ns, before.system_ns),
        run_queue_wait_ns: spent(after.run_queue_wait_ns, before.run_queue_wait_ns),
        wall_ns: after.wall_ns.saturating_sub(before.wall_ns),
        cpu: after.cpu,
    }
}
