//! The measurer of real studies: a laboratory for each topology, a server on its server host, and
//! the engines on its client host.
//!
//! What the server is comes from the program, because servers stand above engines: [`Serve`].

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_core::lab::HostTcp;
use linerate_core::record::{BenchPlan, Event, Failure, Fault, Plan, Record, Status, Tool};
use linerate_core::study::{CellPlan, Topology};
use linerate_sys::clock;
use linerate_sys::stop::Stop;

use super::Measurer;
use crate::context::Context;
use crate::flow::{tcp, udp};
use crate::lab::Lab;
use crate::{compare, device, examine, rtt, simulate, trace};

/// Answers tests on the host where it is called until the flag is set. Tells once whether it is
/// ready.
pub type Serve = dyn Fn(&Stop, &dyn Fn(Result<(), Failure>)) + Send + Sync;

/// How long a server may take to be ready.
const READY_WAIT: Duration = Duration::from_secs(5);

/// Measures the cells of a study in laboratories on this machine.
pub struct Laboratory {
    tool: Tool,
    stop: Stop,
    serve: Arc<Serve>,
    /// The server's name in the topology that was prepared last.
    server: String,
    site: Option<Site>,
    /// Told of what happens within a benchmark of a device.
    watch: Box<dyn FnMut(&Event)>,
}

/// A topology that stands, with its server at work.
struct Site {
    lab: Lab,
    client: String,
    /// The two ends with what their plan says about selective acknowledgements.
    sack: [(String, bool); 2],
    /// The last cell had them otherwise.
    sack_changed: bool,
    target: IpAddr,
    server: Option<JoinHandle<()>>,
    server_stop: Stop,
}

impl Laboratory {
    /// A measurer that has built nothing yet. `stop` ends the measurement under way.
    pub fn new(tool: Tool, stop: Stop, serve: Arc<Serve>) -> Self {
        Self { tool, stop, serve, server: String::new(), site: None, watch: Box::new(|_| {}) }
    }

    /// The same, which tells `watch` of every step and trial of a benchmark of a device.
    #[must_use]
    pub fn watched(self, watch: impl FnMut(&Event) + 'static) -> Self {
        Self { watch: Box::new(watch), ..self }
    }

    fn measured(&mut self, cell: &CellPlan) -> Result<Record, Failure> {
        let (tool, stop) = (self.tool.clone(), self.stop.clone());
        let make = |plan: Plan| {
            let mut context = Context { tool, stop, watch: &mut |_| {} };
            match &plan {
                Plan::Tcp(plan) => tcp::run(plan, &mut context),
                Plan::Ping(plan) => rtt::run(plan, &mut context),
                Plan::Udp(plan) => udp::run(plan, &mut context),
                Plan::Simulate(plan) => simulate::run(plan, &mut context),
                Plan::Bench(plan) => device::run(plan, &device::OwnNamespace, &mut context),
                Plan::Test(plan) => examine::run(plan, &mut context, &mut |_| {}),
                Plan::Trace(plan) => trace::run(plan, &mut context),
                Plan::Compare(plan) => compare::run(plan, &mut context, &mut |_| {}),
            }
        };
        if let Plan::Bench(plan) = &cell.plan {
            return self.benchmarked(cell, plan);
        }
        if !cell.plan.is_live() {
            return Ok(make(cell.plan.clone()));
        }
        let site = self.site.as_mut().ok_or_else(|| nothing_stands(cell))?;
        site.set_sack(cell.sack)?;
        let plan = aimed_at(&cell.plan, &site.target.to_string());
        let record = site.lab.run_on(&site.client, move || make(plan))?;
        Ok(held_to_plan(record))
    }
}

impl Laboratory {
    /// A benchmark of a device between hosts of the laboratory, or between interfaces of this host.
    fn benchmarked(&mut self, cell: &CellPlan, plan: &BenchPlan) -> Result<Record, Failure> {
        let (tool, stop) = (self.tool.clone(), self.stop.clone());
        let mut context = Context { tool, stop, watch: &mut *self.watch };
        if plan.ports.iter().all(|port| port.host.is_none()) {
            return Ok(device::run(plan, &device::OwnNamespace, &mut context));
        }
        let site = self.site.as_ref().ok_or_else(|| nothing_stands(cell))?;
        Ok(device::run(plan, &site.lab, &mut context))
    }
}

fn nothing_stands(cell: &CellPlan) -> Failure {
    Failure::new(Fault::System, "measure", &cell.cell.topology, "no virtual network was built")
}

/// What was measured over a path that was not the planned one is invalid.
fn held_to_plan(mut record: Record) -> Record {
    let late = record.paths.iter().find(|path| path.late);
    let failure = late.map(|path| {
        let stolen = path.stolen_ratio.map_or_else(String::new, |ratio| {
            format!("; the hypervisor took {:.1} % of this machine's CPU time", ratio * 100.0)
        });
        let why = path.faults.join("; ") + &stolen;
        Failure::new(Fault::Instrument, "emulate path", &path.name, why)
            .advise("the run is invalid: leave the emulator a CPU, and repeat")
    });
    if let (Some(failure), Status::Ok) = (failure, record.status) {
        record.status = Status::Error;
        record.failure = Some(failure);
    }
    record
}

