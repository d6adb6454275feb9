//! Timestamping capabilities of an interface (ETHTOOL_GET_TS_INFO, linux/ethtool.h), and the
//! current hardware timestamping of its NIC (SIOCGHWTSTAMP, linux/net_tstamp.h). Nothing is
//! switched.
//!
//! ```text
//! struct ethtool_ts_info   0  u32 cmd   4  u32 so_timestamping   8  s32 phc_index
//!                         12  u32 tx_types   28  u32 rx_filters … 44 bytes
//! struct hwtstamp_config   0  int flags   4  int tx_type   8  int rx_filter … 12 bytes
//! ```

use std::io;

use crate::{Error, Result, ethtool};

const ETHTOOL_GET_TS_INFO: u32 = 0x41;
const SIOCGHWTSTAMP: libc::c_ulong = 0x89b1;

/// Timestamping capabilities of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StampAbilities {
    /// The kernel can timestamp sent packets.
    pub sent_software: bool,
    /// The kernel can timestamp received packets.
    pub received_software: bool,
    /// The NIC can timestamp sent packets.
    pub sent_hardware: bool,
    /// Received packets that the NIC can timestamp.
    pub received_hardware: HardwareReceive,
    /// Number of the NIC's PTP clock: N of /dev/ptpN.
    pub clock: Option<u32>,
}

/// Received packets that a NIC timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HardwareReceive {
    /// No received packets.
    #[default]
    Nothing,
    /// Only some packets, such as PTP's.
    Some,
    /// All received packets.
    All,
}

impl StampAbilities {
    /// Reads the capabilities of an interface in the namespace of the calling thread.
    /// # Errors
    /// When it does not exist, or its driver does not support the call.
    pub fn from_interface(ifname: &str) -> Result<Self> {
        let mut buffer = [0; ethtool::BUFFER_WORDS];
        buffer[0] = ETHTOOL_GET_TS_INFO;
        ethtool::call_ethtool("ask the timestamps of", ifname, &mut buffer)?;
        Ok(Self::parse(&buffer))
    }

    /// Parses the words of struct ethtool_ts_info.
    fn parse(words: &[u32; ethtool::BUFFER_WORDS]) -> Self {
        let [_, can, clock, sent, _, _, _, received, ..] = *words;
        let all = |flags: u32| can & flags == flags;
        // A capability needs both its flag in `can` and its mode in the list of modes.
        let mode = |modes: u32, mode: u32| modes >> mode & 1 == 1;
        let raw = libc::SOF_TIMESTAMPING_RAW_HARDWARE;
        let software = libc::SOF_TIMESTAMPING_SOFTWARE;
        // The modes 0 are off and none.
        let received_hardware = match received >> 1 {
            _ if !all(libc::SOF_TIMESTAMPING_RX_HARDWARE | raw) => HardwareReceive::Nothing,
            0 => HardwareReceive::Nothing,
            _ if mode(received, FILTER_ALL) => HardwareReceive::All,
            _ => HardwareReceive::Some,
        };
        Self {
            sent_software: all(libc::SOF_TIMESTAMPING_TX_SOFTWARE | software),
            received_software: all(libc::SOF_TIMESTAMPING_RX_SOFTWARE | software),
            sent_hardware: all(libc::SOF_TIMESTAMPING_TX_HARDWARE | raw) && mode(sent, SEND_ON),
            received_hardware,
            clock: u32::try_from(clock.cast_signed()).ok(),
        }
    }

    /// True if the NIC can timestamp all packets, sent and received.
    pub fn hardware_for_all(&self) -> bool {
        self.sent_hardware && self.received_hardware == HardwareReceive::All
    }
}

/// Values HWTSTAMP_TX_ON and HWTSTAMP_FILTER_ALL.
const SEND_ON: u32 = 1;
const FILTER_ALL: u32 = 1;

/// Current hardware timestamping of a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HardwareStamping {
    /// True if sent packets get timestamps on request of their socket.
    pub sent: bool,
    /// Received packets that get timestamps.
    pub received: HardwareReceive,
}

