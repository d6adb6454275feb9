//! One direction at work: reads packets, admits their segments, and writes what is due in runs.

use std::io::IoSlice;
use std::time::Duration;

use linerate_core::path::{Backlog, Departure, Outlet, PathLossCause, Pipeline};
use linerate_core::record::{Failure, Fault};
use linerate_core::stats::LogHistogram;
use linerate_core::time::MonoTime;
use linerate_sys::clock;
use linerate_sys::handover_stamps::HandoverStamps;
use linerate_sys::tun::{Read, Tun, Written};

use super::arrivals::DeviceArrivals;
use super::cut::{self, Header, SegmentRun};
use super::frame::{EmulatedFrame, MAX_HEADER_BYTES};
use super::hold::{PacketRing, READ_BYTES, segment_of};
use super::plan::EmulatedDirection;
use super::report::DirectionCounters;
use super::stops::LATE;
use super::too_big::{MESSAGE_BYTES_MAX, TooBig};

/// When a direction has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wake {
    pub(super) at: MonoTime,
    /// A packet is due just then. Otherwise some are late already within their quantum, and the
    /// microseconds that a sleep ends late are not worth a processor.
    pub(super) exact: bool,
}

/// A direction with everything that it needs.
pub(super) struct Lane {
    pipeline: Pipeline,
    hold: PacketRing,
    pub(super) arrivals: DeviceArrivals,
    /// A packet of a program came since the last look.
    conversed: bool,
    outlet: Outlet,
    quantum: Duration,
    released: MonoTime,
    late_ns: u64,
    /// Tells senders of packets that are too long.
    too_big: Option<TooBig>,
    /// Header of the run being written.
    header: Header,
    /// Where a packet goes for which there is no room, and where one is damaged.
    spare: Box<[u8]>,
    pub(super) counters: DirectionCounters,
    pub(super) lateness_ns: LogHistogram,
}

impl Lane {
    /// Takes all the memory that the direction will ever need.
    pub(super) fn new(direction: EmulatedDirection) -> linerate_sys::Result<Self> {
        let quantum = direction.release_quantum();
        let ring = usize::try_from(direction.ring_bytes()).unwrap_or(usize::MAX);
        let hold = PacketRing::new(ring)?;
        let late = quantum + LATE;
        Ok(Self {
            pipeline: direction.pipeline,
            hold,
            arrivals: DeviceArrivals::default(),
            conversed: false,
            outlet: Outlet::default(),
            quantum,
            released: MonoTime::default(),
            too_big: direction.announced_mtu_bytes.map(TooBig::new),
            late_ns: u64::try_from(late.as_nanos()).unwrap_or(u64::MAX),
            header: [0; MAX_HEADER_BYTES],
            spare: vec![0; READ_BYTES].into_boxed_slice(),
            counters: DirectionCounters::default(),
            lateness_ns: LogHistogram::default(),
        })
    }

    /// Learns from now on how long packets waited to be read.
    pub(super) fn note_waits_by(&mut self, stamps: Option<HandoverStamps>) {
        self.arrivals = DeviceArrivals::new(stamps);
    }

    /// True where a packet of a program was read since the last call; what hosts send for
    /// themselves is none.
    pub(super) fn take_conversed(&mut self) -> bool {
        std::mem::take(&mut self.conversed)
    }

    pub(super) const fn locked(&self) -> bool {
        self.hold.locked()
    }

    pub(super) const fn quantum(&self) -> Duration {
        self.quantum
    }

    /// When it wants to be asked again: when the next packet leaves, but not within a quantum of
    /// the last. So a packet that comes alone leaves on time, and a train leaves in runs. What
    /// goes from element to element has a quantum's time: elements know the exact time of it.
    pub(super) fn next_wake(&self) -> Option<Wake> {
        let leaves = self.pipeline.next_departure()?;
        let inside = self.pipeline.next()? + self.quantum;
        let again = self.released + self.quantum;
        let at = leaves.max(again).min(inside);
        Some(Wake { at, exact: at == leaves })
    }

    /// Reads one packet and puts it on the path; what is due leaves on the way. False: there was
    /// none.
    pub(super) fn admit_packet(&mut self, from: &Tun, to: &Tun) -> Result<bool, Failure> {
        let room = self.hold.space_for_read();
        let has_room = room.is_some();
        let room = room.unwrap_or(&mut self.spare);
        let length = match from.read(room) {
            Ok(Read::Packet(length)) => length,
            Ok(Read::Nothing) => {
                self.arrivals.note_empty(clock::monotonic());
                return Ok(false);
            }
            Ok(Read::Gone) => return Err(interface_gone_failure(from)),
            Err(error) => return Err(system("read from", from, &error)),
        };
        let now = clock::monotonic();
        let waited_ns = self.arrivals.note_read(&room[..length], now);
        let frame = EmulatedFrame::read(&room[..length], from.payload_kind());
        self.count_taken(&frame);
        if has_room {
            self.enqueue_segments(now, frame, waited_ns, from)?;
            self.write_departures(now, to)?;
        } else {
            self.counters.no_room_packets += u64::from(frame.segments);
        }
        Ok(true)
    }

