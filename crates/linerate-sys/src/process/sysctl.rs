//! Kernel settings under /proc/sys (proc_sys(5)). Network settings are those of the calling
//! thread's namespace.

use std::fs;
use std::path::PathBuf;

use crate::{Error, Result};

/// Reads a setting, for example `net/ipv4/ip_forward`, without the line end.
/// # Errors
/// When this kernel has no such setting.
pub fn read(name: &str) -> Result<String> {
    let text = fs::read_to_string(sysctl_path(name));
    let text = text.map_err(|source| Error::new("read setting", name, source))?;
    Ok(text.trim_end().to_owned())
}

/// Writes a setting, unless it already has the value, so that a read-only /proc/sys is an error
/// only where a change is needed.
/// # Errors
/// When this kernel has no such setting, refuses the value, or /proc/sys is read-only.
pub fn write(name: &str, value: &str) -> Result<()> {
    if read(name).is_ok_and(|now| now.split_whitespace().eq(value.split_whitespace())) {
        return Ok(());
    }
    fs::write(sysctl_path(name), value).map_err(|source| Error::new("write setting", name, source))
}

/// True if this kernel has the setting.
pub fn exists(name: &str) -> bool {
    sysctl_path(name).exists()
}

fn sysctl_path(name: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(name)
}
