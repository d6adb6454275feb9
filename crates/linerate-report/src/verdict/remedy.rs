//! Remedies in words: lines to type, and sentences where there is none.
//!
//! Left out: which remedy a cause has, and its figures (`core::explain`).

use linerate_core::record::{
    At, HostAdvice, IpFamily, PathAdvice, Remedy, RemedyCommand, RemedyLine, SHAPED_SHARE,
    SocketBuffer,
};

use crate::number;

/// A thing to do and its place, with what it did where it was tried.
pub fn action_with_place(line: &RemedyLine) -> String {
    let tried = line.tried.map_or_else(String::new, |tried| {
        let [before, after] = [tried.before_bps, tried.after_bps].map(number::measured_rate);
        format!(" (tried: {before} -> {after})")
    });
    format!("{}: {}{tried}", place_in_words(line.at), command_or_advice(&line.remedy))
}

const fn place_in_words(at: At) -> &'static str {
    match at {
        At::Sender => "at the sender",
        At::Receiver => "at the receiver",
        At::Path => "on the path",
        At::Test => "this test",
    }
}

/// A line to type, or a sentence where there is none.
pub(crate) fn command_or_advice(remedy: &Remedy) -> String {
    match remedy {
        Remedy::Line(command) => command_text(command),
        Remedy::Advice(advice) => host_sentence(advice),
        Remedy::OnPath(advice) => path_sentence(advice),
    }
}

fn command_text(command: &RemedyCommand) -> String {
    let device = |name: &Option<String>| name.clone().unwrap_or_else(|| "DEV".to_owned());
    match command {
        RemedyCommand::RaiseBuffer { buffer, least_bytes, default_bytes, bytes } => {
            let name = match buffer {
                SocketBuffer::Receive => "tcp_rmem",
                SocketBuffer::Send => "tcp_wmem",
            };
            format!("sysctl -w net.ipv4.{name}=\"{least_bytes} {default_bytes} {bytes}\"")
        }
        RemedyCommand::RaiseAskedMax { buffer, bytes } => {
            let name = match buffer {
                SocketBuffer::Receive => "rmem_max",
                SocketBuffer::Send => "wmem_max",
            };
            format!("sysctl -w net.core.{name}={bytes}  # only to keep -w")
        }
        RemedyCommand::ScaleWindows => "sysctl -w net.ipv4.tcp_window_scaling=1".to_owned(),
        RemedyCommand::UseCongestionControl { name } => {
            format!("sysctl -w net.ipv4.tcp_congestion_control={name}")
        }
        RemedyCommand::FairQueue => "sysctl -w net.core.default_qdisc=fq".to_owned(),
        RemedyCommand::Pace { interface, bps } => {
            let rate = tc_rate(*bps);
            format!("tc qdisc replace dev {} root fq maxrate {rate}", device(interface))
        }
        RemedyCommand::ReplaceShaper { interface } => {
            format!("tc qdisc replace dev {} root fq_codel", device(interface))
        }
        RemedyCommand::FullClock => "cpupower frequency-set -g performance".to_owned(),
        RemedyCommand::CheckHost => "linerate doctor".to_owned(),
        RemedyCommand::KeepWindowWhenIdle => {
            "sysctl -w net.ipv4.tcp_slow_start_after_idle=0".to_owned()
        }
        RemedyCommand::ForgetMetrics => "ip tcp_metrics flush".to_owned(),
        RemedyCommand::ShowFixedMetrics => "ip route show; ip tcp_metrics show".to_owned(),
        RemedyCommand::ProbeMtu => "sysctl -w net.ipv4.tcp_mtu_probing=1".to_owned(),
        RemedyCommand::ClampSegments { mss_bytes } => format!(
            "nft add rule ip filter forward tcp flags syn tcp option maxseg size set {mss_bytes}"
        ),
    }
}

/// A rate as tc(8) reads it, in as many digits as a measured rate has: `53.2kbit`, `93542kbit`.
fn tc_rate(bps: f64) -> String {
    let kbit = bps / 1e3;
    if kbit < 1e3 { format!("{kbit:.1}kbit") } else { format!("{kbit:.0}kbit") }
}

