//! `linerate serve --mesh`: the hub of a mesh, where it keeps what it knows, how it hears agents.

use std::path::PathBuf;

#[cfg(feature = "web")]
pub(super) use at_work::Mesh;

/// Flags of a hub.
#[derive(Debug, clap::Args)]
pub(super) struct MeshFlags {
    /// Be the hub of the mesh of this plan, signed by linerate mesh sign; SIGHUP reads it again
    #[arg(long, value_name = "PLAN", conflicts_with_all = ["no_web", "no_save"])]
    pub(super) mesh: Option<PathBuf>,
    /// Look for changes in that mesh, and hand alerts on, as this file says; SIGHUP reads it again
    #[arg(long, value_name = "FILE", requires = "mesh")]
    mesh_rules: Option<PathBuf>,
    /// Keep the mesh in a database of PostgreSQL, postgresql://[USER@]HOST/DATABASE, not in --store
    #[arg(
        long,
        value_name = "URL",
        requires = "mesh",
        env = "LINERATE_MESH_STORE",
        hide_env_values = true
    )]
    mesh_store: Option<String>,
    /// Hear agents by way of a broker of NATS, too: tls://[USER:PASSWORD@]HOST[:PORT] or nats://...
    #[arg(
        long,
        value_name = "URL",
        requires = "mesh",
        env = "LINERATE_MESH_BUS",
        hide_env_values = true
    )]
    mesh_bus: Option<String>,
    /// Believe the broker's certificate by the authority in this file (PEM) [default: this host's]
    #[arg(long, value_name = "FILE", requires = "mesh_bus")]
    mesh_ca: Option<PathBuf>,
}

#[cfg(feature = "web")]
mod at_work {
    use std::path::Path;
    use std::sync::Arc;
    #[cfg(feature = "scale")]
    use std::sync::Mutex;

    use linerate_core::record::{Failure, Fault};
    #[cfg(feature = "scale")]
    use linerate_mesh::{Authority, HubBus};
    use linerate_mesh::{Hub, HubAddress};
    use linerate_server::listen::MeasurementServer;
    use linerate_store::{HubPlace, default_path};
    use linerate_sys::stop::Stop;

    use super::MeshFlags;
    use crate::output;

    /// A hub at work.
    pub(crate) struct Mesh {
        pub(crate) hub: Arc<Hub>,
        #[cfg(feature = "scale")]
        bus: Mutex<Option<HubBus>>,
    }

    impl Mesh {
        /// Is the hub of a mesh, where there is a plan of one.
        pub(crate) fn open_hub(
            server: &mut MeasurementServer,
            flags: &MeshFlags,
            store: Option<&Path>,
        ) -> Result<Option<Self>, Failure> {
            let Some(plan) = &flags.mesh else { return Ok(None) };
            let broker = flags.mesh_bus.as_deref().map(broker).transpose()?;
            let place = match &flags.mesh_store {
                Some(text) => database(text)?,
                None => {
                    HubPlace::File(store.map_or_else(default_path, |path| Ok(path.to_owned()))?)
                }
            };
            let hub = Arc::new(Hub::from_plan_file(plan, flags.mesh_rules.as_deref(), &place)?);
            server.serve_mesh(Arc::clone(&hub));
            let (mesh, revision, agents) = hub.plan_summary();
            output::print_note(&format!(
                "linerate: hub of mesh {mesh}, {agents} agents, plan of revision {revision}"
            ));
            #[cfg(not(feature = "scale"))]
            {
                debug_assert!(broker.is_none(), "an address of a broker is refused without it");
                Ok(Some(Self { hub }))
            }
            #[cfg(feature = "scale")]
            {
                let connect = |address: HubAddress| connect(&hub, flags, &address);
                let bus = Mutex::new(broker.map(connect).transpose()?);
                Ok(Some(Self { hub, bus }))
            }
        }

        /// Does what a hub does beside answering HTTP, until it is asked to stop.
        pub(crate) fn spawn_workers<'scope>(
            &'scope self,
            scope: &'scope std::thread::Scope<'scope, '_>,
            stop: &'scope Stop,
        ) {
            scope.spawn(|| linerate_mesh::watch_mesh(&self.hub, stop));
            #[cfg(feature = "scale")]
            scope.spawn(|| self.listen_to_broker(stop));
        }

        /// Hears agents by way of the broker, where there is one.
        #[cfg(feature = "scale")]
        fn listen_to_broker(&self, stop: &Stop) {
            let bus = self.bus.lock().map_or(None, |mut bus| bus.take());
            if let Some(Err(failure)) = bus.map(|bus| bus.run(stop)) {
                tracing::error!("agents are not heard by way of the broker: {failure}");
            }
        }

        /// A plan that cannot be served changes nothing.
        pub(crate) fn read_plan_again(&self) {
            match self.hub.reload() {
                Ok(revision) => tracing::info!("the plan was read again: revision {revision}"),
                Err(failure) => tracing::error!("the plan stays as it was: {failure}"),
            }
        }
    }

    fn database(text: &str) -> Result<HubPlace, Failure> {
        let failed =
            |reason: String| Failure::new(Fault::Usage, "keep the mesh in", "--mesh-store", reason);
        match HubPlace::parse(text).map_err(failed)? {
            HubPlace::File(_) => Err(failed(
                "a database is postgresql://[USER@]HOST/DATABASE; --store names a file".to_owned(),
            )),
            #[cfg(feature = "scale")]
            place => Ok(place),
        }
    }

    fn broker(text: &str) -> Result<HubAddress, Failure> {
        let failed =
            |reason: String| Failure::new(Fault::Usage, "hear agents by", "--mesh-bus", reason);
        let address: HubAddress = text.parse().map_err(failed)?;
        if address.is_broker() {
            return Ok(address);
        }
        Err(failed("a broker is tls://[USER:PASSWORD@]HOST[:PORT] or nats://...".to_owned()))
    }

    #[cfg(feature = "scale")]
    fn connect(hub: &Arc<Hub>, flags: &MeshFlags, address: &HubAddress) -> Result<HubBus, Failure> {
        let secure = address.is_secure();
        let authority = secure.then(|| Authority::read(flags.mesh_ca.as_deref())).transpose()?;
        let (bus, said) = HubBus::connect(Arc::clone(hub), address, authority.as_ref())?;
        output::print_note(&format!("linerate: agents join by way of {address}"));
        said.iter().for_each(|line| output::print_note(&format!("linerate: {line}")));
        Ok(bus)
    }
}
