//! How much the ingest takes, and how fast results are found again: by `bench/mesh_ingest`, for it
//! says something on a quiet machine alone.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use linerate_core::mesh::{RESULTS_AT_ONCE, RunResult, RunResults, VERSION};
use linerate_core::schedule::{RunState, RunWhy};

use linerate_sys::clock::{monotonic, random_bytes};

use super::super::bus::{OneOfMany, connected};
use super::super::client::NoAnswer;
use super::super::{digest, hex};
use super::agent::{client, record, retried, stranger};
use super::scaled::Scaled;
use super::started::Nats;
use super::{World, now_s};

/// Results per second that are to be reached.
const GOAL: f64 = 5_000.0;
/// Agents that give at once, and results of each.
const AGENTS: usize = 24;
const RESULTS_EACH: usize = 4_000;
/// Rows of the table that is queried, its paths, and the longest that a query may take.
const ROWS: usize = 10_000_000;
const PATHS: usize = 1_000;
const QUERY_MOST: Duration = Duration::from_millis(100);

#[test]
#[ignore = "bench/mesh_ingest runs it"]
fn results_a_second_into_postgresql() {
    let mut world = Scaled::new(true);
    world.start();
    let world = &world;
    let (stored, start_s) = (AtomicUsize::new(0), now_s() - 80_000);
    let names: Vec<String> = ('a'..='z').take(AGENTS).map(String::from).collect();
    let agents: Vec<_> = names
        .iter()
        .map(|name| {
            let token = world.token(name);
            let mut me = stranger(&token);
            let client = client(world, &me);
            let joined = retried(|| client.request_join(&me, &token.secret)).expect("it joins");
            me.name = Some((joined.mesh, joined.agent));
            (client, me)
        })
        .collect();
    let given = |name: &str, first: usize| {
        let result = |n: usize| {
            let start_s = start_s + i64::try_from(first + n).expect("a few");
            let record = record(&format!("m/{name}"), start_s, 1e6);
            RunResult {
                task: "delay/z".to_owned(),
                start_s,
                why: RunWhy::Calendar,
                state: RunState::Ok,
                reason: None,
                record: linerate_core::tree::to_value(&record).ok(),
            }
        };
        let results = (0..RESULTS_AT_ONCE).map(result).collect();
        RunResults { v: VERSION, results }
    };
    // Made before the clock runs: an agent's time is not the hub's.
    let all: Vec<Vec<RunResults>> = names
        .iter()
        .map(|name| (0..RESULTS_EACH).step_by(RESULTS_AT_ONCE).map(|n| given(name, n)).collect())
        .collect();
    let begin = monotonic();
    std::thread::scope(|scope| {
        for ((client, me), messages) in agents.iter().zip(&all) {
            let stored = &stored;
            scope.spawn(move || {
                for message in messages {
                    let done = retried(|| client.send_results(me, message)).expect("stored");
                    stored.fetch_add(done.stored, Ordering::SeqCst);
                }
            });
        }
    });
    let took = monotonic().duration_since(begin).as_secs_f64();
    let count = stored.load(Ordering::SeqCst);
    #[allow(clippy::cast_precision_loss, reason = "a rate")]
    let rate = count as f64 / took;
    println!("{count} results of {AGENTS} agents in {took:.1} s: {rate:.0}/s (goal {GOAL:.0}/s)");
    let rows = world.postgres.sql("mesh", "SELECT count(*) FROM mesh_result");
    assert_eq!(rows, count.to_string(), "each is there once");
    assert!(rate >= GOAL, "{rate:.0} results/s");
}

#[test]
#[ignore = "bench/mesh_ingest runs it"]
fn a_path_and_a_day_of_ten_million_rows() {
    let mut world = Scaled::new(true);
    world.start();
    let begin = monotonic();
    let days = i64::try_from(ROWS / PATHS / 1_000).expect("ten");
    let first_s = (now_s() / 86_400 - days) * 86_400;
    world.postgres.sql(
        "mesh",
        &format!(
            "INSERT INTO mesh_path (mesh, agent, task)
             SELECT 'm', 'agent' || n, 'delay/z' FROM generate_series(1, {PATHS}) AS n"
        ),
    );
    for day in 0..days {
        let (from_s, until_s) = (first_s + day * 86_400, first_s + (day + 1) * 86_400);
        world.postgres.sql(
            "mesh",
            &format!(
                "CREATE TABLE mesh_result_bench_{day} PARTITION OF mesh_result
                     FOR VALUES FROM ({from_s}) TO ({until_s});
                 INSERT INTO mesh_result (path, start_s, why, state, value, metric, record)
                 SELECT path, {from_s} + n * 86, 'calendar', 'ok', 1e6 + n, 'rtt_ns', md5(n::text)
                 FROM generate_series(0, 999) AS n, mesh_path WHERE agent LIKE 'agent%'"
            ),
        );
    }
    world.postgres.sql("mesh", "ANALYZE");
    let rows = world.postgres.sql("mesh", "SELECT count(*) FROM mesh_result");
    assert_eq!(rows, ROWS.to_string());
    let bytes = "SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits
                 WHERE inhparent = 'mesh_result'::regclass";
    let bytes: f64 = world.postgres.sql("mesh", bytes).parse().expect("a number");
    #[allow(clippy::cast_precision_loss, reason = "a mean")]
    let each = bytes / ROWS as f64;
    println!(
        "{rows} rows of {each:.0} bytes in {:.0} s",
        monotonic().duration_since(begin).as_secs_f64()
    );
    let mut store = world.store();
    let mut times: Vec<Duration> = (0..200)
        .map(|n| {
            let from_s = first_s + i64::from(n) % days * 86_400;
            let agent = format!("agent{}", 1 + n * 37 % 1_000);
            let begin = monotonic();
            let runs = store.agent_runs("m", &agent, Some("delay/z"), from_s..from_s + 86_400);
            let took = monotonic().duration_since(begin);
            assert_eq!(runs.expect("readable").len(), 1_000);
            took
        })
        .collect();
    times.sort();
    let (median, most) = (times[100], times[199]);
    println!(
        "a path and a day of them: median {median:.1?}, at most {most:.1?} (goal {QUERY_MOST:?})"
    );
    assert!(most <= QUERY_MOST, "{most:?}");
}

