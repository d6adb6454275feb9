//! The most bytes in any window of a given length, in constant memory: windows move by a tenth.

/// Parts of a window; it moves by one part at a time.
const PARTS: usize = 10;

/// The busiest window of one length.
#[derive(Clone, Debug)]
pub struct Peaks {
    part_ns: u64,
    parts: [u64; PARTS],
    slot: usize,
    part_end_ns: u64,
    sum: u64,
    most: u64,
}

impl Peaks {
    /// Windows of `window_ns`, a multiple of ten.
    pub const fn new(window_ns: u64) -> Self {
        let part_ns = window_ns / PARTS as u64;
        Self { part_ns, parts: [0; PARTS], slot: 0, part_end_ns: part_ns, sum: 0, most: 0 }
    }

    /// Length of the window, ns.
    pub const fn window_ns(&self) -> u64 {
        self.part_ns * PARTS as u64
    }

    /// Bytes of the busiest window.
    pub const fn most_bytes(&self) -> u64 {
        self.most
    }

    /// Takes a packet that arrives; time starts at 0 and does not go back.
    #[inline]
    pub fn arrive(&mut self, at_ns: u64, bytes: u32) {
        if at_ns >= self.part_end_ns {
            self.advance(at_ns);
        }
        self.parts[self.slot] += u64::from(bytes);
        self.sum += u64::from(bytes);
        self.most = self.most.max(self.sum);
    }

    fn advance(&mut self, at_ns: u64) {
        let parts = (at_ns - self.part_end_ns) / self.part_ns + 1;
        self.part_end_ns = self.part_end_ns.saturating_add(parts.saturating_mul(self.part_ns));
        for _ in 0..parts.min(PARTS as u64) {
            self.slot = (self.slot + 1) % PARTS;
            self.sum -= self.parts[self.slot];
            self.parts[self.slot] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_finds_a_burst_that_crosses_its_start() {
        let mut peaks = Peaks::new(1_000_000);
        // 1000 bytes at 0.95 and at 1.05 ms: both in the window from 0.9 to 1.9 ms.
        peaks.arrive(0, 10);
        peaks.arrive(950_000, 1000);
        peaks.arrive(1_050_000, 1000);
        assert_eq!(peaks.most_bytes(), 2000);
        // An hour later all of it is gone.
        peaks.arrive(3_600_000_000_000, 1500);
        assert_eq!((peaks.most_bytes(), peaks.sum), (2000, 1500));
        assert_eq!(peaks.window_ns(), 1_000_000);
    }

    #[test]
    fn a_steady_stream_fills_every_window_alike() {
        // 1000 bytes each 0.1 ms: 10 of them in each window of 1 ms.
        let mut peaks = Peaks::new(1_000_000);
        (0..1000).for_each(|n| peaks.arrive(n * 100_000, 1000));
        assert_eq!(peaks.most_bytes(), 10_000);
        peaks.arrive(u64::MAX, 1);
    }
}
