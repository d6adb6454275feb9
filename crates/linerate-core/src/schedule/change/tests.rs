//! The detector of changes against series whose steps are known, and against series without any.

use super::*;
use crate::path::Random;

const HOUR_S: f64 = 3600.0;
const BEGIN_S: f64 = 1.8e9;

/// What a value of a path differs by from its level, in standard deviations.
type Noise = fn(&mut Random, f64) -> f64;

fn normal(random: &mut Random) -> f64 {
    (2.0_f64 * random.exponential()).sqrt() * (std::f64::consts::TAU * random.next_uniform()).cos()
}

fn plain(random: &mut Random, _: f64) -> f64 {
    normal(random)
}

/// Student's t with three degrees of freedom, whose variance is 3.
fn heavy(random: &mut Random, _: f64) -> f64 {
    let squares: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
    normal(random) / squares.sqrt()
}

/// The values are lognormal of lognormal: a tail to one side.
fn skewed(random: &mut Random, _: f64) -> f64 {
    normal(random).exp()
}

fn daily(random: &mut Random, at_s: f64) -> f64 {
    normal(random) + 1.5 * (std::f64::consts::TAU * at_s / DAY_S).sin()
}

/// A path of 500 Mbit/s, values 10 % apart, with a step of so many standard deviations.
struct Path {
    noise: Noise,
    random: Random,
    step: (f64, f64),
}

impl Path {
    fn measure(&mut self, at_s: f64) -> Point {
        let step = if at_s >= self.step.0 { self.step.1 } else { 0.0 };
        let off = (self.noise)(&mut self.random, at_s) + step;
        Point { at_s, value: 500e6 * (0.1 * off).exp() }
    }

    /// Measures once an hour, twice more at once where a change is suspected: the changes, each
    /// with the hour in which it was found.
    fn watched(mut self, hours: u32) -> (Vec<(u32, LevelChange)>, u32) {
        let (mut found, mut suspected) = (Vec::new(), 0);
        let mut watch = Watch::new(0.0);
        for hour in 0..hours {
            let at_s = BEGIN_S + HOUR_S * f64::from(hour);
            let mut finding = watch.add(self.measure(at_s));
            if finding == SeriesFinding::Suspected {
                suspected += 1;
                finding = watch.add(self.measure(at_s + 60.0));
                if finding == SeriesFinding::Suspected {
                    finding = watch.add(self.measure(at_s + 120.0));
                }
            }
            if let SeriesFinding::Changed(change) = finding {
                found.push((hour, change));
            }
        }
        (found, suspected)
    }
}

fn path(noise: Noise, seed: u64, step: (f64, f64)) -> Path {
    Path { noise, random: Random::new(seed, 0), step }
}

/// Days after which the step comes.
const STEP_HOUR: u32 = 16 * 24;

fn stepped(noise: Noise, seed: u64, size: f64) -> Option<(u32, LevelChange)> {
    let from_s = BEGIN_S + HOUR_S * f64::from(STEP_HOUR);
    let (found, _) = path(noise, seed, (from_s, size)).watched(STEP_HOUR + 100);
    found.into_iter().find(|(hour, _)| *hour >= STEP_HOUR)
}

#[test]
fn a_normal_score_is_that_of_the_tables() {
    for (share, score) in [(0.5, 0.0), (0.975, 1.959_96), (0.001, -3.090_23), (0.9, 1.281_55)] {
        assert!((normal_score(share) - score).abs() < 4.5e-4, "{share}");
    }
}

#[test]
fn what_only_varies_changes_at_most_once_a_year() {
    // A quarter of a year of each shape; `figures` has the share of many years.
    for (noise, seed) in [(plain as Noise, 3), (heavy, 4), (daily, 5), (skewed, 6)] {
        let (found, suspected) = path(noise, seed, (f64::INFINITY, 0.0)).watched(2190);
        assert!(found.is_empty(), "{found:?}");
        assert!(suspected < 40, "{suspected} pairs of further runs");
    }
}

