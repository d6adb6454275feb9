//! What every hub holds to, whichever its store and its wire: one suite, run against the embedded
//! hub (HTTP, SQLite) and against NATS with PostgreSQL.
//!
//! An agent's end is the one that agents run: its talk and its spool, with results of the suite's
//! own. Each part has an agent of its own, so that none hides what another left. The server above
//! runs the suite with its own HTTP, by the feature `test-support`.

mod agent;
#[cfg(feature = "scale")]
mod day;
mod embedded;
#[cfg(all(test, feature = "scale"))]
mod load;
#[cfg(all(test, feature = "scale"))]
#[path = "../../../linerate-server/tests/quick/peers/ports.rs"]
mod ports;
#[cfg(all(test, feature = "scale"))]
mod scaled;
#[cfg(all(test, feature = "scale"))]
pub(crate) mod started;
#[cfg(all(test, feature = "scale"))]
mod storm;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use linerate_core::mesh::{
    BeatAnswer, Booking, BookingWhy, CellState, RunOutcome, RunResult, RunResults, SET_BACK, Seen,
    Stored, VERSION,
};
use linerate_core::schedule::{RunState, RunWhy, ScheduleRun};
use linerate_sys::clock::realtime_ns;
use serde::Serialize;

pub use self::agent::TestAgent;
#[cfg(feature = "scale")]
use self::agent::record;
use self::agent::{client, plan_is, retried, stranger, was_said};
pub use self::embedded::{Embedded, Serve, Serving};
use super::address::HubAddress;
use super::client::NoAnswer;
use super::clock::now_s;
use super::{Authority, Hub, JoinToken, SigningKey, signed};
use linerate_store::{AgentRun, Booked, HubPlace, HubStore, NewBooking, OutcomeCount};

/// A hub that can be started, stopped, and treated badly.
pub trait World {
    /// Where plan, key and the agents' stores are.
    fn directory(&self) -> &Path;
    /// Where agents find it.
    fn address(&self) -> HubAddress;
    /// Authorities that vouch for its certificate, where it has one.
    fn authority(&self) -> Option<Authority>;
    /// Where it keeps what it knows.
    fn place(&self) -> HubPlace;
    /// Starts it.
    fn start(&mut self);
    /// Stops it, if it was started.
    fn stop(&mut self);
    /// The hub, which is started.
    fn hub(&self) -> &Hub;
    /// Whatever lies between agent and store loses what it acknowledged.
    fn forgets(&mut self);
    /// Keeps a copy of the store; the hub is stopped.
    fn backs_up(&mut self);
    /// Puts the copy in the store's place; the hub is stopped.
    fn restores(&mut self);

    /// Its store, opened once more.
    fn store(&self) -> Box<dyn HubStore> {
        self.place().open_store().expect("a store")
    }

    /// A token of an agent.
    fn token(&self, agent: &str) -> JoinToken {
        let plan = signed(&self.directory().join("plan.toml")).expect("a signed plan");
        let token = JoinToken::generate_for_plan(&plan);
        let until_s = now_s() + 3600;
        self.store().keep_token(&token.digest(), "m", agent, until_s).expect("room");
        token
    }

    /// The runs of an agent that the store has.
    fn runs(&self, agent: &str) -> Vec<ScheduleRun> {
        self.store().agent_runs("m", agent, None, 0..i64::MAX).expect("readable")
    }
}

/// What the store has of an agent's last beat.
fn last_seen(world: &dyn World, agent: &str) -> Option<Seen> {
    let seen = world.store().last_seen("m", &BTreeSet::from([agent])).expect("readable");
    seen.into_iter().next().map(|(of, seen)| {
        assert_eq!(of, agent);
        seen
    })
}

fn counted(agent: &str, outcome: RunOutcome, runs: u64) -> OutcomeCount {
    OutcomeCount { agent: agent.to_owned(), outcome, runs }
}

/// A time of today, so that a partition is made for it.
pub fn begin_s() -> i64 {
    now_s() - 3600
}

