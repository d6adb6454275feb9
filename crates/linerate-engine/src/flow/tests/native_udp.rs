//! This program's own client and server over UDP. Datagrams, of the opening as of the test, go over
//! elements of `core::path` that lose, double, delay and reorder them; some arrive cut short. What
//! both ends make of them is what they do live: opening, signs of life, counting, and the end.

mod ends;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use linerate_core::path::{
    Bernoulli, Delay, Duplication, Ecn, Element, Jitter, Outlet, Packet, Pipeline, Random, Spread,
};
use linerate_core::record::{DatagramsSent, Direction, Finish, FlowSide, UdpTest};
use linerate_core::time::MonoTime;
use linerate_proto::native::{NativeDatagramHeader, Token, UdpTracker, stream_tag};

use super::world::{End, World};
use super::{Trouble, count};
use crate::flow::account::{client_side, server_side};
use crate::flow::udp::keep_alive::KeepAlive;
use crate::flow::udp::layout::{DatagramLayout, ParsedDatagram};
use crate::flow::udp::receiver::is_drained;

/// Time between the datagrams of a stream.
const GAP: Duration = Duration::from_millis(10);
/// Threads look at their flags this often; at the end of a test more often.
const LOOK: Duration = Duration::from_millis(100);
const LOOK_AT_END: Duration = Duration::from_millis(10);
const SIZE_BYTES: usize = 64;
const TOKEN: Token = Token([7; 16]);

/// The datagrams of a test, and the threads that move them at both ends.
struct Wire {
    world: World,
    trouble: Trouble,
    random: Random,
    request: UdpTest,
    /// From each end.
    paths: [Pipeline; 2],
    /// Share of datagrams that arrive cut short.
    cut: f64,
    /// The stream of each datagram and its bytes, by its tag.
    sent: Vec<(usize, Vec<u8>)>,
    streams: Vec<Stream>,
    gone: [bool; 2],
    now: MonoTime,
}

/// One stream, at each end.
struct Stream {
    place: (Direction, u16),
    /// What came before there was a thread.
    waiting: [VecDeque<Vec<u8>>; 2],
    threads: [Option<Thread>; 2],
    /// Numbers of the datagrams that the path delivered whole.
    delivered: BTreeSet<u64>,
}

/// One thread of a stream.
struct Thread {
    side: FlowSide,
    tag: u16,
    begin: MonoTime,
    keep_alive: KeepAlive,
    /// When it looks again.
    look: MonoTime,
    /// When the next datagram is due, of a sender.
    due: MonoTime,
    count: u64,
    stopped: bool,
    /// What the stream's sender has sent, and since when that is known.
    sent: Option<(DatagramsSent, MonoTime)>,
    tracker: UdpTracker,
    /// Numbers of whole datagrams that came, and how many came in all.
    came: (BTreeSet<u64>, u64),
    last: MonoTime,
    done: bool,
    failed: bool,
}

impl Wire {
    fn of_seed(seed: u64, world: &World, trouble: Trouble, request: &UdpTest) -> Self {
        let mut random = Random::new(seed, 2);
        let delay = Duration::from_micros(20 + count(&mut random, 100_000));
        // A third of the paths is clean.
        let harm = if random.chance(0.33) { 0.0 } else { random.next_uniform() };
        let paths = [3_u64, 4].map(|stream| {
            let random = |number| Random::new(seed, stream * 10 + number);
            let spread = Spread::Some { share: 0.2 * harm, extra: Duration::from_millis(25) };
            let elements: Vec<Box<dyn Element>> = vec![
                Box::new(Bernoulli::new(0.15 * harm, random(0))),
                Box::new(Duplication::new(0.1 * harm, random(1))),
                Box::new(Delay::new(delay)),
                Box::new(Jitter::new(spread, false, random(2))),
            ];
            Pipeline::new(elements)
        });
        let streams = request.places().map(|place| Stream {
            place,
            waiting: Default::default(),
            threads: [None, None],
            delivered: BTreeSet::new(),
        });
        Self {
            streams: streams.collect(),
            world: world.clone(),
            trouble,
            random,
            request: request.clone(),
            paths,
            cut: 0.02 * harm,
            sent: Vec::new(),
            gone: [false; 2],
            now: MonoTime::default(),
        }
    }

    /// Everything that happens until `now`.
    fn advance(&mut self, now: MonoTime) {
        while let Some(at) = self.next().filter(|at| *at <= now) {
            self.now = self.now.max(at);
            self.deliver();
            self.work();
        }
        self.now = now;
        self.deliver();
    }

    fn next(&self) -> Option<MonoTime> {
        let threads = self.streams.iter().flat_map(|stream| stream.threads.iter().flatten());
        let threads = threads.filter(|thread| !thread.done || thread.side == FlowSide::Sender);
        let looks = threads.map(|thread| match thread.side {
            FlowSide::Sender if !thread.done => thread.due.min(thread.look),
            _ => thread.look,
        });
        looks.chain(self.paths.iter().filter_map(Pipeline::next)).min()
    }

    fn is_gone(&self, end: End) -> bool {
        self.gone[end as usize] || self.world.is_dead(end)
    }

    fn send(&mut self, from: End, stream: usize, bytes: Vec<u8>) {
        let blocked = match self.trouble {
            Trouble::NoStreams => true,
            Trouble::Blocked { of, from: since } => {
                of == from && self.now >= MonoTime::default() + since
            }
            _ => false,
        };
        if blocked {
            return;
        }
        let packet = Packet {
            number: 0,
            ip_bytes: bytes.len() as u32 + 28,
            flow: stream as u32,
            hosts: [0; 2],
            ecn: Ecn::NotCapable,
            dont_fragment: true,
            corrupted: false,
            tag: self.sent.len() as u64,
        };
        self.sent.push((stream, bytes));
        let mut out = Outlet::default();
        self.paths[from as usize].receive(self.now, packet, &mut out);
        self.arrive(from.other(), &out);
    }

