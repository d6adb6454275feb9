//! What is measured again and again, as a file says it.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};

use super::alert::Alert;
use crate::lab::{Problem, Step, line_and_column, one_line, place_of};
use crate::study::PlanFileError;
use crate::units::{BitRate, Bytes, parse_span};

/// Tasks of one plan.
pub const TASKS_MAX: usize = 200;
/// Shortest and longest time between two runs of a task.
const EVERY_S: (u64, u64) = (10, 7 * 86_400);
/// Longest time that a run may take.
const TAKES_S_MAX: u64 = 6 * 3600;

/// A plan: tasks, and what is kept and said of them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulePlan {
    /// Name of the plan; with the tasks' names it decides when in its period each task begins.
    pub name: String,
    /// Time zone of `at`, by its name in the IANA's data base.
    #[serde(default = "default_zone")]
    pub zone: String,
    /// How long whole records are kept; their figures stay.
    #[serde(default)]
    pub keep: Option<Span>,
    /// The plan is refused where it may move more in 31 days.
    #[serde(default, deserialize_with = "from_text")]
    pub bytes_a_month: Option<Bytes>,
    /// How long a series is watched before a change in it can be suspected.
    #[serde(default)]
    pub learn: Option<Span>,
    /// What is done with alerts beside keeping them.
    #[serde(default)]
    pub alert: Option<Alert>,
    /// What is measured.
    #[serde(default, rename = "task")]
    pub tasks: Vec<ScheduleTask>,
}

fn default_zone() -> String {
    "UTC".to_owned()
}

/// One measurement that repeats.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleTask {
    /// Its name, under which the store finds its results.
    pub name: String,
    /// The command without `linerate`: `tcp server.example -t 10`.
    pub run: String,
    /// Time between two runs.
    #[serde(default)]
    pub every: Option<Span>,
    /// Times of the day, `03:00`, in the plan's zone.
    #[serde(default)]
    pub at: Vec<String>,
    /// Longest time that a run takes: what the calendar keeps free for it.
    #[serde(default)]
    pub takes: Option<Span>,
    /// What may run beside it.
    #[serde(default)]
    pub class: Option<Class>,
    /// The most that it sends and receives, for the volume that a plan is asked about.
    #[serde(default, deserialize_with = "from_text")]
    pub rate: Option<BitRate>,
    /// Changes by less than this share are no news.
    #[serde(default = "least_change")]
    pub least_change: f64,
    /// The command without `linerate` that is run once where a change was found; `test` of the
    /// same host, or `trace` after a task of probes, where nothing is said.
    #[serde(default)]
    pub survey: Option<String>,
}

pub(crate) const fn least_change() -> f64 {
    0.05
}

/// Sizes and rates as people write them: `500GB`, `100M`.
fn from_text<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(D::Error::custom)
}

/// What may run beside a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Nothing that another plan's line would disturb: no exclusive and no normal run.
    Exclusive,
    /// Other normal runs, and those in the background.
    Normal,
    /// Anything.
    Background,
}

impl Class {
    /// Whether runs of both may overlap.
    pub const fn beside(self, other: Self) -> bool {
        !matches!(
            (self, other),
            (Self::Exclusive, Self::Exclusive | Self::Normal) | (Self::Normal, Self::Exclusive)
        )
    }
}

/// A span of time as a plan writes it: `90s`, `15m`, `1h30m`, `7d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Span(pub Duration);

impl Span {
    /// Whole seconds, rounded up.
    pub const fn seconds(self) -> u64 {
        self.0.as_secs() + if self.0.subsec_nanos() > 0 { 1 } else { 0 }
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let days = text.trim().strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
        let span = match days {
            Some(days) => Duration::from_secs(u64::from(days) * 86_400),
            None => parse_span(&text).map_err(|error| format!("{error}, or 7d"))?,
        };
        Ok(Self(span))
    }
}

/// Commands that a plan may run, with what each takes where the plan does not say, and its class.
const COMMANDS: [(&str, u64, Class); 7] = [
    ("tcp", 30, Class::Exclusive),
    ("udp", 30, Class::Exclusive),
    ("test", 45, Class::Exclusive),
    ("rrul", 60, Class::Exclusive),
    ("ping", 30, Class::Background),
    ("stamp", 30, Class::Background),
    ("trace", 90, Class::Background),
];

/// The words of a command line, as a shell would part them.
fn parted(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.map_or(Ok(words), |open| Err(format!("{open} is not closed")))
}

fn command_of(line: &str) -> Option<&'static (&'static str, u64, Class)> {
    let first = line.split_whitespace().next()?;
    COMMANDS.iter().find(|(name, ..)| *name == first)
}