/// Agents that beat, and for how long.
const BEATING: usize = 10_000;
/// Beats a second: each every ten seconds.
const EACH_S: f64 = 1_000.0;
const BEATS_FOR: Duration = Duration::from_secs(40);
/// Ticks of /proc/PID/stat (proc(5)).
const USER_HZ: f64 = 100.0;
/// What the hub may take of a processor for it.
const HUB_MOST: f64 = 0.2;

/// Seconds of a processor that processes of a name, or one of a number, have taken.
pub(super) fn cpu_s(is_it: impl Fn(&str, &str) -> bool) -> f64 {
    let processes = std::fs::read_dir("/proc").expect("it is there").flatten();
    let stats = processes.filter_map(|it| std::fs::read_to_string(it.path().join("stat")).ok());
    let of_one = |stat: String| {
        let (head, fields) = stat.rsplit_once(") ")?;
        let (number, name) = head.split_once(" (")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let spent: f64 = fields[11].parse::<f64>().ok()? + fields[12].parse::<f64>().ok()?;
        is_it(number, name).then_some(spent / USER_HZ)
    };
    stats.filter_map(of_one).sum()
}

/// The hub is the program `LINERATE`, so that its time is its own.
#[test]
#[ignore = "bench/mesh_ingest runs it"]
fn ten_thousand_agents_beat() {
    let program = std::env::var("LINERATE").expect("LINERATE names a program with the feature");
    let world = Scaled::new(true);
    let plan = world.directory().join("plan.toml");
    let mut hub = Command::new(program);
    hub.args(["serve", "-B", "127.0.0.1", "-p", "0", "--foreign", "none", "--stamp-port", "none"]);
    hub.arg("--mesh").arg(&plan).arg("--mesh-ca").arg(Nats::authority());
    hub.args(["--mesh-store", &world.postgres.url("mesh"), "--mesh-bus", &world.bus()]);
    hub.env("XDG_DATA_HOME", world.directory()).stderr(Stdio::null());
    let mut hub = hub.spawn().expect("it starts");
    let agents: Vec<(String, OneOfMany)> = (0..BEATING)
        .map(|n| (format!("n{n}"), hex::encode_bytes(&random_bytes::<32>())))
        .map(|(name, secret)| (name.clone(), OneOfMany::from_secret(&secret, "m", &name)))
        .collect();
    let row = |(name, agent): &(String, OneOfMany)| {
        let login = digest(&format!("ed25519 {}", agent.public()));
        format!("('m', '{name}', '{login}', 0)")
    };
    let rows: Vec<String> = agents.iter().map(row).collect();
    retried(|| match world.store().plan_names() {
        Ok(names) if !names.is_empty() => Ok(()),
        _ => Err(NoAnswer::Away("the hub has not begun".to_owned())),
    })
    .expect("the hub begins");
    let insert = "INSERT INTO mesh_agent (mesh, agent, secret, joined_s) VALUES ";
    for rows in rows.chunks(500) {
        world.postgres.sql("mesh", &format!("{insert} {}", rows.join(", ")));
    }
    let number = hub.id().to_string();
    let spent = || {
        let of = |name: &str| cpu_s(|_, it| it == name);
        [cpu_s(|it, _| it == number), of("nats-server"), of("postgres")]
    };
    let (runtime, client) = connected(&world.address(), world.authority().as_ref());
    let (answered, failed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (begin, before) = (monotonic(), spent());
    runtime.block_on(async {
        let body = linerate_core::tree::to_json(&super::beat("x")).expect("JSON");
        let mut sent = 0;
        while monotonic().duration_since(begin) < BEATS_FOR {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
            let due = (monotonic().duration_since(begin).as_secs_f64() * EACH_S) as usize;
            while sent < due {
                let beat = agents[sent % BEATING].1.send_beat(client.clone(), &body);
                let (answered, failed) = (Arc::clone(&answered), Arc::clone(&failed));
                tokio::spawn(async move {
                    if beat.await { &answered } else { &failed }.fetch_add(1, Ordering::SeqCst);
                });
                sent += 1;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_secs(11)).await;
    });
    let after = spent();
    // Nothing is to do after the last beats.
    let took = BEATS_FOR.as_secs_f64();
    let shares = [0, 1, 2].map(|at| (after[at] - before[at]) / took);
    let (answered, failed) = (answered.load(Ordering::SeqCst), failed.load(Ordering::SeqCst));
    let _ = hub.kill();
    let _ = hub.wait();
    println!(
        "{BEATING} agents beat every 10 s: {answered} beats answered in {took:.0} s, {failed} \
         failed; of a core the hub takes {:.3} (goal {HUB_MOST}), the broker {:.3}, the database \
         {:.3}",
        shares[0], shares[1], shares[2]
    );
    assert!(failed == 0 && shares[0] <= HUB_MOST, "{failed} failed, {:.3} of a core", shares[0]);
}
