//! The thread of an end that sends its trains, takes the other end's, and stamps all of them.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_core::record::{Direction, Failure, Fault};
use linerate_core::time::MonoTime;
use linerate_proto::native::{TRAIN_HEADER_BYTES, TrainHeader, TrainReport, TrainRound};
use linerate_sys::clock::{monotonic, random_bytes, realtime_ns, sleep};
use linerate_sys::datagram_socket::{
    DatagramSocket, ReceiveBatch, is_refused_by_link, is_too_long,
};
use linerate_sys::sched::ShortSlack;
use linerate_sys::timer::HybridTimer;
use linerate_sys::timestamps::{Notice, START_DELAY};

use super::arrivals::TrainArrivals;
use super::departures::{Departures, DueDatagram};

/// Time between two looks for the next round.
const IDLE: Duration = Duration::from_millis(5);
/// Time between two looks at the socket while a round runs.
const LOOK: Duration = Duration::from_millis(1);
/// The kernel tells a departure this long after it at the latest, on an idle host.
const STAMPS_WAIT: Duration = Duration::from_millis(5);
/// Awake so long before a packet is due.
const SPIN: Duration = Duration::from_micros(60);
/// A packet that finds no room is tried this often, 20 ms each.
const TRIES: u32 = 25;
/// Queues of the path may hold what is on the way this much longer than is waited for silence.
const DRAIN_MAX: Duration = Duration::from_secs(3);

/// The thread, from outside. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct TrainProber {
    rounds: Sender<TrainRound>,
    reports: Receiver<Vec<TrainReport>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TrainProber {
    /// Starts it on a connected socket; it sends the trains of one direction and takes the others.
    pub(super) fn start_thread(
        socket: DatagramSocket,
        tag: u16,
        sends: Direction,
    ) -> Result<Self, Failure> {
        let (rounds, asked) = channel();
        let (tell, reports) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let end = ProberThread {
            socket,
            sends,
            tag,
            batch: ReceiveBatch::new(),
            arrivals: TrainArrivals::new(tag),
            timer: HybridTimer::new(SPIN),
            stop: Arc::clone(&stop),
        };
        let thread = std::thread::Builder::new().name("linerate-trains".to_owned());
        let thread = thread.spawn(move || end.run(&asked, &tell)).map_err(|error| {
            Failure::new(Fault::System, "start", "the thread of the trains", error)
        })?;
        Ok(Self { rounds, reports, stop, thread: Some(thread) })
    }

    /// Begins a round of trains.
    pub(super) fn begin_round(&self, round: TrainRound) {
        // One that is gone tells nothing, and whoever waits gives up in time.
        let _ = self.rounds.send(round);
    }

    /// The reports of a round at this end, once it is over.
    pub(super) fn reports(&self) -> Option<Vec<TrainReport>> {
        self.reports.try_recv().ok()
    }
}

impl Drop for TrainProber {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.thread.take().map(JoinHandle::join));
    }
}

struct ProberThread {
    socket: DatagramSocket,
    sends: Direction,
    tag: u16,
    batch: ReceiveBatch,
    arrivals: TrainArrivals,
    timer: HybridTimer,
    stop: Arc<AtomicBool>,
}

impl ProberThread {
    fn run(mut self, rounds: &Receiver<TrainRound>, reports: &Sender<Vec<TrainReport>>) {
        let _slack = ShortSlack::shorten_slack();
        self.socket.note_departures();
        sleep(START_DELAY);
        while !self.stop.load(Ordering::Relaxed) {
            match rounds.try_recv() {
                Ok(round) => {
                    let seen = self.run_round(&round);
                    if reports.send(seen).is_err() {
                        return;
                    }
                }
                Err(TryRecvError::Empty) => self.wait_until(monotonic() + IDLE, false),
                Err(TryRecvError::Disconnected) => return,
            }
            self.receive();
        }
    }

    /// Runs a round to its end; a report of each of its trains, in their order.
    fn run_round(&mut self, round: &TrainRound) -> Vec<TrainReport> {
        let receives = opposite(self.sends);
        self.arrivals.begin_round(round, receives, self.socket.dropped_buffers());
        self.socket.note_departures();
        let begin = monotonic();
        let mut sending = Sending::new(round, self.sends, self.tag, begin);
        let quiet = Duration::from_nanos(round.quiet_ns);
        let due = begin + round.last_packet_time(receives) + quiet;
        let mut last = begin;
        while !self.stop.load(Ordering::Relaxed) {
            let now = monotonic();
            sending.send_due(now, &self.socket);
            if self.receive() {
                last = now;
            }
            sending.read_notices(&self.socket);
            let silent =
                now >= due && (now.duration_since(last) >= quiet || now >= due + DRAIN_MAX);
            if sending.is_over() && (self.arrivals.is_complete() || silent) {
                break;
            }
            let next = sending.next();
            let until = next.map_or(now + LOOK, |next| next.min(now + LOOK));
            self.wait_until(until, next == Some(until));
        }
        sleep(STAMPS_WAIT);
        sending.read_notices(&self.socket);
        let mut reports = self.arrivals.end_round(self.socket.dropped_buffers());
        reports.extend(sending.reports(round.round));
        reports.sort_by_key(|report| report.train);
        reports
    }

    fn wait_until(&mut self, until: MonoTime, exact: bool) {
        // What is wrong with the socket shows when it is read.
        let _ = self.timer.wait_for_events([self.socket.as_fd()], Some(until), exact);
    }

    /// Takes what is there; whether any of it was of these trains.
    fn receive(&mut self) -> bool {
        let mut any = false;
        while self.batch.receive_waiting(&self.socket).is_ok() {
            let now_ns = realtime_ns();
            for came in self.batch.arrived() {
                let at_ns = came.arrived_ns.unwrap_or(now_ns);
                any |= self.arrivals.take_datagram(came.bytes, at_ns, came.drops);
            }
        }
        any
    }
}

