//! The measurer of real studies: a laboratory for each topology, a server on its server host, and
//! the engines on its client host.

use std::sync::Arc;

use linerate_core::record::{BenchPlan, Event, Failure, Fault, Plan, Record, RecordStatus, Tool};
use linerate_core::study::{CellPlan, Topology};
use linerate_sys::clock;
use linerate_sys::stop::Stop;

use super::Measurer;
use super::site::{Serve, StudySite, aimed_at};
use crate::compare::Sites;
use crate::context::Context;
use crate::throughput;
use crate::{compare, device, examine, rtt, simulate, trace};

/// Measures the cells of a study in laboratories on this machine.
pub struct Laboratory {
    tool: Tool,
    stop: Stop,
    serve: Arc<Serve>,
    /// The server's name in the topology that was prepared last.
    server: String,
    site: Option<StudySite>,
    /// Observer of the events within a benchmark of a device.
    watch: Box<dyn FnMut(&Event)>,
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
                Plan::Tcp(plan) => throughput::run_tcp(plan, &mut context),
                Plan::Ping(plan) => rtt::run(plan, &mut context),
                Plan::Udp(plan) => throughput::run_udp(plan, &mut context),
                Plan::Simulate(plan) => simulate::run(plan, &mut context),
                Plan::Bench(plan) => device::run(plan, &device::OwnNamespace, &mut context),
                Plan::Test(plan) => examine::run(plan, &mut context, &mut |_| {}),
                Plan::Trace(plan) => trace::run(plan, &mut context),
                Plan::Compare(plan) => {
                    compare::run(plan, &Sites::default(), &mut context, &mut |_| {})
                }
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
        site.measure(&cell.plan, make)
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

impl Measurer for Laboratory {
    fn prepare(&mut self, topology: &Topology) -> Result<(), Failure> {
        self.tear_down();
        self.server.clone_from(&topology.server);
        if topology.lab.hosts.is_empty() {
            // Its interfaces are those of this host.
            return Ok(());
        }
        self.site = Some(StudySite::build_topology(topology, Some(&self.serve))?);
        Ok(())
    }

    fn measure(&mut self, cell: &CellPlan) -> Record {
        self.measured(cell).unwrap_or_else(|failure| self.unmeasured(cell, &failure))
    }

    fn unmeasured(&mut self, cell: &CellPlan, failure: &Failure) -> Record {
        let (id, now) = (clock::record_id(), clock::wall_time());
        let plan = aimed_at(&cell.plan, &self.server);
        let mut record = Record::from_plan(id, self.tool.clone(), plan, now);
        record.status = RecordStatus::Error;
        record.failure = Some(failure.clone());
        record
    }

    fn tear_down(&mut self) {
        self.site = None;
    }
}
