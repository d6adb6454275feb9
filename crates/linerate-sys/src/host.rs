//! What this host is: kernel, processor, clock source, TCP defaults. A file that cannot be read
//! leaves its field absent.

use std::fs;
use std::str::FromStr;

/// First line of a file under /proc or /sys.
pub fn read_line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().next().map(|line| line.trim().to_owned())
}

/// One number of a file under /proc or /sys.
pub fn read_number<T: FromStr>(path: &str) -> Option<T> {
    read_line(path)?.parse().ok()
}

/// Three numbers of a file: minimum, default, maximum.
pub fn read_triple(path: &str) -> Option<[u64; 3]> {
    let line = read_line(path)?;
    let mut numbers = line.split_ascii_whitespace().map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some([next()?, next()?, next()?])
}

/// Kernel name and release.
pub fn kernel() -> String {
    let uname = rustix::system::uname();
    format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy())
}

/// The processor's model, as the kernel names it.
pub fn cpu_model() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Processors that this process may use.
pub fn cpus() -> Option<u32> {
    u32::try_from(std::thread::available_parallelism().ok()?.get()).ok()
}

/// Names the running kernel: two ends with the same value share one machine (proc(5), boot_id).
pub fn boot_id() -> Option<String> {
    read_line("/proc/sys/kernel/random/boot_id")
}