/// Seconds and class of a command that says nothing else.
pub(crate) fn usual_time_and_class(line: &str) -> Option<(u64, Class)> {
    command_of(line).map(|(_, takes, class)| (*takes, *class))
}

/// The value of a flag, a word of its own or attached to it: `-t 5`, `-t5`, `--time=5`.
fn flag_value<'a>(words: &'a [String], [short, long]: [&str; 2]) -> Option<&'a str> {
    words.iter().enumerate().find_map(|(at, word)| {
        if word == short || word == long {
            return words.get(at + 1).map(String::as_str);
        }
        let attached = word.strip_prefix(long).and_then(|rest| rest.strip_prefix('='));
        attached.or_else(|| word.strip_prefix(short).filter(|_| !word.starts_with("--")))
    })
}

/// What probes send and receive at the most where the plan does not say, bit/s: ten packets of
/// 1500 bytes a second.
const PROBES_BPS: u64 = 120_000;

impl ScheduleTask {
    /// The words of the command, as a shell would part them.
    /// # Errors
    /// One line for a quote that does not end.
    pub fn command_words(&self) -> Result<Vec<String>, String> {
        parted(&self.run)
    }

    /// The words of the plan's own survey.
    pub fn survey_words(&self) -> Option<Vec<String>> {
        parted(self.survey.as_ref()?).ok()
    }

    /// Seconds that a survey takes.
    pub fn survey_takes_s(&self) -> u64 {
        let probes = self.effective_class() == Class::Background;
        let usual = if probes { "trace" } else { "test" };
        command_of(self.survey.as_deref().unwrap_or(usual)).map_or(60, |(_, takes, _)| *takes)
    }

    /// What may run beside its survey.
    pub fn survey_class(&self) -> Class {
        let usual = if self.effective_class() == Class::Background { "trace" } else { "test" };
        let line = self.survey.as_deref().unwrap_or(usual);
        command_of(line).map_or(Class::Exclusive, |(.., class)| *class)
    }

    /// The most bytes that a run moves: by `rate`, or `-b` of its command, for as long as its
    /// `-t` says or as it takes; of probes those of 120 kbit/s. Where nothing bounds the rate, by
    /// `measured_bps`.
    pub fn bytes_a_run(&self, measured_bps: Option<f64>) -> Option<f64> {
        let words = self.command_words().ok()?;
        let paced = || flag_value(&words, ["-b", "--bitrate"])?.parse::<BitRate>().ok();
        let probes = (self.effective_class() == Class::Background).then_some(PROBES_BPS);
        let bounded = self.rate.or_else(paced).map(BitRate::bits_per_sec).or(probes);
        let rate = bounded.map(|bps| bps as f64).or(measured_bps)?;
        let time = flag_value(&words, ["-t", "--time"]).and_then(|text| parse_span(text).ok());
        let seconds = time.map_or_else(|| self.takes_s() as f64, |time| time.as_secs_f64());
        Some((rate * seconds / 8.0).ceil())
    }

    /// A run of a mesh, whose calendar says when.
    pub fn of_mesh(name: &str, run: &str, takes_s: u64, class: Class) -> Self {
        Self {
            name: name.to_owned(),
            run: run.to_owned(),
            every: None,
            at: Vec::new(),
            takes: Some(Span(Duration::from_secs(takes_s))),
            class: Some(class),
            rate: None,
            least_change: 0.05,
            survey: None,
        }
    }

    fn command(&self) -> Option<&'static (&'static str, u64, Class)> {
        command_of(&self.run)
    }

    /// Seconds that the calendar keeps free for a run.
    pub fn takes_s(&self) -> u64 {
        let usual = || self.command().map_or(60, |(_, takes, _)| *takes);
        self.takes.map_or_else(usual, Span::seconds).max(1)
    }

    /// What may run beside it: where the plan does not say, nothing beside what fills a line.
    pub fn effective_class(&self) -> Class {
        let usual = || self.command().map_or(Class::Exclusive, |(.., class)| *class);
        self.class.unwrap_or_else(usual)
    }

    /// Runs in a day; those by the clock are as many as their times.
    pub fn runs_a_day(&self) -> f64 {
        let by_period = self.every.map_or(0.0, |every| 86_400.0 / every.seconds() as f64);
        by_period + self.at.len() as f64
    }
}

/// A plan of TOML that makes sense, else what is wrong, with its line and column.
pub(crate) fn read<T: DeserializeOwned>(
    text: &str,
    check: impl Fn(&T) -> Result<(), Problem>,
) -> Result<T, PlanFileError> {
    let plan: T = crate::tree::from_toml(text).map_err(|error| PlanFileError {
        place: error.offset().map(|offset| line_and_column(text, offset)),
        reason: one_line(error.message()),
    })?;
    check(&plan).map_err(|problem| PlanFileError {
        place: place_of(text, &problem).map(|offset| line_and_column(text, offset)),
        reason: one_line(&problem.message),
    })?;
    Ok(plan)
}

