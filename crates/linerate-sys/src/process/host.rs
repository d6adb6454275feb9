//! Facts of this host: kernel, processor, clock source, TCP defaults. A file that cannot be read
//! leaves its field absent.

use std::fs;
use std::str::FromStr;

/// Whole text of a file under /proc or /sys.
pub fn read_text(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// First line of a file under /proc or /sys.
pub fn read_line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().next().map(|line| line.trim().to_owned())
}

/// Number in the first line of a file under /proc or /sys.
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

/// Name and release of the kernel.
pub fn kernel() -> String {
    let uname = rustix::system::uname();
    format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy())
}

/// Kernel, host name and machine, as `uname -snrvm` prints them.
pub fn system_info() -> String {
    let uname = rustix::system::uname();
    let words =
        [uname.sysname(), uname.nodename(), uname.release(), uname.version(), uname.machine()];
    words.map(|word| word.to_string_lossy().into_owned()).join(" ")
}

/// Model of the processor, as in /proc/cpuinfo.
pub fn cpu_model() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Number of processors that this process may use.
pub fn usable_cpus() -> Option<u32> {
    u32::try_from(std::thread::available_parallelism().ok()?.get()).ok()
}

/// Identifier of the running kernel: two ends with the same value are on one host (proc(5),
/// boot_id).
pub fn boot_id() -> Option<String> {
    read_line("/proc/sys/kernel/random/boot_id")
}

/// Processor time of this host since its start, in ticks of USER_HZ, summed over all processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorTime {
    /// Busy time: user, nice, system, interrupts.
    pub busy_ticks: u64,
    /// Part of the busy time in soft interrupts, for network and timers.
    pub softirq_ticks: u64,
    /// Steal time, during which the hypervisor ran other virtual machines.
    pub stolen_ticks: u64,
}

/// Processor time of this host; `None` where /proc/stat cannot be read.
pub fn processor_time() -> Option<ProcessorTime> {
    processor_time_of(&read_line("/proc/stat")?)
}

/// Processor time of each processor, by its number; empty where /proc/stat cannot be read.
pub fn processor_times() -> Vec<(u32, ProcessorTime)> {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    text.lines().filter_map(one_processor_of).collect()
}

fn one_processor_of(line: &str) -> Option<(u32, ProcessorTime)> {
    let (number, rest) = line.strip_prefix("cpu")?.split_once(' ')?;
    Some((number.parse().ok()?, processor_time_of(&format!("cpu {rest}"))?))
}

/// Counters of `/proc/net/netstat` or `snmp` in the namespace of the calling thread, as pairs of
/// `group.name` and value; negative values are left out.
pub fn net_counters(file: &str) -> Vec<(String, u64)> {
    // /proc/net is that of the process's first thread, which may be in another namespace.
    net_counters_of(&read_text(&format!("/proc/thread-self/net/{file}")).unwrap_or_default())
}

fn net_counters_of(text: &str) -> Vec<(String, u64)> {
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines.chunks_exact(2).filter_map(|pair| {
        let (group, names) = pair[0].split_once(':')?;
        let (same, values) = pair[1].split_once(':')?;
        (group == same).then_some((group, names, values))
    });
    let counters = pairs.flat_map(|(group, names, values)| {
        let pairs = names.split_ascii_whitespace().zip(values.split_ascii_whitespace());
        pairs
            .filter_map(move |(name, value)| Some((format!("{group}.{name}"), value.parse().ok()?)))
    });
    counters.collect()
}

/// Counters of a file with a name and a value on each line, such as cpu.stat of a control group.
pub fn line_counters(path: &str) -> Vec<(String, u64)> {
    let text = read_text(path).unwrap_or_default();
    let pairs = text.lines().filter_map(|line| line.split_once(char::is_whitespace));
    pairs.filter_map(|(name, value)| Some((name.to_owned(), value.trim().parse().ok()?))).collect()
}

/// Counters in cpu.stat of this process's control group, of either version (cgroups(7)).
pub fn cpu_stat() -> Vec<(String, u64)> {
    let groups = read_text("/proc/self/cgroup").unwrap_or_default();
    let found = cpu_stat_paths(&groups).find_map(|path| {
        let counters = line_counters(&path);
        (!counters.is_empty()).then_some(counters)
    });
    found.unwrap_or_default()
}

/// Candidate paths of cpu.stat: those of version 1 first, because a controller is in one version
/// only. The group's path may be relative to another mount, so its root is a candidate, too.
fn cpu_stat_paths(groups: &str) -> impl Iterator<Item = String> {
    let entries = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let entries: Vec<(&str, &str)> = entries.collect();
    let of = |controller: &'static str, mounts: &'static [&'static str]| {
        let group = entries
            .iter()
            .find(|(controllers, _)| controllers.split(',').any(|name| name == controller));
        let paths = group.map(|(_, path)| path.trim_end_matches('/').to_owned());
        paths.into_iter().flat_map(move |path| {
            let at = mounts.iter().flat_map(move |mount| {
                [format!("{mount}{path}/cpu.stat"), format!("{mount}/cpu.stat")]
            });
            at.collect::<Vec<String>>()
        })
    };
    let first = of("cpu", &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]);
    let second = of("", &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]);
    first.chain(second).collect::<Vec<_>>().into_iter()
}

