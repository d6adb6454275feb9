//! What keeps this host's civil time right, how well, and the lines that would make it better:
//! for delays of one direction between hosts.

use std::net::IpAddr;

use linerate_engine::rtt::civil_time::CivilTime;
use linerate_proto::ptp4l::{PortState, Ptp4l, Stamping};
use linerate_report::Align::Left;
use linerate_report::{Block, Fact, ReportTable};

/// Longest interval of polls that keeps the drift between two small, with a margin: `minpoll 5`
/// polls each 32 s. Operators of public servers ask for no more than one in 16 s.
const POLL_S: f64 = 40.0;

/// Time services that answered, and the kernel's own state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TimeServices {
    /// State of chronyd, where one answers.
    chronyd: Option<Chronyd>,
    /// State of ptp4l, where one answers.
    ptp4l: Option<Ptp4l>,
    /// The kernel's clock is marked as synchronised.
    kernel: bool,
}

/// State that chronyd reports.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Chronyd {
    source: Option<IpAddr>,
    stratum: u16,
    error_ns: Option<u64>,
    half_delay_ns: f64,
    update_interval_s: f64,
}

/// Asks chronyd, ptp4l and the kernel.
pub(super) fn query_services() -> TimeServices {
    let asked = CivilTime::ask_clock_keepers();
    let chronyd = asked.tracking().map(|tracking| Chronyd {
        source: tracking.source,
        stratum: tracking.stratum,
        error_ns: tracking.error_ns(),
        half_delay_ns: tracking.root_delay_s * 1e9 / 2.0,
        update_interval_s: tracking.update_interval_s,
    });
    let kernel = linerate_sys::clock_facts::sync_state().is_ok_and(|state| state.synchronised);
    TimeServices { chronyd, ptp4l: asked.ptp4l_status().copied(), kernel }
}

/// The state, and a table of lines where some would help.
pub(super) fn blocks(found: &TimeServices) -> Vec<Block> {
    let state = Block::Facts(vec![
        Fact::new("chronyd", 27, chronyd_state(found)),
        Fact::new("ptp4l", 27, ptp4l_state(found.ptp4l.as_ref())),
    ]);
    let lines = chrony_conf_lines(found);
    if lines.is_empty() {
        return vec![state];
    }
    let table = ReportTable::from_columns([("in /etc/chrony/chrony.conf", Left), ("for", Left)]);
    vec![state, Block::Table(table.with_rows(lines.into_iter().map(|(line, why)| [line, why])))]
}

fn chronyd_state(found: &TimeServices) -> String {
    let Some(chronyd) = found.chronyd else {
        return "does not answer on 127.0.0.1, UDP port 323".to_owned();
    };
    let Some(error_ns) = chronyd.error_ns else {
        return "runs, and is not synchronised to any source".to_owned();
    };
    let source = chronyd
        .source
        .map_or_else(|| "a reference clock".to_owned(), |address| address.to_string());
    format!(
        "right to {:.1} us by {source}, stratum {}, asked every {:.0} s",
        error_ns as f64 / 1e3,
        chronyd.stratum,
        chronyd.update_interval_s
    )
}

/// State of ptp4l and its clock, in a sentence.
fn ptp4l_state(said: Option<&Ptp4l>) -> String {
    let Some(said) = said else {
        return "does not answer at /var/run/ptp4lro, nor at /var/run/ptp4l, which is root's"
            .to_owned();
    };
    let grandmaster =
        said.grandmaster.map_or_else(String::new, |grandmaster| format!(" {grandmaster}"));
    let traceable = said.time.is_some_and(|time| time.traceable);
    let worth = match said.grandmaster.and_then(|clock| clock.accuracy_ns()) {
        _ if !traceable => "which is not traceable to UTC".to_owned(),
        Some(ns) => format!("traceable to UTC, right to {:.1} us", ns as f64 / 1e3),
        None => "traceable to UTC, how right is unknown".to_owned(),
    };
    let place = said.current.map_or_else(String::new, |current| {
        format!(
            ": offset {:+.1} us over a path of {:.1} us, {} from{grandmaster}, {worth}",
            current.offset_ns / 1e3,
            current.path_delay_ns / 1e3,
            if current.steps == 1 {
                "1 step".to_owned()
            } else {
                format!("{} steps", current.steps)
            },
        )
    });
    match said.port.map(|port| (port.state, port.stamping)) {
        Some((PortState::Slave, Stamping::Software)) => {
            let right = said.error_ns().map(|ns| format!(", right to {:.1} us", ns as f64 / 1e3));
            format!("keeps civil time{}{place}", right.unwrap_or_default())
        }
        Some((PortState::Slave, Stamping::Hardware)) => {
            format!("keeps the card's clock, which is not civil time{place}")
        }
        Some((PortState::Uncalibrated, _)) => format!("has a master, not followed yet{place}"),
        Some((PortState::Master, _)) => format!("is itself the master{grandmaster}, {worth}"),
        _ => "runs, and follows no master".to_owned(),
    }
}