impl HardwareStamping {
    /// Reads the setting of an interface's NIC; `None` where the driver does not support it.
    /// # Errors
    /// When the interface does not exist.
    pub fn from_interface(ifname: &str) -> Result<Option<Self>> {
        let mut buffer = [0; ethtool::BUFFER_WORDS];
        match ethtool::interface_ioctl(
            SIOCGHWTSTAMP,
            "ask the card's timestamps of",
            ifname,
            &mut buffer,
        ) {
            Ok(()) => Ok(Some(Self::parse(&buffer))),
            Err(error) if is_unsupported(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Parses the words of struct hwtstamp_config.
    fn parse(words: &[u32; ethtool::BUFFER_WORDS]) -> Self {
        let received = match words[2] {
            0 => HardwareReceive::Nothing,
            FILTER_ALL => HardwareReceive::All,
            _ => HardwareReceive::Some,
        };
        Self { sent: words[1] != 0, received }
    }
}

/// True if the driver does not support the call (EOPNOTSUPP; EINVAL and ENOTTY of older drivers).
fn is_unsupported(error: &Error) -> bool {
    let code = io::Error::raw_os_error(&error.source);
    code.is_some_and(|code| [libc::EOPNOTSUPP, libc::EINVAL, libc::ENOTTY].contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes as a struct of the headers lies in memory on a little-endian host.
    fn words_from_hex(hex: &str) -> [u32; ethtool::BUFFER_WORDS] {
        let mut words = [0; ethtool::BUFFER_WORDS];
        for (at, word) in words.iter_mut().enumerate().take(hex.len() / 8) {
            let four = u32::from_str_radix(&hex[at * 8..at * 8 + 8], 16).expect("hexadecimal");
            *word = u32::from_le_bytes(four.to_be_bytes());
        }
        words
    }

    /// As a kernel 6.18 answered for lo and a veth, and for ifb, which stamps nothing that it
    /// sends. `ethtool -T` prints of the first software-transmit, software-receive,
    /// software-system-clock, and no PTP clock.
    #[test]
    fn virtual_interfaces_stamp_by_software_alone() {
        let rest = "ffffffff0000000000000000000000000000000000000000000000000000000000000000";
        let found = StampAbilities::parse(&words_from_hex(&format!("410000001a000000{rest}")));
        let software =
            StampAbilities { sent_software: true, received_software: true, ..Default::default() };
        assert_eq!(found, software);
        let found = StampAbilities::parse(&words_from_hex(&format!("4100000018000000{rest}")));
        assert_eq!(found, StampAbilities { sent_software: false, ..software });
    }

    /// Filled in by a C program with the names of linux/ethtool.h and linux/net_tstamp.h (6.1), not
    /// by a card: clock 3 with HWTSTAMP_TX_ON and HWTSTAMP_FILTER_ALL; clock 0 with
    /// HWTSTAMP_FILTER_PTP_V2_EVENT alone.
    #[test]
    fn a_card_stamps_all_packets_or_those_of_ptp() {
        let all = "410000005f000000030000000300000000000000000000000000000003000000";
        let found = StampAbilities::parse(&words_from_hex(all));
        assert!(found.hardware_for_all() && found.sent_software && found.received_software);
        assert_eq!(found.clock, Some(3));
        let some = "410000005f000000000000000300000000000000000000000000000001100000";
        let found = StampAbilities::parse(&words_from_hex(some));
        assert_eq!((found.received_hardware, found.clock), (HardwareReceive::Some, Some(0)));
        assert!(found.sent_hardware && !found.hardware_for_all());
        // The first with HWTSTAMP_TX_OFF alone in tx_types.
        let mut off = words_from_hex(all);
        off[3] = 1;
        let off = StampAbilities::parse(&off);
        assert!(!off.sent_hardware && off.received_hardware == HardwareReceive::All, "{off:?}");
    }

    #[test]
    fn what_a_card_is_told_is_read() {
        // HWTSTAMP_TX_ON, HWTSTAMP_FILTER_PTP_V2_EVENT.
        let found = HardwareStamping::parse(&words_from_hex("00000000010000000c000000"));
        assert_eq!(found, HardwareStamping { sent: true, received: HardwareReceive::Some });
        let off = HardwareStamping::parse(&words_from_hex("000000000000000000000000"));
        assert_eq!(off, HardwareStamping { sent: false, received: HardwareReceive::Nothing });
    }

    #[test]
    fn loopback_of_this_host_has_no_card() {
        let found = StampAbilities::from_interface("lo").expect("there is one");
        assert!(found.received_software && found.clock.is_none(), "{found:?}");
        assert!(!found.sent_hardware && !found.hardware_for_all());
        assert_eq!(HardwareStamping::from_interface("lo").expect("there is one"), None);
        assert!(
            StampAbilities::from_interface("none0").is_err()
                && HardwareStamping::from_interface("none0").is_err()
        );
    }
}