/// Pressure stall totals of a resource (`cpu`, `memory`, `io`) in µs: the time in which at least
/// one task (`some`) or all tasks (`full`) waited for it (PSI, Linux 4.20).
pub fn pressure(resource: &str) -> Vec<(String, u64)> {
    let text = read_text(&format!("/proc/pressure/{resource}")).unwrap_or_default();
    let totals = text.lines().filter_map(|line| {
        let (kind, rest) = line.split_once(' ')?;
        let total = rest.split_once("total=")?.1.parse().ok()?;
        Some((kind.to_owned(), total))
    });
    totals.collect()
}

/// Counters of received frames on one processor since the host's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Softnet {
    /// Number of the processor.
    pub cpu: u32,
    /// Frames processed.
    pub processed: u64,
    /// Frames dropped because its backlog was full (net.core.netdev_max_backlog).
    pub dropped: u64,
    /// Times that it stopped with frames left because its budget was used (net.core.netdev_budget).
    pub squeezed: u64,
}

/// Counters of received frames of each processor (/proc/net/softnet_stat, of all namespaces).
pub fn softnet() -> Vec<Softnet> {
    let text = fs::read_to_string("/proc/net/softnet_stat").unwrap_or_default();
    text.lines().zip(0..).filter_map(|(line, row)| softnet_of(line, row)).collect()
}

/// Parses a line of hexadecimal words: processed, dropped, squeezed, and in word 12 the processor
/// (since Linux 5.10; before, one line for each present processor in order).
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

/// Parses the first line of /proc/stat (proc_stat(5)): `cpu`, user, nice, system, idle, iowait,
/// irq, softirq, steal. User time contains guest time.
fn processor_time_of(line: &str) -> Option<ProcessorTime> {
    let numbers = line.strip_prefix("cpu ")?.split_ascii_whitespace();
    let ticks: Vec<u64> = numbers.map_while(|text| text.parse().ok()).collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = ticks.as_slice() else {
        return None;
    };
    Some(ProcessorTime {
        busy_ticks: user + nice + system + irq + softirq,
        softirq_ticks: *softirq,
        stolen_ticks: *steal,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_and_stolen_time_are_read_and_idle_time_is_not_busy() {
        // Linux 6.18: 784836 + 359 + 320018 + 0 + 77963 = 1183176.
        let line = "cpu  784836 359 320018 1064892 5194 0 77963 31663 0 0";
        let expected =
            ProcessorTime { busy_ticks: 1_183_176, softirq_ticks: 77_963, stolen_ticks: 31_663 };
        assert_eq!(processor_time_of(line), Some(expected));
    }

    #[test]
    fn each_processor_is_told_by_its_number() {
        let expected =
            ProcessorTime { busy_ticks: 1 + 2 + 3 + 6 + 7, softirq_ticks: 7, stolen_ticks: 8 };
        assert_eq!(one_processor_of("cpu12 1 2 3 4 5 6 7 8 0 0"), Some((12, expected)));
        assert_eq!(one_processor_of("cpu  1 2 3 4 5 6 7 8 0 0"), None);
        assert_eq!(one_processor_of("ctxt 1 2 3 4 5 6 7 8"), None);
        assert!(!processor_times().is_empty());
    }

    #[test]
    fn names_and_values_of_the_network_are_read_in_pairs() {
        let text = "TcpExt: SyncookiesSent TCPTimeouts\nTcpExt: 0 7\n\
                    Tcp: MaxConn RetransSegs\nTcp: -1 5\n";
        let expected = [("TcpExt.SyncookiesSent", 0), ("TcpExt.TCPTimeouts", 7)];
        let expected = expected.into_iter().chain([("Tcp.RetransSegs", 5)]);
        let expected: Vec<_> = expected.map(|(name, value)| (name.to_owned(), value)).collect();
        assert_eq!(net_counters_of(text), expected);
        assert_eq!(net_counters_of("Tcp: A\nUdp: 1\n"), []);
        assert!(net_counters("netstat").iter().any(|(name, _)| name == "TcpExt.TCPTimeouts"));
    }

    #[test]
    fn the_control_group_is_looked_for_in_both_versions() {
        let of = |groups| cpu_stat_paths(groups).collect::<Vec<_>>();
        let second = "0::/user.slice/a.scope\n";
        assert_eq!(of(second)[0], "/sys/fs/cgroup/user.slice/a.scope/cpu.stat");
        let first = "3:cpuset:/x\n1:cpu,cpuacct:/box\n0::/\n";
        assert_eq!(of(first)[0], "/sys/fs/cgroup/cpu/box/cpu.stat");
        assert!(of(first).contains(&"/sys/fs/cgroup/unified/cpu.stat".to_owned()));
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