    /// Does what there is to do at `now`, unless it can wait.
    pub(super) fn release(&mut self, now: MonoTime, to: &Tun) -> Result<(), Failure> {
        let Some(wake) = self.next_wake().filter(|wake| wake.at <= now) else { return Ok(()) };
        self.pipeline.release(now, &mut self.outlet);
        self.settle();
        if wake.exact {
            // Even if nothing leaves: cross traffic comes as a train, too.
            self.released = now;
        }
        self.write_departures(now, to)
    }

    /// Copies the backlog of each element into the counters.
    pub(super) fn note_backlog(&mut self, now: MonoTime) {
        self.counters.backlog.clear();
        self.counters.queued = Backlog::default();
        for element in self.pipeline.elements() {
            let backlog = element.backlog(now);
            self.counters.backlog.push(backlog);
            if !element.travels() {
                self.counters.queued.packets += backlog.packets;
                self.counters.queued.bytes += backlog.bytes;
            }
        }
    }

    fn count_taken(&mut self, frame: &EmulatedFrame) {
        self.counters.reads += 1;
        self.conversed |= !frame.is_housekeeping;
        self.counters.taken_packets += u64::from(frame.segments);
        let header = frame.super_packet.map_or(0, |parts| parts.payload_at - frame.ip_at);
        let headers = u64::from(header) * u64::from(frame.segments - 1);
        let whole = u64::from(frame.length).saturating_sub(u64::from(frame.ip_at));
        self.counters.taken_bytes += whole + headers;
    }

    /// Every segment is a packet to the path, with a fate of its own.
    fn enqueue_segments(
        &mut self,
        now: MonoTime,
        frame: EmulatedFrame,
        waited_ns: u64,
        from: &Tun,
    ) -> Result<(), Failure> {
        let tag = self.hold.keep_after(waited_ns, frame);
        for index in 0..frame.segments {
            let packet = frame.packet(index, tag + u64::from(index));
            self.pipeline.receive(now, packet, &mut self.outlet);
        }
        if !self.outlet.lost.is_empty() {
            self.tell_too_long(now, from)?;
            self.trim_lost_segments(tag, &frame);
        }
        self.settle();
        Ok(())
    }

    /// Tells the sender about packets that were longer than the path's MTU, as many as a router
    /// would.
    fn tell_too_long(&mut self, now: MonoTime, from: &Tun) -> Result<(), Failure> {
        let Some(too_big) = &mut self.too_big else { return Ok(()) };
        let too_long = self.outlet.lost.iter().filter(|lost| lost.cause == PathLossCause::TooLong);
        for lost in too_long {
            let Some((held, bytes)) = self.hold.get(lost.packet.tag) else { continue };
            let frame = held.frame;
            if !frame.dont_fragment {
                continue;
            }
            if !too_big.allow_message(now) {
                break;
            }
            let index = segment_of(lost.packet.tag);
            let cut = SegmentRun { first: index, last: index, marked: false };
            let packet = joined(&pieces(bytes, &frame, cut, &mut self.header), &mut self.spare);
            cut::complete(packet);
            let mut room = [0; MESSAGE_BYTES_MAX];
            let Some(length) = too_big.message(packet, &frame, &mut room) else { continue };
            match from.write(&[IoSlice::new(&room[..length])]) {
                Written::Whole => self.counters.icmp_messages += 1,
                Written::Refused(_) => {}
                Written::Gone => return Err(interface_gone_failure(from)),
            }
        }
        Ok(())
    }

    /// Gives back the memory of the last segments when a full queue lost them.
    fn trim_lost_segments(&mut self, tag: u64, frame: &EmulatedFrame) {
        let mut left = frame.segments;
        for lost in self.outlet.lost.iter().rev() {
            if left == 0 || lost.packet.tag != tag + u64::from(left - 1) {
                break;
            }
            left -= 1;
        }
        if (1..frame.segments).contains(&left) {
            self.hold.trim_newest(tag, left - 1);
        }
    }

    /// Keeps the bytes of what the path copied, lets go of those of what it lost.
    fn settle(&mut self) {
        for copied in self.outlet.copied.drain(..).filter(|copied| !copied.is_cross()) {
            self.counters.copied_packets += 1;
            self.hold.retain(copied.tag);
        }
        for lost in self.outlet.lost.drain(..).filter(|lost| !lost.packet.is_cross()) {
            self.counters.count_lost(lost.cause);
            self.hold.release(lost.packet.tag, 1);
        }
    }

    /// Writes what has left the path, in runs.
    fn write_departures(&mut self, now: MonoTime, to: &Tun) -> Result<(), Failure> {
        if self.outlet.departures.is_empty() {
            return Ok(());
        }
        self.released = now;
        let mut departures = std::mem::take(&mut self.outlet.departures);
        let mut rest = &departures[..];
        while let Some(length) = run_length(rest) {
            let (run, after) = rest.split_at(length);
            self.write(run, to)?;
            rest = after;
        }
        departures.clear();
        self.outlet.departures = departures;
        Ok(())
    }