/// The datagrams that an end sends in a round, with their times.
struct Sending {
    due: Departures,
    begin: MonoTime,
    header: TrainHeader,
    datagram: Vec<u8>,
    trains: Vec<Given>,
    /// When the kernel handed each send to the driver.
    left: Vec<Option<u64>>,
    sends: u32,
    /// The largest packet that somebody named.
    icmp_mtu_bytes: Option<u32>,
}

/// The packets of one train that were handed to the kernel.
struct Given {
    /// Index of the train in the round.
    train: u16,
    size_bytes: u32,
    /// When it was given each packet, and the number of that send.
    packets: Vec<(u64, u32)>,
}

impl Sending {
    fn new(round: &TrainRound, direction: Direction, tag: u16, begin: MonoTime) -> Self {
        let longest = round.trains.iter().map(|plan| plan.size_bytes).max().unwrap_or(0) as usize;
        // A path that compresses finds nothing to compress.
        let noise: [u8; 1024] = random_bytes();
        let datagram = noise.iter().copied().cycle().take(longest.max(TRAIN_HEADER_BYTES));
        Self {
            due: Departures::new(round, direction),
            begin,
            header: TrainHeader { round: round.round, train: 0, index: 0, tag },
            datagram: datagram.collect(),
            trains: (0..)
                .zip(&round.trains)
                .filter(|(_, plan)| plan.direction == direction)
                .map(|(train, plan)| Given {
                    train,
                    size_bytes: plan.size_bytes,
                    packets: Vec::new(),
                })
                .collect(),
            left: Vec::new(),
            sends: 0,
            icmp_mtu_bytes: None,
        }
    }

    fn next(&self) -> Option<MonoTime> {
        self.due.next().map(|due| self.begin + Duration::from_nanos(due.at_ns))
    }

    fn is_over(&self) -> bool {
        self.due.next().is_none()
    }

    fn send_due(&mut self, now: MonoTime, socket: &DatagramSocket) {
        let since_ns = now.nanos_since(self.begin);
        while let Some(due) = self.due.next().filter(|due| due.at_ns <= since_ns) {
            let given_ns = realtime_ns();
            if self.send_datagram(due, socket) {
                let train = self.trains.iter_mut().find(|given| given.train == due.train);
                train.into_iter().for_each(|given| given.packets.push((given_ns, self.sends)));
                self.sends += 1;
                self.due.note_departure(due);
            } else {
                self.due.end_train(due);
            }
        }
    }

    /// Sends a datagram; true where the kernel took it, or dropped it as the path may.
    fn send_datagram(&mut self, due: DueDatagram, socket: &DatagramSocket) -> bool {
        let header = TrainHeader { train: due.train, index: due.index, ..self.header };
        self.datagram[..TRAIN_HEADER_BYTES].copy_from_slice(&header.to_bytes());
        for _ in 0..TRIES {
            match socket.send_when_room(&self.datagram[..due.size_bytes as usize]) {
                Ok(()) => return true,
                Err(error) if is_refused_by_link(&error) => return true,
                // What a router said of an earlier one is told once, by the next send; what the
                // link says, again and again.
                Err(error) if is_too_long(&error) => {
                    self.read_notices(socket);
                    let link = socket.mtu_bytes().unwrap_or(u32::MAX);
                    if due.size_bytes.saturating_add(IP_UDP_BYTES_MIN) > link {
                        return false;
                    }
                }
                // No room, or a refusal of an earlier one.
                Err(_) => {}
            }
        }
        false
    }

    fn read_notices(&mut self, socket: &DatagramSocket) {
        while let Some(notice) = socket.next_notice() {
            match notice {
                Notice::Departed { key, at_ns } => {
                    let key = key as usize;
                    if key < self.sends as usize {
                        self.left.resize(self.left.len().max(key + 1), None);
                        self.left[key] = Some(at_ns);
                    }
                }
                Notice::Undeliverable { mtu_bytes: Some(mtu), .. } => {
                    let least = self.icmp_mtu_bytes.map_or(mtu, |least| least.min(mtu));
                    self.icmp_mtu_bytes = Some(least);
                }
                Notice::Queued { .. } | Notice::Undeliverable { .. } => {}
            }
        }
    }

    /// Times of one kind in each train: those of the kernel where it told all of them.
    fn reports(&self, round: u16) -> Vec<TrainReport> {
        let report = |given: &Given| {
            let left_ns = |given_ns: u64, send: u32| {
                let left = *self.left.get(send as usize)?;
                left.filter(|left| *left >= given_ns)
            };
            let kernel: Vec<Option<u64>> =
                given.packets.iter().map(|&(given_ns, send)| left_ns(given_ns, send)).collect();
            let complete = kernel.iter().all(Option::is_some);
            let stamps = match complete {
                true => kernel,
                false => given.packets.iter().map(|(given_ns, _)| Some(*given_ns)).collect(),
            };
            let longer = |mtu: &u32| given.size_bytes + IP_UDP_BYTES_MIN > *mtu;
            let icmp_mtu_bytes = self.icmp_mtu_bytes.filter(longer);
            TrainReport { icmp_mtu_bytes, ..TrainReport::from_stamps(round, given.train, &stamps) }
        };
        self.trains.iter().map(report).collect()
    }
}

/// Headers of IPv4 and UDP (RFC 791, RFC 768); those of IPv6 are longer.
const IP_UDP_BYTES_MIN: u32 = 28;

const fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::Up => Direction::Down,
        Direction::Down => Direction::Up,
    }
}