fn chrony_conf_lines(found: &TimeServices) -> Vec<(String, String)> {
    let Some(chronyd) = found.chronyd else { return Vec::new() };
    let Some(error_ns) = chronyd.error_ns else {
        let why = "a source: the nearest server of NTP, not one of a pool far away";
        return vec![(
            "server ADDRESS iburst minpoll 5 maxpoll 5 xleave".to_owned(),
            why.to_owned(),
        )];
    };
    let mut lines = Vec::new();
    let of_delay = chronyd.half_delay_ns / error_ns.max(1) as f64;
    if let Some(source) = chronyd.source.filter(|_| chronyd.update_interval_s > POLL_S) {
        let why = format!("less drift between polls, now {:.0} s", chronyd.update_interval_s);
        lines.push((format!("server {source} iburst minpoll 5 maxpoll 5 xleave"), why));
    }
    if of_delay > 0.5 && chronyd.source.is_some() {
        let why = format!(
            "a nearer one: {:.0} % of the error is half the round trip",
            100.0 * of_delay.min(1.0)
        );
        lines.push(("server ADDRESS iburst minpoll 5 maxpoll 5 xleave".to_owned(), why));
    }
    if !found.kernel {
        lines.push(("rtcsync".to_owned(), "the kernel to know that the clock is right".to_owned()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use linerate_report::Document;

    use super::*;

    fn report_text(chronyd: Option<Chronyd>, kernel: bool) -> String {
        Document::default()
            .with_section(blocks(&TimeServices { chronyd, ptp4l: None, kernel }))
            .text(Some(80))
    }

    fn chronyd() -> Chronyd {
        Chronyd {
            source: Some(IpAddr::from([10, 99, 13, 1])),
            stratum: 2,
            error_ns: Some(812_340),
            half_delay_ns: 100_000.0,
            update_interval_s: 64.7,
        }
    }

    #[test]
    fn lines_are_printed_for_what_the_error_is_made_of() {
        let polled = report_text(Some(chronyd()), true);
        let found = TimeServices { chronyd: Some(chronyd()), ptp4l: None, kernel: true };
        let said = "right to 812.3 us by 10.99.13.1, stratum 2, asked every 65 s";
        assert_eq!(chronyd_state(&found), said);
        assert!(polled.contains("server 10.99.13.1 iburst minpoll 5 maxpoll 5 xleave"), "{polled}");
        assert!(!polled.contains("rtcsync") && !polled.contains("nearer"), "{polled}");
        let far = Chronyd { half_delay_ns: 700_000.0, update_interval_s: 32.1, ..chronyd() };
        let far = report_text(Some(far), false);
        assert!(far.contains("a nearer one: 86 % of the error is half the round trip"), "{far}");
        assert!(far.contains("rtcsync") && !far.contains("between polls"), "{far}");
        let good = Chronyd { update_interval_s: 32.1, ..chronyd() };
        assert!(!report_text(Some(good), true).contains("chrony.conf"), "nothing is to be mended");
    }

    #[test]
    fn a_chronyd_that_is_silent_or_lost_is_said_so() {
        assert!(report_text(None, false).contains("does not answer on 127.0.0.1, UDP port 323"));
        let lost = report_text(Some(Chronyd { error_ns: None, ..chronyd() }), false);
        assert!(lost.contains("not synchronised to any source"), "{lost}");
        assert!(lost.contains("server ADDRESS iburst"), "{lost}");
    }

    /// The values of testdata/ptp4l.
    #[test]
    fn ptp4l_is_said_of_the_clock_that_it_keeps() {
        use linerate_proto::ptp4l::{Current, Grandmaster, Port, TimeProperties};
        let identity = [0xda, 0xf8, 0x8f, 0xff, 0xfe, 0xd4, 0x9f, 0x20];
        let port = |state, stamping| Some(Port { state, stamping });
        let slave = Ptp4l {
            current: Some(Current { steps: 1, offset_ns: -277.0, path_delay_ns: 2_331.0 }),
            grandmaster: Some(Grandmaster { identity, class: 6, accuracy: 0x23 }),
            time: Some(TimeProperties { traceable: true, tai: false, utc_offset_valid: true }),
            port: port(PortState::Slave, Stamping::Software),
        };
        assert_eq!(
            ptp4l_state(Some(&slave)),
            "keeps civil time, right to 3.6 us: offset -0.3 us over a path of 2.3 us, 1 step from \
             daf88f.fffe.d49f20, traceable to UTC, right to 1.0 us"
        );
        let own = Grandmaster { identity, class: 248, accuracy: 0xfe };
        let time = TimeProperties { traceable: false, tai: false, utc_offset_valid: false };
        let free = Ptp4l { grandmaster: Some(own), time: Some(time), ..slave };
        let said = ptp4l_state(Some(&free));
        assert!(said.starts_with("keeps civil time: offset"), "{said}");
        assert!(said.ends_with("daf88f.fffe.d49f20, which is not traceable to UTC"), "{said}");
        let card = Ptp4l { port: port(PortState::Slave, Stamping::Hardware), ..slave };
        assert!(
            ptp4l_state(Some(&card))
                .starts_with("keeps the card's clock, which is not civil time:")
        );
        let master = Ptp4l { port: port(PortState::Master, Stamping::Software), ..free };
        let said = "is itself the master daf88f.fffe.d49f20, which is not traceable to UTC";
        assert_eq!(ptp4l_state(Some(&master)), said);
        assert!(ptp4l_state(None).starts_with("does not answer at /var/run/ptp4lro"));
    }
}