/// Everything, on a hub that is started.
pub fn holds(world: &mut dyn World) {
    a_token_joins_one_agent(world);
    two_programs_of_one_agent(world);
    a_result_twice(world);
    runs_that_no_plan_has(world);
    an_answer_lost(world);
    nobody_speaks_for_another(world);
    the_newest_of_a_pair(world);
    another_version(world);
    one_time_for_each_of_many(world);
    #[cfg(feature = "scale")]
    {
        day::a_day_path_by_path(world);
        day::a_day_that_goes(world);
    }
    a_hub_that_was_away(world);
    a_wire_that_lost_what_it_had(world);
    a_store_of_yesterday(world);
    another_revision(world);
}

fn a_token_joins_one_agent(world: &mut dyn World) {
    let token = world.token("a");
    let me = stranger(&token);
    let asks = |me: &_, token: &str| {
        let client = client(world, me);
        retried(|| client.request_join(me, token)).map(|it| it.agent)
    };
    let refused = |answer: Result<String, NoAnswer>| {
        assert!(matches!(answer, Err(NoAnswer::Refused(401, _))), "{answer:?}");
    };
    assert_eq!(asks(&me, &token.secret), Ok("a".to_owned()));
    assert_eq!(asks(&me, &token.secret), Ok("a".to_owned()), "its answer was lost");
    refused(asks(&stranger(&token), &token.secret));
    refused(asks(&me, &"0".repeat(32)));
    let late = JoinToken { secret: "1".repeat(32), ..token };
    world.store().keep_token(&late.digest(), "m", "a", now_s() - 1).expect("room");
    refused(asks(&stranger(&late), &late.secret));
    // One whose name is not known yet is no agent.
    let client = client(world, &me);
    let known = linerate_store::MeshSelf { name: Some(("m".to_owned(), "a".to_owned())), ..me };
    assert!(client.fetch_plan(&known).is_ok());
    let other = linerate_store::MeshSelf { secret: "2".repeat(64), ..known };
    let answer = agent::client(world, &other).fetch_plan(&other);
    assert!(matches!(answer, Err(NoAnswer::Refused(401, _))), "{answer:?}");
}

fn two_programs_of_one_agent(world: &mut dyn World) {
    let mut first = TestAgent::joins(world, "b");
    first.beats();
    let mut second = first.twin(world, 1);
    second.beats();
    assert!(second.talk.rein.is_double() && !first.talk.rein.is_double());
    let mut newer = first.twin(world, 2);
    newer.beats();
    first.beats();
    assert!(first.talk.rein.is_double() && !newer.talk.rein.is_double());
    let seen = last_seen(world, "b").expect("it was heard");
    assert_eq!((seen.starts, seen.double_s.is_some()), (2, true));
}

/// A message as agents give it, of results that failed.
fn message(start_s: i64, count: usize) -> RunResults {
    let result = |n: usize| RunResult {
        task: "delay/z".to_owned(),
        start_s: start_s + 10 * i64::try_from(n).expect("a few"),
        why: RunWhy::Calendar,
        state: RunState::Failed,
        reason: Some("why".to_owned()),
        record: None,
    };
    RunResults { v: VERSION, results: (0..count).map(result).collect() }
}

fn a_result_twice(world: &mut dyn World) {
    let agent = TestAgent::joins(world, "c");
    let (client, me) = (&agent.talk.client, &agent.talk.me);
    let given = message(begin_s(), 20);
    let gives = |given: &RunResults| {
        let answer = retried(|| client.send_results(me, given));
        answer.map(|Stored { stored, known, .. }| (stored, known))
    };
    // By way of a broker the first may have come twice already.
    let first = gives(&given).expect("stored");
    assert_eq!(first.0, 20);
    assert_eq!(gives(&given), Ok((20, 20)));
    let twice =
        RunResults { results: [&given.results[..1], &given.results[..1]].concat(), ..given };
    assert_eq!(gives(&twice), Ok((2, 2)));
    assert_eq!(world.runs("c").len(), 20);
    let outcomes = world.store().outcomes("m").expect("readable");
    assert!(outcomes.contains(&counted("c", RunOutcome::Failed, 20)), "{outcomes:?}");
    // One of the same begin and another end changes nothing.
    let mut other = message(begin_s(), 1);
    other.results[0].start_s = twice.results[0].start_s;
    other.results[0].state = RunState::Missed;
    assert_eq!(gives(&other), Ok((1, 1)));
    assert!(world.runs("c").iter().all(|run| run.state == RunState::Failed));
    let wrong = RunResults {
        results: vec![RunResult { task: "z".to_owned(), ..other.results[0].clone() }],
        ..other
    };
    assert!(matches!(gives(&wrong), Err(NoAnswer::Refused(400, _))));
}

