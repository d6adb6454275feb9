//! What the loads of a device are held against: the tester, the medium, and the plan's own bound.

use linerate_core::device::medium::is_tester_limited;

/// No search goes below this load, frames per second.
pub(super) const LEAST_FPS: u64 = 10;

/// What the loads of a device are held against.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// What the tester can send and count on one port.
    pub tester_fps: f64,
    /// What the medium allows.
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
            && self.theoretical_fps.is_none_or(|it| fps < it * 0.999)
    }
}
