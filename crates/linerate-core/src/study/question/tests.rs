//! Questions against figures that were made up by hand.

use std::collections::BTreeMap;

use super::*;
use crate::record::MetricId;
use crate::study::{PublishedItem, StudyPlan};

const STUDY: &str = r#"
name = "s"
title = "t"
[[topology]]
id = "wan"
title = "W"
class = "c"
client = "a"
server = "b"
[[topology.lab.host]]
name = "a"
[[topology.lab.host]]
name = "b"
[[topology.lab.link]]
ends = ["a", "b"]
[[test]]
id = "window"
kind = "tcp"
windows_bytes = [0, 16384, 8388608]
seconds = 1.0
repetitions = 3
[[test]]
id = "sack"
kind = "tcp"
sack = [true, false]
seconds = 1.0
repetitions = 1
[[test]]
id = "ping"
kind = "ping"
sizes_bytes = [56]
count = 10
repetitions = 1
[[question]]
ask = "Does one flow fill the link?"
"#;

fn study(question: &str) -> StudyPlan {
    StudyPlan::from_toml(&format!("{STUDY}{question}")).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn refused(question: &str, expected: &str) {
    let error = StudyPlan::from_toml(&format!("{STUDY}{question}")).expect_err("it does not fit");
    assert!(error.reason.contains(expected), "'{expected}' is not in: {error}");
    assert!(!error.to_string().contains('\n'), "{error}");
}

/// Runs by place and metric, ceilings by place, items by name.
#[derive(Default)]
struct Made {
    runs: BTreeMap<(String, MetricId), Vec<f64>>,
    ceilings: BTreeMap<String, f64>,
    items: Vec<PublishedItem>,
}

impl Made {
    fn with(mut self, place: &str, metric: MetricId, runs: &[f64]) -> Self {
        self.runs.insert((place.to_owned(), metric), runs.to_vec());
        self
    }

    fn goodput(self, place: &str, runs: &[f64]) -> Self {
        self.with(place, MetricId::Goodput, runs)
    }

    fn item(mut self, item: &str, value: &str, unit: &str) -> Self {
        let value = value.parse().ok();
        let unit = unit.to_owned();
        self.items.push(PublishedItem { item: item.to_owned(), value, unit, note: None });
        self
    }
}

impl Figures for Made {
    fn run_values(&self, place: &FigureSetting<'_>, metric: MetricId) -> Vec<f64> {
        self.runs.get(&(place.name(), metric)).cloned().unwrap_or_default()
    }

    fn ceiling_bps(&self, place: &FigureSetting<'_>) -> Option<f64> {
        self.ceilings.get(&place.name()).copied()
    }

    fn bound_bps(&self, place: &FigureSetting<'_>) -> Option<f64> {
        self.ceiling_bps(place).map(|bps| bps / 2.0)
    }

    fn published(&self, item: &str) -> Option<&PublishedItem> {
        self.items.iter().find(|row| row.item == item)
    }

    fn published_at(&self, _: &FigureSetting<'_>, metric: MetricId) -> Option<f64> {
        (metric == MetricId::Goodput).then_some(4.5e6)
    }
}

const LARGE: &str = r#"figure.large = { topology = "wan", test = "window", value = 8388608 }
figure.small = { topology = "wan", test = "window", value = "16 KiB", stat = "best" }
"#;

fn answered(question: &str, made: &Made) -> (QuestionVerdict, BTreeMap<String, Option<f64>>) {
    let study = study(question);
    let answer = study.questions[0].answer(&study, made);
    let value = |figure: Result<Evaluated, Missing>| figure.ok()?.quantity.single_value();
    let figures = answer.figures.into_iter();
    (answer.verdict, figures.map(|(name, figure)| (name.to_owned(), value(figure))).collect())
}

fn figure(question: &str, made: &Made, name: &str) -> Result<Evaluated, Missing> {
    let study = study(question);
    study.questions[0].answer(&study, made).figures.remove(name).expect("it is in the plan")
}

fn gigabit() -> Made {
    let mut made = Made::default()
        .goodput("W: window 8 MiB", &[900e6, 931e6, 940e6])
        .goodput("W: window 16 KiB", &[4e6, 5e6, 6e6])
        .item("throughput", "966.5", "Mbit/s")
        .item("flows", "40-41", "Mbit/s");
    made.ceilings.insert("W: window 8 MiB".to_owned(), 950e6);
    made
}

#[test]
fn figures_are_made_from_runs_ceilings_and_tables() {
    let question = format!(
        r#"{LARGE}
figure.then = {{ published = "throughput" }}
figure.beside = {{ published_of = "small" }}
figure.ceiling = {{ ceiling_of = "large" }}
figure.reached = {{ share_of_ceiling = "large" }}
figure.bounded = {{ share_of_bound = "large" }}
figure.gain = {{ ratio = ["large", "small"] }}
figure.part = {{ share = ["small", "large"] }}
figure.less = {{ difference = ["large", "small"] }}
figure.limit = {{ number = 0.98 }}
figure.rate = {{ number = 900, unit = "Mbit/s" }}
figure.most = {{ largest = ["small", "large"] }}
figure.least = {{ smallest = ["small", "large"] }}
answer = "."
"#
    );
    let (verdict, figures) = answered(&question, &gigabit());
    assert_eq!(verdict, QuestionVerdict::Told);
    // The median of 900, 931 and 940; the best of 4, 5 and 6; the rest by hand.
    let expected = [
        ("large", 931e6),
        ("small", 6e6),
        ("then", 966.5e6),
        ("beside", 4.5e6),
        ("ceiling", 950e6),
        ("reached", 0.98),
        ("bounded", 1.96),
        ("gain", 931.0 / 6.0),
        ("part", 6.0 / 931.0),
        ("less", 925e6),
        ("limit", 0.98),
        ("rate", 900e6),
        ("most", 931e6),
        ("least", 6e6),
    ];
    for (name, value) in expected {
        let got = figures[name].unwrap_or(f64::NAN);
        assert!((got - value).abs() <= 1e-9 * value, "{name}: {got} is not {value}");
    }
    assert_eq!(figures.len(), expected.len());
    let most = figure(&question, &gigabit(), "most").expect("both are measured");
    assert_eq!((most.title.as_str(), most.quantity.unit), ("W: window 8 MiB", Unit::Rate));
}

#[test]
fn repetitions_are_put_together_as_asked() {
    let stat = |stat: &str| {
        let question = format!(
            "figure.f = {{ topology = \"wan\", test = \"window\", value = 16384, stat = \
             \"{stat}\" }}\nanswer = \"{{f}}\"\n"
        );
        answered(&question, &gigabit()).1["f"]
    };
    // 4, 5 and 6: a mean of 5 and a deviation of 1.
    assert_eq!([stat("median"), stat("mean"), stat("std")], [Some(5e6), Some(5e6), Some(1e6)]);
    assert_eq!([stat("best"), stat("max")], [Some(6e6); 2]);
    assert_eq!([stat("worst"), stat("min")], [Some(4e6); 2]);
}

#[test]
fn the_best_of_what_should_be_low_is_the_lowest() {
    let question = "figure.sent_again = { topology = \"wan\", test = \"sack\", value = true, \
                    metric = \"retransmits\", stat = \"best\" }\n\
                    figure.rtt = { topology = \"wan\", test = \"ping\" }\n\
                    answer = \"{sent_again} {rtt}\"\n";
    let made = Made::default().with("W: SACK on", MetricId::Retransmits, &[7.0, 3.0]);
    let made = made.with("W: ping of 56 bytes", MetricId::Rtt, &[21e6]);
    let (verdict, figures) = answered(question, &made);
    assert_eq!(
        (verdict, figures["sent_again"], figures["rtt"]),
        (QuestionVerdict::Told, Some(3.0), Some(21e6))
    );
}

#[test]
fn a_condition_says_yes_or_no_or_that_figures_are_missing() {
    let ask = |condition: &str, made: &Made| {
        let question = format!("{LARGE}yes_when = \"{condition}\"\nanswer = \".\"\n");
        answered(&question, made).0
    };
    for (condition, expected) in [
        ("large >= 931 Mbit/s", QuestionVerdict::Yes),
        ("large > 931 Mbit/s", QuestionVerdict::No),
        ("large <= 931 Mbit/s", QuestionVerdict::Yes),
        ("large < 931 Mbit/s", QuestionVerdict::No),
        ("small < large", QuestionVerdict::Yes),
        ("small < large and large > 1 Gbit/s", QuestionVerdict::No),
    ] {
        assert_eq!(ask(condition, &gigabit()), expected, "{condition}");
    }
    let half = Made::default().goodput("W: window 16 KiB", &[5e6]);
    let missing = Missing::Result("W: window 8 MiB".to_owned());
    assert_eq!(missing.to_string(), "no result of W: window 8 MiB");
    assert_eq!(ask("small < large", &half), QuestionVerdict::Unanswered(vec![missing]));
}

#[test]
fn a_printed_range_decides_only_what_it_holds() {
    let ask = |condition: &str| {
        let question = format!(
            "{LARGE}figure.then = {{ published = \"flows\" }}\nyes_when = \"{condition}\"\n\
             answer = \".\"\n"
        );
        answered(&question, &gigabit()).0
    };
    assert_eq!(ask("large > then"), QuestionVerdict::Yes);
    assert_eq!(ask("then >= 40 Mbit/s"), QuestionVerdict::Yes);
    assert_eq!(ask("then > 41 Mbit/s"), QuestionVerdict::No);
    let open = QuestionVerdict::Unanswered(vec![Missing::Open("then > 40 Mbit/s".to_owned())]);
    assert_eq!(ask("then > 40 Mbit/s"), open);
    // One that fails decides, whatever another leaves open.
    assert_eq!(ask("then > 40 Mbit/s and small > large"), QuestionVerdict::No);
}

#[test]
fn a_ratio_of_a_range_is_a_range() {
    let question = format!(
        "{LARGE}figure.then = {{ published = \"flows\" }}\n\
         figure.times = {{ ratio = [\"then\", \"small\"] }}\nanswer = \"{{times}}\"\n"
    );
    // 40/6 and 41/6.
    let times = figure(&question, &gigabit(), "times").expect("6 is not 0").quantity;
    assert_eq!((times.low, times.high, times.unit), (40.0 / 6.0, 41.0 / 6.0, Unit::Times));
}

#[test]
fn nothing_is_divided_by_0() {
    let question = format!(
        "{LARGE}figure.gain = {{ ratio = [\"large\", \"small\"] }}\nanswer = \"{{gain}}\"\n"
    );
    let made = gigabit().goodput("W: window 16 KiB", &[0.0]);
    let missing = figure(&question, &made, "gain").expect_err("a run that carried nothing");
    assert_eq!(missing.to_string(), "'gain' divides by 'small', which is 0");
    refused(
        "figure.none = { number = 0 }\nfigure.one = { number = 1 }\n\
         figure.gain = { ratio = [\"one\", \"none\"] }\nanswer = \".\"\n",
        "figure 'gain': it divides by 'none', which is 0",
    );
}

#[test]
fn what_was_published_in_another_unit_is_told_and_not_compared() {
    let question = format!(
        "{LARGE}figure.then = {{ published = \"throughput\" }}\nyes_when = \"large >= then\"\n\
         answer = \".\"\n"
    );
    let made = Made::default()
        .goodput("W: window 8 MiB", &[1e6])
        .goodput("W: window 16 KiB", &[1e6])
        .item("throughput", "21", "ms");
    let QuestionVerdict::Unanswered(missing) = answered(&question, &made).0 else {
        panic!("no answer")
    };
    assert_eq!(missing[0].to_string(), "'large >= then' holds bit/s against a time");
}

#[test]
fn a_fault_of_a_question_is_one_clear_line() {
    let place = "question 1: ";
    refused("answer = \"{big}\"\n", &format!("{place}there is no figure 'big', nor any other"));
    refused(
        &format!("{LARGE}answer = \"{{big}}\"\n"),
        "there is no figure 'big'; there are large, small",
    );
    refused(&format!("{LARGE}yes_when = \"big > 1\"\nanswer = \".\"\n"), "no figure 'big'");
    let measured = |keys: &str| format!("figure.f = {{ {keys} }}\nanswer = \".\"\n");
    refused(&measured("topology = \"lan\", test = \"sack\""), "no topology 'lan'");
    refused(&measured("topology = \"wan\", test = \"udp\""), "no test 'udp'");
    refused(&measured("topology = \"wan\", test = \"sack\""), "has several values; name one");
    refused(
        &measured("topology = \"wan\", test = \"window\", value = 1"),
        "test 'window' has no such value; it has auto, 16 KiB, 8 MiB",
    );
    refused(
        &measured("topology = \"wan\", test = \"ping\", metric = \"speed\""),
        "no metric is called 'speed'",
    );
    refused(
        &measured("topology = \"wan\", test = \"ping\", metric = \"probes_sent\", stat = \"best\""),
        "probes_sent has no best and no worst",
    );
    refused(
        &measured("topology = \"wan\", test = \"ping\", stat = \"std\""),
        "a deviation needs two repetitions",
    );
    refused(&measured("number = 1, ratio = [\"f\", \"f\"]"), "either `ratio` or `number`");
    refused(&measured("title = \"a\""), "a figure has one of the keys topology");
    refused(&measured("number = 1, test = \"window\""), "with `number` has no key `test`");
    refused(&measured("nombre = 1"), "unknown field `nombre`");
    refused(&measured("largest = [\"f\"]"), "two figures or more");
    refused("figure.F = { number = 1 }\nanswer = \".\"\n", "begins with a small letter");
    refused("answer = \"{a\"\n", "a brace stands alone");
    refused("answer = \"{a b}\"\n", "'{a b}' is no figure");
    refused("yes_when = \"a = b\"\nanswer = \".\"\n", "compares nothing");
    refused("yes_when = \"1 > 9 parsecs\"\nanswer = \".\"\n", "no unit is called 'parsecs'");
    refused("yes = \"so\"\nanswer = \".\"\n", "said only with `yes_when`");
    refused("answer = \".\"\nreply = \".\"\n", "unknown field `reply`");
}

#[test]
fn figures_come_to_an_end() {
    let two = "figure.a = { ratio = [\"b\", \"c\"] }\nfigure.b = { difference = [\"a\", \"c\"] }\n\
               figure.c = { number = 1 }\nanswer = \".\"\n";
    refused(two, "figure 'a': it is made from itself: a from b from a");
    // Each from the one before, twice: 2^60 ways, and as many steps as figures.
    let mut text = "figure.f0 = { number = 2 }\n".to_owned();
    for n in 1..60 {
        let before = n - 1;
        text.push_str(&format!("figure.f{n} = {{ ratio = [\"f{before}\", \"f{before}\"] }}\n"));
    }
    text.push_str("answer = \"{f59}\"\n");
    assert_eq!(answered(&text, &Made::default()).1["f59"], Some(1.0));
    let mut text = "answer = \".\"\nfigure.f0 = { number = 2 }\n".to_owned();
    for n in 1..70 {
        text.push_str(&format!("figure.f{n} = {{ smallest = [\"f{}\", \"f0\"] }}\n", n - 1));
    }
    refused(&text, "in 64 steps and more");
}

#[test]
fn unlike_figures_are_not_compared() {
    let ask = |rest: &str| {
        format!(
            "{LARGE}figure.rtt = {{ topology = \"wan\", test = \"ping\" }}\n{rest}\nanswer = \
             \".\"\n"
        )
    };
    refused(&ask("yes_when = \"large > rtt\""), "'large > rtt' holds bit/s against a time");
    refused(&ask("yes_when = \"large > 900\""), "holds bit/s against a bare number");
    refused(&ask("figure.x = { ratio = [\"large\", \"rtt\"] }"), "'x' holds bit/s against a time");
    refused(&ask("figure.x = { ceiling_of = \"rtt\" }"), "figure 'rtt' is no goodput");
    refused(&ask("figure.x = { published_of = \"y\" }"), "no figure 'y'");
    refused(
        &ask("figure.x = { number = 1 }\nfigure.y = { published_of = \"x\" }"),
        "figure 'x' is not measured",
    );
}

#[test]
fn a_question_survives_toml_and_json() {
    let question = format!(
        "{LARGE}figure.sack = {{ title = \"with SACK\", topology = \"wan\", test = \"sack\", value \
         = true, metric = \"retransmits\" }}\nfigure.n = {{ number = 900, unit = \"Mbit/s\" }}\n\
         yes_when = \"large >= n and sack <= 5\"\nanswer = \"{{large}} {{{{}}}} {{sack.title}}\"\n\
         yes = \"So.\"\nno = \"Not so.\"\n"
    );
    let plan = study(&question);
    let toml = plan.to_toml().expect("small numbers");
    assert_eq!(StudyPlan::from_toml(&toml).as_ref(), Ok(&plan), "{toml}");
    let json = crate::tree::to_json(&plan).expect("a plan is JSON");
    assert_eq!(crate::tree::from_json::<StudyPlan>(&json).expect("and is read again"), plan);
    let parts = plan.questions[0].answer.parts();
    assert_eq!(
        parts,
        [
            Part::Value("large".to_owned()),
            Part::Words(" {} ".to_owned()),
            Part::Title("sack".to_owned())
        ]
    );
}

#[test]
fn a_part_of_a_study_asks_what_it_can_answer() {
    let text = format!("{STUDY}{LARGE}answer = \".\"\n");
    let second = text.replace("id = \"wan\"", "id = \"lan\"");
    let topology = second.split("[[test]]").next().expect("it begins with topologies");
    let topology = topology.split("[[topology]]\n").nth(1).expect("there is one");
    let both = text.replacen("[[test]]", &format!("[[topology]]\n{topology}[[test]]"), 1);
    let plan = StudyPlan::from_toml(&both).expect("two topologies");
    let lan = plan.clone().only_topologies(&["lan".to_owned()]).expect("it is there");
    assert_eq!((lan.questions.len(), lan.check_runnable()), (0, Ok(())));
    let wan = plan.only_topologies(&["wan".to_owned()]).expect("it is there");
    assert_eq!((wan.questions.len(), wan.check_runnable()), (1, Ok(())));
}

#[test]
fn nothing_is_said_of_a_trunk_by_one_run() {
    // The ports of four flows decide how many of them share a line: 1784 Mbit/s four times and 891
    // once are both what a trunk of two lines gives.
    let question = "figure.all = { topology = \"wan\", test = \"window\", value = 0 }\n\
                    answer = \"{all}\"\n";
    let trunk = || {
        let text = format!("{STUDY}{question}");
        let path = "path = { trunk = [\"1 Gbit/s\", \"1 Gbit/s\"] }";
        StudyPlan::from_toml(
            &text.replace("ends = [\"a\", \"b\"]", &format!("ends = [\"a\", \"b\"]\n{path}")),
        )
    };
    let plan = trunk().expect("a sound plan");
    let answer = |runs: &[f64]| {
        let made = Made::default().goodput("W: window auto", runs);
        plan.questions[0].answer(&plan, &made).verdict
    };
    let QuestionVerdict::Unanswered(missing) = answer(&[891e6]) else {
        panic!("one run decides nothing")
    };
    let said = missing[0].to_string();
    let expected = "W: window auto has 1 of the 5 runs that it takes: the ports of a flow decide \
                    which line of a trunk it takes";
    assert_eq!(said, expected);
    assert_eq!(answer(&[1784e6, 1784e6, 891e6, 1784e6, 1784e6]), QuestionVerdict::Told);
}
