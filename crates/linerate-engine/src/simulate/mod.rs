//! TCP in virtual time: drives the model of a plan, stops when asked, and keeps what it gave as a
//! record like that of a live test.
//!
//! No packet is sent and no clock is waited for; `duration_ns` of the record is what the machine
//! took, every other time in it is virtual.

mod ceiling;
mod drive;
mod fold;

pub use drive::{Driven, run_simulation};

use linerate_core::record::{
    Caveat, CaveatCode, Event, Failure, Fault, Plan, Record, RecordStatus, SimulatePlan,
};
use linerate_core::simulate::SAMPLES;
use linerate_core::units::print_span;
use linerate_sys::clock::{monotonic, record_id, wall_time};

use crate::context::Context;
use crate::environment::local_end;

/// Simulates as planned. The record always exists: when something fails it says so.
pub fn run(plan: &SimulatePlan, context: &mut Context<'_>) -> Record {
    let begin = monotonic();
    let tool = context.tool.clone();
    let mut record =
        Record::from_plan(record_id(), tool, Plan::Simulate(plan.clone()), wall_time());
    (context.watch)(&Event::Plan(record.plan.clone()));
    record.ends = vec![fold::without_tcp_settings(local_end(None))];
    record.caveats = vec![virtual_time()];
    let mut samples = Vec::with_capacity(SAMPLES as usize + 1);
    let driven = run_simulation(plan, &context.stop, true, &mut |simulation| {
        samples.push((simulation.now(), simulation.acked_bytes()));
    });
    match driven {
        Ok(driven) => {
            fold::fill_record(&mut record, plan, &driven, &samples);
            if !driven.finished {
                record.status = RecordStatus::Interrupted;
            } else if let Some(failure) = given_up(plan, &driven) {
                record.status = RecordStatus::Partial;
                record.failure = Some(failure);
            }
        }
        Err(error) => {
            record.status = RecordStatus::Error;
            record.failure = Some(Failure::new(Fault::Usage, "simulate", object(plan), error));
        }
    }
    record.duration_ns = monotonic().nanos_since(begin);
    record
}

fn virtual_time() -> Caveat {
    Caveat::new(
        CaveatCode::VirtualTime,
        "a model in virtual time: no packet was sent, and no host was measured",
        "linerate help path-model lists what the model leaves out",
    )
}

fn object(plan: &SimulatePlan) -> &str {
    plan.place.as_deref().unwrap_or("the path")
}

/// Why a transfer has no time: it did not end.
fn given_up(plan: &SimulatePlan, driven: &Driven) -> Option<Failure> {
    let each = plan.flow_bytes()?;
    let wanted = each.saturating_mul(plan.streams.into());
    let acked: u64 = driven.result.flows.iter().map(|flow| flow.acked_bytes).sum();
    let ended = driven.result.flows.iter().all(|flow| flow.finished_after.is_some());
    let reason = || {
        let span = print_span(driven.result.span);
        format!("{acked} of {wanted} bytes were acknowledged after {span} of virtual time")
    };
    (!ended).then(|| {
        Failure::new(Fault::Usage, "simulate transfer over", object(plan), reason())
            .advise("use a smaller transfer, or a better path")
    })
}

#[cfg(test)]
mod tests {
    use linerate_core::record::PathPlan;
    use linerate_core::record::{Direction, Finish, MetricId, SimulatedTcp, Stat, Tool};
    use linerate_core::simulate::{Stack, TcpChoice, mtu_bytes};
    use linerate_sys::stop::Stop;

    use super::*;

    fn plan_for_path(path: &str, choice: &TcpChoice, finish: Finish) -> SimulatePlan {
        let path: PathPlan = linerate_core::tree::from_toml(path).expect("a path");
        let tcp = choice.model_for_mtu(mtu_bytes(&path)).expect("a possible segment");
        SimulatePlan {
            path: Box::new(path),
            place: Some("a eth0 - b eth0".to_owned()),
            tcp: SimulatedTcp::from(&tcp),
            streams: 1,
            finish,
            omit_ns: 0,
            start_spread_ns: 0,
            time_max_ns: 3_600_000_000_000,
            background: None,
        }
    }

    fn simulated(plan: &SimulatePlan, stop: &Stop) -> Record {
        let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
        let mut watch = |_: &Event| {};
        run(plan, &mut Context { tool, stop: stop.clone(), watch: &mut watch })
    }

    fn upward_value(record: &Record, metric: MetricId) -> f64 {
        let value = record.summary_value(metric, Stat::Value, Some(Direction::Up));
        value.unwrap_or_else(|| panic!("no {metric} in {:?}", record.summary))
    }

    const GIGABIT: &str = "rate = \"1 Gbit/s\"\ndelay = \"10.5 ms\"";

