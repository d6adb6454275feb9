//! What takes the times of packets on each interface: the kernel, and the card, which is asked and
//! not used.

use linerate_report::Align::Left;
use linerate_report::{Block, ReportTable};
use linerate_sys::netlink::RouteSocket;
use linerate_sys::ptp_clock::ClockDistance;
use linerate_sys::stamp_abilities::{HardwareReceive, HardwareStamping, StampAbilities};

/// Interfaces that are looked at; a host of containers has hundreds.
const INTERFACES_MAX: usize = 16;

/// One interface with its timestamping.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct InterfaceStamping {
    name: String,
    can: StampAbilities,
    told: Option<HardwareStamping>,
    /// The card's clock beside civil time, or why it is not known.
    clock: Option<Result<ClockDistance, String>>,
}

/// Timestamping of each interface that is set up.
pub(super) fn interfaces() -> Vec<InterfaceStamping> {
    let links = RouteSocket::open().and_then(|mut socket| socket.list_links()).unwrap_or_default();
    let names = links.into_iter().filter(|link| link.up).map(|link| link.name);
    names.take(INTERFACES_MAX).filter_map(interface).collect()
}

fn interface(name: String) -> Option<InterfaceStamping> {
    let can = StampAbilities::from_interface(&name).ok()?;
    let told = HardwareStamping::from_interface(&name).ok().flatten();
    let clock = |number| ClockDistance::from_clock(number).map_err(|error| error.to_string());
    let clock = can.clock.map(clock);
    Some(InterfaceStamping { name, can, told, clock })
}

/// A line for each.
pub(super) fn blocks(found: &[InterfaceStamping]) -> Vec<Block> {
    if found.is_empty() {
        return Vec::new();
    }
    let heads = ["interface", "kernel stamps", "card stamps", "card's clock"];
    let table = ReportTable::from_columns(heads.map(|head| (head, Left)));
    let rows = found.iter().map(|interface| {
        [
            interface.name.clone(),
            kernel(&interface.can),
            card_stamping(interface),
            card_clock(interface),
        ]
    });
    let mut blocks = vec![Block::Table(table.with_rows(rows))];
    if found.iter().any(|interface| interface.can.clock.is_some() || interface.can.sent_hardware) {
        let said = "linerate takes the kernel's times; those of a card were never tried";
        blocks.push(Block::Text(said.to_owned()));
    }
    blocks
}

fn kernel(can: &StampAbilities) -> String {
    match (can.sent_software, can.received_software) {
        (true, true) => "sent, received",
        (true, false) => "sent",
        (false, true) => "received",
        (false, false) => "none",
    }
    .to_owned()
}

fn card_stamping(of: &InterfaceStamping) -> String {
    let received = |what| match what {
        HardwareReceive::Nothing => None,
        HardwareReceive::Some => Some("some received, not ours"),
        HardwareReceive::All => Some("received"),
    };
    let joined = |sent: bool, what| {
        let parts: Vec<&str> = sent.then_some("sent").into_iter().chain(received(what)).collect();
        if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
    };
    let can = joined(of.can.sent_hardware, of.can.received_hardware);
    match of.told {
        Some(told) if can != "none" => {
            format!("{can}; now {}", joined(told.sent, told.received))
        }
        _ => can,
    }
}

fn card_clock(of: &InterfaceStamping) -> String {
    let Some(number) = of.can.clock else { return "none".to_owned() };
    match &of.clock {
        Some(Ok(clock)) => format!(
            "/dev/ptp{number}, {:+.6} s from civil time ±{} ns",
            clock.offset_ns as f64 / 1e9,
            clock.error_ns
        ),
        Some(Err(why)) => format!("/dev/ptp{number}: {why}"),
        None => format!("/dev/ptp{number}"),
    }
}

#[cfg(test)]
mod tests {
    use linerate_report::Document;

    use super::*;

    fn table_text(interfaces: &[InterfaceStamping]) -> String {
        Document::default().with_section(blocks(interfaces)).text(Some(120))
    }

    #[test]
    fn a_veth_has_the_kernel_and_no_card() {
        let can =
            StampAbilities { sent_software: true, received_software: true, ..Default::default() };
        let veth = InterfaceStamping { name: "va".to_owned(), can, told: None, clock: None };
        let said = table_text(&[veth]);
        let row = said.lines().find(|line| line.contains("va")).expect("its line");
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words, ["va", "sent,", "received", "none", "none"], "{said}");
        assert!(!said.contains("never tried"), "{said}");
        assert!(blocks(&[]).is_empty());
    }

    #[test]
    fn a_card_is_said_to_be_untried() {
        let can = StampAbilities {
            sent_software: true,
            received_software: true,
            sent_hardware: true,
            received_hardware: HardwareReceive::All,
            clock: Some(3),
        };
        let told = Some(HardwareStamping { sent: false, received: HardwareReceive::Some });
        let distance = ClockDistance { offset_ns: 37_000_000_300, error_ns: 400 };
        let mut card =
            InterfaceStamping { name: "eth7".to_owned(), can, told, clock: Some(Ok(distance)) };
        let said = table_text(std::slice::from_ref(&card));
        assert!(said.contains("sent, received; now some received, not ours"), "{said}");
        assert!(said.contains("/dev/ptp3, +37.000000 s from civil time ±400 ns"), "{said}");
        assert!(said.contains("those of a card were never tried"), "{said}");
        card.clock = Some(Err("read the clock /dev/ptp3: Permission denied".to_owned()));
        assert!(table_text(&[card]).contains("Permission denied"));
    }
}
