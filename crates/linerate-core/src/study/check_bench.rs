//! Rules for a device benchmark of a study: frames that fit the links, measures and goals that
//! belong together, and a laboratory where nothing else is on the links.

use std::ops::RangeInclusive;

use super::bench_words::{GoalTable, GoalWord};
use super::fault::{
    Checked, SECONDS_MAX, check_number, check_once, check_seconds, fault_at_path, item_fault,
    key_fault, prefix_place, require,
};
use super::frames_sweep::{FRAME_BYTES, parse_mix};
use super::list::check_lists;
use super::{FramesSweep, Topology};
use crate::lab::{Layout, Step};
use crate::record;
use crate::units::BitRate;

/// Header and FCS of a frame around an IP packet, and a tag (IEEE 802.1Q).
const AROUND_BYTES: u32 = 18;
const TAG_BYTES: u32 = 4;
/// Tags that a frame may have.
const VLANS_MAX: usize = 2;
/// The numbers of VLANs that carry frames (IEEE 802.1Q table 9-2).
const VLAN_IDS: RangeInclusive<u16> = 1..=4094;
/// It has 6 bits (RFC 2474 §3).
const DSCP_MAX: u8 = 63;
const FLOWS_MAX: u32 = 1_000_000;
const BURST_MAX: u32 = 65_536;
const TRIALS_MAX: u32 = 1000;
/// As many as a search can tell apart in one run.
const GOALS_MAX: usize = 8;
/// More would leave less than a millisecond of a trial of 1 s.
const QUICK_MAX: u64 = 1000;

/// Refuses values and settings that no benchmark can have, wherever it is.
pub(super) fn check_bench(bench: &FramesSweep) -> Checked {
    check_frames(bench)?;
    check_measures(bench)?;
    check_goals(bench)?;
    check_numbers(bench)?;
    check_line(bench)?;
    check_headers(bench)
}

fn check_frames(bench: &FramesSweep) -> Checked {
    let both = "frame_sizes and mix both say how long frames are; give one of them";
    require(bench.frame_sizes.is_none() || bench.mix.is_none(), "mix", both)?;
    check_lists(&bench.value_lists(), "frame_sizes or a mix")?;
    let Some(mix) = &bench.mix else { return Ok(()) };
    let (least, most) = (FRAME_BYTES.start(), FRAME_BYTES.end());
    for part in parse_mix(mix).or_else(|reason| key_fault("mix", reason))? {
        let message = format!("{} bytes; {least} to {most} are allowed", part.length);
        require(FRAME_BYTES.contains(&part.length), "mix", message)?;
    }
    Ok(())
}

/// Lengths that hold the headers, once it is known that these can be.
fn check_headers(bench: &FramesSweep) -> Checked {
    check_number("dscp", Some(bench.frames.dscp), 0..=DSCP_MAX)?;
    for (index, &length) in bench.frame_sizes.iter().flatten().enumerate() {
        if let Some(reason) = too_short(bench, length) {
            return item_fault("frame_sizes", index, reason);
        }
    }
    match mix_lengths(bench).into_iter().find_map(|length| too_short(bench, length)) {
        Some(reason) => key_fault("mix", reason),
        None => Ok(()),
    }
}

/// Lengths of the frames of a mix; none without one.
fn mix_lengths(bench: &FramesSweep) -> Vec<u32> {
    let parts = bench.mix.as_deref().and_then(|mix| parse_mix(mix).ok()).unwrap_or_default();
    parts.into_iter().map(|part| part.length).collect()
}

/// Why a frame of that length cannot be: its headers and the signature need more.
fn too_short(bench: &FramesSweep, length: u32) -> Option<String> {
    let (protocol, tags) = (bench.whole_plan().frames.protocol, bench.frames.vlans.len());
    let least = protocol.shortest_frame_bytes(tags);
    let with = match tags {
        0 => String::new(),
        1 => " and a VLAN tag".to_owned(),
        some => format!(" and {some} VLAN tags"),
    };
    (length < least).then(|| {
        format!(
            "{length} bytes hold no {protocol} frame with a signature{with}; {least} bytes at least"
        )
    })
}

