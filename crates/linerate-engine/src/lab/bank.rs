//! Measures the settings of a bank: a laboratory for each, what spoils its hosts, rivals on its
//! path, and the test that a user would run.

use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use linerate_core::lab::bank::{HostCommand, Place, Rival, Setting};
use linerate_core::record::{
    Failure, Fault, Finish, Plan, Record, ServerPlan, TcpDirections, TcpPlan, TcpTest, Tool,
};
use linerate_sys::cgroup::CpuQuota;
use linerate_sys::sched::Pinned;
use linerate_sys::stop::Stop;
use linerate_sys::{child, clock};

use super::{Lab, system};
use crate::context::Context;
use crate::examine;
use crate::failure;
use crate::study::{Serve, start_server};
use crate::throughput;

/// Longest span of a rival's flow: it is stopped with the test.
const RIVAL_SPAN: Duration = Duration::from_secs(600);
/// How long rivals are at work before the test.
const RIVALS_AHEAD: Duration = Duration::from_secs(3);

/// Measures the settings of a bank, each in a laboratory of its own.
pub struct Bank {
    tool: Tool,
    stop: Stop,
    serve: Arc<Serve>,
}

impl std::fmt::Debug for Bank {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bank").finish_non_exhaustive()
    }
}

impl Bank {
    /// A bank whose receivers answer with `serve`; `stop` ends the measurement under way.
    pub fn new(tool: Tool, stop: Stop, serve: Arc<Serve>) -> Self {
        Self { tool, stop, serve }
    }

    /// Builds a setting, measures by the plan that is made for the receiver's address, and takes
    /// the setting down.
    /// # Errors
    /// When the setting cannot be built: not when the test fails, of which the record tells.
    pub fn measure(
        &self,
        setting: &Setting,
        plan: impl FnOnce(&str) -> Plan,
    ) -> Result<Record, Failure> {
        let lab = Lab::build_from_plan(&setting.lab_plan())?;
        for command in &setting.commands {
            lab.run_on(command.on.node_name(), || run_command(command))??;
        }
        let receiver = Place::Receiver.node_name();
        let target = address(&lab, receiver)?;
        let plan = plan(&target.to_string());
        let sender_quota = cpu_quota(setting, Place::Sender)?;
        let receiver_quota = cpu_quota(setting, Place::Receiver)?;
        let server = Helper::start_server(&lab, receiver, &self.serve, receiver_quota)?;
        let rivals = self.start_rivals(&lab, &setting.rivals)?;
        let busy = start_busy_threads(setting);
        let (tool, stop) = (self.tool.clone(), self.stop.clone());
        let record = lab.run_on(Place::Sender.node_name(), move || {
            if let Some(quota) = &sender_quota {
                quota.enter_group().map_err(|error| failure::system(&error))?;
            }
            let mut context = Context { tool, stop, watch: &mut |_| {} };
            Ok(match &plan {
                Plan::Test(plan) => examine::run(plan, &mut context, &mut |_| {}),
                Plan::Tcp(plan) => throughput::run_tcp(plan, &mut context),
                _ => return Err(system("measure", "the bank", "a test of another kind")),
            })
        });
        drop((busy, rivals, server));
        record?
    }

    fn start_rivals(&self, lab: &Lab, rivals: &[Rival]) -> Result<Vec<Helper>, Failure> {
        let mut helpers = Vec::new();
        if rivals.is_empty() {
            return Ok(helpers);
        }
        helpers.push(Helper::start_server(lab, "d", &self.serve, None)?);
        let target = address(lab, "d")?;
        for rival in rivals {
            let plan = rival_plan(rival, &target.to_string());
            let (tool, stop, pause) = (self.tool.clone(), Stop::new(), rival.on_s);
            let own = stop.clone();
            let thread = lab.spawn_on("c", move || {
                while !own.is_requested() {
                    let (tool, stop) = (tool.clone(), own.clone());
                    throughput::run_tcp(&plan, &mut Context { tool, stop, watch: &mut |_| {} });
                    if let Some(seconds) = pause {
                        clock::sleep(Duration::from_secs_f64(seconds));
                    }
                }
            })?;
            helpers.push(Helper { stop, thread: Some(thread) });
        }
        // Dropped in order: a server that is asked to stop first waits for the flows.
        helpers.reverse();
        clock::sleep(RIVALS_AHEAD);
        Ok(helpers)
    }
}