impl SchedulePlan {
    /// Reads and checks a plan.
    /// # Errors
    /// Text that is no TOML, an unknown or missing key, or a task that cannot be scheduled, with
    /// its line and column.
    pub fn from_toml(text: &str) -> Result<Self, PlanFileError> {
        read(text, Self::check_settings)
    }

    /// # Errors
    /// The first thing that does not fit.
    fn check_settings(&self) -> Result<(), Problem> {
        let refuse = |path: Vec<Step>, message: String| Err(Problem { path, message });
        if self.tasks.is_empty() {
            return refuse(Vec::new(), "a plan has a [[task]]".to_owned());
        }
        if self.tasks.len() > TASKS_MAX {
            let count = self.tasks.len();
            return refuse(Vec::new(), format!("{count} tasks; a plan has {TASKS_MAX} at most"));
        }
        self.alert.as_ref().map_or(Ok(()), Alert::check_outputs)?;
        let mut names = BTreeSet::new();
        for (index, task) in self.tasks.iter().enumerate() {
            let at = |key| vec![Step::Key("task"), Step::Index(index), Step::Key(key)];
            if task.name.is_empty() || !names.insert(&task.name) {
                return refuse(
                    at("name"),
                    format!("{:?}: names differ and are not empty", task.name),
                );
            }
            task.check_command_and_times().or_else(|(key, message)| refuse(at(key), message))?;
            if self.bytes_a_month.is_some() && task.bytes_a_run(None).is_none() {
                let message = "the plan has bytes_a_month: give the task's rate, as 100M";
                return refuse(at("run"), message.to_owned());
            }
        }
        match (self.bytes_a_month, self.bytes_in_a_month()) {
            (Some(most), Some(bytes)) if bytes > most.count() as f64 => {
                let message = format!(
                    "the tasks move up to {:.1} GB in 31 days, beyond the {:.1} GB allowed",
                    bytes / 1e9,
                    most.count() as f64 / 1e9
                );
                refuse(vec![Step::Key("bytes_a_month")], message)
            }
            _ => Ok(()),
        }
    }

    /// The most bytes that the calendar moves in 31 days; none where a task's rate is not bounded.
    pub fn bytes_in_a_month(&self) -> Option<f64> {
        let month = |task: &ScheduleTask| Some(task.bytes_a_run(None)? * task.runs_a_day() * 31.0);
        self.tasks.iter().map(month).sum()
    }

    /// Seconds before a change can be suspected: two days where the plan does not say.
    pub fn learn_s(&self) -> f64 {
        self.learn.map_or(2.0 * 86_400.0, |span| span.0.as_secs_f64())
    }
}

impl ScheduleTask {
    fn check_command_and_times(&self) -> Result<(), (&'static str, String)> {
        let words = self.command_words().map_err(|reason| ("run", reason))?;
        if self.command().is_none() || words.len() < 2 {
            let names: Vec<&str> = COMMANDS.iter().map(|(name, ..)| *name).collect();
            let names = names.join(", ");
            return Err((
                "run",
                format!("{:?}: begins with one of {names}, then a host", self.run),
            ));
        }
        let takes = self.takes_s();
        match (self.every, self.at.is_empty()) {
            (None, true) => return Err(("name", "a task has every or at".to_owned())),
            (Some(_), false) => {
                return Err(("every", "a task has every or at, not both".to_owned()));
            }
            (Some(every), true) if !(EVERY_S.0..=EVERY_S.1).contains(&every.seconds()) => {
                return Err(("every", "the time between two runs is 10s to 7d".to_owned()));
            }
            (Some(every), true) if takes >= every.seconds() => {
                let every = every.seconds();
                return Err((
                    "every",
                    format!("a run takes up to {takes} s and repeats in {every} s"),
                ));
            }
            _ => {}
        }
        if takes > TAKES_S_MAX {
            return Err(("takes", "a run takes 6h at most".to_owned()));
        }
        if !(0.0..1.0).contains(&self.least_change) {
            return Err(("least_change", "a share from 0 to 1: 0.05 is 5 %".to_owned()));
        }
        if let Some(survey) = &self.survey {
            parted(survey).map_err(|reason| ("survey", reason))?;
            if command_of(survey).is_none() {
                let message = format!("{survey:?}: begins with a command as run does");
                return Err(("survey", message));
            }
        }
        let wrong = self.at.iter().find(|text| time_of_day(text).is_none());
        wrong.map_or(Ok(()), |text| Err(("at", format!("{text:?} is no time of day: 03:00"))))
    }
}