fn check_measures(bench: &FramesSweep) -> Checked {
    require(!bench.measures.is_empty(), "measures", "measures is empty")?;
    let names: Vec<&str> = bench.measures.iter().map(|measure| measure.0.name()).collect();
    check_once("measures", &names)?;
    let ordered = names.contains(&record::BenchTest::Contract.name());
    let (key, contract) = match (&bench.contract, &bench.cell_contract) {
        (None, None) => {
            let message = "the measure contract needs contract = { cir = …, cbs_bytes = … } or \
                           cell_contract = { pcr = …, scr = …, mbs = … }";
            return require(!ordered, "measures", message);
        }
        (Some(_), Some(_)) => {
            let message = "contract and cell_contract both say what was ordered; give one of them";
            return key_fault("cell_contract", message);
        }
        (None, Some(_)) if bench.mix.is_some() => {
            return key_fault("mix", "cells are frames of one length; a mix has several");
        }
        (Some(contract), None) => ("contract", contract.contract().map(drop)),
        (None, Some(cells)) => ("cell_contract", cells.contract().map(drop)),
    };
    require(ordered, key, "a contract that no measure asks for; add \"contract\" to measures")?;
    contract.or_else(|(field, reason)| fault_at_path(&[Step::Key(key), Step::Key(field)], reason))
}

fn check_goals(bench: &FramesSweep) -> Checked {
    let Some(goals) = &bench.goals else { return Ok(()) };
    let message = format!("{} goals; 1 to {GOALS_MAX} are allowed", goals.len());
    require((1..=GOALS_MAX).contains(&goals.len()), "goals", message)?;
    let names: Vec<String> = goals.iter().map(|word| word.bench_goal().name).collect();
    check_once("goals", &names)?;
    goals.iter().enumerate().try_for_each(|(index, word)| match word {
        GoalWord::Named(_) => Ok(()),
        GoalWord::Table(table) => prefix_place("goals", index, check_goal(table)),
    })
}

fn check_goal(goal: &GoalTable) -> Checked {
    require(!goal.name.is_empty(), "name", "a goal without a name")?;
    check_seconds("trial_seconds", Some(goal.trial_seconds))?;
    check_seconds("sum_seconds", goal.sum_seconds)?;
    let is_less = goal.sum_seconds.is_some_and(|sum| sum < goal.trial_seconds);
    require(!is_less, "sum_seconds", "sum_seconds is less than one trial")?;
    for (key, ratio, least) in [
        ("loss_ratio", goal.loss_ratio, 0.0),
        ("exceed_ratio", goal.exceed_ratio, 0.0),
        ("width", goal.width, f64::MIN_POSITIVE),
    ] {
        let ratio = ratio.unwrap_or(least);
        let message = format!("{key} of {ratio}; a share below 1");
        require((least..1.0).contains(&ratio), key, message)?;
    }
    Ok(())
}

fn check_numbers(bench: &FramesSweep) -> Checked {
    check_seconds("trial_seconds", bench.trial_seconds)?;
    check_seconds("latency_seconds", bench.latency_seconds)?;
    check_seconds("soak_seconds", bench.soak_seconds)?;
    for (key, seconds) in [
        ("before_seconds", bench.before_seconds),
        ("after_seconds", bench.after_seconds),
        ("settle_seconds", bench.settle_seconds),
    ] {
        let seconds = seconds.unwrap_or(0.0);
        let message = format!("{key} is {seconds}; use 0 or more, at most a day");
        require((0.0..=SECONDS_MAX).contains(&seconds), key, message)?;
    }
    check_number("quick", bench.quick, 1..=QUICK_MAX)?;
    check_number("trials", bench.trials, 1..=TRIALS_MAX)?;
    check_number("flows", Some(bench.frames.flows), 1..=FLOWS_MAX)?;
    check_number("burst", Some(bench.frames.burst), 1..=BURST_MAX)?;
    let frame_rate_max = bench.base.frames_per_sec_max;
    check_number("frames_per_sec_max", frame_rate_max, 1..=u32::MAX.into())?;
    let tags = &bench.frames.vlans;
    let message = format!("at most {VLANS_MAX} tags are allowed");
    require(tags.len() <= VLANS_MAX, "vlans", message)?;
    let (least, most) = (VLAN_IDS.start(), VLAN_IDS.end());
    match tags.iter().position(|tag| !VLAN_IDS.contains(tag)) {
        Some(index) => {
            let message = format!("VLAN {}; {least} to {most} are allowed", tags[index]);
            item_fault("vlans", index, message)
        }
        None => Ok(()),
    }
}

