//! `linerate path run`: holds an emulated path between two devices, shows how it goes, says what
//! it did.

use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use linerate_core::record::{Failure, Fault, PATH_SCHEMA, PathPlan, PathRun, QueueSeries};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_engine::lab::{enter_user_namespace_if_needed, inside};
use linerate_engine::path::pcap::Tap;
use linerate_engine::path::witness::{
    OnWay, PathFacts, PathSite, Site, Teller, note_queues, path_after_end, route_device,
};
use linerate_engine::path::{Counters, EmulatedEnd, Emulator, EmulatorPlan, directions};
use linerate_sys::netns::Netns;
use linerate_sys::stop::Stop;
use linerate_sys::tun::TunKind;
use linerate_sys::{child, clock};

use super::run_ends::{EndFlag, Namespace, PrefixedAddress};
use super::run_flags::Args;
use crate::command::flags::span_nanos;
use crate::command::measure;
use crate::exit::Outcome;
use crate::{output, paths};

/// Interval at which the backlog of the queues is sampled.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Between two live lines.
const SHOW_EVERY: Duration = Duration::from_millis(200);
/// Addresses of ends that nobody named: of the block for benchmarks (RFC 2544 §C.2.2).
const ADDRESSES: [&str; 2] = ["198.18.0.1/30", "198.18.0.2/30"];

/// Runs `linerate path run` by its flags.
pub(super) fn run(args: &Args) -> Outcome {
    let plan = args.path.path_plan()?;
    if plan.is_netem() {
        let reason = "netem carries links of a laboratory alone";
        return Err(Failure::new(Fault::Usage, "hold path", "emulator = \"netem\"", reason)
            .advise("omit `emulator` here, or use linerate lab")
            .into());
    }
    args.svg.as_deref().map_or(Ok(()), paths::check_writable)?;
    let ends = &args.ends.0;
    if ends.iter().all(|end| end.place == Namespace::New) {
        // Before anything that could start a thread.
        enter_user_namespace_if_needed()?;
    }
    // From here on a signal ends the path, and the summary is printed. A command has its own.
    let stop = if args.command.is_empty() { Stop::on_signals()? } else { Stop::new() };
    let netns = [ends[0].open_netns()?.map(Arc::new), ends[1].open_netns()?.map(Arc::new)];
    for netns in netns.iter().zip(ends).filter(|(_, end)| end.place == Namespace::New) {
        loopback_up(netns.0.as_deref(), &netns.1.device)?;
    }
    let facts = path_facts(args, &plan, ends);
    let emulator = start_emulator(args, &facts, &netns)?;
    let site = Arc::new(PathSite::new(facts, emulator));
    RunningPath { args, netns, site, stop }.hold_until_stop()
}

fn path_facts(args: &Args, plan: &PathPlan, ends: &[EndFlag; 2]) -> PathFacts {
    PathFacts {
        name: format!("{} - {}", ends[0].name(), ends[1].name()),
        kind: if args.tap { TunKind::Ethernet } else { TunKind::Ip },
        plan: plan.clone(),
        mtu_bytes: args.mtu.unwrap_or_else(|| plan.mtu_bytes_usual()),
    }
}

fn start_emulator(
    args: &Args,
    facts: &PathFacts,
    netns: &[Option<Arc<Netns>>; 2],
) -> Result<Emulator, Failure> {
    let given = [&args.left_address, &args.right_address];
    let any_new = args.ends.0.iter().any(|end| end.place == Namespace::New);
    let usual = any_new && given.iter().all(|addresses| addresses.is_empty());
    let end = |index: usize| {
        let usual = usual.then(|| ADDRESSES[index].parse().expect("the constant is an address"));
        let addresses = given[index].iter().copied().chain(usual);
        EmulatedEnd {
            kind: facts.kind,
            mtu_bytes: facts.mtu_bytes,
            addresses: addresses.map(|PrefixedAddress(address)| address).collect(),
            ..EmulatedEnd::new(netns[index].as_deref(), args.ends.0[index].device.clone())
        }
    };
    let directions = directions(&facts.plan, facts.mtu_bytes, &facts.name)?;
    let mut plan = EmulatorPlan::new([end(0), end(1)], directions);
    plan.memory_limit_bytes = args.memory.count();
    if !args.quiet && !args.json {
        output::print_note(&format!(
            "path {}: {}, at most {:.1} MB of memory",
            facts.name,
            facts.plan.outline(),
            plan.memory_bytes() as f64 / 1e6
        ));
    }
    Emulator::start(plan)
}

fn loopback_up(netns: Option<&Netns>, name: &str) -> Result<(), Failure> {
    inside(netns, name, linerate_engine::lab::loopback_up)?
}

/// A path that carries packets.
struct RunningPath<'a> {
    args: &'a Args,
    netns: [Option<Arc<Netns>>; 2],
    site: Arc<PathSite>,
    stop: Stop,
}

