//! What published figures are compared by: shares of what the product computes, and the sums that
//! their authors made.

use linerate_core::theory::atm::{CELL_BYTES, CELL_HEADER_BYTES, CELL_PAYLOAD_BYTES, cell_train};

use super::links::{pdh, sonet};
use super::{Rule, answer};

pub(super) const RULES: &[Rule] = &[
    ("over", |of| Some(of.number("of") / of.number("by"))),
    ("times", |of| Some(of.number("of") * of.number("by"))),
    ("less", |of| Some(of.number("of") * (1.0 - of.number("share")))),
    ("of-payload", |of| Some(of.number("measured") / answer("payload-rate", of)?)),
    ("of-ip", |of| Some(of.number("measured") / answer("ip-rate", of)?)),
    ("sonet-overhead", |of| {
        let line = sonet(of.text("line"))?;
        Some(1.0 - line.payload_bps() as f64 / line.line_bps() as f64)
    }),
    ("cell-overhead", |_| Some(cell_overhead())),
    ("cells-without-headers", |of| Some(of.number("R") * (1.0 - cell_overhead()))),
    ("cell-payload", |of| Some(pdh(of.text("line"))?.cell_bps() * (1.0 - cell_overhead()))),
    // Trailer, LLC/SNAP and padding, as a share of the cells' payload.
    ("aal5-overhead", |of| {
        let train = cell_train(of.small("n"), of.small("E"))?;
        Some(1.0 - of.number("n") / f64::from(CELL_PAYLOAD_BYTES * train.cells))
    }),
    // What is left for IP of a rate of cells, as of the whole line.
    ("ip-of-cells", |of| {
        let line_bps = sonet(of.text("line"))?.payload_bps() as f64;
        Some(of.number("R") * answer("ip-rate", of)? / line_bps)
    }),
    // The smallest MTU at which Gigabit Ethernet leaves the rate after so many bytes of headers.
    ("smallest-mtu", |of| {
        let share = of.number("G") / 1e9;
        Some(((of.number("H") + 38.0 * share) / (1.0 - share)).ceil())
    }),
    // Bytes in the sender's buffer when a clock that stops there shows the measured rate.
    ("left-in-sender", |of| {
        let path_bps = answer("payload-rate", of)?;
        Some(of.number("bytes") * (1.0 - path_bps / of.number("measured")))
    }),
    // Packets a second when a rate is divided by a length alone.
    ("packets-of", |of| Some(of.number("R") / (8.0 * of.number("L")))),
];

/// Share of a cell that is its header.
fn cell_overhead() -> f64 {
    f64::from(CELL_HEADER_BYTES) / f64::from(CELL_BYTES)
}