/// `03:00` or `03:00:30`.
pub(super) fn time_of_day(text: &str) -> Option<jiff::civil::Time> {
    let digits = text.len() == "03:00".len() || text.len() == "03:00:30".len();
    text.parse().ok().filter(|_| digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "name = \"p\"\nkeep = \"90d\"\nbytes_a_month = \"500GB\"\n\n[[task]]\n\
        name = \"a\"\nrun = \"tcp 'my host' -t 10\"\nevery = \"1h\"\nrate = \"100M\"\n\n[[task]]\n\
        name = \"b\"\nrun = \"ping h\"\nat = [\"03:00\"]\n";

    #[test]
    fn a_plan_says_what_when_how_long_and_beside_what() {
        let plan = SchedulePlan::from_toml(GOOD).expect("a good plan");
        let [tcp, ping] = plan.tasks.as_slice() else { panic!("two tasks") };
        assert_eq!(
            tcp.command_words(),
            Ok(["tcp", "my host", "-t", "10"].map(String::from).to_vec())
        );
        assert_eq!((tcp.takes_s(), tcp.effective_class()), (30, Class::Exclusive));
        assert_eq!((ping.takes_s(), ping.effective_class()), (30, Class::Background));
        assert!((tcp.runs_a_day() - 24.0).abs() < 1e-12 && (ping.runs_a_day() - 1.0).abs() < 1e-12);
        assert_eq!(plan.keep.map(Span::seconds), Some(90 * 86_400));
        assert_eq!(plan.bytes_a_month.map(Bytes::count), Some(500_000_000_000));
    }

    #[test]
    fn a_run_moves_what_its_rate_and_time_say_and_a_month_is_their_sum() {
        let plan = SchedulePlan::from_toml(GOOD).expect("a good plan");
        // 100 Mbit/s for 10 s are 125 MB, 24 times a day; 120 kbit/s for 30 s once a day.
        assert_eq!(plan.tasks[0].bytes_a_run(None), Some(125e6));
        assert_eq!(plan.tasks[1].bytes_a_run(None), Some(450e3));
        let month = 31.0 * (24.0 * 125e6 + 450e3);
        assert!((plan.bytes_in_a_month().expect("bounded") - month).abs() < 1.0);
        let small = GOOD.replace("500GB", "50GB");
        let error = SchedulePlan::from_toml(&small).expect_err("93 GB").to_string();
        assert!(error.contains("93.0 GB in 31 days, beyond the 50.0 GB"), "{error}");
        let error = SchedulePlan::from_toml(&GOOD.replace("rate = \"100M\"\n", ""));
        let error = error.expect_err("nothing bounds it").to_string();
        assert!(error.contains("give the task's rate"), "{error}");
        let free = GOOD.replace("rate = \"100M\"\n", "").replace("bytes_a_month", "#");
        let free = SchedulePlan::from_toml(&free).expect("no bound is asked for");
        assert_eq!(free.bytes_in_a_month(), None);
    }

    #[test]
    fn a_survey_is_the_plans_or_fits_the_task() {
        let text = GOOD.replacen("rate", "survey = \"udp h --search\"\nrate", 1);
        let plan = SchedulePlan::from_toml(&text).expect("a good plan");
        let words = ["udp", "h", "--search"].map(String::from).to_vec();
        assert_eq!(plan.tasks[0].survey_words(), Some(words));
        assert_eq!((plan.tasks[0].survey_takes_s(), plan.tasks[1].survey_takes_s()), (30, 90));
        assert_eq!(plan.tasks[1].survey_class(), Class::Background);
    }

    #[test]
    fn a_mistake_is_one_line_with_its_place() {
        let wrong = |from: &str, to: &str| {
            let text = GOOD.replacen(from, to, 1);
            SchedulePlan::from_toml(&text).expect_err(to).to_string()
        };
        for (from, to, said) in [
            (
                "every = \"1h\"",
                "every = \"1h\"\nat = [\"01:00\"]",
                "8:9: a task has every or at, not",
            ),
            ("every = \"1h\"", "every = \"5s\"", "8:9: the time between two runs is 10s to 7d"),
            (
                "every = \"1h\"",
                "every = \"20s\"",
                "8:9: a run takes up to 30 s and repeats in 20 s",
            ),
            ("every = \"1h\"", "every = \"often\"", "8:9"),
            ("name = \"b\"", "name = \"a\"", "12:8: \"a\": names differ"),
            ("ping h", "format c:", "13:7: \"format c:\": begins with one of tcp, udp, test"),
            ("03:00", "25:00", "14:6: \"25:00\" is no time of day"),
            ("'my host'", "'my host", "7:7: ' is not closed"),
            ("keep", "keeps", "2:1: unknown field"),
        ] {
            let error = wrong(from, to);
            assert!(error.starts_with(said) && !error.contains('\n'), "{to}: {error}");
        }
    }
}