#[test]
fn a_cycle_is_taken_out_where_there_is_one_and_noise_is_not_taken_for_one() {
    let after_two_weeks = |noise| {
        let mut path = path(noise, 7, (f64::INFINITY, 0.0));
        let mut watch = Watch::new(0.0);
        for hour in 0..14 * 24 {
            watch.add(path.measure(BEGIN_S + HOUR_S * f64::from(hour)));
        }
        watch.season
    };
    assert_eq!(after_two_weeks(skewed as Noise), [0.0; 24]);
    // A sine of 0.15 in the logarithm: its highest offset is that, to what forty values tell.
    let highest = after_two_weeks(daily).into_iter().fold(0.0, f64::max);
    assert!((0.1..0.22).contains(&highest), "{highest}");
}

#[test]
fn a_step_of_two_deviations_is_found_in_five_values_and_dated() {
    for noise in [plain as Noise, heavy, daily] {
        let (mut values, mut dated) = (0, 0);
        for seed in 0..30 {
            let (hour, change) = stepped(noise, 100 + seed, -2.0).expect("a found step");
            values += hour - STEP_HOUR + 1;
            let from_s = BEGIN_S + HOUR_S * f64::from(STEP_HOUR);
            dated += u32::from(change.between_s.0 <= from_s && from_s <= change.between_s.1);
            let ratio = change.level_ratio();
            assert!((0.65..0.95).contains(&ratio), "{ratio} for {}", (-0.2_f64).exp());
        }
        assert!(values <= 150, "{values} values for thirty steps");
        assert!(dated >= 24, "{dated} of 30 dates hold the step");
    }
}

#[test]
fn a_path_that_comes_back_is_found_too_and_small_changes_are_taken_in() {
    let mut watch = Watch::new(0.05);
    let mut random = Random::new(9, 0);
    let mut found = Vec::new();
    for hour in 0..700_u32 {
        let level = match hour {
            300..360 => 50e6,
            500.. => 97e6,
            _ => 100e6,
        };
        let value = level * (0.005 * normal(&mut random)).exp();
        let at_s = BEGIN_S + HOUR_S * f64::from(hour);
        if let SeriesFinding::Changed(change) = watch.add(Point { at_s, value }) {
            found.push((hour, change));
        }
    }
    let hours: Vec<u32> = found.iter().map(|(hour, _)| *hour).collect();
    assert_eq!(hours.len(), 2, "{hours:?}: there and back, and not the 3 %");
    assert!((300..306).contains(&hours[0]) && (360..366).contains(&hours[1]), "{hours:?}");
    let (there, back) = (found[0].1.level_ratio(), found[1].1.level_ratio());
    assert!((there - 0.5).abs() < 0.01 && (back - 2.0).abs() < 0.04, "{there} {back}");
}

#[test]
fn a_large_step_after_few_values_is_found_in_ten() {
    let mut values = 0;
    for seed in 0..40 {
        let mut random = Random::new(seed, 0);
        let mut watch = Watch::new(0.05).learning(180.0);
        let mut found = None;
        for run in 0..60_u32 {
            let level = if run < 36 { 50e6 } else { 10e6 };
            let value = level * (0.02 * normal(&mut random)).exp();
            let at_s = BEGIN_S + 10.0 * f64::from(run);
            if let SeriesFinding::Changed(change) = watch.add(Point { at_s, value }) {
                found = found.or_else(|| Some((run, change.level_ratio())));
            }
        }
        let (run, ratio) = found.expect("a fifth of the rate is a change");
        assert!((36..46).contains(&run) && (ratio - 0.2).abs() < 0.02, "{run} {ratio}");
        values += run - 35;
    }
    assert!(values <= 240, "{values} values for 40 steps");
}

#[test]
fn a_step_that_is_far_off_is_found_in_ten_however_much_values_lean_on_those_before() {
    for leaning in [0.6, 0.9] {
        for seed in 0..40 {
            let mut random = Random::new(seed, 0);
            let mut watch = Watch::new(0.05).learning(180.0);
            let (mut off, mut found) = (0.0, None);
            for run in 0..60_u32 {
                off = leaning * off + 0.0004 * normal(&mut random);
                let level = if run < 26 { 18.8e6 } else { 5.0e6 };
                let at_s = BEGIN_S + 31.0 * f64::from(run);
                let value = level * f64::exp(off);
                if let SeriesFinding::Changed(_) = watch.add(Point { at_s, value }) {
                    found = found.or(Some(run));
                }
            }
            let run = found.expect("a quarter of the rate is a change");
            assert!((26..36).contains(&run), "{leaning}, seed {seed}: {run}");
        }
    }
}

