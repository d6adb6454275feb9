//! What the loads of a device are held against: the tester, the medium, and the plan's own bound.

use linerate_core::device::medium::is_tester_limited;

/// No search goes below this load, frames per second.
pub(super) const LEAST_FPS: u64 = 10;

/// The bounds that hold for every load of a device, in frames per second of one port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The most that the tester can send and count on one port.
    pub tester_fps: f64,
    /// The most that the medium allows; none where its rate is not known.
    pub theoretical_fps: Option<f64>,
    /// The plan's own bound.
    pub asked_max: Option<u64>,
}

impl Bounds {
    /// The largest load of a search.
    pub(super) fn max_fps(&self) -> u64 {
        let medium = self.theoretical_fps.unwrap_or(f64::INFINITY);
        let most = self.tester_fps.min(medium).max(LEAST_FPS as f64) as u64;
        self.asked_max.map_or(most, |asked| asked.min(most)).max(LEAST_FPS)
    }

    pub(super) fn is_tester_limited(&self, fps: f64) -> bool {
        is_tester_limited(fps, self.tester_fps)
            && self.theoretical_fps.is_none_or(|theoretical| fps < theoretical * 0.999)
    }
}