fn runs_that_no_plan_has(world: &mut dyn World) {
    let mut agent = TestAgent::joins(world, "q");
    let gives = |agent: &TestAgent, task: &str, start_s: i64, why: RunWhy| {
        let mut given = message(start_s, 1);
        given.results[0].task = task.to_owned();
        given.results[0].why = why;
        retried(|| agent.talk.client.send_results(&agent.talk.me, &given))
    };
    for (task, start_s) in [
        ("evil/b", begin_s()),
        ("delay/nobody", begin_s()),
        // Itself.
        ("delay/q", begin_s()),
        ("delay/z", -5),
        ("delay/z", i64::MAX),
        ("delay/z", i64::MIN),
        ("delay/z", now_s() + 3 * 86_400),
    ] {
        for why in [RunWhy::Calendar, RunWhy::Booked] {
            let answer = gives(&agent, task, start_s, why);
            assert!(
                matches!(answer, Err(NoAnswer::Refused(400, _))),
                "{task} {start_s}: {answer:?}"
            );
        }
    }
    assert_eq!(world.runs("q"), []);
    // One that is refused holds up none behind it, and its agent says so.
    let evil = ScheduleRun {
        task: "evil/b".to_owned(),
        start_s: begin_s(),
        why: RunWhy::Calendar,
        state: RunState::Missed,
        reason: None,
        record: None,
    };
    assert_eq!(agent.talk.store.slot_begun("m/q", &evil), Ok(true));
    agent.measured(begin_s() + 20, 1e6);
    agent.gives();
    let tasks: Vec<String> = world.runs("q").into_iter().map(|run| run.task).collect();
    assert_eq!(tasks, ["delay/z"]);
    assert!(was_said("evil/b: the hub refused that it ran"));
}

fn an_answer_lost(world: &mut dyn World) {
    let mut agent = TestAgent::joins(world, "d");
    for n in 0..30 {
        agent.measured(begin_s() + n, 1e6);
    }
    let runs = agent.talk.store.mesh_unsent("m/d", 20).expect("readable");
    let results: Result<_, _> = runs.iter().map(|run| agent.talk.result(run)).collect();
    let given = RunResults { v: VERSION, results: results.expect("readable") };
    retried(|| agent.talk.client.send_results(&agent.talk.me, &given)).expect("stored");
    assert_eq!(agent.waiting(), 30, "it has not heard of it");
    // It is killed, and begins again.
    let mut agent = agent.twin(world, 2);
    agent.gives();
    let kept = world.runs("d");
    assert_eq!((agent.waiting(), kept.len()), (0, 30));
    assert!(kept.iter().all(|run| run.state == RunState::Ok && run.record.is_some()));
    let known = agent.talk.store.result_lines(&linerate_store::LineFilter::default(), 99);
    assert_eq!(known.map(|lines| lines.len()), Ok(0), "what is stored is dropped");
}

fn nobody_speaks_for_another(world: &mut dyn World) {
    let (one, other) = (TestAgent::joins(world, "e"), TestAgent::joins(world, "f"));
    // A program with the secret of e that calls itself f.
    let me = linerate_store::MeshSelf { name: other.talk.me.name.clone(), ..one.talk.me.clone() };
    let _ = one.talk.client.send_results(&me, &message(begin_s(), 3));
    let _ = one.talk.client.send_beat(&me, &beat("x"));
    assert_eq!(world.runs("f"), []);
    assert_eq!(last_seen(world, "f"), None);
}

