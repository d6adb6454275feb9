//! The generator: an XDP program that is run on live frames (BPF_PROG_TEST_RUN), sends each when
//! it is due and makes it right.
//!
//! Open loop: nothing that happens to the frames slows it down. Needs Linux 5.18, a driver that
//! takes redirected frames (ndo_xdp_xmit; on a veth also NAPI at the other end, see
//! [`super::hold_napi`]), and frames below a page (about 3,400 bytes).
//!
//! Each call of the kernel takes 13 µs while the program is on an interface somewhere, and 24 ms
//! otherwise, because the kernel then patches its jump to the program and waits for a grace period
//! (both measured, Linux 6.18 guest). So the program is held on the loopback of a namespace of its
//! own, where no frame comes.

use std::sync::Arc;
use std::time::Duration;

use linerate_core::device::{
    FrameLoad, FramePace, FrameTemplate, PAUSES_MAX, Pause, SIGNATURE_BYTES, SUSPECTS_MAX,
    SendCounts, SendTiming, WatchRule,
};
use linerate_core::time::MonoTime;

use super::generator_program as program;
use super::generator_program::{GeneratorMaps, MIX_MAX, longest};
use crate::bpf::{AttachMode, LiveRun, XdpLink, XdpProgram};
use crate::netlink::{LinkCounters, RouteSocket};
use crate::netns::Netns;
use crate::sched::Pinned;
use crate::stop::Stop;
use crate::{Error, Result, clock};

/// Largest number of templates of a generator.
const TEMPLATES_MAX: usize = 16;
/// Frames are late when they leave after more than a gap, and more than this (ns).
const LATE_MIN_NS: u64 = 10_000;
/// The program itself waits for a frame that is due sooner than this (ns).
const SPIN_NS: u64 = 1500;
/// A call of the kernel takes about this long, so that stops and deadlines are seen.
const CALL: Duration = Duration::from_millis(10);
/// The thread sleeps if the next frame is due later than this.
const SLEEP_ABOVE: Duration = Duration::from_micros(400);
/// Margin by which the thread wakes before the frame is due.
const AWAKE_BEFORE: Duration = Duration::from_micros(150);
/// Longest sleep, so that a request to stop is noticed.
const SLEEP_MAX: Duration = Duration::from_millis(50);
/// Time for the other end to take what is in its ring before frames count as refused.
const TAKEN_WITHIN: Duration = Duration::from_millis(100);
/// Calls of the program between flushes at full rate; the kernel's limit.
const BATCH_MAX: u32 = 256;
/// As fast with 64 as with 256 (5.4 million frames per second of processor time), all of them taken
/// in one turn of NAPI, and a veth's ring of 256 does not run full.
const FLOOD_BATCH: u32 = 64;
/// Paced frames per second up to which batches of 1, 2, 4, ... keep up, with a third to spare.
const BATCHES: [(u64, u32); 4] = [(1_100_000, 1), (1_700_000, 2), (2_300_000, 4), (2_900_000, 8)];

/// Options of a [`Generator`].
#[derive(Clone, Debug)]
pub struct GeneratorOptions {
    /// Interface, in the namespace of the thread that opens the generator.
    pub ifindex: u32,
    /// Stream in the signatures, 0 to 15.
    pub stream: u8,
    /// Trial in the signatures.
    pub trial: u32,
    /// Frames to send; at most 16.
    pub templates: Vec<FrameTemplate>,
    /// Processor that the sending thread is pinned to.
    pub cpu: Option<u32>,
    /// Calls of the program between flushes, 1 to 256: frames of one batch leave together. None
    /// chooses by the rate.
    pub batch: Option<u32>,
}

impl GeneratorOptions {
    /// Any processor, batches by rate.
    pub const fn new(ifindex: u32, stream: u8, trial: u32, templates: Vec<FrameTemplate>) -> Self {
        Self { ifindex, stream, trial, templates, cpu: None, batch: None }
    }
}

/// Start and end of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GeneratorWindow {
    /// Due time of the first frame; `None` starts at once.
    pub start: Option<MonoTime>,
    /// Nothing is sent after about then, all sent or not.
    pub deadline: Option<MonoTime>,
}

/// Progress of a generator, readable from other threads.
#[derive(Clone, Debug)]
pub struct Progress {
    maps: Arc<GeneratorMaps>,
}

