//! How many series a watch keeps up with: by `bench/mesh_ingest`, for it says something on a quiet
//! machine alone.

use super::*;
use crate::tests::started::Postgres;

/// Agents beside the four of each test: 101 in a full mesh have 10,100 series.
const MORE: usize = 97;
const SERIES: usize = (MORE + 4) * (MORE + 3);
/// Values that each begins with, and rounds in which each has one more.
const VALUES: usize = 200;
const ROUNDS: i64 = 3;
const EVERY_S: i64 = 60;

/// Results of all pairs, as the database has them: 10 ms and a little noise.
fn round_trips(server: &Postgres, from: i64, until: i64) {
    server.sql(
        "mesh",
        &format!(
            "INSERT INTO mesh_result (path, start_s, why, state, value, metric, record, followed)
             SELECT path, {NOW_S} + n * {EVERY_S}, 'calendar', 'ok', 1e7, 'rtt_ns',
                    path || '-' || n, '{{\"rtt_ns\":' || 1e7 * (1 + 0.02 * random()) || '}}'
             FROM generate_series({from}, {until} - 1) AS n, mesh_path;
             INSERT INTO mesh_latest (path, last_s, state, good_s, metric, value)
             SELECT path, {NOW_S} + ({until} - 1) * {EVERY_S}, 'ok',
                    {NOW_S} + ({until} - 1) * {EVERY_S}, 'rtt_ns', 1e7 FROM mesh_path
             ON CONFLICT (path) DO UPDATE SET last_s = excluded.last_s, good_s = excluded.good_s"
        ),
    );
}

/// Looks until nothing waits; how long that took.
fn looks(watcher: &mut Watcher<'_>, now_s: i64) -> f64 {
    let begin = monotonic();
    watcher.silence_at = begin;
    loop {
        watcher.run_checks(now_s).expect("the store is there");
        if watcher.waiting.is_empty() {
            return monotonic().duration_since(begin).as_secs_f64();
        }
    }
}

#[test]
#[ignore = "bench/mesh_ingest runs it"]
fn a_watch_over_ten_thousand_series() {
    let server = Postgres::start(true);
    server.sql("postgres", "CREATE DATABASE mesh");
    let agent = |n: usize| format!("[[agent]]\nname = \"n{n}\"\naddress = \"192.0.2.{}\"\n", n + 9);
    let more: String = (0..MORE).map(agent).collect();
    let mesh = mesh_with(Some(&server.url("mesh")), EVERY_S, &more);
    let names = NAMES.map(str::to_owned).into_iter().chain((0..MORE).map(|n| format!("n{n}")));
    names.for_each(|name| mesh.heard(&name, NOW_S));
    server.sql(
        "mesh",
        "INSERT INTO mesh_path (mesh, agent, task)
         SELECT 'm', one.agent, 'delay/' || other.agent
         FROM mesh_agent AS one JOIN mesh_agent AS other ON one.agent <> other.agent",
    );
    let values = i64::try_from(VALUES).expect("some hundreds");
    round_trips(&server, -values, 0);
    server.sql("mesh", "ANALYZE");
    let mut watcher = mesh.watcher();
    let first_s = looks(&mut watcher, NOW_S);
    let count: usize = watcher.agents.values().map(|it| it.watches.series_count()).sum();
    assert_eq!(count, SERIES);
    let mut longest_s: f64 = 0.0;
    for round in 0..ROUNDS {
        round_trips(&server, round, round + 1);
        longest_s = longest_s.max(looks(&mut watcher, NOW_S + round * EVERY_S));
        let unwatched = watcher.store.mesh_unwatched("m", 0);
        assert_eq!(unwatched, Ok(BTreeSet::new()), "all is looked at");
    }
    #[allow(clippy::cast_precision_loss, reason = "a rate")]
    let rate = SERIES as f64 / longest_s;
    println!(
        "{SERIES} series of {VALUES} values are learnt in {first_s:.1} s; one more of each is \
         looked at in {longest_s:.1} s at most: {rate:.0} series/s"
    );
}
