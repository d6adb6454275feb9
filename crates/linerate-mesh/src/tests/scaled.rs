//! NATS and PostgreSQL, from their packages.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use async_nats::jetstream;
use linerate_store::{Day, HubPlace};
use linerate_sys::stop::Stop;

use super::super::address::HubAddress;
use super::super::bus::{AgentBus, HubBus, connected};
use super::super::{Authority, Hub, SigningKey};
use super::agent::{TestAgent, plan_is};
use super::day::{ago, run};
use super::started::{Nats, Postgres};
use super::{World, begin_s, holds, now_s};

pub(super) struct Scaled {
    directory: tempfile::TempDir,
    nats: Nats,
    pub(super) postgres: Postgres,
    running: Option<(Arc<Hub>, Stop, JoinHandle<()>)>,
}

impl Scaled {
    pub(super) fn new(sync: bool) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let key = SigningKey::create_key_file(&directory.path().join("key")).expect("a key");
        plan_is(directory.path(), &key, 1);
        let postgres = Postgres::start(sync);
        postgres.sql("postgres", "CREATE DATABASE mesh");
        Self { directory, nats: Nats::start(), postgres, running: None }
    }

    /// Where a hub finds the broker.
    pub(super) fn bus(&self) -> String {
        self.nats.url("hub")
    }

    fn hub_address(&self) -> HubAddress {
        self.bus().parse().expect("an address")
    }
}

fn authority() -> Option<Authority> {
    Some(Authority::read(Some(&Nats::authority())).expect("an authority"))
}

impl World for Scaled {
    fn directory(&self) -> &Path {
        self.directory.path()
    }

    fn address(&self) -> HubAddress {
        self.nats.url("agent").parse().expect("an address")
    }

    fn authority(&self) -> Option<Authority> {
        authority()
    }

    fn place(&self) -> HubPlace {
        HubPlace::parse(&self.postgres.url("mesh")).expect("an address")
    }

    fn start(&mut self) {
        let plan = self.directory.path().join("plan.toml");
        let hub = Arc::new(Hub::from_plan_file(&plan, None, &self.place()).expect("a hub"));
        let connected =
            HubBus::connect(Arc::clone(&hub), &self.hub_address(), authority().as_ref());
        let (bus, said) = connected.expect("a bus");
        // Of the package of Debian 12: 2.9.
        assert!(said.is_none_or(|say| say.contains("disk")));
        let stop = Stop::new();
        let until = stop.clone();
        let run = move || bus.run(&until).expect("it may hear its agents");
        self.running = Some((hub, stop, std::thread::spawn(run)));
    }

    fn stop(&mut self) {
        if let Some((_, stop, running)) = self.running.take() {
            stop.request_stop();
            running.join().expect("the hub ends");
        }
    }

    fn hub(&self) -> &Hub {
        &self.running.as_ref().expect("started").0
    }

    /// Purges the stream behind the hub's back, and kills the broker.
    fn forgets(&mut self) {
        let (runtime, client) = connected(&self.hub_address(), authority().as_ref());
        let purged = runtime.block_on(async {
            let stream = jetstream::new(client).get_stream("LR-m").await.expect("a stream");
            stream.purge().await.expect("it may be purged").purged
        });
        assert!(purged > 0, "the broker had the results");
        self.nats.kill();
        self.nats.again();
    }

    fn backs_up(&mut self) {
        self.postgres.sql("postgres", "CREATE DATABASE copy TEMPLATE mesh");
    }

    fn restores(&mut self) {
        self.postgres.sql("postgres", "DROP DATABASE mesh WITH (FORCE)");
        self.postgres.sql("postgres", "CREATE DATABASE mesh TEMPLATE copy");
    }
}

impl Drop for Scaled {
    fn drop(&mut self) {
        self.stop();
    }
}

#[test]
fn nats_with_postgresql_holds_to_it() {
    let mut world = Scaled::new(false);
    world.start();
    partitions_by_day(&mut world);
    a_key_is_no_secret(&world);
    a_day_goes_as_a_partition(&world);
    holds(&mut world);
}

/// The key that everybody sees on the bus lets nobody in over HTTP.
fn a_key_is_no_secret(world: &Scaled) {
    let agent = TestAgent::joins(world, "p");
    let key = AgentBus::connect(&world.address(), authority().as_ref(), &agent.talk.me.secret);
    let key = key.expect("a connection").public();
    let hub = world.hub();
    assert_eq!(hub.agent_with_key(&key), Ok("p".to_owned()));
    for login in [key.clone(), format!("ed25519 {key}"), agent.talk.me.secret.clone()] {
        assert!(hub.agent_of(&login).is_err(), "{login}");
    }
}