    /// Writes a run: consecutive segments of one packet, alike.
    fn write(&mut self, run: &[Departure], to: &Tun) -> Result<(), Failure> {
        let first = run[0].packet;
        let count = run.len() as u16;
        let Some((held, bytes)) = self.hold.get(first.tag) else {
            self.counters.orphaned_packets += u64::from(count);
            return Ok(());
        };
        let (frame, waited_ns) = (held.frame, held.waited_ns);
        let index = segment_of(first.tag);
        let marked = cut::is_marked(&frame, first.ecn);
        let cut = SegmentRun { first: index, last: index + count - 1, marked };
        let pieces = pieces(bytes, &frame, cut, &mut self.header);
        let now = clock::monotonic();
        let written = if first.corrupted {
            let damaged = joined(&pieces, &mut self.spare);
            cut::corrupt(damaged, first.number);
            to.write(&[IoSlice::new(damaged)])
        } else {
            to.write(&pieces)
        };
        match written {
            Written::Whole => self.count_delivered(run, now, waited_ns, marked),
            Written::Refused(_) => self.counters.refused_packets += u64::from(count),
            Written::Gone => return Err(interface_gone_failure(to)),
        }
        self.hold.release(first.tag, count);
        Ok(())
    }

    /// A packet is as late as it left after its time, and as it waited before it was read: what
    /// waited behind others in a queue would have left no sooner, so that this is the most.
    fn count_delivered(&mut self, run: &[Departure], now: MonoTime, waited_ns: u64, marked: bool) {
        let counters = &mut self.counters;
        counters.writes += 1;
        counters.delivered_packets += run.len() as u64;
        // Segments of one super-packet through a path without a line are due at one time.
        for same in run.chunk_by(|one, next| one.at == next.at) {
            let late = now.nanos_since(same[0].at).saturating_add(waited_ns);
            let count = same.len() as u64;
            counters.lateness_max_ns = counters.lateness_max_ns.max(late);
            counters.late_packets += if late > self.late_ns { count } else { 0 };
            self.lateness_ns.record_many(late, count);
        }
        counters.delivered_bytes +=
            run.iter().map(|departure| u64::from(departure.packet.ip_bytes)).sum::<u64>();
        if marked {
            counters.marked_packets += run.len() as u64;
        }
        if run[0].packet.corrupted {
            counters.corrupted_packets += run.len() as u64;
        }
    }
}

/// How many of the first departures go out in one write; none when there are none.
fn run_length(departures: &[Departure]) -> Option<usize> {
    let first = departures.first()?.packet;
    if first.corrupted {
        return Some(1);
    }
    let follows = |place: usize, departure: &Departure| {
        let packet = departure.packet;
        packet.tag == first.tag + place as u64 && packet.ecn == first.ecn && !packet.corrupted
    };
    let numbered = departures.iter().enumerate();
    Some(numbered.take_while(|(place, departure)| follows(*place, departure)).count())
}

/// The bytes to write for a run: a header and the payload where it is, or the packet as it came.
fn pieces<'a>(
    bytes: &'a [u8],
    frame: &EmulatedFrame,
    run: SegmentRun,
    header: &'a mut Header,
) -> [IoSlice<'a>; 2] {
    let whole = run.first == 0 && run.last + 1 == frame.segments && !run.marked;
    if whole {
        return [IoSlice::new(bytes), IoSlice::new(&[])];
    }
    if let Some(parts) = frame.super_packet {
        let length = cut::header(bytes, frame, &parts, run, header);
        let payload = frame.payload(&parts, run.first, run.last);
        return [IoSlice::new(&header[..length]), IoSlice::new(&bytes[payload])];
    }
    let (start, rest) = bytes.split_at(bytes.len().min(MAX_HEADER_BYTES));
    let header = &mut header[..start.len()];
    header.copy_from_slice(start);
    cut::mark_congestion(header, frame);
    [IoSlice::new(header), IoSlice::new(rest)]
}

/// The pieces in a row.
fn joined<'a>(pieces: &[IoSlice<'_>; 2], room: &'a mut [u8]) -> &'a mut [u8] {
    let (first, second) = (pieces[0].len(), pieces[1].len());
    room[..first].copy_from_slice(&pieces[0]);
    room[first..first + second].copy_from_slice(&pieces[1]);
    &mut room[..first + second]
}

/// The line for a device that somebody removed.
pub(super) fn interface_gone_failure(tun: &Tun) -> Failure {
    Failure::new(Fault::System, "emulate path on", tun.name(), "the interface vanished")
        .advise("no packet passes any more; its namespace ended, or the interface was deleted")
}

fn system(attempt: &str, tun: &Tun, error: &std::io::Error) -> Failure {
    Failure::new(Fault::System, attempt, tun.name(), crate::failure::words_of(error))
}
