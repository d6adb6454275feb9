//! Parameters of `linerate udp --search` beside those of RFC 9097, as `--search-with` takes them.

use std::str::FromStr;
use std::time::Duration;

use linerate_core::record::{SearchDelay, SearchPlan};

use crate::command::flags::span_nanos;
use crate::command::quantity::time_with_unit;

/// One parameter of the search: `low=5ms`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SearchSetting {
    Feedback(Duration),
    Low(Duration),
    High(Duration),
    Errors(u32),
    Confirm(u32),
    Step(u16),
    Delay(SearchDelay),
}

impl FromStr for SearchSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').ok_or("a parameter is KEY=VALUE")?;
        let span = || time_with_unit(value).map_err(|error| format!("{key}: {error}"));
        let count = || value.parse().map_err(|_| format!("{key}: a whole number is needed"));
        match key {
            "feedback" => Ok(Self::Feedback(span()?)),
            "low" => Ok(Self::Low(span()?)),
            "high" => Ok(Self::High(span()?)),
            "errors" => Ok(Self::Errors(count()?)),
            "confirm" => Ok(Self::Confirm(count()?)),
            "step" => {
                let step = u16::try_from(count()?).map_err(|_| "step: at most 65535 rows")?;
                Ok(Self::Step(step))
            }
            "delay" => match value {
                "rtt" => Ok(Self::Delay(SearchDelay::RoundTrip)),
                "one-way" => Ok(Self::Delay(SearchDelay::OneWay)),
                _ => Err("delay: rtt or one-way".to_owned()),
            },
            _ => Err("one of feedback, low, high, errors, confirm, step, delay".to_owned()),
        }
    }
}

impl SearchSetting {
    /// A plan with this parameter.
    pub(crate) fn apply_to(&self, plan: SearchPlan) -> SearchPlan {
        match *self {
            Self::Feedback(span) => SearchPlan { feedback_ns: span_nanos(span), ..plan },
            Self::Low(span) => SearchPlan { delay_low_ns: span_nanos(span), ..plan },
            Self::High(span) => SearchPlan { delay_high_ns: span_nanos(span), ..plan },
            Self::Errors(count) => SearchPlan { sequence_errors_max: count, ..plan },
            Self::Confirm(count) => SearchPlan { congested_after: count, ..plan },
            Self::Step(rows) => SearchPlan { fast_rows: rows, ..plan },
            Self::Delay(delay) => SearchPlan { delay, ..plan },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_has_its_key_and_others_are_named() {
        let texts = [
            "feedback=20ms",
            "low=5ms",
            "high=10ms",
            "errors=0",
            "confirm=2",
            "step=5",
            "delay=one-way",
        ];
        let set = |plan, text: &&str| SearchSetting::from_str(text).expect(text).apply_to(plan);
        let expected = SearchPlan {
            feedback_ns: 20_000_000,
            delay: SearchDelay::OneWay,
            delay_low_ns: 5_000_000,
            delay_high_ns: 10_000_000,
            sequence_errors_max: 0,
            congested_after: 2,
            fast_rows: 5,
            rate_max: None,
        };
        assert_eq!(texts.iter().fold(SearchPlan::default(), set), expected);
        for wrong in ["low", "low=", "errors=-1", "errors=x", "step=70000", "delay=two-way", "x=1"]
        {
            let error = SearchSetting::from_str(wrong).expect_err(wrong);
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