#[test]
fn values_that_are_none_are_left_out() {
    let mut watch = Watch::new(0.05);
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(watch.add(Point { at_s: BEGIN_S, value }), SeriesFinding::Steady);
    }
    assert!(watch.window.is_empty());
}

/// The figures of many years: `cargo test --release -p linerate-core --lib
/// schedule::change::tests::figures -- --ignored --nocapture`.
#[test]
#[ignore = "nightly: many years of values, a minute in a release build"]
fn figures() {
    let names = [
        ("normal", plain as Noise, 1.0),
        ("heavy tails", heavy, 1.0),
        ("daily", daily, 1.0),
        ("lognormal of lognormal", skewed, 1.0),
    ];
    for (name, noise, allowed) in names {
        let years = 20;
        let runs = (0..years).map(|seed| path(noise, seed, (f64::INFINITY, 0.0)).watched(8760));
        let (found, suspected) =
            runs.fold((0, 0), |(found, suspected), run| (found + run.0.len(), suspected + run.1));
        let (found, suspected) = (found as f64 / 20.0, f64::from(suspected) / 20.0);
        println!("{name}: {found:.2} false alarms, {suspected:.0} suspicions a year");
        for size in [-1.0, -2.0, -5.0] {
            let steps = (0..200).map(|seed| stepped(noise, 1000 + seed, size));
            let mut values: Vec<u32> =
                steps.flatten().map(|(hour, _)| hour - STEP_HOUR + 1).collect();
            values.sort_unstable();
            let mean = f64::from(values.iter().sum::<u32>()) / values.len() as f64;
            let (median, count) = (values[values.len() / 2], values.len());
            println!("  {size} sd: {count} of 200, mean {mean:.1}, median {median} values");
        }
        assert!(found <= allowed, "{name}");
    }
}
/// The series of `figures` as they come to any detector, one value an hour without further
/// runs, and what this one finds in them: `bench/changes` holds another beside it. Files go to
/// the directory that `LINERATE_SERIES` names.
#[test]
#[ignore = "writes files for bench/changes"]
fn series_for_others() {
    let directory = std::env::var("LINERATE_SERIES").expect("LINERATE_SERIES: a directory");
    let number = |name: &str, usual: u64| {
        std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
    };
    let (years, steps) = (number("YEARS", 5), number("STEPS", 20));
    let write = |file: &str, lines: &[String]| {
        std::fs::write(format!("{directory}/{file}"), lines.join("\n")).expect("room");
    };
    let mut found = Vec::new();
    let shapes =
        [("normal", plain as Noise), ("heavy", heavy), ("daily", daily), ("lognormal", skewed)];
    for (name, noise) in shapes {
        let from_s = BEGIN_S + HOUR_S * f64::from(STEP_HOUR);
        let none = (0..years).map(|seed| (seed, 0.0, 8760));
        let sizes = [-1.0, -2.0, -5.0];
        let stepped = sizes
            .into_iter()
            .flat_map(|size| (0..steps).map(move |seed| (1000 + seed, size, STEP_HOUR + 100)));
        for (seed, size, hours) in none.chain(stepped) {
            let mut path = path(noise, seed, (from_s, size));
            let mut watch = Watch::new(0.0);
            let series = format!("{name}_{seed}_{}", size.abs());
            let mut values = Vec::new();
            for hour in 0..hours {
                let point = path.measure(BEGIN_S + HOUR_S * f64::from(hour));
                values.push(format!("{},{}", point.at_s, point.value));
                if let SeriesFinding::Changed(change) = watch.add(point) {
                    let dated = (change.at_s - BEGIN_S) / HOUR_S;
                    found.push(format!("{series},{hour},{dated}"));
                }
            }
            write(&format!("{series}.csv"), &values);
        }
    }
    write("ours.txt", &found);
}