fn check_line(bench: &FramesSweep) -> Checked {
    match bench.line.as_deref().map(str::parse::<BitRate>) {
        Some(Err(error)) => key_fault("line", error.to_string()),
        Some(Ok(rate)) => require(rate.bits_per_sec() > 0, "line", "a line of rate 0"),
        None => Ok(()),
    }
}

/// Refuses a topology on which the frames cannot be sent.
pub(super) fn check_ports(topology: &Topology, bench: &FramesSweep) -> Result<(), String> {
    if bench.plan.as_ref().is_some_and(|plan| !plan.ports.is_empty()) {
        // Interfaces of the host itself: what they take is asked when they are used.
        return Ok(());
    }
    if !topology.lab.quiet {
        let reason = "raw frames are counted on links with nothing else; write lab.quiet = true";
        return Err(reason.to_owned());
    }
    let ports = bench.ports_on_topology(topology)?.len();
    if bench.base.way == record::BenchWay::Mesh && ports < 3 {
        return Err(format!("a mesh has three ports or more; it has {ports} hosts"));
    }
    let layout = Layout::from_plan(&topology.lab).map_err(|problem| problem.to_string())?;
    let node = layout.node_index(&topology.client);
    let target = layout.address_of(&topology.server);
    let way = node
        .zip(target)
        .map(|(node, target)| layout.route_crossings(node, target))
        .unwrap_or_default();
    let mtu = way.iter().map(|crossing| layout.links[crossing.link].mtu_bytes).min();
    let tags = u32::try_from(bench.frames.vlans.len()).unwrap_or(0) * TAG_BYTES;
    let lengths = mix_lengths(bench).into_iter();
    let longest = lengths.chain(bench.frame_sizes.iter().flatten().copied()).max();
    match (mtu, longest) {
        (Some(mtu), Some(longest)) if longest > mtu + AROUND_BYTES + tags => {
            let needed = longest - AROUND_BYTES - tags;
            Err(format!(
                "frames of {longest} bytes carry packets of {needed}; the MTU on the way is {mtu}"
            ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::record::{
        BenchGoal, BenchPlan, BenchProtocol, BenchTest, BenchTimes, BenchWay, CellContract, Plan,
    };
    use crate::study::StudyPlan;

    const HEAD: &str = "name = \"s\"\ntitle = \"t\"\n\
        [[topology]]\nid = \"r\"\ntitle = \"router\"\nclass = \"c\"\nclient = \"a\"\n\
        server = \"b\"\nl3_hops = 1\n[topology.lab]\nquiet = true\n\
        host = [{ name = \"a\" }, { name = \"b\" }]\nrouter = [{ name = \"r\", filters = 10 }]\n\
        link = [{ ends = [\"a\", \"r\"] }, { ends = [\"r\", \"b\"] }]\n\
        [[test]]\nid = \"frames\"\nkind = \"bench\"\nrepetitions = 1\n";

    fn study_from_keys(keys: &str) -> Result<StudyPlan, String> {
        StudyPlan::from_toml(&format!("{HEAD}{keys}\n")).map_err(|error| error.to_string())
    }

    fn bench_plans(keys: &str) -> Vec<(u64, Option<String>, BenchPlan)> {
        let cells = study_from_keys(keys).expect("a sound plan").cell_plans();
        let bench = cells.into_iter().map(|cell| match cell.plan {
            Plan::Bench(plan) => (cell.cell.parameter, cell.cell.label, plan),
            other => panic!("{other:?}"),
        });
        bench.collect()
    }

    const ALL: &str = "frame_sizes = [96, 1518]\nmeasures = [\"flood\", \"throughput\", \
        \"loss-curve\", \"contract\"]\ngoals = [\"typical\", { name = \"mine\", \
        trial_seconds = 0.5, sum_seconds = 2.0, loss_ratio = 1e-5, exceed_ratio = 0.25, \
        width = 0.01 }]\nquick = 10\ntrial_seconds = 0.2\nlatency_seconds = 0.4\ntrials = 2\n\
        protocol = \"tcp6\"\nflows = 16\nway = \"dual\"\nline = \"10 Mbit/s\"\n\
        frames_per_sec_max = 20000\ncontract = { cir = \"5 Mbit/s\", cbs_bytes = 3036 }\n\
        burst = 4\ngenerator = \"packet\"\ncounter = \"packet\"\nseed = 9";

    #[test]
    fn every_key_reaches_the_plan_and_comes_back_from_toml() {
        let plans = bench_plans(ALL);
        assert_eq!(plans.len(), 2);
        let (number, label, plan) = &plans[1];
        assert_eq!((*number, label.as_deref()), (1518, Some("frame 1518")));
        assert_eq!((plan.frames.size_bytes, plan.frames.flows, plan.frames.burst), (1518, 16, 4));
        assert_eq!((plan.frames.protocol, plan.way), (BenchProtocol::Tcp6, BenchWay::Dual));
        assert_eq!(plan.tests.last(), Some(&BenchTest::Contract));
        // A tenth of 1 s over 21 s, and of 0.5 s over 2 s.
        let goals: Vec<_> =
            plan.goals.iter().map(|goal| (goal.final_trial_ns, goal.duration_sum_ns)).collect();
        assert_eq!(goals, [(100_000_000, 2_100_000_000), (50_000_000, 200_000_000)]);
        assert_eq!(plan.goals[1].name, "mine / 10");
        let times = &plan.times;
        assert_eq!((times.trial_ns, times.latency_ns), (200_000_000, 400_000_000));
        assert_eq!(times.repetitions, 2);
        assert_eq!(plan.line.map(|line| line.bits_per_sec()), Some(10_000_000));
        assert_eq!(
            plan.contract.as_ref().map(|contract| contract.cir.bits_per_sec()),
            Some(5_000_000)
        );
        assert_eq!((plan.frames_per_sec_max, plan.seed, plan.filters), (Some(20_000), 9, Some(10)));
        let hosts: Vec<_> = plan.ports.iter().filter_map(|port| port.host.as_deref()).collect();
        assert_eq!(hosts, ["a", "b"]);
        assert_eq!(plan.ports[1].gateway.as_deref(), Some("fd00:0:0:2::2"));
        let study = study_from_keys(ALL).expect("a sound plan");
        let again = StudyPlan::from_toml(&study.to_toml().expect("small numbers"));
        assert_eq!(again, Ok(study));
    }

    const CELLS: &str = "cell_contract = { pcr = 1000, cdvt = \"4ms\", scr = 250, mbs = 32 }";

    #[test]
    fn a_study_can_have_the_waits_of_rfc_2544() {
        let plans = bench_plans(
            "frame_sizes = [64]\nmeasures = [\"soak\", \"throughput\"]\ntrial_seconds = 60.0\n\
             latency_seconds = 120.0\nsoak_seconds = 3600.0\nbefore_seconds = 2.0\n\
             after_seconds = 2.0\nsettle_seconds = 5.0\ntrials = 20",
        );
        assert_eq!(plans[0].2.times, BenchTimes::rfc2544());
    }

    #[test]
    fn a_contract_of_cells_reaches_the_plan() {
        let keys = format!("frame_sizes = [64]\nmeasures = [\"contract\"]\n{CELLS}");
        let ordered = CellContract {
            pcr_per_sec: 1000.0,
            cdvt_ns: Some(4_000_000),
            scr_per_sec: 250.0,
            mbs_cells: 32,
        };
        assert_eq!(bench_plans(&keys)[0].2.cell_contract, Some(ordered));
        let study = study_from_keys(&keys).expect("a sound plan");
        let again = StudyPlan::from_toml(&study.to_toml().expect("small numbers"));
        assert_eq!(again, Ok(study));
    }

    #[test]
    fn every_host_is_a_port_of_a_mesh_and_of_measures_with_a_third_one() {
        let third = |keys: &str| {
            let text = format!("{HEAD}{keys}\n")
                .replace("{ name = \"b\" }]", "{ name = \"b\" }, { name = \"c\" }]")
                .replace("[\"r\", \"b\"] }]", "[\"r\", \"b\"] }, { ends = [\"r\", \"c\"] }]");
            let study = StudyPlan::from_toml(&text).expect("a sound plan");
            match study.cell_plans().remove(0).plan {
                Plan::Bench(plan) => plan.ports.into_iter().filter_map(|port| port.host).collect(),
                other => panic!("{other:?}"),
            }
        };
        let all: Vec<String> = third("frame_sizes = [64]\nmeasures = [\"flood\"]\nway = \"mesh\"");
        assert_eq!(all, ["a", "b", "c"]);
        assert_eq!(third("frame_sizes = [64]\nmeasures = [\"blocking\"]"), all);
        assert_eq!(third("frame_sizes = [64]\nmeasures = [\"flood\"]"), ["a", "b"]);
    }

    #[test]
    fn what_is_left_out_is_as_the_benchmark_has_it() {
        let plans = bench_plans("frame_sizes = [64]\nmeasures = [\"throughput\"]");
        let plan = &plans[0].2;
        assert_eq!(plan.goals, [BenchGoal::strict(), BenchGoal::typical()]);
        assert_eq!(plan.times, BenchTimes::default());
        assert_eq!((plan.frames.protocol, plan.way), (BenchProtocol::Udp4, BenchWay::Single));
        assert_eq!((plan.line, plan.frames_per_sec_max, plan.seed), (None, None, 1));
    }

    #[test]
    fn a_mix_is_one_value_with_its_mean() {
        let plans = bench_plans("mix = \"imix\"\nmeasures = [\"flood\"]");
        let (number, label, plan) = &plans[0];
        // (7 x 64 + 4 x 594 + 1518) / 12 = 361.8.
        assert_eq!((*number, label.as_deref()), (362, Some("mix imix")));
        assert_eq!((plan.frames.size_bytes, plan.frames.mix.as_deref()), (362, Some("imix")));
    }

    #[test]
    fn each_fault_is_named_with_its_place() {
        let sizes = "frame_sizes = [64]\n";
        let flood = "measures = [\"flood\"]\n";
        // The test begins in line 15, and line 19 is the first that a case adds.
        let cases: &[(&str, &str, &str)] = &[
            (flood, "15:1", "it varies nothing"),
            (&format!("frame_sizes = []\n{flood}"), "19:15", "frame_sizes is empty"),
            (&format!("frame_sizes = [63]\n{flood}"), "19:16", "63; the least is 64"),
            (&format!("frame_sizes = [64, 9217]\n{flood}"), "19:20", "the most is 9216"),
            (&format!("frame_sizes = [64, 64]\n{flood}"), "19:20", "64 is there twice"),
            (&format!("frame_sizes = [1519]\n{flood}"), "15:1", "MTU on the way is 1500"),
            (&format!("{sizes}mix = \"imix\"\n{flood}"), "20:7", "give one of them"),
            (&format!("mix = \"64:x\"\n{flood}"), "19:7", "`64:x` is no part of a mix"),
            (&format!("mix = \"20\"\n{flood}"), "19:7", "20 bytes; 64 to 9216"),
            (
                &format!("frame_sizes = [84, 83]\n{flood}protocol = \"udp6\""),
                "19:20",
                "83 bytes hold no udp6 frame with a signature; 84 bytes at least",
            ),
            (
                &format!("mix = \"imix\"\n{flood}protocol = \"tcp6\"\nvlans = [1, 2]"),
                "19:7",
                "tcp6 frame with a signature and 2 VLAN tags; 104 bytes at least",
            ),
            (sizes, "15:1", "missing field `measures`"),
            (&format!("{sizes}measures = []"), "20:12", "measures is empty"),
            (&format!("{sizes}measures = [\"speed\"]"), "20:13", "`speed` is no measure"),
            (&format!("{sizes}measures = [\"flood\", \"flood\"]"), "20:22", "flood is there twice"),
            (&format!("{sizes}measures = [\"contract\"]"), "20:12", "needs contract ="),
            (&format!("{sizes}{flood}{CELLS}"), "21:17", "add \"contract\" to measures"),
            (
                &format!("{sizes}measures = [\"contract\"]\n{}", CELLS.replace("250", "1000")),
                "21:51",
                "not below the peak rate",
            ),
            (
                &format!("mix = \"imix\"\nmeasures = [\"contract\"]\n{CELLS}"),
                "19:7",
                "frames of one length",
            ),
            (&format!("{sizes}{flood}goals = []"), "21:9", "0 goals"),
            (&format!("{sizes}{flood}goals = [\"fast\"]"), "21:10", "`fast` is no goal"),
            (&format!("{sizes}{flood}goals = [5]"), "21:10", "strict, typical, verified"),
            (&format!("{sizes}{flood}goals = [{{ name = \"x\" }}]"), "21:10", "trial_seconds"),
            (&format!("{sizes}{flood}quick = 0"), "21:9", "quick is 0; 1 to 1000"),
            (&format!("{sizes}{flood}trial_seconds = 0.0"), "21:17", "trial_seconds is 0"),
            (&format!("{sizes}{flood}soak_seconds = 0.0"), "21:16", "soak_seconds is 0"),
            (&format!("{sizes}{flood}settle_seconds = -1.0"), "21:18", "settle_seconds is -1"),
            (&format!("{sizes}{flood}protocol = \"ipx\""), "15:1", "none here routes ipx"),
            (&format!("{sizes}{flood}protocol = \"sctp\""), "21:12", "unknown variant `sctp`"),
            (&format!("{sizes}{flood}way = \"mesh\""), "15:1", "a mesh has three ports or more"),
            (&format!("{sizes}{flood}line = \"fast\""), "21:8", "fast"),
            (&format!("{sizes}{flood}flows = 1000001"), "21:9", "1 to 1000000"),
            (&format!("{sizes}{flood}vlans = [4095]"), "21:10", "1 to 4094"),
            (&format!("{sizes}{flood}seconds = 1.0"), "21:1", "bench has no key 'seconds'"),
            (&format!("{sizes}{flood}count = 1"), "21:1", "bench has no key 'count'"),
            (&format!("{sizes}{flood}dscp = 64"), "21:8", "dscp is 64; 0 to 63"),
            (
                &format!("{sizes}{flood}reset_command = \"reboot\""),
                "21:1",
                "no key 'reset_command'",
            ),
        ];
        for (keys, place, words) in cases {
            let line = study_from_keys(keys).expect_err(words);
            assert!(line.contains(words), "{keys}\n'{words}' is not in: {line}");
            assert!(line.starts_with(&format!("{place}: ")), "{keys}\n{line}\nwanted {place}");
            assert!(!line.contains('\n'));
        }
        let loud = HEAD.replace("quiet = true\n", "");
        let text = format!("{loud}{sizes}{flood}");
        let line = StudyPlan::from_toml(&text).expect_err("it is not quiet").to_string();
        assert!(line.contains("topology 'r': ") && line.contains("lab.quiet = true"), "{line}");
    }

    #[test]
    fn keys_of_a_benchmark_belong_to_no_other_test() {
        let text = format!("{HEAD}sizes_bytes = [56]\ncount = 1\nframe_sizes = [64]\n");
        let text = text.replace("kind = \"bench\"", "kind = \"ping\"");
        let line = StudyPlan::from_toml(&text).expect_err("a ping").to_string();
        assert!(line.contains("ping has no key 'frame_sizes'"), "{line}");
    }
}
