//! The plans that ship with the program, each with the published figures of its study.

use linerate_core::study::{PublishedError, PublishedFigures, PublishedTable};

use super::tables::{ShippedTable, TABLES};

/// A plan that ships with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// Name of the study, as in its file.
    pub name: &'static str,
    /// The text of its TOML file.
    pub toml: &'static str,
}

/// Every plan that ships with the program.
pub const SHIPPED: &[Shipped] = &[
    Shipped { name: "bradner", toml: include_str!("../../../../studies/bradner.toml") },
    Shipped { name: "bench-demo", toml: include_str!("../../../../studies/bench-demo.toml") },
    Shipped { name: "pren", toml: include_str!("../../../../studies/pren.toml") },
    Shipped { name: "nap", toml: include_str!("../../../../studies/nap.toml") },
    Shipped { name: "oc12", toml: include_str!("../../../../studies/oc12.toml") },
    Shipped { name: "gigasunet", toml: include_str!("../../../../studies/gigasunet.toml") },
];

/// The shipped plan of this name.
pub fn shipped(name: &str) -> Option<&'static Shipped> {
    SHIPPED.iter().find(|plan| plan.name == name)
}

impl Shipped {
    /// The figures that the study published.
    /// # Errors
    /// [`PublishedError`] when the shipped table is spoilt, which a test rules out.
    pub fn published(&self) -> Result<PublishedFigures, PublishedError> {
        let own = TABLES.iter().filter(|table| table.about.study == self.name);
        let tables: Result<Vec<PublishedTable>, PublishedError> =
            own.map(ShippedTable::read).collect();
        tables.map(PublishedFigures::from_tables)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_core::record::{MetricId, PingMode, Plan};
    use linerate_core::study::{
        CHANCE_RUNS_MIN, Estimator, FigureKind, FigureSetting, StudyPlan, TestKind,
    };

    fn pren_study() -> StudyPlan {
        StudyPlan::from_toml(shipped("pren").expect("it ships").toml).expect("a sound plan")
    }

    #[test]
    fn answers_tell_the_window_that_was_granted_and_chance_has_enough_runs() {
        // The kernel grants half of what is asked for, or another part: the size in the plan is not
        // the window that the rate came from. Windows of 16 KiB and autotuning are named as asked.
        for shipped in SHIPPED {
            let plan = StudyPlan::from_toml(shipped.toml).expect(shipped.name);
            for question in &plan.questions {
                let text = question.answer.to_string();
                let granted = question.figures.iter().any(|(name, figure)| {
                    let is_it = matches!(&figure.kind, FigureKind::Measured(of)
                        if of.metric == Some(MetricId::SendWindow));
                    is_it && text.contains(&format!("{{{name}}}"))
                });
                let is_live = question.figures.values().any(|figure| {
                    let FigureKind::Measured(of) = &figure.kind else { return false };
                    let place = FigureSetting::find_in_plan(&plan, of).expect("it is in the plan");
                    matches!(place.test.kind, TestKind::Tcp(_))
                });
                // A model has the window that it is given.
                let silent =
                    !is_live || text.contains("(simulated)") || !text.contains("window of");
                assert!(granted || silent, "{}: {text}", shipped.name);
                for figure in question.figures.values() {
                    let FigureKind::Measured(of) = &figure.kind else { continue };
                    let place = FigureSetting::find_in_plan(&plan, of).expect("it is in the plan");
                    let enough = place.test.repetitions >= CHANCE_RUNS_MIN;
                    assert!(enough || place.chance().is_none(), "{}", place.name());
                }
            }
        }
    }

    #[test]
    fn every_shipped_plan_bears_its_name_and_finds_its_published_rows() {
        for shipped in SHIPPED {
            let plan = StudyPlan::from_toml(shipped.toml).expect(shipped.name);
            assert_eq!(plan.name, shipped.name);
            let published = shipped.published().expect(shipped.name);
            for topology in &plan.topologies {
                let Some(of) = &topology.published else { continue };
                for cell in
                    plan.cell_plans().iter().filter(|cell| cell.cell.topology == topology.id)
                {
                    let parameter = cell.cell.parameter;
                    let there = match &cell.plan {
                        Plan::Tcp(_) => published.tcp_row(of, parameter).is_some(),
                        Plan::Ping(ping) => published.ping_row(of, ping.sizes_bytes[0]).is_some(),
                        _ => true,
                    };
                    assert!(there, "{} {parameter}", topology.id);
                }
            }
        }
    }

    #[test]
    fn pren_measures_what_the_study_of_2000_did() {
        let plan = pren_study();
        // By hand: 8 topologies x (6 sizes + 4 windows x 5 repetitions) = 208.
        let cells = plan.cell_plans();
        assert_eq!(cells.len(), 208);
        let ids: Vec<&str> = plan.topologies.iter().map(|t| t.id.as_str()).collect();
        let expected = ["c.1", "c.1/1500", "c.2", "c.3", "i.1", "i.1/10", "i.1/1000", "e.2"];
        assert_eq!(ids, expected);
        // `ping -f -c 10000 -s 56` and `ttcp -b 16384` for a second.
        let Plan::Ping(ping) = &cells[0].plan else { panic!("pings come first") };
        assert_eq!(
            (ping.mode, ping.count, ping.sizes_bytes[0]),
            (PingMode::Flood, Some(10_000), 56)
        );
        let Plan::Tcp(tcp) = &cells[6].plan else { panic!("then TCP") };
        assert_eq!(tcp.test.window_bytes, Some(16_384));
        assert_eq!(tcp.test.congestion_control.as_deref(), Some("cubic"));
        for test in &plan.tests {
            if let TestKind::Tcp { .. } = test.kind {
                assert_eq!(test.repetitions, 5, "the study ran each at least five times");
            }
        }
    }

    #[test]
    fn pren_has_the_hops_that_the_study_counted() {
        let published = shipped("pren").expect("it ships").published().expect("sound");
        for topology in &pren_study().topologies {
            let lab = &topology.lab;
            assert_eq!(topology.l2_hops as usize, lab.switches.len(), "{}", topology.id);
            assert_eq!(topology.l3_hops as usize, lab.routers.len(), "{}", topology.id);
            let Some(of) = &topology.published else { continue };
            let row = published.tcp_row(of, 32_768).expect("a printed row");
            assert_eq!(row.l2_hops, Some(topology.l2_hops), "{}", topology.id);
            assert_eq!(row.l3_hops, Some(topology.l3_hops), "{}", topology.id);
        }
    }

    #[test]
    fn bradner_sends_his_six_lengths_through_routers_with_his_filters_and_more() {
        let text = shipped("bradner").expect("it ships").toml;
        let cells = StudyPlan::from_toml(text).expect("a sound plan").cell_plans();
        let bench = |topology: &str| {
            let own = cells.iter().filter(|cell| cell.cell.topology == topology);
            let plans = own.filter_map(|cell| match &cell.plan {
                Plan::Bench(plan) => Some((plan.frames.size_bytes, plan.filters)),
                _ => None,
            });
            plans.collect::<Vec<_>>()
        };
        let six = [64, 128, 256, 512, 1024, 1518];
        for (topology, filters) in [("router-1", 1), ("router-10", 10)] {
            assert_eq!(bench(topology), six.map(|size| (size, Some(filters))), "{topology}");
        }
        assert_eq!(bench("router-1000"), [64, 1518].map(|size| (size, Some(1000))));
        assert!(bench("bridge").iter().all(|(_, filters)| filters.is_none()));
        let expected_s = Estimator::default().remaining_ns(cells.iter(), 10) / 1_000_000_000;
        assert!((60..360).contains(&expected_s), "{expected_s} s");
        let text = shipped("bench-demo").expect("it ships").toml;
        let cells = StudyPlan::from_toml(text).expect("a sound plan").cell_plans();
        let expected_s = Estimator::default().remaining_ns(cells.iter(), 4) / 1_000_000_000;
        assert!(expected_s < 60, "{expected_s} s");
    }

    #[test]
    fn pren_is_expected_to_take_less_than_four_minutes() {
        let cells = pren_study().cell_plans();
        let expected_s = Estimator::default().remaining_ns(cells.iter(), 8) / 1_000_000_000;
        assert!((160..240).contains(&expected_s), "{expected_s} s");
    }
}