    #[test]
    fn a_window_over_the_round_trip_is_the_goodput_and_a_rung_of_the_ceiling() {
        // 22 whole segments of 1448 bytes each 21 ms are 12.135 Mbit/s; the window itself, 32,768
        // x 8 / 21 ms, bounds at 12.483 Mbit/s.
        let choice = TcpChoice { window_bytes: Some(32_768), ..TcpChoice::default() };
        let mut plan = plan_for_path(GIGABIT, &choice, Finish::TimeNs(4_000_000_000));
        plan.omit_ns = 1_000_000_000;
        let record = simulated(&plan, &Stop::new());
        assert_eq!((record.status, record.failure.clone()), (RecordStatus::Ok, None));
        let goodput = upward_value(&record, MetricId::Goodput) / 1e6;
        assert!((goodput / 12.135 - 1.0).abs() < 0.01, "{goodput}");
        assert_eq!(upward_value(&record, MetricId::Span), 4e9);
        let ceiling = record.ceiling.as_ref().expect("the path has a rate");
        // 1448/1538 of 1 Gbit/s.
        assert!((ceiling.value.expect("known") / 941.48e6 - 1.0).abs() < 1e-5);
        let rung = ceiling.rungs.iter().find(|rung| rung.kind == "receive_window");
        let bound = rung.and_then(|rung| rung.value).expect("a window and a round trip");
        assert!((bound / 12.483e6 - 1.0).abs() < 1e-3, "{bound}");
        assert!(record.caveats.iter().any(|caveat| caveat.code == CaveatCode::VirtualTime));
    }

    #[test]
    fn a_transfer_has_a_time_and_its_points_tell_where_the_window_grew() {
        let choice = TcpChoice { stack: Stack::Of1999, ..TcpChoice::default() };
        let plan = plan_for_path(
            "link = \"oc12-atm\"\ndelay = \"22.5 ms\"",
            &choice,
            Finish::Bytes(20_000_000),
        );
        let record = simulated(&plan, &Stop::new());
        assert_eq!(upward_value(&record, MetricId::Bytes), 20e6);
        let transfer = upward_value(&record, MetricId::Transfer);
        // Twelve rounds of slow start, 0.54 s, and less than that for the rest at 353 Mbit/s.
        assert!((0.54e9..1.1e9).contains(&transfer), "{transfer}");
        assert_eq!(upward_value(&record, MetricId::Retransmits), 0.0);
        let series = |metric| {
            let mut all = record.series.iter().filter(|series| series.metric == metric);
            all.find(|series| series.flow == Some(0)).expect("a series of the flow")
        };
        let (acked, cwnd) = (series(MetricId::Acked), series(MetricId::Cwnd));
        assert_eq!(acked.t_ns, cwnd.t_ns);
        assert!((100..=2000).contains(&acked.t_ns.len()), "{}", acked.t_ns.len());
        assert_eq!(acked.values.last(), Some(&Some(20e6)));
        assert_eq!(acked.t_ns.last().map(|ns| *ns as f64), Some(transfer));
    }

    #[test]
    fn the_path_of_the_record_counts_what_was_lost() {
        let choice = TcpChoice::default();
        let path = format!("{GIGABIT}\nforward = {{ loss = \"1e-3\" }}");
        let mut plan = plan_for_path(&path, &choice, Finish::Bytes(10_000_000));
        let record = simulated(&plan, &Stop::new());
        let [path] = record.paths.as_slice() else { panic!("one path") };
        let (up, down) = (&path.directions[0], &path.directions[1]);
        assert!(up.lost_packets() > 0 && down.lost_packets() == 0, "{path:?}");
        assert_eq!(up.lost[0].cause, "random");
        // All was delivered or lost by the time that the last byte was acknowledged.
        assert_eq!(up.taken_packets, up.delivered_packets + up.lost_packets());
        assert!(upward_value(&record, MetricId::LossEvents) >= 1.0);
        assert!(upward_value(&record, MetricId::Retransmits) >= up.lost_packets() as f64);
        // Another repetition meets other chances; the same one the same.
        assert_eq!(simulated(&plan, &Stop::new()).summary, record.summary);
        plan.repeat(2);
        assert_ne!(simulated(&plan, &Stop::new()).summary, record.summary);
    }

    #[test]
    fn several_flows_have_a_row_each_and_their_fairness() {
        let mut plan = plan_for_path(GIGABIT, &TcpChoice::default(), Finish::Bytes(4_000_001));
        plan.streams = 4;
        let record = simulated(&plan, &Stop::new());
        let rows = record.summary.iter().filter(|row| row.metric == MetricId::Bytes);
        let flows: Vec<f64> = rows.filter(|row| row.flow.is_some()).map(|row| row.value).collect();
        // 4,000,001 / 4, rounded up.
        assert_eq!(flows, [1_000_001.0; 4]);
        assert!(upward_value(&record, MetricId::Fairness) > 0.9);
    }

    #[test]
    fn a_transfer_that_is_given_up_says_how_far_it_came() {
        let mut plan = plan_for_path(
            "rate = \"1 Mbit/s\"\ndelay = \"1 ms\"",
            &TcpChoice::default(),
            Finish::Bytes(10_000_000),
        );
        plan.time_max_ns = 1_000_000_000;
        let record = simulated(&plan, &Stop::new());
        assert_eq!(record.status, RecordStatus::Partial);
        let line = record.failure.expect("it says why").to_string();
        assert!(line.contains("of 10000000 bytes") && line.contains("virtual time"), "{line}");
    }

    #[test]
    fn a_stop_ends_it_and_a_path_that_cannot_be_is_one_line() {
        let plan_long = plan_for_path(GIGABIT, &TcpChoice::default(), Finish::TimeNs(u64::MAX / 2));
        let stop = Stop::new();
        stop.request_stop();
        assert_eq!(simulated(&plan_long, &stop).status, RecordStatus::Interrupted);
        let timeless = plan_for_path("loss = \"1%\"", &TcpChoice::default(), Finish::TimeNs(1));
        let record = simulated(&timeless, &Stop::new());
        assert_eq!(record.status, RecordStatus::Error);
        let line = record.failure.expect("it says why").to_string();
        assert!(line.contains("without rate and delay") && !line.contains('\n'), "{line}");
    }
}
