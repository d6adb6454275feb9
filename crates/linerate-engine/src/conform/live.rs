//! Packets of an interface as they pass, with the kernel's times.
//!
//! Headers are enough, so 256 bytes of each packet are captured. Left out: filters in the kernel;
//! packets that `--only` leaves out are captured too.

use std::time::Duration;

use linerate_core::conformance::{Conformance, Ended};
use linerate_core::record::{Failure, Fault};
use linerate_core::time::MonoTime;
use linerate_proto::capture::{CaptureDirection, CapturedPacket, LinkType};
use linerate_sys::clock;
use linerate_sys::netlink::RouteSocket;
use linerate_sys::packet_capture::{
    BLOCK_AGE, CaptureOptions, LinkKind, LivePacket, PacketCapture, PacketDirection,
};
use linerate_sys::stop::Stop;

use super::MeteringLimits;
use super::meter::Metering;
use crate::failure::system;

/// Bytes kept of a packet: all headers that are looked at, with room for options.
const SNAPLEN: u32 = 256;
/// How long the ring is waited for before stop flag and clock are looked at.
const PATIENCE: Duration = Duration::from_millis(100);

/// Largest IP packet of an interface, so that joined packets are told from single ones; `None`
/// where the kernel does not say.
pub(super) fn mtu_bytes(interface: &str) -> Option<u32> {
    let links = RouteSocket::open().ok()?.list_links().ok()?;
    links.iter().find(|link| link.name == interface).map(|link| link.mtu_bytes)
}

/// Meters an interface; `opened` is called when packets begin to count.
pub(super) fn run(
    mut metering: Metering,
    interface: &str,
    limits: &MeteringLimits,
    stop: &Stop,
    opened: &mut dyn FnMut(),
) -> Result<Conformance, Failure> {
    let options = CaptureOptions {
        promiscuous: true,
        snaplen: Some(SNAPLEN),
        ..CaptureOptions::of_interface(interface)
    };
    let mut capture = PacketCapture::open(&options).map_err(|error| system(&error))?;
    let mut taker = Taker::new(&capture, interface)?;
    opened();
    let deadline = limits.time.map(|time| clock::monotonic() + time);
    let ended = loop {
        match taker.meter_block(&mut capture, &mut metering, PATIENCE) {
            Ok(true) => {}
            Ok(false) => break Ok(Ended::Limit),
            Err(error) => break Err(error),
        }
        if stop.is_requested() {
            break Ok(Ended::Interrupted);
        }
        if deadline.is_some_and(|deadline| clock::monotonic() >= deadline) {
            break Ok(Ended::Limit);
        }
    };
    taker.meter_remaining(&mut capture, &mut metering);
    if let Ok(counts) = capture.counts() {
        metering.dropped(counts.dropped);
    }
    Ok(match ended {
        Ok(ended) => metering.conformance_result(ended, None),
        Err(error) => metering.conformance_result(Ended::Failed, Some(system(&error).to_string())),
    })
}

/// Gives packets their number and link type, as a capture file would.
struct Taker {
    link_type: LinkType,
    number: u64,
    wants_more: bool,
}

impl Taker {
    fn new(capture: &PacketCapture, interface: &str) -> Result<Self, Failure> {
        let link_type = match capture.link_kind() {
            LinkKind::Ethernet => LinkType::ETHERNET,
            LinkKind::RawIp => LinkType::RAW,
            LinkKind::Other(kind) => {
                let reason = format!("its packets (hardware type {kind}) are not read");
                return Err(Failure::new(Fault::System, "capture on", interface, reason));
            }
        };
        Ok(Self { link_type, number: 0, wants_more: true })
    }

    /// Meters a block of packets; false when no more are wanted.
    fn meter_block(
        &mut self,
        capture: &mut PacketCapture,
        metering: &mut Metering,
        timeout: Duration,
    ) -> linerate_sys::Result<bool> {
        capture.take_packets(timeout, |live| {
            self.number += 1;
            if self.wants_more {
                let tag_bytes = if live.vlan.is_some() { 4 } else { 0 };
                self.wants_more = metering.packet(&self.packet(&live), tag_bytes);
            }
        })?;
        Ok(self.wants_more)
    }

    /// Meters what the kernel still holds when the time is over.
    fn meter_remaining(&mut self, capture: &mut PacketCapture, metering: &mut Metering) {
        let end: MonoTime = clock::monotonic() + BLOCK_AGE * 2;
        while self.wants_more && clock::monotonic() < end {
            if self.meter_block(capture, metering, BLOCK_AGE).is_err() {
                return;
            }
        }
    }

    fn packet<'a>(&self, live: &LivePacket<'a>) -> CapturedPacket<'a> {
        CapturedPacket {
            number: self.number,
            offset: 0,
            at_ns: Some(live.at_ns),
            data: live.data,
            original_len: live.original_len,
            section: 0,
            interface: 0,
            link_type: self.link_type,
            fcs_bytes: None,
            direction: Some(match live.direction {
                PacketDirection::Incoming => CaptureDirection::Incoming,
                PacketDirection::Outgoing => CaptureDirection::Outgoing,
            }),
        }
    }
}