/// A day that one mesh has alone leaves with its partition; one that others share leaves it to
/// them.
fn a_day_goes_as_a_partition(world: &Scaled) {
    let (mut store, day) = (world.store(), ago(5));
    let partition = format!("mesh_result_{}", day.date().replace('-', ""));
    let is_there = || {
        let sql = format!("SELECT to_regclass('{partition}') IS NOT NULL");
        world.postgres.sql("mesh", &sql) == "t"
    };
    for mesh in ["v", "w"] {
        let kept = store.keep_runs(mesh, &[run("a", "rate/b", day.span_seconds().0)]);
        assert_eq!(kept, Ok(vec![true]));
    }
    assert_eq!((store.day_goes("v", &day, 1), is_there()), (Ok(()), true));
    assert_eq!((store.day_goes("w", &day, 1), is_there()), (Ok(()), false));
    // A day that has none of its own.
    let far =
        Day::from_date_text("2001-02-03", linerate_sys::clock::wall_time()).expect("it is over");
    assert_eq!(store.keep_runs("v", &[run("a", "rate/b", far.span_seconds().0)]), Ok(vec![true]));
    let others = || world.postgres.sql("mesh", "SELECT count(*) FROM mesh_result_other");
    let before: u64 = others().parse().expect("a number");
    assert_eq!(store.day_goes("v", &far, 1), Ok(()));
    assert_eq!(others(), (before - 1).to_string());
}

/// Days near today have a partition each; any other day is kept with others.
fn partitions_by_day(world: &mut Scaled) {
    let mut agent = TestAgent::joins(world, "o");
    for start_s in [begin_s(), begin_s() - 86_400] {
        agent.measured(start_s, 1e6);
    }
    agent.gives();
    // A hub takes none of these; a store of before may have them.
    let far = [86_400, now_s() + 30 * 86_400].map(|start_s| run("o", "delay/z", start_s));
    assert_eq!(world.store().keep_runs("m", &far), Ok(vec![true, true]));
    assert_eq!(World::runs(world, "o").len(), 4);
    let others = "SELECT count(*) FROM mesh_result_other";
    assert_eq!(world.postgres.sql("mesh", others), "2");
    let parts = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'mesh_result'::regclass";
    let parts: usize = world.postgres.sql("mesh", parts).parse().expect("a number");
    assert!((3..=4).contains(&parts), "yesterday, today, perhaps two of them, and others: {parts}");
    assert_eq!(world.postgres.sql("mesh", "SELECT version FROM mesh_version"), "3");
}

/// A password goes to the host that a certificate names, and to no other.
#[test]
fn a_database_of_another_host_is_reached_by_tls() {
    let postgres = Postgres::start_secure();
    postgres.sql("postgres", "CREATE ROLE hub LOGIN PASSWORD 'secret'");
    postgres.sql("postgres", "CREATE DATABASE mesh OWNER hub");
    let root = Nats::authority().display().to_string().replace('/', "%2F");
    let open = |host: &str, options: &str| {
        let place = format!("postgresql://hub:secret@{host}:{}/mesh?{options}", postgres.port());
        let place = HubPlace::parse(&place).expect("an address");
        place.open_store().map_err(|error| error.to_string())
    };
    // With the proof that is good for this connection alone.
    let options = format!("sslmode=verify-full&sslrootcert={root}&channel_binding=require");
    let mut store = open("localhost", &options).expect("it is reached");
    assert_eq!(store.plan_names(), Ok(Vec::new()));
    let how = "SELECT version FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
               WHERE usename = 'hub'";
    assert_eq!(postgres.sql("mesh", how), "TLSv1.3");
    let refused = |host: &str, options: &str, part: &str| match open(host, options) {
        Ok(_) => panic!("{host} {options}: it is reached"),
        Err(said) => assert!(said.contains(part) && !said.contains("secret"), "{said}"),
    };
    // The certificate is of another name, or of nobody who is known here.
    let other = format!("{options}&hostaddr=127.0.0.1");
    refused("other.example", &other, "name the host as its certificate does");
    refused("localhost", "sslmode=verify-full", "sslrootcert=FILE");
    refused("localhost", "sslmode=disable", "no encryption");
}
