//! The elements of a path against their closed forms, and that one seed decides alike twice.

use linerate_core::path::check::{SCORE_MAX, checks};
use linerate_core::path::{Ecn, Outlet, Packet};
use linerate_core::record::PathPlan;
use linerate_core::time::MonoTime;

/// Packets of each check: a tenth of what `linerate path check` takes, as tests are not optimised.
const PACKETS: u64 = 100_000;

#[test]
fn every_element_keeps_to_its_closed_form() {
    let all = checks(PACKETS, 1);
    assert!(all.len() >= 16, "{}", all.len());
    let off: Vec<_> = all.iter().filter(|check| !check.is_within_chance()).collect();
    assert!(off.is_empty(), "more than {SCORE_MAX} standard errors off: {off:#?}");
}

#[test]
fn a_figure_that_is_off_is_found() {
    let mut check = checks(10_000, 1).remove(0);
    check.score = -SCORE_MAX * 1.01;
    assert!(!check.is_within_chance());
    check.score = f64::NAN;
    assert!(!check.is_within_chance(), "no data are no proof");
}

/// Everything random at once.
const ROUGH: &str = "
    link = \"oc3\"
    carrier = \"aal5-llcsnap\"
    delay = \"5 ms\"
    queue = \"red\"
    buffer = \"60 kB\"
    loss = \"0.1%\"
    burst_loss = { ratio = \"0.5%\", burst_packets = 4 }
    bit_errors = \"1e-8\"
    cell_loss = { probability = \"1e-5\", burst_cells = 3 }
    duplicate = \"0.1%\"
    corrupt = \"0.1%\"
    jitter = { mean = \"1 ms\", reorder = true }
    reorder = { share = \"1%\", extra = \"2 ms\" }
    cross = [{ rate = \"40 Mbit/s\", poisson = true }]
";

/// Every decision of a path on 100,000 packets, as bytes.
fn decisions(seed: u64) -> Vec<u8> {
    let plan: PathPlan = toml::from_str(ROUGH).expect("a plan");
    let plan = PathPlan { seed: Some(seed), ..plan };
    let [mut forward, _] = plan.build_pipelines(MonoTime::default()).expect("it can be built");
    let mut out = Outlet::default();
    for number in 0..100_000_u64 {
        let packet = Packet {
            number,
            ip_bytes: 1500,
            flow: 0,
            hosts: [0; 2],
            ecn: Ecn::NotCapable,
            dont_fragment: true,
            corrupted: false,
            tag: number,
        };
        forward.receive(MonoTime::from_nanos(number * 110_000), packet, &mut out);
    }
    forward.release(MonoTime::from_nanos(60_000_000_000), &mut out);
    let mut bytes = Vec::new();
    for departure in &out.departures {
        bytes.extend(departure.at.as_nanos().to_le_bytes());
        bytes.extend(departure.packet.number.to_le_bytes());
        bytes.push(u8::from(departure.packet.corrupted));
    }
    for lost in out.lost.iter().filter(|lost| !lost.packet.is_cross()) {
        bytes.extend(lost.at.as_nanos().to_le_bytes());
        bytes.extend(format!("{} {:?}", lost.packet.number, lost.cause).as_bytes());
    }
    bytes
}

#[test]
fn one_seed_decides_alike_twice_byte_for_byte_and_another_seed_does_not() {
    let once = decisions(7);
    assert!(once.len() > 1_000_000);
    assert!(once == decisions(7));
    assert!(once != decisions(8));
}