fn beat(instance: &str) -> linerate_core::mesh::Beat {
    linerate_core::mesh::Beat {
        v: VERSION,
        instance: instance.to_owned(),
        starts: 1,
        revision: 1,
        waiting: 0,
        ahead_s: Some(0.5),
    }
}

fn the_newest_of_a_pair(world: &mut dyn World) {
    let mut agent = TestAgent::joins(world, "g");
    let start_s = begin_s();
    agent.measured(start_s + 20, 2e6);
    agent.gives();
    agent.measured(start_s + 10, 1e6);
    let missed = ScheduleRun {
        task: "delay/z".to_owned(),
        start_s: start_s + 30,
        why: RunWhy::Calendar,
        state: RunState::Missed,
        reason: Some("the schedule did not run then".to_owned()),
        record: None,
    };
    assert_eq!(agent.talk.store.slot_begun("m/g", &missed), Ok(true));
    agent.gives();
    let cells = world.store().newest_cells("m").expect("readable");
    let key = ("delay".to_owned(), "g".to_owned(), "z".to_owned());
    let CellState { last_s, state, reason, good_s, metric, value, record } = cells[&key].clone();
    assert_eq!((last_s, state, good_s), (start_s + 30, RunState::Missed, Some(start_s + 20)));
    assert_eq!(reason.as_deref(), Some("the schedule did not run then"));
    assert_eq!((metric.is_some(), value, record.is_some()), (true, Some(2e6), true));
    let matrix = world.hub().matrix().expect("readable");
    // Agents are a to z, by their places.
    let cell = matrix.cells.iter().find(|cell| (cell.from, cell.to) == (6, 25));
    assert_eq!(cell.expect("a cell").value, Some(2e6));
    let outcomes = world.store().outcomes("m").expect("readable");
    for (outcome, runs) in [(RunOutcome::Ok, 2), (RunOutcome::NotRunning, 1)] {
        assert!(outcomes.contains(&counted("g", outcome, runs)), "{outcomes:?}");
    }
}

/// Many ask for a run of some agents at once: no two that share an agent come near to each other.
fn one_time_for_each_of_many(world: &mut dyn World) {
    let place = world.place();
    let hour_s = (now_s() / 3600 + 1) * 3600;
    let ask = |at: usize| {
        let mut store = place.open_store().expect("a store");
        let (from, to) = (at % 5, (at + 1 + at / 5 % 4) % 5);
        let (agent, peer) = (format!("b{from}"), format!("b{to}"));
        let booking = Booking {
            id: format!("booking {at}"),
            task: format!("burst/{peer}"),
            start_s: hour_s,
            takes_s: 18,
        };
        let things = vec![format!("agent {agent}"), format!("agent {peer}")];
        let (mesh, why) = ("m".to_owned(), BookingWhy::Adhoc);
        let (margin_s, seconds_an_hour, asked_s) = (2, 1800, now_s());
        let mut asked =
            NewBooking { mesh, agent, booking, things, margin_s, seconds_an_hour, why, asked_s };
        for _ in 0..1000 {
            match store.store_booking(&asked).expect("it waits for the others") {
                Booked::Kept => return asked,
                Booked::Taken { until_s } | Booked::Spent { until_s } => {
                    assert!(until_s > asked.booking.start_s, "it goes on");
                    asked.booking.start_s = until_s;
                }
            }
        }
        panic!("no time was free");
    };
    let asks = |first: usize| (first * 5..first * 5 + 5).map(ask).collect::<Vec<_>>();
    let kept: Vec<NewBooking> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..8).map(|first| scope.spawn(move || asks(first))).collect();
        asking.into_iter().flat_map(|it| it.join().expect("each has a time")).collect()
    });
    for (at, one) in kept.iter().enumerate() {
        for other in &kept[at + 1..] {
            let shares = one.things.iter().any(|thing| other.things.contains(thing));
            let apart = (one.booking.start_s - other.booking.start_s).abs();
            assert!(!shares || apart >= 20, "{one:?} and {other:?}");
        }
    }
    let mut store = world.store();
    assert_eq!(store.bookings("m", hour_s).expect("readable").len(), 40);
    let spent = NewBooking { seconds_an_hour: 20, ..kept[0].clone() };
    let mut spent =
        NewBooking { booking: Booking { id: "one more".to_owned(), ..spent.booking }, ..spent };
    spent.booking.start_s = hour_s + 3500;
    assert_eq!(store.store_booking(&spent), Ok(Booked::Spent { until_s: hour_s + 3600 }));
    open_until_its_run_is_there(&mut *store, &kept[0], hour_s);
}