impl RunningPath<'_> {
    fn hold_until_stop(self) -> Outcome {
        let teller = self.teller()?;
        let tap = self.start_capture()?;
        let started_at = clock::wall_time();
        let (queues, code) = if self.args.command.is_empty() {
            (self.watch_queues(), 0)
        } else {
            self.watch_command()?
        };
        let captured = tap.map(Tap::finish_capture).transpose()?;
        drop(teller);
        let Self { args, site, .. } = self;
        let site = Arc::into_inner(site).expect("the teller has ended, and the threads with it");
        let (facts, emulator) = site.into_emulator();
        let report = emulator.expect("this command makes its own emulator").stop();
        let run = PathRun {
            schema: PATH_SCHEMA.to_owned(),
            tool: measure::this_tool(),
            started_at,
            ends: args.ends.0.iter().map(EndFlag::name).collect(),
            path: path_after_end(&facts, &report, queues),
            real_time: report.real_time,
            locked: report.locked,
            cpu_ns: report.cpu.map(span_nanos),
            run_queue_wait_ns: report.run_queue_wait.map(span_nanos),
            failure: report.failure,
        };
        print_report(args, &run)?;
        if let Some(dropped) = captured.map(|captured| captured.dropped).filter(|count| *count > 0)
        {
            output::print_note(&format!(
                "note: the capture misses {dropped} packets: it fell behind"
            ));
        }
        match run.failure {
            Some(failure) => Err(failure.into()),
            None => Ok(code),
        }
    }

    /// The socket at which measurements from either end get the path's record.
    fn teller(&self) -> Result<Teller, Failure> {
        let site = |end: usize| {
            let path = Arc::clone(&self.site);
            let device = self.args.ends.0[end].device.clone();
            let netns = self.netns[end].clone();
            Site {
                netns: netns.clone(),
                name: device.clone(),
                ways: Arc::new(move |target| {
                    let leaves = inside(netns.as_deref(), &device, || route_device(target));
                    let over = leaves.ok().flatten().is_some_and(|name| name == device);
                    over.then(|| OnWay::both_directions(&path, end == 1)).into_iter().collect()
                }),
            }
        };
        Teller::open_sockets(vec![site(0), site(1)])
    }

    fn start_capture(&self) -> Result<Option<Tap>, Failure> {
        let end = usize::from(self.args.pcap_right);
        let start = |file: &std::path::PathBuf| {
            paths::check_writable(file)?;
            Tap::start_capture(self.netns[end].as_deref(), &self.args.ends.0[end].device, file)
        };
        self.args.pcap.as_ref().map(start).transpose()
    }

    /// Samples the queues until the path's time is over, the user stops it, or it ends itself.
    fn watch_queues(&self) -> [QueueSeries; 2] {
        self.tell_how_to_enter();
        let begin = clock::monotonic();
        let end = self.args.time.map(|time| begin + time);
        let mut live = LiveQueueLine::new(self.args, begin);
        let mut queues = [(); 2].map(|()| QueueSeries::new(span_nanos(LOOK_EVERY)));
        loop {
            let now = clock::monotonic();
            let counters = self.site.counters();
            note_queues(&mut queues, now.nanos_since(begin), &counters);
            live.show_counters(now, counters);
            let over = end.is_some_and(|end| now >= end);
            if over || self.stop.is_requested() || !self.site.is_running() {
                live.bar.finish_and_clear();
                return queues;
            }
            clock::sleep(LOOK_EVERY);
        }
    }

    /// The same beside a command at the right end, which the path ends with.
    fn watch_command(&self) -> anyhow::Result<([QueueSeries; 2], u8)> {
        let words = &self.args.command;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| self.watch_queues());
            let right = self.netns[1].as_deref();
            let status = inside(right, &self.args.ends.0[1].device, || {
                child::run_to_end(&mut command, None)
            });
            self.stop.request_stop();
            let queues = watcher.join().unwrap_or_default();
            Ok((queues, crate::command::lab::status_code(status?)?))
        })
    }

    fn tell_how_to_enter(&self) {
        if self.args.quiet || !self.args.command.is_empty() {
            return;
        }
        let pid = std::process::id();
        let new = self.netns.iter().zip(&self.args.ends.0);
        for (netns, end) in new.filter(|(_, end)| end.place == Namespace::New) {
            let Some(netns) = netns else { continue };
            let fd = netns.as_fd().as_raw_fd();
            let device = &end.device;
            output::print_note(&format!(
                "enter the end {device} with: nsenter --net=/proc/{pid}/fd/{fd}; Ctrl-C ends the path"
            ));
        }
    }
}

fn print_report(args: &Args, run: &PathRun) -> Result<(), Failure> {
    if let Some(file) = &args.svg {
        paths::write(file, &linerate_report::emulated::queue_svg(&run.path))?;
    }
    if args.json {
        output::print_line(&linerate_core::tree::to_json_pretty(run).unwrap_or_default());
    } else {
        output::document(&linerate_report::emulated::document(run));
    }
    Ok(())
}

/// The live line, on standard error when that is a terminal.
struct LiveQueueLine {
    bar: ProgressBar,
    shown: MonoTime,
    before: Counters,
}

impl LiveQueueLine {
    fn new(args: &Args, now: MonoTime) -> Self {
        // A command has the terminal for itself: a line that redraws would cover its lines.
        let hidden = args.quiet || !args.command.is_empty();
        let target =
            if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let style = ProgressStyle::with_template("{wide_msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::with_draw_target(None, target).with_style(style);
        Self { bar, shown: now, before: Counters::default() }
    }

    fn show_counters(&mut self, now: MonoTime, counters: Counters) {
        let span = now.duration_since(self.shown);
        if span < SHOW_EVERY {
            return;
        }
        let line = |way: usize| {
            let (now, before) = (&counters[way], &self.before[way]);
            let bytes = now.delivered_bytes - before.delivered_bytes;
            let rate = bytes as f64 * 8.0 / span.as_secs_f64();
            format!(
                "{} {}, queue {} kB, lost {}",
                ["forward", "back"][way],
                BitRate::from_bits_per_sec(rate as u64),
                now.queued.bytes.div_ceil(1000),
                now.lost_packets(),
            )
        };
        let late: u64 = counters.iter().map(|way| way.late_packets).sum();
        let late = if late > 0 { format!(" | late {late}") } else { String::new() };
        self.bar.set_message(format!("{} | {}{late}", line(0), line(1)));
        (self.shown, self.before) = (now, counters);
    }
}
