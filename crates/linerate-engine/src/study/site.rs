//! A laboratory that stands, with linerate's own server at work on its server host.
//!
//! The kind of server comes from the program, because servers stand above engines: [`Serve`].

use std::net::IpAddr;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_core::lab::HostTcp;
use linerate_core::record::{Failure, Fault, Plan, Record, RecordStatus};
use linerate_core::study::Topology;
use linerate_sys::stop::Stop;

use crate::lab::Lab;

/// Answers tests on the host where it is called until the flag is set. Tells once whether it is
/// ready.
pub type Serve = dyn Fn(&Stop, &dyn Fn(Result<(), Failure>)) + Send + Sync;

/// How long a server may take to be ready.
const READY_WAIT: Duration = Duration::from_secs(5);

/// A topology that stands, with its server at work.
pub struct StudySite {
    pub(super) lab: Lab,
    client: String,
    /// The two ends with what their plan says about selective acknowledgements.
    sack: [(String, bool); 2],
    /// The last cell had them otherwise.
    sack_changed: bool,
    target: IpAddr,
    server: Option<JoinHandle<()>>,
    server_stop: Stop,
}

impl StudySite {
    /// Builds the laboratory; without `serve` nothing but the kernel answers there.
    /// # Errors
    /// When it cannot be built, or its server does not start.
    pub fn build_topology(
        topology: &Topology,
        serve: Option<&Arc<Serve>>,
    ) -> Result<Self, Failure> {
        let mut plan = topology.lab.clone();
        plan.name.get_or_insert_with(|| topology.id.clone());
        let lab = Lab::build_from_plan(&plan)?;
        let target = lab.address_of(&topology.server).ok_or_else(|| {
            let reason = "it has no address in its laboratory";
            Failure::new(Fault::Usage, "reach host", &topology.server, reason)
        })?;
        // A client that measures itself does so over its loopback.
        let alone = topology.client == topology.server;
        let target = if alone { IpAddr::from([127, 0, 0, 1]) } else { target };
        let mut site = Self {
            lab,
            client: topology.client.clone(),
            sack: [&topology.client, &topology.server].map(|host| {
                let plan = topology.lab.hosts.iter().find(|plan| plan.name == *host);
                (host.clone(), plan.and_then(|plan| plan.tcp.sack).unwrap_or(true))
            }),
            sack_changed: false,
            target,
            server: None,
            server_stop: Stop::new(),
        };
        if let Some(serve) = serve {
            let server = start_server(&site.lab, &topology.server, serve, &site.server_stop)?;
            site.server = Some(server);
        }
        Ok(site)
    }

    /// Record that `make` measures on the client's host by this plan, aimed at the server's.
    /// # Errors
    /// When the client's host cannot be entered.
    pub fn measure(
        &self,
        plan: &Plan,
        make: impl FnOnce(Plan) -> Record + Send,
    ) -> Result<Record, Failure> {
        let plan = aimed_at(plan, &self.target.to_string());
        Ok(held_to_plan(self.lab.run_on(&self.client, move || make(plan))?))
    }

    /// Sets selective acknowledgements at both ends for what comes next: as asked, or else as the
    /// plan of the laboratory has them. They are on where it says nothing, as Linux has them.
    pub(super) fn set_sack(&mut self, asked: Option<bool>) -> Result<(), Failure> {
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
    ready.inspect_err(|_| stop.request_stop()).map(|()| server)
}

impl Drop for StudySite {
    fn drop(&mut self) {
        self.server_stop.request_stop();
        if let Some(server) = self.server.take() {
            // A server that panicked has ended too.
            let _ = server.join();
        }
    }
}

/// A measurement over a path that was not the planned one is invalid.
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
    if let (Some(failure), RecordStatus::Ok) = (failure, record.status) {
        record.status = RecordStatus::Error;
        record.failure = Some(failure);
    }
    record
}

/// The same plan for this target.
pub(super) fn aimed_at(plan: &Plan, host: &str) -> Plan {
    let mut plan = plan.clone();
    if let Some(target) = plan.host_mut() {
        host.clone_into(target);
    }
    plan
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{EmulatedPath, RecordId, TcpPlan, Tool};
    use linerate_core::time::WallTime;

    use super::*;

    fn record(status: RecordStatus, late: bool) -> Record {
        let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
        let plan = Plan::Tcp(TcpPlan::default());
        let id = RecordId::from_parts(0, [0; 10]);
        let mut record = Record::from_plan(id, tool, plan, WallTime::from_unix_nanos(0));
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
        let late = held_to_plan(record(RecordStatus::Ok, true));
        assert_eq!(late.status, RecordStatus::Error);
        let line = late.failure.expect("it says why").to_string();
        let begin =
            "emulate path a eth0 - b eth0: forward: 9 packets were late; the run is invalid";
        assert!(line.starts_with(begin), "{line}");
        assert_eq!(held_to_plan(record(RecordStatus::Ok, false)).status, RecordStatus::Ok);
        assert_eq!(
            held_to_plan(record(RecordStatus::Interrupted, true)).status,
            RecordStatus::Interrupted
        );
    }
}
