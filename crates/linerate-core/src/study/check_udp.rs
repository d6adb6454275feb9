//! What a UDP test of a study must hold: one varied list, datagrams that there are, an end.

use super::UdpSweep;
use super::check_tcp::{Checked, check_base, check_lists, check_seconds, problem};
use crate::lab::Step;

/// The protocol's bounds on datagrams.
const SIZE_BYTES: (u32, u32) = (16, 65_507);

/// Whether the test can be asked for.
pub(super) fn check_udp(udp: &UdpSweep) -> Checked {
    check_lists(&udp.lists(), "rates or sizes_bytes")?;
    let sizes = udp.sizes_bytes.as_deref().unwrap_or_default();
    let (least, most) = SIZE_BYTES;
    if let Some(at) = sizes.iter().position(|size| !(least..=most).contains(size)) {
        let reason = format!("{} bytes; {least} to {most} are allowed", sizes[at]);
        return problem(&[Step::Key("sizes_bytes"), Step::Index(at)], reason);
    }
    // A value that is listed twice would fill the same cell twice.
    let values = udp.values();
    let twice = |at: &usize| values[..*at].iter().any(|it| it.number == values[*at].number);
    if let Some(at) = (0..values.len()).find(twice) {
        let path = [Step::Key(udp.parameter().key), Step::Index(at)];
        return problem(&path, format!("{} is there twice", values[at].label));
    }
    // The length is checked above; this one fits every packet.
    check_base(&udp.base, |base| base.clone().with_size(least).check())?;
    check_seconds(udp.seconds, udp.omit_seconds)
}
