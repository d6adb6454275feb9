//! Ten thousand agents that join at once: by `bench/mesh_ingest`, for it says something on a quiet
//! machine alone.
//!
//! Each does what an agent does first: it connects, joins by its token, beats, and asks for the
//! plan, which names all of them. They are threads of this process; the hub is the program
//! `LINERATE`, so that its time is its own.

use std::cell::Cell;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use linerate_core::mesh::SignedPlan;
use linerate_sys::clock::monotonic;

use super::super::address::HubAddress;
use super::super::client::{HubClient, NoAnswer};
use super::super::{Authority, JoinToken, SigningKey, signed};
use super::agent::{plan_reads, retried, stranger};
use super::embedded::Embedded;
use super::load::cpu_s;
use super::scaled::Scaled;
use super::started::Nats;
use super::{World, beat, now_s};

/// Agents that join, and within what.
const AGENTS: usize = 10_000;
const WITHIN: Duration = Duration::from_secs(60);
/// Agents that are on their way at a time: beyond them they wait as the network would have them.
const AT_ONCE: usize = 64;

#[test]
#[ignore = "bench/mesh_ingest runs it"]
fn ten_thousand_agents_join_over_nats() {
    let world = Scaled::new(true);
    let tokens = tokens(&world);
    let authority = Nats::authority().display().to_string();
    let (place, bus) = (world.postgres.url("mesh"), world.bus());
    let more = ["--mesh-ca", &authority, "--mesh-store", &place, "--mesh-bus", &bus];
    let hub = Hub::begin(&world, &more);
    hub.is_joined(&world, &tokens, &["nats-server", "postgres"]);
}

#[test]
#[ignore = "bench/mesh_ingest runs it"]
fn ten_thousand_agents_join_over_http() {
    let mut world = Embedded::new(|_, _| unreachable!("the program is the hub"));
    let tokens = tokens(&world);
    let free = TcpListener::bind(world.local).and_then(|it| it.local_addr());
    world.local = free.expect("a free port");
    let port = world.local.port().to_string();
    let store = world.directory().join("hub.db").display().to_string();
    let hub = Hub::begin(&world, &["-p", &port, "--store", &store]);
    hub.is_joined(&world, &tokens, &[]);
}

/// Signs a plan of so many agents, and draws a token for each.
fn tokens(world: &dyn World) -> Vec<JoinToken> {
    let agents: String = (0..AGENTS)
        .map(|n| {
            let address = format!("10.0.{}.{}", n / 250, n % 250 + 1);
            format!("[[agent]]\nname = \"n{n}\"\naddress = \"{address}\"\n")
        })
        .collect();
    let key = SigningKey::read(&world.directory().join("key")).expect("a key");
    let group: Vec<String> = (0..50).map(|n| format!("\"n{n}\"")).collect();
    let rest = format!(
        "[[group]]\nname = \"g\"\nagents = [{}]\n[[task]]\nname = \"delay\"\ngroup = \"g\"\n\
         run = \"ping {{to}}\"\nevery = \"1h\"\ntakes = \"9s\"\n",
        group.join(", ")
    );
    plan_reads(world.directory(), &key, &format!("mesh = \"m\"\nrevision = 1\n{agents}{rest}"));
    let plan: SignedPlan = signed(&world.directory().join("plan.toml")).expect("a signed plan");
    let (mut store, until_s) = (world.store(), now_s() + 3600);
    let kept = |(n, token): (usize, JoinToken)| {
        store.keep_token(&token.digest(), "m", &format!("n{n}"), until_s).expect("room");
        token
    };
    (0..AGENTS).map(|_| JoinToken::generate_for_plan(&plan)).enumerate().map(kept).collect()
}

/// The program.
struct Hub(Child);

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Hub {
    fn begin(world: &dyn World, more: &[&str]) -> Self {
        let program = std::env::var("LINERATE").expect("LINERATE names a program with the feature");
        let mut hub = Command::new(program);
        hub.args(["serve", "-B", "127.0.0.1", "--foreign", "none", "--stamp-port", "none"]);
        hub.arg("--mesh").arg(world.directory().join("plan.toml")).args(more);
        if !more.contains(&"-p") {
            hub.args(["-p", "0"]);
        }
        hub.env("XDG_DATA_HOME", world.directory()).stderr(Stdio::null());
        let hub = Self(hub.spawn().expect("it starts"));
        retried(|| match world.store().plan_names() {
            Ok(names) if !names.is_empty() => Ok(()),
            _ => Err(NoAnswer::Away("the hub has not begun".to_owned())),
        })
        .expect("the hub begins");
        hub
    }

    /// Lets all join; what it takes, of the hub and of servers of some names too.
    #[allow(clippy::print_stdout, reason = "bench/mesh_ingest shows it")]
    fn is_joined(&self, world: &dyn World, tokens: &[JoinToken], servers: &[&str]) {
        let number = self.0.id().to_string();
        let own = std::process::id().to_string();
        let spent = || {
            let mut all = vec![cpu_s(|it, _| it == number), cpu_s(|it, _| it == own)];
            all.extend(servers.iter().map(|name| cpu_s(|_, it| it == *name)));
            all
        };
        let (address, authority) = (world.address(), world.authority());
        let (next, again, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let (begin, before) = (monotonic(), spent());
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    while let Some(token) = tokens.get(next.fetch_add(1, Ordering::SeqCst)) {
                        let (tries, plan) = joins(&address, authority.as_ref(), token);
                        again.fetch_add(tries, Ordering::SeqCst);
                        bytes.fetch_add(plan, Ordering::SeqCst);
                    }
                });
            }
        });
        let (took, after) = (monotonic().duration_since(begin), spent());
        let cpu: Vec<String> = after
            .iter()
            .zip(before)
            .map(|(after, before)| format!("{:.1}", after - before))
            .collect();
        println!(
            "{AGENTS} agents (connect, join, beat, plan of {} kB), {AT_ONCE} at a time: {:.1} s \
             (goal {WITHIN:?}), {} requests again; CPU seconds of the hub, the agents{}{}: {}",
            bytes.into_inner() / AGENTS / 1000,
            took.as_secs_f64(),
            again.into_inner(),
            if servers.is_empty() { "" } else { ", " },
            servers.join(", "),
            cpu.join(", ")
        );
        let agents = world.store().logins("m").expect("readable").len();
        assert_eq!(agents, AGENTS, "each has joined");
        assert!(took <= WITHIN, "{took:?}");
    }
}

/// Joins as one agent; requests that were asked again, and bytes of its plan.
fn joins(address: &HubAddress, authority: Option<&Authority>, token: &JoinToken) -> (usize, usize) {
    let tries = Cell::new(0);
    let mut me = stranger(token);
    let client = HubClient::new(address, authority, &me.secret).expect("a client");
    let joined = retried(|| {
        tries.set(tries.get() + 1);
        client.request_join(&me, &token.secret)
    });
    let joined = joined.expect("it joins");
    me.name = Some((joined.mesh, joined.agent));
    retried(|| client.send_beat(&me, &beat("x"))).expect("it is heard");
    let plan = retried(|| client.fetch_plan(&me)).expect("a plan");
    (tries.get() - 1, plan.text.len())
}