impl Progress {
    /// Frames of the trial that were handed to the interface so far.
    pub fn frames(&self) -> u64 {
        self.maps.state.get(program::NEXT)
    }
}

/// A frame generator that runs as an XDP program on an interface.
#[derive(Debug)]
pub struct Generator {
    options: GeneratorOptions,
    maps: Arc<GeneratorMaps>,
    program: XdpProgram,
    hold: Option<Hold>,
    links: RouteSocket,
    is_veth: bool,
    frame: Vec<u8>,
}

/// An attachment to the loopback of a namespace of its own, which makes calls of the program cheap.
#[derive(Debug)]
struct Hold {
    _link: XdpLink,
    _netns: Netns,
}

impl Hold {
    fn from_program(program: &XdpProgram) -> Result<Self> {
        const LOOPBACK: u32 = 1;
        let netns = Netns::new()?;
        let attach = || {
            netns.enter()?;
            XdpLink::attach(program, LOOPBACK, AttachMode::Generic)
        };
        let link = std::thread::scope(|scope| {
            let joined = scope.spawn(attach).join();
            joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        Ok(Self { _link: link, _netns: netns })
    }
}

impl Generator {
    /// Loads the program for these frames; nothing is sent yet.
    /// # Errors
    /// For no template, more than 16, or one that is too short, too long for a live frame, or has
    /// a field outside; when the interface does not exist; without CAP_BPF and CAP_NET_ADMIN.
    pub fn open(options: GeneratorOptions) -> Result<Self> {
        check_options(&options)?;
        let mut links = RouteSocket::open()?;
        let is_veth = links.link_by_index(options.ifindex)?.kind.as_deref() == Some("veth");
        let maps = Arc::new(GeneratorMaps::new(options.ifindex, &options.templates)?);
        let program = maps.program(&options.templates)?;
        let hold = Hold::from_program(&program).ok();
        let length = longest(&options.templates);
        let frame = options.templates.iter().find(|template| template.bytes.len() == length);
        let frame = frame.map(|template| template.bytes.clone()).unwrap_or_default();
        // All frames are sent: the program drops this one. The kernel refuses what is too long.
        program.run_live(&frame, LiveRun { repeat: 1, batch: 1 })?;
        let mut generator = Self { maps, program, hold, links, is_veth, frame, options };
        generator.begin_trial(generator.options.trial);
        Ok(generator)
    }

    /// Begins a trial: numbers start at 0.
    pub fn begin_trial(&mut self, trial: u32) {
        let state = &self.maps.state;
        state.clear_words();
        let stream = u64::from(self.options.stream) << 24;
        state.set_word(program::SIGNED, u64::from(trial) << 32 | stream);
        self.options.trial = trial;
    }

    /// A handle to watch the progress from another thread.
    pub fn progress(&self) -> Progress {
        Progress { maps: Arc::clone(&self.maps) }
    }

    /// True if calls of the program are cheap; otherwise each call interrupts the pace for 24 ms.
    pub const fn is_held(&self) -> bool {
        self.hold.is_some()
    }

    /// Sends until all is sent or somebody asks to stop. Numbers go on where the last run of the
    /// trial ended.
    /// # Errors
    /// For a load that asks for nothing that can be sent (see [`Generator::run_within`]).
    pub fn run(&mut self, load: &FrameLoad, stop: &Stop) -> Result<SendCounts> {
        self.run_within(load, stop, GeneratorWindow::default())
    }

    /// Sends frames between the start and the end of a window.
    /// # Errors
    /// For a rate of 0, bursts of 0, or a mix that names a template that is not there; when the
    /// kernel refuses live frames, or the interface has gone.
    pub fn run_within(
        &mut self,
        load: &FrameLoad,
        stop: &Stop,
        window: GeneratorWindow,
    ) -> Result<SendCounts> {
        self.check_load(load)?;
        let _pinned = self.options.cpu.map(Pinned::on_cpu);
        let first = self.maps.state.get(program::NEXT);
        let bytes = self.maps.state.get(program::BYTES);
        let before = self.link_counters()?;
        self.set_load(load, window.start.unwrap_or_else(clock::monotonic));
        self.send_load(load, stop, window)?;
        let handed = self.maps.state.get(program::NEXT) - first;
        let refused = self.refused(handed, before)?;
        let state = &self.maps.state;
        Ok(SendCounts {
            frames: handed - refused,
            bytes: self.bytes_taken(state.get(program::BYTES) - bytes, handed, refused),
            refused,
            first_ns: state.get(program::FIRST),
            last_ns: state.get(program::LAST),
            late: state.get(program::LATE),
            worst_late_ns: state.get(program::WORST),
            timing: self.watched(first),
        })
    }

    /// Timing of the send operation as the program saw it; frames are numbered from the run's
    /// first.
    fn watched(&self, first: u64) -> SendTiming {
        let state = &self.maps.state;
        let kept = usize::try_from(state.get(program::PAUSES)).unwrap_or(PAUSES_MAX);
        let pause = |index: usize| Pause {
            sequence: state.get(program::PAUSE + 2 * index).saturating_sub(first),
            late_ns: state.get(program::PAUSE + 2 * index + 1),
        };
        let mut watched = SendTiming {
            could_lose: state.get(program::COULD_LOSE),
            suspects: self.suspects(first),
            pauses: (0..kept.min(PAUSES_MAX)).map(pause).collect(),
            away_ns: state.get(program::AWAY),
            steady_ns: state.get(program::STEADY),
            steady_gaps: state.get(program::STEADY_GAPS),
        };
        // The last stretch ends with the last frame.
        let (since, next) = (state.get(program::SINCE), state.get(program::NEXT));
        let span = state.get(program::LAST).saturating_sub(since);
        if span > watched.steady_ns {
            watched.steady_ns = span;
            watched.steady_gaps = next.saturating_sub(state.get(program::SINCE_NUMBER) + 1);
        }
        watched
    }

    /// Bitmap of the run's frames that may have been lost on the host. Empty unless the run is the
    /// first of its trial, because later runs are numbered differently.
    fn suspects(&self, first: u64) -> Vec<u64> {
        let frames = usize::try_from(self.maps.state.get(program::NEXT)).unwrap_or(SUSPECTS_MAX);
        let any = first == 0 && self.maps.state.get(program::COULD_LOSE) > 0;
        let words = if any { frames.min(SUSPECTS_MAX).div_ceil(64) } else { 0 };
        (0..words).map(|word| self.maps.suspects.get(word)).collect()
    }

    /// Bytes of the frames that were taken; of several lengths those refused count as the mean.
    fn bytes_taken(&self, handed_bytes: u64, handed: u64, refused: u64) -> u64 {
        let lost = u128::from(handed_bytes) * u128::from(refused) / u128::from(handed.max(1));
        handed_bytes - u64::try_from(lost).unwrap_or(handed_bytes)
    }

    fn set_load(&self, load: &FrameLoad, start: MonoTime) {
        let state = &self.maps.state;
        let next = state.get(program::NEXT);
        state.set_word(program::END, next + load.frames);
        let rate = match load.pace {
            FramePace::Flood => 0,
            FramePace::Rate { frames_per_sec } => frames_per_sec,
        };
        state.set_word(program::PACED, u64::from(rate > 0));
        let divisor = rate.max(1);
        let burst_ns = u64::from(load.burst) * 1_000_000_000;
        state.set_word(program::DUE, start.as_nanos());
        state.set_word(program::DUE_REST, 0);
        state.set_word(program::STEP, burst_ns / divisor);
        state.set_word(program::STEP_REST, burst_ns % divisor);
        state.set_word(program::DIVISOR, divisor);
        self.set_watch(load, start, next);
        state.set_word(program::BURST, load.burst.into());
        state.set_word(program::BURST_LEFT, load.burst.into());
        state.set_word(program::LATE_ABOVE, (burst_ns / divisor).max(LATE_MIN_NS));
        state.set_word(program::SPIN_BELOW, if self.batch_size(load) == 1 { SPIN_NS } else { 0 });
        for word in [program::LATE, program::WORST, program::FIRST, program::LAST] {
            state.set_word(word, 0);
        }
        let length = load.mix.len() as u64;
        state.set_word(program::MIX_AT, next % length);
        state.set_word(program::MIX_LENGTH, length);
        for (word, entries) in load.mix.chunks(8).enumerate() {
            let mut bytes = [0; 8];
            bytes[..entries.len()].copy_from_slice(entries);
            state.set_word(program::MIX + word, u64::from_ne_bytes(bytes));
        }
    }

    fn set_watch(&self, load: &FrameLoad, start: MonoTime, next: u64) {
        let state = &self.maps.state;
        let batch = if load.burst == 1 { self.batch_size(load) } else { 1 };
        let rule = WatchRule::from_load(load, batch).unwrap_or(WatchRule {
            service_ns: 0,
            room_ns: 0,
            pause_ns: u64::MAX,
        });
        state.set_word(program::MOVES_FROM, load.when_late.moves_from_ns(rule.pause_ns));
        state.set_word(program::SERVICE, rule.service_ns);
        state.set_word(program::ROOM, rule.room_ns);
        state.set_word(program::PAUSE_FROM, rule.pause_ns);
        state.set_word(program::SINCE, start.as_nanos());
        state.set_word(program::SINCE_NUMBER, next);
        let counts = [
            program::BUSY_UNTIL,
            program::AFTER,
            program::USUAL,
            program::COULD_LOSE,
            program::PAUSES,
            program::AWAY,
            program::STEADY,
            program::STEADY_GAPS,
        ];
        for word in counts {
            state.set_word(word, 0);
        }
        (0..SUSPECTS_MAX / 64).for_each(|word| self.maps.suspects.set_word(word, 0));
    }

    fn batch_size(&self, load: &FrameLoad) -> u32 {
        let by_rate = match load.pace {
            FramePace::Rate { frames_per_sec } if load.burst == 1 => {
                let fits = BATCHES.iter().find(|(rate, _)| frames_per_sec <= *rate);
                fits.map_or(64, |(_, batch)| *batch)
            }
            // A burst is to leave at once.
            FramePace::Rate { .. } => load.burst.min(64),
            FramePace::Flood => FLOOD_BATCH,
        };
        self.options.batch.unwrap_or(by_rate).clamp(1, BATCH_MAX)
    }

    fn send_load(&self, load: &FrameLoad, stop: &Stop, window: GeneratorWindow) -> Result<()> {
        let state = &self.maps.state;
        let batch = self.batch_size(load);
        let mut speed = KernelCallSpeed::new();
        loop {
            let now = clock::monotonic();
            let left = state.get(program::END).saturating_sub(state.get(program::NEXT));
            if left == 0 || stop.is_requested() || window.deadline.is_some_and(|end| now >= end) {
                return Ok(());
            }
            if state.get(program::BROKEN) > 0 {
                let source = std::io::Error::other("the frame has another length than it was made");
                return Err(Error::new(
                    "send live frames on interface",
                    self.options.ifindex,
                    source,
                ));
            }
            let due = MonoTime::from_nanos(state.get(program::DUE));
            let repeat = match load.pace {
                FramePace::Flood if window.start.is_none_or(|start| start <= now) => {
                    speed.calls_within(CALL).min(u32::try_from(left).unwrap_or(u32::MAX))
                }
                _ if due > now + SLEEP_ABOVE => {
                    sleep_before_due(now, due, window.deadline);
                    continue;
                }
                FramePace::Flood => {
                    clock::sleep_until(due);
                    continue;
                }
                FramePace::Rate { .. } => speed.calls_within(self.paced_call(load, left, due, now)),
            };
            self.program.run_live(&self.frame, LiveRun { repeat, batch })?;
            speed.update_estimate(repeat, clock::monotonic().duration_since(now));
        }
    }

    /// Target duration of the next call: up to the next frame if gaps are long, or up to the last
    /// frame at the end of the run.
    fn paced_call(&self, load: &FrameLoad, left: u64, due: MonoTime, now: MonoTime) -> Duration {
        let step = Duration::from_nanos(self.maps.state.get(program::STEP));
        let wait = due.duration_since(now);
        if step > SLEEP_ABOVE {
            return wait + AWAKE_BEFORE / 3;
        }
        let bursts = left.div_ceil(u64::from(load.burst));
        let all = step.saturating_mul(u32::try_from(bursts).unwrap_or(u32::MAX));
        (wait + all + AWAKE_BEFORE / 3).min(CALL)
    }

    fn link_counters(&mut self) -> Result<LinkCounters> {
        Ok(self.links.link_by_index(self.options.ifindex)?.counters)
    }

    /// Frames handed over that the interface did not take: what its driver counts as dropped. A
    /// veth also counts as sent what its other end has taken from the ring, the host's own frames
    /// among it, so that the larger of the two holds.
    fn refused(&mut self, handed: u64, before: LinkCounters) -> Result<u64> {
        let end = clock::monotonic() + TAKEN_WITHIN;
        loop {
            let now = self.link_counters()?;
            let dropped = now.tx_dropped - before.tx_dropped + now.tx_errors - before.tx_errors;
            if !self.is_veth {
                return Ok(dropped.min(handed));
            }
            let taken = now.tx_packets - before.tx_packets;
            if taken + dropped >= handed || clock::monotonic() >= end {
                return Ok(handed.saturating_sub(taken).max(dropped).min(handed));
            }
            clock::sleep(Duration::from_millis(1));
        }
    }

    fn check_load(&self, load: &FrameLoad) -> Result<()> {
        let templates = self.options.templates.len();
        let reason = if load.pace == (FramePace::Rate { frames_per_sec: 0 }) {
            "a rate of 0"
        } else if load.burst == 0 {
            "bursts of 0 frames"
        } else if load.mix.is_empty() || load.mix.len() > MIX_MAX {
            "a mix of no or more than 1,024 entries"
        } else if load.mix.iter().any(|index| usize::from(*index) >= templates) {
            "a mix with a template that is not there"
        } else {
            return Ok(());
        };
        Err(refusal(self.options.ifindex, reason))
    }
}

/// Sleeps until shortly before `due`, but no longer than the longest sleep.
fn sleep_before_due(now: MonoTime, due: MonoTime, deadline: Option<MonoTime>) {
    let awake = due.as_nanos().saturating_sub(u64::try_from(AWAKE_BEFORE.as_nanos()).unwrap_or(0));
    let mut until = MonoTime::from_nanos(awake).min(now + SLEEP_MAX);
    if let Some(deadline) = deadline {
        until = until.min(deadline);
    }
    clock::sleep_until(until);
}

/// Estimate of how fast the kernel calls the program, from the calls so far.
struct KernelCallSpeed {
    ns_per_call: f64,
}

impl KernelCallSpeed {
    /// Initial estimate, on the slow side.
    const GUESS_NS: f64 = 250.0;
    const CALLS_MIN: f64 = 64.0;
    const CALLS_MAX: f64 = 1_048_576.0;

    const fn new() -> Self {
        Self { ns_per_call: Self::GUESS_NS }
    }

    /// Number of calls that take about `span`.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is clamped")]
    fn calls_within(&self, span: Duration) -> u32 {
        let calls = span.as_nanos() as f64 / self.ns_per_call;
        calls.clamp(Self::CALLS_MIN, Self::CALLS_MAX) as u32
    }

    fn update_estimate(&mut self, calls: u32, span: Duration) {
        let last = (span.as_nanos() as f64 / f64::from(calls)).clamp(10.0, 10_000.0);
        self.ns_per_call = self.ns_per_call * 0.5 + last * 0.5;
    }
}

fn check_options(options: &GeneratorOptions) -> Result<()> {
    let templates = &options.templates;
    let outside = |template: &FrameTemplate| {
        let end = template.signature_at();
        let fields =
            template.varying.iter().map(|field| usize::from(field.at) + usize::from(field.width));
        let sum = template.header_sum.iter().map(|sum| usize::from(sum.at) + 2);
        let balance = template.balance_at.iter().map(|at| usize::from(*at) + 2);
        fields.chain(sum).chain(balance).any(|field_end| field_end > end)
    };
    let odd = |template: &FrameTemplate| {
        template.varying.iter().any(|field| ![2, 4].contains(&field.width))
    };
    let reason = if templates.is_empty() || templates.len() > TEMPLATES_MAX {
        "no or more than 16 templates"
    } else if options.stream > 15 {
        "a stream above 15"
    } else if templates.iter().any(|template| template.bytes.len() < 14 + SIGNATURE_BYTES) {
        "a frame without room for header and signature"
    } else if longest(templates) > 4096 {
        "a frame longer than a page"
    } else if templates.iter().any(|template| template.varying.len() > FrameTemplate::VARYING_MAX) {
        "too many varying fields"
    } else if templates.iter().any(|template| outside(template) || odd(template)) {
        "a field outside of the frame or of a strange width"
    } else {
        return Ok(());
    };
    Err(refusal(options.ifindex, reason))
}

fn refusal(ifindex: u32, reason: &str) -> Error {
    let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, reason.to_owned());
    Error::new("send live frames on interface", ifindex, source)
}