fn open_until_its_run_is_there(store: &mut dyn HubStore, kept: &NewBooking, hour_s: i64) {
    let NewBooking { agent, booking, .. } = kept;
    let open = |store: &mut dyn HubStore| {
        let some = BTreeSet::from([agent.as_str(), "nobody"]);
        let mut open = store.bookings_open("m", &some, hour_s).expect("readable");
        open.remove(agent).unwrap_or_default()
    };
    let before = open(store);
    assert!(before.contains(booking), "{before:?}");
    let run = ScheduleRun {
        task: booking.task.clone(),
        start_s: booking.start_s,
        why: RunWhy::Booked,
        state: RunState::Missed,
        reason: Some("why not".to_owned()),
        record: None,
    };
    let run = AgentRun { agent: agent.clone(), run, record: None, figure: None };
    assert_eq!(store.keep_runs("m", &[run]), Ok(vec![true]));
    assert_eq!(open(store).len(), before.len() - 1);
    let ended = store.bookings("m", hour_s).expect("readable");
    let ended = ended.iter().find(|it| it.booking == *booking).expect("kept");
    assert_eq!((ended.state, ended.why), (Some(RunState::Missed), BookingWhy::Adhoc));
}

/// A beat of the version before, and one of a version to come.
#[derive(Serialize)]
struct OtherBeat {
    v: u32,
    instance: &'static str,
    starts: u64,
    revision: u64,
    waiting: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    colour: Option<&'static str>,
}

/// Results of the version before.
#[derive(Serialize)]
struct OtherResults {
    v: u32,
    results: Vec<RunResult>,
}

