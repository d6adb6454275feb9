//! Both ends of a test against each other in simulated time: control bytes are delayed and split
//! everywhere, cut off, swallowed, turned over or made up; an end dies, or its user stops it, at
//! any moment. Datagrams go over the elements of `core::path`. Every case is its seed's, which a
//! failed law prints.

mod iperf2;
mod iperf2_udp;
mod iperf3;
mod native;
mod native_udp;
mod nuttcp;
mod ttcp;
mod world;

use std::time::Duration;

use linerate_core::path::Random;
use linerate_core::record::{Failure, Fault};
use linerate_core::time::MonoTime;

use super::session::{Flows, TestSession, Words};
use world::{End, Model, SimFlows, SimNet, World};

/// What goes wrong in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// Nothing, beyond delay and pieces of any length.
    None,
    /// The connection ends for whoever reads what this end sends, after so many bytes; with a reset
    /// or properly.
    Cut { of: End, after: u64, reset: bool },
    /// What this end sends is lost after so many bytes, and nobody is told.
    Swallow { of: End, after: u64 },
    /// A byte that this end sends arrives as another one.
    Turn { of: End, at: u64, to: u8 },
    /// Bytes that nobody sent arrive among those of this end.
    Insert { of: End, at: u64, count: u8 },
    /// An end dies after so many steps; its kernel closes the connection, or the host is gone.
    Dies { end: End, after: u64, closes: bool },
    /// Whoever runs an end stops it.
    Stop { end: End, at: Duration },
    /// The streams cannot be connected.
    NoStreams,
    /// No datagram that this end sends arrives from then on.
    Blocked { of: End, from: Duration },
}

impl Trouble {
    fn of_seed(random: &mut Random) -> Self {
        let of = if random.chance(0.5) { End::Client } else { End::Server };
        let at = count(random, 700);
        match count(random, 9) {
            0 | 1 => Self::None,
            2 => Self::Cut { of, after: at, reset: random.chance(0.5) },
            3 => Self::Swallow { of, after: at },
            4 => Self::Turn { of, at, to: count(random, 256) as u8 },
            5 => Self::Insert { of, at, count: 1 + count(random, 40) as u8 },
            6 => Self::Dies { end: of, after: count(random, 40), closes: random.chance(0.5) },
            7 => Self::Stop { end: of, at: Duration::from_millis(count(random, 4000)) },
            _ => Self::NoStreams,
        }
    }
}

/// A whole number below `bound`.
fn count(random: &mut Random, bound: u64) -> u64 {
    (random.next_uniform() * bound as f64) as u64
}

/// The two machines of a dialect, and what a test of a seed is.
trait Rig {
    type Client: Words;
    type Server: Words;

    /// A client, the model of its data, and how long its test sends at most.
    fn client(&self, random: &mut Random) -> (Self::Client, Model<Self::Client>, Duration);

    fn server(&self) -> (Self::Server, Model<Self::Server>);

    /// Bytes of the client that whoever accepts its connection reads.
    fn greeting(&self) -> usize;

    /// What a client takes for its result came from the server.
    fn server_answers(&self, trouble: Trouble) -> bool {
        let _ = trouble;
        true
    }

    /// Longer than the test an end never takes: the sum of what its machine documents.
    fn slack(&self) -> (Duration, Duration);
}

/// What an end is left with.
#[derive(Debug)]
struct Left {
    end: Option<Result<(), Failure>>,
    at: MonoTime,
    samples: u32,
    ran: Option<(MonoTime, MonoTime)>,
    results: u32,
    counts: Option<[u64; 2]>,
    /// What the other end told that it counted.
    told: Option<[u64; 2]>,
}

/// Runs a seed and holds the laws against what came of it.
fn check(rig: &impl Rig, seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed, 0);
    let trouble = Trouble::of_seed(&mut random);
    let (left, limits) = run(rig, seed, trouble, &mut random);
    judge(seed, trouble, &left, &limits)
}

/// Runs a seed with a trouble; what is left of both ends, and what is expected of them.
fn run(rig: &impl Rig, seed: u64, trouble: Trouble, random: &mut Random) -> ((Left, Left), Limits) {
    let world = World::new(seed, trouble);
    let (client, model, span) = rig.client(random);
    let interval = model.interval;
    let client = TestSession::new(client, SimFlows::new(End::Client, &world, model));
    let (server, model) = rig.server();
    let server = TestSession::new(server, SimFlows::new(End::Server, &world, model));
    let nets =
        [SimNet::new(&world, End::Client, 0), SimNet::new(&world, End::Server, rig.greeting())];
    let left = play(&world, trouble, nets, client, server);
    let (slack_client, slack_server) = rig.slack();
    let limits = Limits {
        interval,
        client: span + slack_client,
        server: span + slack_server,
        server_answers: rig.server_answers(trouble),
    };
    (left, limits)
}

/// What is expected of the ends of a test.
struct Limits {
    interval: Duration,
    /// The longest time of each.
    client: Duration,
    server: Duration,
    server_answers: bool,
}

