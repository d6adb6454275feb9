//! Permissions of this process for a file (access(2)).

use std::path::Path;

use rustix::fs::{Access, access};

/// True if this process may write a file or a directory; false on a read-only file system.
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