fn host_sentence(advice: &HostAdvice) -> String {
    match advice {
        HostAdvice::LeaveOutWindow { asked_bytes } => format!(
            "leave out -w (--window): it fixes the buffer at {asked_bytes} bytes and turns the \
             kernel's own tuning off"
        ),
        HostAdvice::BufferNeeded { rate, bytes, has_bytes } => {
            let has = has_bytes.map_or_else(String::new, |most| format!(", and has {most}"));
            format!("{rate} over this round trip needs {bytes} bytes there{has}")
        }
        HostAdvice::FreeTheCpu => {
            "give the program a CPU of its own, apart from the one of the card's interrupts; \
             lift its CPU quota; use larger reads and writes, more streams (-P)"
                .to_owned()
        }
        HostAdvice::ReadSooner => {
            "let the receiving application read sooner or more at once".to_owned()
        }
        HostAdvice::TestLonger => "test longer (-t 30), or leave the start out (-O 3)".to_owned(),
        HostAdvice::KeepConnections => "keep connections open; move more in each".to_owned(),
        HostAdvice::LeaveOutPace => "leave out -b (--bitrate), or raise it".to_owned(),
        HostAdvice::LeaveOutReadPace => "leave out --read-pace, or raise it".to_owned(),
        HostAdvice::RaiseRate => "raise the rate (-b), until datagrams are lost".to_owned(),
        HostAdvice::AllowPace => "let the program allow a higher pace".to_owned(),
        HostAdvice::UnlockWindow => {
            "take a locked cwnd or window off the route to this peer".to_owned()
        }
        HostAdvice::SeveralStreams { count } => {
            format!("several connections at once (-P {count})")
        }
        HostAdvice::SmallerSegments { bytes } => {
            format!("segments of at most {bytes} bytes (-M {bytes})")
        }
        HostAdvice::AskForBuffers { bytes } => {
            format!("ask for buffers of {bytes} bytes (-w {bytes})")
        }
        HostAdvice::WriteMore { bytes } => format!("write more at once (-l {bytes})"),
    }
}

fn path_sentence(advice: &PathAdvice) -> String {
    let fixed = match advice {
        PathAdvice::AskForBurst { bytes } => {
            return format!(
                "ask for the contract's rate and burst: a burst of {bytes:.0} bytes lets one flow \
                 fill it"
            );
        }
        PathAdvice::ManageQueue { shaped_bps } => {
            let rate = match shaped_bps {
                Some(bps) => format!("{} ({SHAPED_SHARE} of its rate)", tc_rate(*bps)),
                None => format!("{SHAPED_SHARE} of its rate, once that is known"),
            };
            return format!("at the bottleneck: CAKE or FQ-CoDel, shaped to {rate}");
        }
        PathAdvice::Buffer { bytes } => {
            return format!("a buffer of {bytes:.0} bytes at the bottleneck, for one flow");
        }
        PathAdvice::UseFamily { family } => return use_family(*family),
        PathAdvice::KeepWindowScale => {
            "let the device keep the window scale option of SYN segments (RFC 7323 §2.2)"
        }
        PathAdvice::KeepSack => "let the device keep the options of SYN segments (SACK, RFC 2018)",
        PathAdvice::FindDamage => {
            "find what damages packets: counters of FCS and FEC errors hop by hop, optics, radio"
        }
        PathAdvice::LetTooBigPass => {
            "let ICMP type 3 code 4 and ICMPv6 type 2 pass, or clamp the MSS of SYN segments to \
             the smallest MTU less 40 (IPv6 less 60)"
        }
        PathAdvice::FindInterruption => {
            "find what interrupts the path: roaming, power saving, a route that flaps, a cable"
        }
        PathAdvice::ExamineWayBack => {
            "look at the way back of the data's path: its rate, its queue, and what else fills it"
        }
        PathAdvice::ShareByFlow => {
            "share load over paths by flow (addresses and ports), not by packet"
        }
        PathAdvice::TakeOutMember => {
            "flows of one test have unlike paths: look at the error counters of each member of a \
             trunk (LACP, ECMP) on the way, and take the one that loses out of it"
        }
        PathAdvice::UseSeveralFlows => {
            "one flow has one member of a trunk or one of several paths: use several (-P)"
        }
        PathAdvice::ForwardMore => {
            "larger packets, or a device, a rule set or an offload that forwards more of them"
        }
        PathAdvice::LiftClamp => {
            "take the MSS clamp off, or set it to the path MTU less 40 (IPv6 less 60)"
        }
        PathAdvice::QueuePerFlow => {
            "look at what else uses the path; a queue per flow (FQ-CoDel, CAKE) at the bottleneck \
             gives each its share"
        }
        PathAdvice::SameDuplex => {
            "one end of a link is half duplex: set both ends to autonegotiate, or both to the \
             same speed and full duplex; late collisions at one port and FCS errors at the other \
             show which link (ethtool -S DEV)"
        }
        PathAdvice::FindPortRule => {
            "find the rule that names the server's port: a policer, a class of a shaper, a filter"
        }
    };
    fixed.to_owned()
}

