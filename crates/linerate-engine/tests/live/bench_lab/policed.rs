//! Routers that police: what was set is found from live trains. Where the tester was late each
//! time, what it says is held to what a late tester may say; that what is planted is found to a
//! percent, and never told wrong by a late tester, is judged in virtual time
//! (`device::contract`, `device::cells`).

use linerate_core::record::{BenchContract, BenchResult, BenchTest, CellContract};
use linerate_core::units::BitRate;

use super::{MS, ROUTER, found, lab, may_run_in_kernel, plan, routed, run_on};

/// How often a port sent more than `ns` late; such a measurement may be made again.
fn late_ports(found: &BenchResult, ns: u64) -> usize {
    let ports = found.trials.iter().flat_map(|trial| &trial.ports);
    ports.filter(|port| port.worst_late_ns > ns).count()
}

/// How often a device is measured while the tester is late.
const RUNS_MAX: usize = 4;

#[test]
fn a_router_that_polices_is_found_with_the_rate_and_the_burst_that_were_set() {
    if !may_run_in_kernel() {
        return;
    }
    let Some(lab) = lab(ROUTER) else { return };
    let rules = "add table ip police; \
                 add chain ip police forward { type filter hook forward priority 0; }; \
                 add rule ip police forward ip protocol udp \
                 limit rate over 1000/second burst 50 packets drop";
    if !run_on(&lab, "r", "nft", &[rules]) {
        return;
    }
    let mut plan = plan(routed(&lab), &[BenchTest::Contract]);
    plan.frames_per_sec_max = Some(20_000);
    plan.times.trial_ns = 500 * MS;
    // Every trial loses frames, and what comes over a veth comes at once.
    plan.times.after_ns = 200 * MS;
    plan.contract = Some(BenchContract {
        // 1000 frames of 64 bytes, and 50 of them at once.
        cir: BitRate::from_bits_per_sec(512_000),
        cbs_bytes: 3200,
        eir: None,
        ebs_bytes: None,
    });
    for _ in 0..RUNS_MAX {
        let found = found(&lab, &plan);
        let contract = found.contract.as_ref().unwrap();
        println!("{contract:?}");
        // On a busy machine some are invalid, and are left out.
        assert!(contract.steps.len() <= 6);
        // It grants just what was ordered: however late the tester was, it is never said to break
        // it.
        assert_ne!(contract.as_ordered, Some(false), "{:?}", contract.findings);
        // The kernel refills the bucket by whole ticks, so that what was set is found to within a
        // tenth, and the burst to within some frames.
        let late = late_ports(&found, 4 * MS);
        let Some((rate, burst)) = contract.cir_bps.as_ref().zip(contract.cbs_bytes.as_ref()) else {
            assert!(late > 0, "frames were dropped: {:?}", contract.findings);
            continue;
        };
        let near = (rate.value / 512_000.0 - 1.0).abs() < 0.1;
        if near && (burst.value - 3200.0).abs() < 30.0 * 64.0 {
            return;
        }
        assert!(late > 0, "{rate:?} {burst:?}");
    }
}

#[test]
fn a_router_that_polices_cells_is_found_with_both_of_its_rules() {
    if !may_run_in_kernel() {
        return;
    }
    let Some(lab) = lab(ROUTER) else { return };
    // PCR 1000/s with 5 at once, SCR 250/s with 15 at once, which is half of what is ordered.
    let rules = "add table ip police; \
                 add chain ip police forward { type filter hook forward priority 0; }; \
                 add rule ip police forward ip protocol udp \
                 limit rate over 1000/second burst 5 packets drop; \
                 add rule ip police forward ip protocol udp \
                 limit rate over 250/second burst 15 packets drop";
    if !run_on(&lab, "r", "nft", &[rules]) {
        return;
    }
    let mut plan = plan(routed(&lab), &[BenchTest::Contract]);
    plan.frames_per_sec_max = Some(20_000);
    plan.times.trial_ns = 500 * MS;
    // Every trial loses frames, and what comes over a veth comes at once.
    plan.times.after_ns = 200 * MS;
    plan.cell_contract = Some(CellContract {
        pcr_per_sec: 1000.0,
        cdvt_ns: Some(4 * MS),
        scr_per_sec: 250.0,
        mbs_cells: 32,
    });
    for _ in 0..RUNS_MAX {
        let found = found(&lab, &plan);
        let contract = found.contract.as_ref().unwrap();
        println!("{contract:?}");
        // A pause of more than a cell's time, 4 ms, refills the bucket amid a train.
        let late = late_ports(&found, 4 * MS);
        if contract.as_ordered.is_none() && late > 0 {
            continue;
        }
        assert_eq!(contract.as_ordered, Some(false));
        // To within a tenth and some cells, as above: MBS = 1 + (14 x 4 ms - 4 ms) / 3 ms = 18.
        let truths = [("pcr", 1000.0, 100.0), ("cdvt", 0.004, 0.002), ("scr", 250.0, 25.0)];
        // A rule that a late tester did not reach is left out of the comparison.
        let off =
            truths.into_iter().chain([("mbs", 18.0, 6.0)]).find_map(|(name, truth, width)| {
                let found = contract.compared.iter().find(|it| it.parameter == name);
                let near = found.is_some_and(|it| (it.found - truth).abs() < width);
                (!near).then(|| format!("{name}: {found:?}"))
            });
        let Some(off) = off else { return };
        assert!(late > 0, "{off}");
    }
}
