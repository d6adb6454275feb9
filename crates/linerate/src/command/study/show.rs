//! `linerate study show` and `linerate study check`.

use std::path::Path;

use linerate_core::record::{Failure, Fault};
use linerate_core::study::{Estimator, FigureKind, StudyPlan, TcpSweep, Test, TestKind, Topology};
use linerate_report::Align::{Left, Right};
use linerate_report::{Block, Document, Fact, ReportTable};

use super::plan;
use crate::columns::spoken;
use crate::exit::Outcome;
use crate::{output, paths};

/// Shows a study's plan as text, JSON or TOML.
pub(super) fn run(study: &str, json: bool, toml: bool) -> Outcome {
    let found = plan::find_study(study)?;
    if json {
        output::print_line(&linerate_core::tree::to_json_pretty(&found.plan)?);
    } else if toml {
        output::print_text(&found.text);
    } else {
        output::document(&document(&found.plan));
    }
    Ok(0)
}

/// Checks a study file and prints its extent.
pub(super) fn check_file(file: &Path) -> Outcome {
    let name = file.display().to_string();
    let found = plan::parse(&paths::read(file)?, &name)?;
    check_published(&found.plan, &name)?;
    output::print_line(&format!("{name}: {}", extent(&found.plan)));
    Ok(0)
}

/// The items that questions name are those that the study published: the plan does not know them,
/// the tables do.
fn check_published(plan: &StudyPlan, file: &str) -> Result<(), Failure> {
    let items = plan::published(plan)?.items;
    let named = plan.questions.iter().flat_map(|question| question.figures.values());
    let named = named.filter_map(|figure| match &figure.kind {
        FigureKind::Published(item) => Some(item),
        _ => None,
    });
    for name in named {
        if items.iter().any(|item| item.item == *name) {
            continue;
        }
        let known: Vec<&str> = items.iter().map(|item| item.item.as_str()).collect();
        let reason = format!("nothing is published of study {} as '{name}'", plan.name);
        let advice = match known.as_slice() {
            [] => format!("no table of single figures belongs to a study named {}", plan.name),
            _ => format!("name one of {}", known.join(", ")),
        };
        return Err(Failure::new(Fault::Usage, "read study", file, reason).advise(advice));
    }
    Ok(())
}

/// `208 measurements on 8 topologies, about 3 min 35 s`.
pub(super) fn extent(plan: &StudyPlan) -> String {
    let cells = plan.cell_plans();
    let topologies = plan.topologies.len();
    let laboratories = StudyPlan::laboratories(cells.iter());
    let expected = Estimator::default().remaining_ns(cells.iter(), laboratories);
    let plural = if topologies == 1 { "topology" } else { "topologies" };
    let live = cells.iter().filter(|cell| cell.plan.is_live()).count();
    let simulated = match cells.len() - live {
        0 => String::new(),
        all if live == 0 => format!(", {} simulated", if all == 1 { "it is" } else { "all" }),
        some => format!(", {some} simulated"),
    };
    let time = spoken(expected);
    format!("{} measurements on {topologies} {plural}{simulated}, about {time}", cells.len())
}

fn document(plan: &StudyPlan) -> Document {
    let mut head = vec![format!("{}: {}", plan.name, plan.title)];
    head.extend(
        [&plan.source, &plan.purpose].into_iter().flatten().map(|line| line.trim_end().into()),
    );
    let names = ["topology", "title", "class", "path", "l2/l3 hops", "published"];
    let topologies =
        ReportTable::from_columns(names.into_iter().zip([Left, Left, Left, Left, Right, Left]))
            .with_rows(plan.topologies.iter().map(topology_row));
    let everywhere = plan.tests.iter().all(|test| test.on.is_none());
    let mut columns = vec![
        ("test", Left),
        ("values", Left),
        ("each", Left),
        ("repetitions", Right),
        ("on", Left),
    ];
    columns.truncate(if everywhere { 4 } else { 5 });
    let tests = ReportTable::from_columns(columns.iter().copied())
        .with_rows(plan.tests.iter().map(|test| test_row(test).into_iter().take(columns.len())));
    let mut document = Document::default()
        .with_section(head.into_iter().map(Block::Text))
        .with_section([Block::Table(topologies)])
        .with_section([Block::Table(tests)]);
    let asks = (1..).zip(&plan.questions).map(|(number, question)| {
        let lead = if number == 1 { "questions" } else { "" };
        Fact::new(lead, 9, format!("{number}. {}", question.ask.trim()))
    });
    if !plan.questions.is_empty() {
        document = document.with_section([Block::Facts(asks.collect())]);
    }
    document.with_section([Block::Text(extent(plan))])
}

fn topology_row(topology: &Topology) -> Vec<String> {
    let path = if topology.client == topology.server {
        format!("{} alone", topology.client)
    } else {
        format!("{} to {}", topology.client, topology.server)
    };
    let published = topology.published.as_ref().map_or_else(
        || "-".to_owned(),
        |of| match of.mtu_bytes {
            Some(mtu) => format!("{} at MTU {mtu}", of.test),
            None => of.test.clone(),
        },
    );
    vec![
        topology.id.clone(),
        topology.title.clone(),
        topology.class.clone(),
        path,
        format!("{}/{}", topology.l2_hops, topology.l3_hops),
        published,
    ]
}

fn test_row(test: &Test) -> Vec<String> {
    let (values, each) = match &test.kind {
        TestKind::Ping { sizes_bytes, count, .. } => {
            (format!("{} bytes", joined(sizes_bytes)), format!("{count} pings"))
        }
        TestKind::Tcp(tcp) => (values_of(test), each_of(tcp)),
        TestKind::Udp(udp) => (values_of(test), format!("UDP, {} s", udp.seconds)),
        TestKind::Bench(bench) => {
            let measures = bench.measures.iter().map(|measure| measure.0.name());
            (values_of(test), measures.collect::<Vec<_>>().join(", "))
        }
        TestKind::Simulate(simulate) => {
            let stack = format!("simulated, TCP of {}", simulate.tcp.name());
            let each = each_of(&simulate.common);
            let parts = [stack, each].into_iter().filter(|part| !part.is_empty());
            (values_of(test), parts.collect::<Vec<_>>().join(", "))
        }
    };
    let on = test.on.as_ref().map_or_else(|| "all".to_owned(), |on| on.join(", "));
    vec![test.id.clone(), values, each, test.repetitions.to_string(), on]
}

/// Numbers with the unit, or labels where a value is a name.
fn values_of(test: &Test) -> String {
    let (parameter, values) = (test.parameter(), test.values());
    match parameter.unit {
        Some(unit) => {
            let numbers: Vec<u64> = values.iter().map(|value| value.number).collect();
            format!("{} {unit} of {}", joined(&numbers), parameter.name)
        }
        None => {
            let labels: Vec<&str> = values.iter().map(|value| value.label.as_str()).collect();
            format!("{} {}", parameter.name, joined(&labels))
        }
    }
}

fn each_of(tcp: &TcpSweep) -> String {
    let time = tcp.seconds.map(|seconds| format!("{seconds} s"));
    let transfer = tcp.transfer().map(|bytes| format!("{bytes} bytes"));
    let parts = [time, transfer, tcp.base.congestion_control.clone()];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn joined<T: ToString>(values: &[T]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
