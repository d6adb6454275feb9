//! Attribution of a loss: to the device, or possibly to the tester.
//!
//! No loss is the device's while the times at which the tester sent can explain it. Two things can:
//! frames that left nearer to each other than asked for ([`super::SendWatch`]), and, where tester
//! and device share processors, pauses of both. A device of this machine that is held up together
//! with the sender may go on later than it, and loses what was sent meanwhile.

/// A time in which the sender was away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// The number of the frame after it.
    pub sequence: u64,
    /// Lateness of that frame, ns.
    pub late_ns: u64,
}

/// A device that was paused together with the sender resumes within this many times the pause.
const SKEW: f64 = 2.0;

/// Marks lost frames near a pause as arrived in `came`, so that they do not count against the
/// device: up to the length of the pause before it, and up to twice that after it. `fps` is the
/// load.
pub fn forgive_pauses(pauses: &[Pause], came: &mut [bool], fps: f64) {
    for pause in pauses {
        let (from, to) = around(pause, fps, came.len());
        if from < to {
            came[from..to].fill(true);
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of frames of one trial, not negative"
)]
fn around(pause: &Pause, fps: f64, count: usize) -> (usize, usize) {
    let frames = pause.late_ns as f64 * fps / 1e9;
    let at = pause.sequence as f64;
    let from = (at - frames - 1.0).max(0.0) as usize;
    let to = (at + SKEW * frames + 2.0) as usize;
    (from, to.min(count))
}

/// Party that a loss is laid on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// Nothing was lost, or nothing that the send times do not explain frame by frame.
    Nobody,
    /// The loss may be due to the tester's send times: it says nothing about the device.
    MayBeTester,
    /// More than they explain.
    Device,
}

/// Party that the loss of a trial is laid on: of `lost` frames the send timing explains `explained`
/// one by one, and up to `could_lose` more that it does not name.
pub const fn assign_blame(lost: u64, explained: u64, could_lose: u64) -> Blame {
    let left = lost.saturating_sub(explained);
    if left == 0 {
        Blame::Nobody
    } else if left > could_lose {
        Blame::Device
    } else {
        Blame::MayBeTester
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_beside_a_pause_are_told_from_those_elsewhere() {
        // 10,000 frames/s; 1 ms away before frame 100: 89 to 121 are near it.
        let pause = Pause { sequence: 100, late_ns: 1_000_000 };
        let mut came = vec![true; 1000];
        for lost in [89, 105, 121, 88, 122, 700] {
            came[lost] = false;
        }
        forgive_pauses(&[pause, pause], &mut came, 10_000.0);
        let left: Vec<usize> = (0..1000).filter(|number| !came[*number]).collect();
        assert_eq!(left, [88, 122, 700]);
    }

    #[test]
    fn the_device_is_blamed_for_what_exceeds_the_explanations_alone() {
        assert_eq!(assign_blame(0, 0, 9), Blame::Nobody);
        assert_eq!(assign_blame(5, 5, 0), Blame::Nobody);
        assert_eq!(assign_blame(5, 2, 3), Blame::MayBeTester);
        assert_eq!(assign_blame(5, 2, 2), Blame::Device);
        assert_eq!(assign_blame(1, 0, 0), Blame::Device);
    }
}
