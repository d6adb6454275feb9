//! What the page measured of the path beside the load: round trips of its messages on the WebSocket
//! (`echo`). It says so once its last direction is over, and the records wait for that.

use linerate_core::record::Direction;
use linerate_engine::http_load::PageDelays;
use serde::Deserialize;

/// No round trip takes longer, nor does a run.
const MS_MAX: f64 = 60_000.0;
const T_S_MAX: f64 = 300.0;

/// Pairs of a time in seconds and a round trip in milliseconds. Those at rest count from the begin
/// of the first load and are negative, the others from the begin of their own direction.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Delays {
    #[serde(default)]
    idle: Vec<(f64, f64)>,
    #[serde(default)]
    down: Vec<(f64, f64)>,
    #[serde(default)]
    up: Vec<(f64, f64)>,
}

impl Delays {
    /// Checks that times and round trips are within what a test can bring; else says which is not.
    pub(crate) fn check_ranges(&self) -> Result<(), &'static str> {
        let all = || self.idle.iter().chain(&self.down).chain(&self.up);
        if all().any(|(_, ms)| !(0.0..=MS_MAX).contains(ms)) {
            return Err("a delay is 0 to 60,000 ms");
        }
        if all().any(|(t_s, _)| !(-T_S_MAX..=T_S_MAX).contains(t_s)) {
            return Err("the time of a delay is within 300 s of the load's begin");
        }
        if self.idle.iter().any(|(t_s, _)| *t_s >= 0.0) {
            return Err("a delay at rest is before the first load: its time is negative");
        }
        Ok(())
    }

    pub(crate) const fn sample_count(&self) -> usize {
        self.idle.len() + self.down.len() + self.up.len()
    }

    /// Delays of one direction, whose load began `after_s` seconds after the first of the run.
    pub(crate) fn for_direction(&self, direction: Direction, after_s: f64) -> PageDelays {
        let loaded = match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        };
        let ns = |t_s: f64, ms: f64, after_s: f64| {
            (((t_s - after_s) * 1e9).round() as i64, (ms * 1e6).round() as u64)
        };
        PageDelays {
            idle: self.idle.iter().map(|(t_s, ms)| ns(*t_s, *ms, after_s)).collect(),
            loaded: loaded.iter().map(|(t_s, ms)| ns(*t_s, *ms, 0.0)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Delays {
        linerate_core::tree::from_json(text).expect("delays")
    }

    #[test]
    fn delays_at_rest_are_before_every_load_of_the_run() {
        let delays = read(r#"{"idle": [[-1.5, 20.5]], "up": [[2.25, 40]]}"#);
        assert_eq!((delays.check_ranges(), delays.sample_count()), (Ok(()), 2));
        // The second direction began 10 s after the first: 10 + 1.5 s before it.
        let up = delays.for_direction(Direction::Up, 10.0);
        assert_eq!(up.idle, [(-11_500_000_000, 20_500_000)]);
        assert_eq!(up.loaded, [(2_250_000_000, 40_000_000)]);
        assert!(delays.for_direction(Direction::Down, 0.0).loaded.is_empty());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for text in [
            r#"{"idle": [[0, 20]]}"#,
            r#"{"down": [[1, -1]]}"#,
            r#"{"down": [[1, 60001]]}"#,
            r#"{"up": [[301, 1]]}"#,
        ] {
            assert!(read(text).check_ranges().is_err(), "{text}");
        }
    }
}