fn use_family(family: IpFamily) -> String {
    let (name, flag, other) = match family {
        IpFamily::V4 => ("IPv4", "-4", "IPv6"),
        IpFamily::V6 => ("IPv6", "-6", "IPv4"),
    };
    format!(
        "until the path of {other} is mended, use {name} ({flag}): linerate trace by either shows \
         where they part"
    )
}

#[cfg(test)]
mod tests {
    use linerate_core::units::BitRate;

    use super::*;

    #[test]
    fn a_rate_to_type_has_the_digits_that_were_measured() {
        let told =
            |bps| command_or_advice(&Remedy::OnPath(PathAdvice::ManageQueue { shaped_bps: bps }));
        let rates = [(53_191.3, "53.2kbit"), (486_369.9, "486.4kbit"), (93.5419e6, "93542kbit")];
        for (bps, rate) in rates {
            let line = told(Some(bps));
            assert!(line.ends_with(&format!("shaped to {rate} (0.95 of its rate)")), "{line}");
        }
        assert!(told(None).ends_with("shaped to 0.95 of its rate, once that is known"));
        // Nothing is rounded to whole Mbit/s.
        let rate = BitRate::from_bits_per_sec(831_000);
        let needed = HostAdvice::BufferNeeded { rate, bytes: 1 << 20, has_bytes: None };
        let why = command_or_advice(&Remedy::Advice(needed));
        assert_eq!(why, "831 kbit/s over this round trip needs 1048576 bytes there");
    }

    #[test]
    fn a_line_to_type_has_the_figures_of_the_path_and_says_where() {
        let raised = |buffer| RemedyCommand::RaiseBuffer {
            buffer,
            least_bytes: 4096,
            default_bytes: 131_072,
            bytes: 10_485_760,
        };
        let most = |buffer| RemedyCommand::RaiseAskedMax { buffer, bytes: 10_485_760 };
        let bbr = RemedyCommand::UseCongestionControl { name: "bbr".to_owned() };
        let on = |name: &str| Some(name.to_owned());
        for (command, typed) in [
            (raised(SocketBuffer::Receive), "sysctl -w net.ipv4.tcp_rmem=\"4096 131072 10485760\""),
            (raised(SocketBuffer::Send), "sysctl -w net.ipv4.tcp_wmem=\"4096 131072 10485760\""),
            (
                most(SocketBuffer::Receive),
                "sysctl -w net.core.rmem_max=10485760  # only to keep -w",
            ),
            (most(SocketBuffer::Send), "sysctl -w net.core.wmem_max=10485760  # only to keep -w"),
            (bbr, "sysctl -w net.ipv4.tcp_congestion_control=bbr"),
            (
                RemedyCommand::Pace { interface: on("eth0"), bps: 95e6 },
                "tc qdisc replace dev eth0 root fq maxrate 95000kbit",
            ),
            (
                RemedyCommand::ReplaceShaper { interface: None },
                "tc qdisc replace dev DEV root fq_codel",
            ),
            (
                RemedyCommand::ClampSegments { mss_bytes: 1360 },
                "nft add rule ip filter forward tcp flags syn tcp option maxseg size set 1360",
            ),
        ] {
            let said = action_with_place(&RemedyLine::command(At::Receiver, command));
            assert_eq!(said, format!("at the receiver: {typed}"));
        }
    }

    #[test]
    fn advice_has_its_place_its_figures_and_the_flag_that_does_it() {
        for (remedy, sentence) in [
            (
                RemedyLine::advice(At::Test, HostAdvice::LeaveOutWindow { asked_bytes: 65_536 }),
                "this test: leave out -w (--window): it fixes the buffer at 65536 bytes and turns \
                 the kernel's own tuning off",
            ),
            (
                RemedyLine::advice(At::Test, HostAdvice::SmallerSegments { bytes: 1200 }),
                "this test: segments of at most 1200 bytes (-M 1200)",
            ),
            (
                RemedyLine::on_path(PathAdvice::UseFamily { family: IpFamily::V6 }),
                "on the path: until the path of IPv4 is mended, use IPv6 (-6): linerate trace by \
                 either shows where they part",
            ),
            (
                RemedyLine::on_path(PathAdvice::AskForBurst { bytes: 250_000.4 }),
                "on the path: ask for the contract's rate and burst: a burst of 250000 bytes lets \
                 one flow fill it",
            ),
        ] {
            assert_eq!(action_with_place(&remedy), sentence);
        }
    }
}