fn another_version(world: &mut dyn World) {
    let agent = TestAgent::joins(world, "h");
    for (v, colour) in [(1, None), (2, Some("red"))] {
        let beat = OtherBeat { v, instance: "i", starts: 1, revision: 1, waiting: 7, colour };
        let answer: Result<BeatAnswer, _> =
            retried(|| agent.talk.client.post_json("/api/v1/mesh/beat", &agent.talk.me, &beat));
        let answer = answer.expect("it is understood");
        assert_eq!(answer.revision, 1);
    }
    let seen = last_seen(world, "h").expect("it was heard");
    assert_eq!((seen.waiting, seen.ahead_s), (7, None));
    // What an agent and a hub of the version before say.
    let given = OtherResults { v: 1, results: message(begin_s(), 1).results };
    let answer =
        retried(|| agent.talk.client.post_json("/api/v1/mesh/results", &agent.talk.me, &given));
    assert_eq!(answer.map(|answer: Stored| answer.stored), Ok(1));
    let old: Stored =
        linerate_core::tree::from_json(r#"{"stored":2,"known":1}"#).expect("understood");
    assert_eq!((old.stored, old.known, old.runs), (2, 1, None));
    let old = r#"{"revision": 3, "wall_s": 1.5, "double": false}"#;
    let old: BeatAnswer = linerate_core::tree::from_json(old).expect("it is understood");
    assert_eq!((old.bookings, old.runs), (Vec::new(), None));
}

fn a_hub_that_was_away(world: &mut dyn World) {
    let mut agent = TestAgent::joins(world, "i");
    world.stop();
    for n in 0..25 {
        agent.measured(begin_s() + n, 3e6);
    }
    assert!(!agent.tries(), "nobody is there");
    assert_eq!(agent.waiting(), 25);
    world.start();
    agent.beats();
    agent.gives();
    assert_eq!(world.runs("i").len(), 25);
}

fn a_wire_that_lost_what_it_had(world: &mut dyn World) {
    let mut agent = TestAgent::joins(world, "j");
    world.stop();
    for n in 0..5 {
        agent.measured(begin_s() + n, 4e6);
    }
    // A broker says that it has them; the store has not.
    assert!(!agent.tries());
    assert_eq!(agent.waiting(), 5, "only what is stored is dropped");
    world.forgets();
    world.start();
    assert_eq!(world.runs("j"), []);
    agent.gives();
    assert_eq!(world.runs("j").len(), 5);
}

fn a_store_of_yesterday(world: &mut dyn World) {
    let mut agent = TestAgent::joins(world, "k");
    let start_s = begin_s();
    for n in 0..10 {
        agent.measured(start_s + n, 5e6);
    }
    agent.gives();
    world.stop();
    world.backs_up();
    world.start();
    for n in 10..55 {
        agent.measured(start_s + n, 6e6);
    }
    agent.gives();
    let mut late = TestAgent::joins(world, "l");
    agent.measured(start_s + 55, 7e6);
    late.measured(start_s, 7e6);
    world.stop();
    world.restores();
    world.start();
    // What was not confirmed comes, and hides nothing of what is not there any more.
    agent.gives();
    let runs = world.runs("k");
    let (good, gaps): (Vec<&ScheduleRun>, Vec<&ScheduleRun>) =
        runs.iter().partition(|run| run.state == RunState::Ok);
    assert_eq!((good.len(), gaps.len()), (11, 45));
    for (n, gap) in gaps.iter().enumerate() {
        let n = i64::try_from(n).expect("a few");
        assert_eq!((gap.start_s, gap.state), (start_s + 10 + n, RunState::Lost));
        assert!(gap.reason.as_deref().is_some_and(|it| it.starts_with(SET_BACK)), "{gap:?}");
    }
    assert!(was_said("runs are given to it again"));
    let outcomes = world.store().outcomes("m").expect("readable");
    assert!(outcomes.contains(&counted("k", RunOutcome::SetBack, 45)), "{outcomes:?}");
    agent.measured(start_s + 56, 8e6);
    agent.gives();
    assert_eq!(world.runs("k").len(), 57, "once is enough");
    // An agent that joined after the copy is not known, keeps its results, and says so.
    assert!(!late.tries());
    assert_eq!((late.waiting(), world.runs("l").len()), (1, 0));
    assert!(was_said("no agent of this mesh has that secret"));
}

fn another_revision(world: &mut dyn World) {
    let mut agent = TestAgent::joins(world, "n");
    let fetches = |agent: &mut TestAgent| {
        agent.beats();
        agent.talk.fetch_plan(&mut agent.link).expect("its store is written");
        let plans = agent.talk.store.mesh_plans("m").expect("readable");
        plans.first().map_or(0, |plan| plan.revision)
    };
    assert_eq!(fetches(&mut agent), 1);
    let directory = world.directory().to_owned();
    let key = SigningKey::read(&directory.join("key")).expect("a key");
    plan_is(&directory, &key, 3);
    assert_eq!(world.hub().reload(), Ok(3));
    assert_eq!(fetches(&mut agent), 3);
    // Backwards: neither the hub nor the agent takes it.
    plan_is(&directory, &key, 2);
    assert!(world.hub().reload().is_err_and(|failure| failure.reason.contains("agents have 3")));
    assert_eq!(world.hub().plan_summary().1, 3);
    // Another key: the hub cannot know, the agent does.
    let wrong: PathBuf = directory.join(format!("wrong-{}.key", realtime_ns()));
    plan_is(&directory, &SigningKey::create_key_file(&wrong).expect("a key"), 4);
    assert_eq!(world.hub().reload(), Ok(4));
    assert_eq!(fetches(&mut agent), 3);
    assert!(was_said("signed by another key"));
}
