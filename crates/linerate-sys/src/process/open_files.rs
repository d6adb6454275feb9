//! Limit on the descriptors of this process (RLIMIT_NOFILE, getrlimit(2)).

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The current limit; `None` where there is none.
pub fn current_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Raises the soft limit to the hard limit, for which no privilege is needed; returns the new
/// limit.
pub fn raise_limit() -> Option<u64> {
    let limits = getrlimit(Resource::Nofile);
    // A kernel that refuses leaves the limit where it is.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, ..limits });
    current_limit()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_limit_is_raised_to_the_administrators() {
        let before = super::current_limit();
        let after = super::raise_limit();
        assert!(after.is_none() || after >= before, "{before:?}, then {after:?}");
        assert_eq!(super::current_limit(), after);
    }
}
