//! What this host is: kernel, processor, clock source, TCP defaults. A file that cannot be read
//! leaves its field absent.

use std::fs;
use std::str::FromStr;

/// A file under /proc or /sys as a whole.
pub fn read_text(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

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

/// Kernel, name of the host and machine, as `uname -snrvm` prints them.
pub fn system_info() -> String {
    let uname = rustix::system::uname();
    let words =
        [uname.sysname(), uname.nodename(), uname.release(), uname.version(), uname.machine()];
    words.map(|word| word.to_string_lossy().into_owned()).join(" ")
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

/// What the processors of this machine did since it started, in ticks of USER_HZ, all processors
/// together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorTime {
    /// Ran something: user, nice, system, interrupts.
    pub busy_ticks: u64,
    /// Wanted to run something while the host of this virtual machine ran another.
    pub stolen_ticks: u64,
}

/// The processor time of this machine; `None` where the kernel does not tell.
pub fn processor_time() -> Option<ProcessorTime> {
    processor_time_of(&read_line("/proc/stat")?)
}

/// The same of each processor, by its number; none where the kernel does not tell.
pub fn processor_times() -> Vec<(u32, ProcessorTime)> {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    text.lines().filter_map(one_processor_of).collect()
}

fn one_processor_of(line: &str) -> Option<(u32, ProcessorTime)> {
    let (number, rest) = line.strip_prefix("cpu")?.split_once(' ')?;
    Some((number.parse().ok()?, processor_time_of(&format!("cpu {rest}"))?))
}

/// What one processor did with frames that came, since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Softnet {
    /// The processor.
    pub cpu: u32,
    /// Frames that it took up.
    pub processed: u64,
    /// Frames that found its backlog full (net.core.netdev_max_backlog): lost.
    pub dropped: u64,
    /// Times that its work was cut short with frames left (net.core.netdev_budget).
    pub squeezed: u64,
}

/// What each processor did with frames that came (/proc/net/softnet_stat, of all namespaces).
pub fn softnet() -> Vec<Softnet> {
    let text = fs::read_to_string("/proc/net/softnet_stat").unwrap_or_default();
    text.lines().zip(0..).filter_map(|(line, row)| softnet_of(line, row)).collect()
}

/// Reads a line of hexadecimal words: processed, dropped, squeezed, and in word 12 the processor
/// (Linux 5.10; lines were in their order before, those of absent processors left out).
fn softnet_of(line: &str, row: u32) -> Option<Softnet> {
    let parse = |word| u32::from_str_radix(word, 16).ok();
    let words: Vec<u32> = line.split_ascii_whitespace().map_while(parse).collect();
    let [processed, dropped, squeezed, ..] = *words.as_slice() else { return None };
    Some(Softnet {
        cpu: words.get(12).copied().unwrap_or(row),
        processed: processed.into(),
        dropped: dropped.into(),
        squeezed: squeezed.into(),
    })
}

/// Reads the first line of /proc/stat (proc_stat(5)): `cpu`, user, nice, system, idle, iowait,
/// irq, softirq, steal. User time contains guest time.
fn processor_time_of(line: &str) -> Option<ProcessorTime> {
    let numbers = line.strip_prefix("cpu ")?.split_ascii_whitespace();
    let ticks: Vec<u64> = numbers.map_while(|text| text.parse().ok()).collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = ticks.as_slice() else {
        return None;
    };
    Some(ProcessorTime { busy_ticks: user + nice + system + irq + softirq, stolen_ticks: *steal })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_and_stolen_time_are_read_and_idle_time_is_not_busy() {
        // Linux 6.18: 784836 + 359 + 320018 + 0 + 77963 = 1183176.
        let line = "cpu  784836 359 320018 1064892 5194 0 77963 31663 0 0";
        let expected = ProcessorTime { busy_ticks: 1_183_176, stolen_ticks: 31_663 };
        assert_eq!(processor_time_of(line), Some(expected));
    }

    #[test]
    fn each_processor_is_told_by_its_number() {
        let expected = ProcessorTime { busy_ticks: 1 + 2 + 3 + 6 + 7, stolen_ticks: 8 };
        assert_eq!(one_processor_of("cpu12 1 2 3 4 5 6 7 8 0 0"), Some((12, expected)));
        assert_eq!(one_processor_of("cpu  1 2 3 4 5 6 7 8 0 0"), None);
        assert_eq!(one_processor_of("ctxt 1 2 3 4 5 6 7 8"), None);
        assert!(!processor_times().is_empty());
    }

    #[test]
    fn work_on_frames_is_told_for_each_processor() {
        // Linux 6.18, processor 1: 0x10 frames, 2 dropped, 3 times cut short.
        let line = "00000010 00000002 00000003 00000000 00000000 00000000 00000000 00000000 \
                    00000000 00000000 00000000 00000000 00000001 00000000 00000000";
        let expected = Softnet { cpu: 1, processed: 16, dropped: 2, squeezed: 3 };
        assert_eq!(softnet_of(line, 7), Some(expected));
        let before_5_10 = "00000010 00000002 00000003 00000000 00000000";
        assert_eq!(softnet_of(before_5_10, 7), Some(Softnet { cpu: 7, ..expected }));
        assert_eq!(softnet_of("0 1", 0), None);
        assert!(!softnet().is_empty());
    }

    #[test]
    fn a_line_without_stolen_time_tells_nothing() {
        // Linux before 2.6.11 ended with softirq.
        for line in ["", "cpu", "cpu  1 2 3 4 5 6 7", "cpu0 1 2 3 4 5 6 7 8", "cpu  a b"] {
            assert_eq!(processor_time_of(line), None, "{line}");
        }
    }
}
