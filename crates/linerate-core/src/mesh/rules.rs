//! What a hub makes of its mesh's series, as a file beside it says: it stays at the hub, for what
//! alerts go to is nothing for agents to know.

use serde::Deserialize;

use crate::lab::{Problem, Step};
use crate::schedule::{Alert, FURTHER_RUNS, Span, least_change, read};
use crate::study::PlanFileError;

/// How changes are looked for, and who hears of them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// How long a series is watched before a change in it can be suspected; two days where nothing
    /// is said.
    #[serde(default)]
    pub learn: Option<Span>,
    /// Changes by less than this share are no news.
    #[serde(default = "least_change")]
    pub least_change: f64,
    /// Runs that are booked at once to confirm a change, where the plan lets them be; 0 for none.
    #[serde(default = "confirm")]
    pub confirm: u32,
    /// Surveys of changes that are booked in a day at the most; 0 for none.
    #[serde(default = "surveys_a_day")]
    pub surveys_a_day: u32,
    /// Who hears of an alert, beside the store.
    #[serde(default)]
    pub alert: Option<Alert>,
}

/// Runs for one change: as a schedule makes.
const fn confirm() -> u32 {
    FURTHER_RUNS
}

const fn surveys_a_day() -> u32 {
    4
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            learn: None,
            least_change: least_change(),
            confirm: confirm(),
            surveys_a_day: surveys_a_day(),
            alert: None,
        }
    }
}

impl Rules {
    /// Reads and checks them.
    /// # Errors
    /// Text that is no TOML, an unknown key, or what makes no sense, with its line and column.
    pub fn from_toml(text: &str) -> Result<Self, PlanFileError> {
        read(text, Self::check_values)
    }

    fn check_values(&self) -> Result<(), Problem> {
        if !(0.0..1.0).contains(&self.least_change) {
            let message = "a share from 0 to 1: 0.05 is 5 %".to_owned();
            return Err(Problem { path: vec![Step::Key("least_change")], message });
        }
        for (key, value, most) in
            [("confirm", self.confirm, 5), ("surveys_a_day", self.surveys_a_day, 100)]
        {
            if value > most {
                let message = format!("0 to {most}");
                return Err(Problem { path: vec![Step::Key(key)], message });
            }
        }
        self.alert.as_ref().map_or(Ok(()), Alert::check_outputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_say_when_and_to_whom_and_a_mistake_has_its_place() {
        let rules = Rules::from_toml("learn = \"1d\"\n[alert]\ncommand = \"x\"\n").expect("rules");
        assert_eq!((rules.learn.map(Span::seconds), rules.least_change), (Some(86_400), 0.05));
        assert_eq!((rules.confirm, rules.surveys_a_day), (2, 4));
        assert_eq!(Rules::from_toml(""), Ok(Rules::default()));
        for (text, said) in [
            ("least_change = 1.5", "1:16: a share from 0 to 1"),
            ("[alert]\nmail = [\"x\"]", "2:8: \"x\": an address is NAME@HOST"),
            ("confirm = 6", "1:11: 0 to 5"),
            ("surveys_a_day = 101", "1:17: 0 to 100"),
            ("lern = \"1d\"", "1:1: unknown field"),
        ] {
            let error = Rules::from_toml(text).expect_err(text).to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