/// Holds the laws against what came of a seed.
fn judge(seed: u64, trouble: Trouble, left: &(Left, Left), limits: &Limits) -> Result<(), String> {
    let (client, server) = left;
    let told = || format!("{trouble:?}\nclient {client:?}\nserver {server:?}");
    let law = |holds: bool, law: &str| {
        if holds { Ok(()) } else { Err(format!("seed {seed}: {law}\n{}", told())) }
    };
    for (left, end, at_most) in
        [(client, End::Client, limits.client), (server, End::Server, limits.server)]
    {
        let dead = matches!(trouble, Trouble::Dies { end: dead, .. } if dead == end);
        law(left.end.is_some() || dead, "both ends end")?;
        law(left.at.duration_since(MonoTime::default()) <= at_most, "within their time")?;
        law(left.results <= 1, "there is one result")?;
        if let Some(Err(failure)) = &left.end {
            let blocked = matches!(trouble, Trouble::NoStreams | Trouble::Blocked { .. });
            let own = (blocked && end == End::Client)
                || matches!(trouble, Trouble::Stop { end: whose, .. } if whose == end);
            let of_peer = own
                || matches!(
                    failure.fault,
                    Fault::Unreachable | Fault::PeerMisbehaved | Fault::PeerRefused
                );
            law(of_peer && (own || failure.object == end.other().name()), "who failed is named")?;
            law(trouble != Trouble::None, "nothing fails by itself")?;
        }
        if let Some((begin, until)) = left.ran.filter(|_| !dead) {
            let due = until.duration_since(begin).as_nanos() / limits.interval.as_nanos();
            let taken = u128::from(left.samples);
            law((due.saturating_sub(1)..=due + 2).contains(&taken), "samples are kept")?;
        }
    }
    let both = matches!((&client.end, &server.end), (Some(Ok(())), Some(Ok(()))));
    law(both || trouble != Trouble::None, "all is well where nothing goes wrong")?;
    if trouble == Trouble::None {
        law(client.counts.is_some() && client.counts == server.counts, "both count the same")?;
    }
    // The client's result came from the server, which has it then, too.
    let dies = matches!(trouble, Trouble::Dies { .. });
    let well = |left: &Left| matches!(left.end, Some(Ok(())));
    let alone = !limits.server_answers;
    law(!well(client) || well(server) || dies || alone, "a client's result is one at the server")?;
    law(!well(client) || client.told.is_some() || alone, "and it was told that result")?;
    let sum = |counts: Option<[u64; 2]>| counts.map(|counts| counts.iter().sum::<u64>());
    let same = client.told.is_none() || sum(client.told) == sum(server.counts);
    law(same || trouble != Trouble::None, "as the server counted it")
}

/// Turns by both ends until neither has anything to do.
fn play(
    world: &World,
    trouble: Trouble,
    mut nets: [SimNet; 2],
    mut client: TestSession<impl Played>,
    mut server: TestSession<impl Played>,
) -> (Left, Left) {
    let mut due = [Some(MonoTime::default()); 2];
    let mut left = [None, None];
    let at_most = MonoTime::from_nanos(600_000_000_000);
    while due.iter().any(Option::is_some) && world.now() < at_most {
        let wakes = [client.wants_bytes(), server.wants_bytes()];
        let next = |at: usize| {
            let arrival = nets[at].next_arrival().filter(|_| wakes[at]);
            due[at].map(|due| arrival.map_or(due, |arrival| arrival.min(due)))
        };
        let next = [next(0), next(1)];
        let Some(now) = next.iter().flatten().min() else { break };
        world.clock.advance_to(*now);
        for end in [End::Client, End::Server] {
            let at = end as usize;
            if next[at].is_none_or(|at| at > world.now()) {
                continue;
            }
            if world.is_dead(end) {
                due[at] = None;
                continue;
            }
            let stopped = matches!(trouble, Trouble::Stop { end: whose, at }
                if whose == end && world.now() >= MonoTime::default() + at);
            let turn = match end {
                End::Client => client.run_turn(&mut nets[at], stopped),
                End::Server => server.run_turn(&mut nets[at], stopped),
            };
            // A turn takes a while, so no end can go round without end in no time.
            let least = world.now() + Duration::from_micros(1);
            due[at] = turn.map(|turn| turn.max(least));
            if turn.is_none() {
                let end_of = match end {
                    End::Client => client.take_outcome(),
                    End::Server => server.take_outcome(),
                };
                left[at] = end_of.map(|end| (end, world.now()));
                match end {
                    End::Client => client.flows.leave(),
                    End::Server => server.flows.leave(),
                }
                world.close(end);
            }
        }
    }
    let [of_client, of_server] = left;
    (client.flows.left(of_client), server.flows.left(of_server))
}

/// Data of an end that can be played.
trait Played: Flows {
    /// Its process ends.
    fn leave(&mut self) {}

    /// What is left of it.
    fn left(self, end: Option<(Result<(), Failure>, MonoTime)>) -> Left;
}

impl<M: Words> Played for SimFlows<M> {
    fn left(self, end: Option<(Result<(), Failure>, MonoTime)>) -> Left {
        let (end, at) = end.unzip();
        let at = at.unwrap_or_default();
        let until = self.stopped_running.unwrap_or(at);
        let ran = self.ran_from.map(|begin| (begin, until.max(begin)));
        let (counts, told) = (self.counts, self.peer);
        Left { end, at, samples: self.samples, ran, results: self.results, counts, told }
    }
}

/// Seeds of a dialect that are run: `./dev test nightly` asks for more.
fn seeds() -> u64 {
    let asked = std::env::var("LINERATE_SEEDS").ok();
    asked.map_or(250, |text| text.parse().expect("LINERATE_SEEDS is a number"))
}

/// Runs the seeds of a dialect; all that break a law are told.
fn check_all(rig: &impl Rig) {
    check_seeds(|seed| check(rig, seed));
}

fn check_seeds(check: impl Fn(u64) -> Result<(), String>) {
    let broken: Vec<String> = (0..seeds()).filter_map(|seed| check(seed).err()).collect();
    assert!(
        broken.is_empty(),
        "{} of {}: {}",
        broken.len(),
        seeds(),
        broken[..broken.len().min(3)].join("\n")
    );
}