    fn deliver(&mut self) {
        for from in [End::Client, End::Server] {
            let mut out = Outlet::default();
            self.paths[from as usize].release(self.now, &mut out);
            self.arrive(from.other(), &out);
        }
    }

    fn arrive(&mut self, at: End, out: &Outlet) {
        for departure in &out.departures {
            let (stream, mut bytes) = self.sent[departure.packet.tag as usize].clone();
            if self.random.chance(self.cut) {
                bytes.truncate(count(&mut self.random, bytes.len() as u64) as usize);
            }
            if self.is_gone(at) {
                continue;
            }
            let stream = &mut self.streams[stream];
            let tag = stream_tag(TOKEN, stream.place.0, stream.place.1);
            if let ParsedDatagram::Data(head) = (DatagramLayout::OWN.read)(&bytes, tag)
                && bytes.len() == SIZE_BYTES
            {
                stream.delivered.insert(head.number);
            }
            match &mut stream.threads[at as usize] {
                Some(thread) => thread.take(&bytes, departure.at),
                None => stream.waiting[at as usize].push_back(bytes),
            }
        }
    }

    /// Every thread goes on that has something to do.
    fn work(&mut self) {
        for stream in 0..self.streams.len() {
            for end in [End::Client, End::Server] {
                let gone = self.is_gone(end);
                let thread = &mut self.streams[stream].threads[end as usize];
                let Some(thread) = thread else { continue };
                if gone {
                    thread.leave();
                    continue;
                }
                for bytes in thread.work(self.now, &self.request) {
                    self.send(end, stream, bytes);
                }
            }
        }
    }

    /// Begins the threads of an end's side.
    fn begin(&mut self, end: End, side: FlowSide) {
        for stream in &mut self.streams {
            if side_of(end)(stream.place.0) == side {
                let mut thread = Thread::of(stream.place, side, self.now);
                for bytes in stream.waiting[end as usize].drain(..) {
                    thread.take(&bytes, self.now);
                }
                stream.threads[end as usize] = Some(thread);
            }
        }
    }

    fn threads(&mut self, end: End) -> impl Iterator<Item = ((Direction, u16), &mut Thread)> {
        self.streams.iter_mut().filter_map(move |stream| {
            let place = stream.place;
            stream.threads[end as usize].as_mut().map(|thread| (place, thread))
        })
    }
}

impl Thread {
    fn of(place: (Direction, u16), side: FlowSide, now: MonoTime) -> Self {
        let tag = stream_tag(TOKEN, place.0, place.1);
        Self {
            side,
            tag,
            begin: now,
            keep_alive: KeepAlive::starting_at(tag, now),
            look: now,
            due: now,
            count: 0,
            stopped: false,
            sent: None,
            tracker: UdpTracker::new(0),
            came: (BTreeSet::new(), 0),
            last: now,
            done: false,
            failed: false,
        }
    }

    /// It does nothing any more.
    fn leave(&mut self) {
        self.done = true;
        self.look = MonoTime::from_nanos(u64::MAX);
    }

    /// A datagram came.
    fn take(&mut self, bytes: &[u8], now: MonoTime) {
        match (DatagramLayout::OWN.read)(bytes, self.tag) {
            ParsedDatagram::Alive => self.keep_alive.note_heard(now),
            ParsedDatagram::Data(head) if self.side == FlowSide::Receiver && !self.done => {
                self.keep_alive.note_heard(now);
                if bytes.len() == SIZE_BYTES {
                    self.tracker.count_datagram(head.number, head.stamp_ns);
                    self.came.0.insert(head.number);
                    self.came.1 += 1;
                    self.last = now;
                }
            }
            _ => {}
        }
    }

    /// Goes on; what it sends.
    fn work(&mut self, now: MonoTime, request: &UdpTest) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        if self.side == FlowSide::Sender && !self.done && now >= self.due {
            let over = match request.finish {
                Finish::TimeNs(ns) => now.nanos_since(self.begin) >= ns,
                _ => self.count >= request.datagram_budget().unwrap_or(0),
            };
            if over || self.stopped {
                self.done = true;
            } else {
                let stamp_ns = now.nanos_since(self.begin);
                let header = NativeDatagramHeader { number: self.count, tag: self.tag, stamp_ns };
                let mut bytes = header.to_bytes().to_vec();
                bytes.resize(SIZE_BYTES, 0);
                out.push(bytes);
                self.count += 1;
                self.due += GAP;
                self.keep_alive.note_sent(now);
            }
        }
        if now >= self.look {
            self.look = now + if self.sent.is_some() { LOOK_AT_END } else { LOOK };
            if self.stopped {
                self.due = self.due.min(self.look);
            }
            out.extend(self.keep_alive.due_datagram(now).map(|bytes| bytes.to_vec()));
            let over = self.sent.is_some_and(|(sent, told)| {
                let complete = self.tracker.received() >= sent.datagrams;
                is_drained(now, told, self.last, complete)
            });
            self.done |= over;
            if !over && self.keep_alive.is_silent(now) {
                self.failed = true;
                self.leave();
            }
        }
        out
    }
}

fn side_of(end: End) -> fn(Direction) -> FlowSide {
    match end {
        End::Client => client_side,
        End::Server => server_side,
    }
}
