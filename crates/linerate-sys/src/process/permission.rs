//! What this process may do with a file (access(2)).

use std::path::Path;

use rustix::fs::{Access, access};

/// Whether it may write a file or in a directory: not on a medium that is mounted read-only.
pub fn may_write(path: &Path) -> bool {
    access(path, Access::WRITE_OK).is_ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_not_there_is_not_written() {
        assert!(super::may_write(&std::env::temp_dir()));
        assert!(!super::may_write(std::path::Path::new("/proc/version/none")));
    }
}