/// The same plan for this target.
fn aimed_at(plan: &Plan, host: &str) -> Plan {
    let mut plan = plan.clone();
    if let Some(target) = plan.host_mut() {
        host.clone_into(target);
    }
    plan
}

impl Measurer for Laboratory {
    fn prepare(&mut self, topology: &Topology) -> Result<(), Failure> {
        self.clear();
        self.server.clone_from(&topology.server);
        if topology.lab.hosts.is_empty() {
            // Its interfaces are those of this host.
            return Ok(());
        }
        self.site = Some(Site::build(topology, &self.serve)?);
        Ok(())
    }

    fn measure(&mut self, cell: &CellPlan) -> Record {
        self.measured(cell).unwrap_or_else(|failure| self.unmeasured(cell, &failure))
    }

    fn unmeasured(&mut self, cell: &CellPlan, failure: &Failure) -> Record {
        let (id, now) = (clock::record_id(), clock::wall());
        let plan = aimed_at(&cell.plan, &self.server);
        let mut record = Record::begin(id, self.tool.clone(), plan, now);
        record.status = Status::Error;
        record.failure = Some(failure.clone());
        record
    }

    fn clear(&mut self) {
        self.site = None;
    }
}

impl Site {
    fn build(topology: &Topology, serve: &Arc<Serve>) -> Result<Self, Failure> {
        let mut plan = topology.lab.clone();
        plan.name.get_or_insert_with(|| topology.id.clone());
        let lab = Lab::build(&plan)?;
        let target = lab.address_of(&topology.server).ok_or_else(|| {
            let reason = "it has no address in its laboratory";
            Failure::new(Fault::Usage, "reach host", &topology.server, reason)
        })?;
        // A client that measures itself does so over its loopback.
        let alone = topology.client == topology.server;
        let target = if alone { IpAddr::from([127, 0, 0, 1]) } else { target };
        let server_stop = Stop::new();
        let server = start_server(&lab, &topology.server, serve, &server_stop)?;
        Ok(Self {
            lab,
            client: topology.client.clone(),
            sack: [&topology.client, &topology.server].map(|host| {
                let plan = topology.lab.hosts.iter().find(|plan| plan.name == *host);
                (host.clone(), plan.and_then(|plan| plan.tcp.sack).unwrap_or(true))
            }),
            sack_changed: false,
            target,
            server: Some(server),
            server_stop,
        })
    }

    /// Sets selective acknowledgements at both ends for what comes next: as asked, or else as the
    /// plan of the laboratory has them. They are on where it says nothing, as Linux has them.
    fn set_sack(&mut self, asked: Option<bool>) -> Result<(), Failure> {
        if asked.is_none() && !self.sack_changed {
            return Ok(());
        }
        self.sack_changed = asked.is_some();
        self.sack.iter().try_for_each(|(host, planned)| {
            let sack = Some(asked.unwrap_or(*planned));
            self.lab.set_tcp(host, &HostTcp { sack, ..HostTcp::default() })
        })
    }
}

/// Starts a server on a host of a laboratory and waits until it is ready.
pub(crate) fn start_server(
    lab: &Lab,
    host: &str,
    serve: &Arc<Serve>,
    stop: &Stop,
) -> Result<JoinHandle<()>, Failure> {
    let (tell, told) = mpsc::channel();
    let (serve, own) = (Arc::clone(serve), stop.clone());
    let server = lab.spawn_on(host, move || {
        serve(&own, &|outcome| {
            // Nobody listens any more once the wait is over.
            let _ = tell.send(outcome);
        });
    })?;
    let ready = told.recv_timeout(READY_WAIT).unwrap_or_else(|error| {
        let reason = match error {
            mpsc::RecvTimeoutError::Timeout => "it was not ready after 5 s",
            mpsc::RecvTimeoutError::Disconnected => "it ended before it was ready",
        };
        Err(Failure::new(Fault::System, "start server on", host, reason))
    });
    ready.inspect_err(|_| stop.ask()).map(|()| server)
}

impl Drop for Site {
    fn drop(&mut self) {
        self.server_stop.ask();
        if let Some(server) = self.server.take() {
            // A server that panicked has ended too.
            let _ = server.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{EmulatedPath, RecordId, TcpPlan};
    use linerate_core::time::WallTime;

    use super::*;

    fn record(status: Status, late: bool) -> Record {
        let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
        let plan = Plan::Tcp(TcpPlan::default());
        let id = RecordId::from_parts(0, [0; 10]);
        let mut record = Record::begin(id, tool, plan, WallTime::from_unix_nanos(0));
        record.status = status;
        record.paths = vec![EmulatedPath {
            name: "a eth0 - b eth0".to_owned(),
            late,
            faults: vec!["forward: 9 packets were late".to_owned()],
            ..EmulatedPath::default()
        }];
        record
    }

    #[test]
    fn a_run_over_a_path_that_fell_behind_is_invalid_and_says_why() {
        let late = held_to_plan(record(Status::Ok, true));
        assert_eq!(late.status, Status::Error);
        let line = late.failure.expect("it says why").to_string();
        let begin =
            "emulate path a eth0 - b eth0: forward: 9 packets were late; the run is invalid";
        assert!(line.starts_with(begin), "{line}");
        assert_eq!(held_to_plan(record(Status::Ok, false)).status, Status::Ok);
        assert_eq!(held_to_plan(record(Status::Interrupted, true)).status, Status::Interrupted);
    }
}
