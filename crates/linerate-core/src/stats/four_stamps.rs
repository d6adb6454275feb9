//! The four times of a probe (RFC 8762 §4).

/// The times of one probe in ns since 1970: T1 and T4 by the local clock, T2 and T3 by the remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FourStamps {
    /// Time at which the probe left (T1).
    pub t1_ns: u64,
    /// Time at which the probe arrived (T2).
    pub t2_ns: u64,
    /// Time at which the answer left (T3).
    pub t3_ns: u64,
    /// Time at which the answer arrived (T4).
    pub t4_ns: u64,
}

/// `later` less `earlier`, which two clocks may have turned round.
pub(super) const fn signed_difference(later: u64, earlier: u64) -> i64 {
    later.wrapping_sub(earlier).cast_signed()
}

impl FourStamps {
    /// T2 − T1: the delay there plus the offset of the clocks.
    pub const fn forward_ns(self) -> i64 {
        signed_difference(self.t2_ns, self.t1_ns)
    }

    /// T4 − T3: the delay back less the offset of the clocks.
    pub const fn backward_ns(self) -> i64 {
        signed_difference(self.t4_ns, self.t3_ns)
    }

    /// Time between arrival and answer at the reflector: T3 − T2.
    pub const fn residence_ns(self) -> i64 {
        signed_difference(self.t3_ns, self.t2_ns)
    }

    /// (T4 − T1) − (T3 − T2): the offset cancels out.
    pub const fn path_ns(self) -> i64 {
        signed_difference(self.t4_ns, self.t1_ns) - self.residence_ns()
    }
}
