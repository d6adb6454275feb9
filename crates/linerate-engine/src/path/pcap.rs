//! Captures one end of an emulated path into a file: classic pcap with times in ns.
//!
//! What the host hands to the path and takes from it is seen as the host does: super-packets
//! whole, checksums that a card would fill in not filled in. Left out: rotation and filters.
//! Layout: draft-ietf-opsawg-pcap, magic 0xa1b23c4d, in this host's byte order.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_sys::netns::Netns;
use linerate_sys::packet_capture::{CaptureOptions, LinkKind, LivePacket, PacketCapture};

use crate::failure::words_of;
use crate::netns::run_inside;

/// Magic number of a capture with times in ns.
const MAGIC: u32 = 0xa1b2_3c4d;
/// Longest packet that is kept: longer ones than a super-packet do not exist.
const SNAPLEN: u32 = 262_144;
/// LINKTYPE_RAW: the packet begins with its IP header.
const LINKTYPE_RAW: u32 = 101;
/// Link type of captures with Ethernet headers (LINKTYPE_ETHERNET).
const LINKTYPE_ETHERNET: u32 = 1;
/// How often the stop flag is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// A capture under way.
#[derive(Debug)]
pub struct Tap {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Captured>>,
    file: String,
}

/// The packets of a capture that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Packets in the file.
    pub packets: u64,
    /// Packets that found no room to wait in.
    pub dropped: u64,
}

impl Tap {
    /// Captures a device of a namespace from now on.
    /// # Errors
    /// Without CAP_NET_RAW there, without such a device, or when the file cannot be made.
    pub fn start_capture(
        netns: Option<&Netns>,
        device: &str,
        file: &Path,
    ) -> Result<Self, Failure> {
        let name = file.display().to_string();
        let failed =
            |error: &io::Error| Failure::new(Fault::Usage, "write capture", &name, words_of(error));
        let out = File::create(file).map_err(|error| failed(&error))?;
        let open = || PacketCapture::open(&CaptureOptions::of_interface(device));
        let capture = match netns {
            Some(netns) => run_inside(netns, device, open)?,
            None => open(),
        };
        let capture = capture.map_err(|error| crate::failure::system(&error))?;
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("pcap".to_owned());
        let thread = thread.spawn(move || write_all(capture, BufWriter::new(out), &theirs));
        let thread = thread.map_err(|error| failed(&error))?;
        Ok(Self { stop, thread, file: name })
    }

    /// Ends it; every packet so far is in the file.
    /// # Errors
    /// When the file could not be written.
    pub fn finish_capture(self) -> Result<Captured, Failure> {
        self.stop.store(true, Ordering::Release);
        let ended = self.thread.join().unwrap_or_else(|_| Err(io::Error::other("it panicked")));
        ended.map_err(|error| {
            Failure::new(Fault::System, "write capture", &self.file, words_of(&error))
        })
    }
}

fn write_all(
    mut capture: PacketCapture,
    mut out: impl Write,
    stop: &AtomicBool,
) -> io::Result<Captured> {
    let link_type = match capture.link_kind() {
        LinkKind::RawIp => LINKTYPE_RAW,
        LinkKind::Ethernet | LinkKind::Other(_) => LINKTYPE_ETHERNET,
    };
    out.write_all(&file_header(link_type))?;
    let mut packets = 0;
    let mut outcome = Ok(());
    loop {
        // The last packets come a block's age after the end was asked for.
        let ending = stop.load(Ordering::Acquire);
        let taken = capture.take_packets(LOOK, |packet| {
            packets += 1;
            if outcome.is_ok() {
                outcome = write_packet(&mut out, &packet);
            }
        });
        // The device is gone: what there was is kept.
        let Ok(count) = taken else { break };
        std::mem::replace(&mut outcome, Ok(()))?;
        if ending && count == 0 {
            break;
        }
    }
    out.flush()?;
    let dropped = capture.counts().map_or(0, |counts| counts.dropped);
    Ok(Captured { packets, dropped })
}

/// Magic, version 2.4, two reserved words, snapshot length, link type.
fn file_header(link_type: u32) -> [u8; 24] {
    let mut header = [0; 24];
    header[4..6].copy_from_slice(&2_u16.to_ne_bytes());
    header[6..8].copy_from_slice(&4_u16.to_ne_bytes());
    for (at, word) in [(0, MAGIC), (16, SNAPLEN), (20, link_type)] {
        header[at..at + 4].copy_from_slice(&word.to_ne_bytes());
    }
    header
}

/// Seconds, ns, captured and original length, bytes.
fn write_packet(out: &mut impl Write, packet: &LivePacket<'_>) -> io::Result<()> {
    let seconds = packet.at_ns / 1_000_000_000;
    let rest_ns = packet.at_ns % 1_000_000_000;
    let captured = packet.data.len() as u32;
    for word in [seconds as u32, rest_ns as u32, captured, packet.original_len] {
        out.write_all(&word.to_ne_bytes())?;
    }
    out.write_all(packet.data)
}

#[cfg(test)]
mod tests {
    use linerate_sys::packet_capture::PacketDirection;

    use super::*;

    #[test]
    fn the_file_begins_as_the_draft_says() {
        let header = file_header(LINKTYPE_RAW);
        assert_eq!(header[..4], 0xa1b2_3c4d_u32.to_ne_bytes());
        assert_eq!(header[4..8], [2_u16.to_ne_bytes(), 4_u16.to_ne_bytes()].concat());
        assert_eq!(header[8..16], [0; 8]);
        assert_eq!(header[20..], 101_u32.to_ne_bytes());
    }

    #[test]
    fn a_packet_has_its_time_in_seconds_and_nanoseconds() {
        let mut out = Vec::new();
        let packet = LivePacket {
            at_ns: 3_000_000_007,
            data: &[0x45, 0],
            original_len: 20,
            direction: PacketDirection::Outgoing,
            vlan: None,
        };
        write_packet(&mut out, &packet).expect("memory takes it");
        let words: Vec<u8> = [3_u32, 7, 2, 20].iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(out, [words.as_slice(), &[0x45, 0]].concat());
    }
}