/// A thread that works beside the test until it is dropped.
struct Helper {
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Helper {
    /// A server on a host, within a quota of the CPU where there is one.
    fn start_server(
        lab: &Lab,
        host: &str,
        serve: &Arc<Serve>,
        quota: Option<CpuQuota>,
    ) -> Result<Self, Failure> {
        let (stop, serve) = (Stop::new(), Arc::clone(serve));
        let within: Arc<Serve> = Arc::new(move |stop: &Stop, ready: &dyn Fn(_)| {
            match quota.as_ref().map_or(Ok(()), CpuQuota::enter_group) {
                Ok(()) => serve(stop, ready),
                Err(error) => ready(Err(failure::system(&error))),
            }
        });
        let thread = start_server(lab, host, &within, &stop)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.stop.request_stop();
        if let Some(thread) = self.thread.take() {
            // One that panicked has ended too.
            let _ = thread.join();
        }
    }
}

fn address(lab: &Lab, host: &str) -> Result<IpAddr, Failure> {
    let address = lab.address_of(host);
    address.ok_or_else(|| system("reach host", host, "it has no address"))
}

fn cpu_quota(setting: &Setting, on: Place) -> Result<Option<CpuQuota>, Failure> {
    let share = setting.cpu.iter().find(|share| share.on == on);
    let percent = share.and_then(|share| share.quota_percent);
    let quota = percent.map(|percent| CpuQuota::new(percent / 100.0)).transpose();
    quota.map_err(|error| failure::system(&error))
}

/// Threads that keep the CPU of the test's data threads busy.
fn start_busy_threads(setting: &Setting) -> Vec<Helper> {
    let count: u32 = setting.cpu.iter().map(|share| share.busy_threads).sum();
    let start = |_| {
        let stop = Stop::new();
        let own = stop.clone();
        let thread = thread::Builder::new().name("busy".to_owned()).spawn(move || {
            let _pinned = Pinned::on_cpu(linerate_core::lab::bank::BUSY_CPU);
            while !own.is_requested() {
                std::hint::spin_loop();
            }
        });
        Helper { stop, thread: thread.ok() }
    };
    (0..count).map(start).collect()
}

fn rival_plan(rival: &Rival, host: &str) -> TcpPlan {
    let span = rival.on_s.map_or(RIVAL_SPAN, Duration::from_secs_f64);
    let port = linerate_core::record::DEFAULT_PORT;
    let directions = if rival.backward { TcpDirections::Down } else { TcpDirections::Up };
    TcpPlan {
        server: ServerPlan::new(None, host.to_owned(), port),
        test: TcpTest {
            directions,
            streams: rival.streams,
            finish: Finish::TimeNs(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)),
            congestion_control: Some(rival.congestion.clone()),
            ..TcpTest::default()
        },
        fast: false,
    }
}

/// Runs a command of the shell in the calling thread's namespace.
fn run_command(command: &HostCommand) -> Result<(), Failure> {
    let node = command.on.node_name();
    let failed = |reason: &str| {
        Failure::new(Fault::System, "run on", node, format!("`{}`: {reason}", command.run))
            .advise("the scenario is left out; it needs that program or part of the kernel")
    };
    let mut shell = Command::new("/bin/sh");
    let path = std::env::var("PATH").unwrap_or_default();
    shell.args(["-c", &command.run]).env("PATH", format!("{path}:/usr/sbin:/sbin"));
    shell.stdin(Stdio::null());
    let output = child::die_with_parent(&mut shell).output();
    let output = output.map_err(|error| failed(&error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(failed(text.lines().next().unwrap_or("it failed without a message")))
}
