//! A TCP by the few words that people use for it: whose, and what is changed of it.
//!
//! Left out: what a path says of segments; the caller knows its MTU.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{CongestionControl, TcpModel};
use crate::record::{ControlName, LossRecovery};

/// IP and TCP headers with timestamps: 20 + 20 + 12 (RFC 9293, RFC 7323).
pub const HEADER_BYTES: u32 = 52;
/// Longest IP packet that TCP fills here.
pub const MTU_BYTES_MAX: u32 = 65_535;
/// Most segments of a first flight.
pub const INITIAL_WINDOW_MAX: u32 = 1000;

/// Operating system whose TCP is modelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Stack {
    /// Linux of today: CUBIC, RACK, HyStart, ten segments at first.
    #[default]
    #[serde(rename = "today")]
    Today,
    /// A host of 1999: Reno, two segments at first, a window of 2 MB.
    #[serde(rename = "1999")]
    Of1999,
}

impl Stack {
    /// Name of the stack, as in plans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Today => "today",
            Self::Of1999 => "1999",
        }
    }

    /// Recovery of its hosts when selective acknowledgements are on or off. Without them hosts of
    /// today have NewReno (RFC 6582), those of 1999 Reno.
    pub const fn recovery(self, sack: bool) -> LossRecovery {
        match (self, sack) {
            (Self::Today, true) => LossRecovery::Rack,
            (Self::Of1999, true) => LossRecovery::Sack,
            (Self::Today, false) => LossRecovery::NewReno,
            (Self::Of1999, false) => LossRecovery::Reno,
        }
    }
}

/// A TCP, with the settings that differ from its stack's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TcpChoice {
    /// Operating system whose TCP is modelled.
    pub stack: Stack,
    /// Congestion control of the sender.
    pub congestion_control: Option<ControlName>,
    /// Algorithm that repairs losses.
    pub recovery: Option<LossRecovery>,
    /// Window that the receiver offers.
    pub window_bytes: Option<u64>,
    /// Segments of the first flight.
    pub initial_window: Option<u32>,
    /// Payload of a full segment; the room in the path's MTU when absent.
    pub mss_bytes: Option<u32>,
    /// Slow start ends with the first loss only.
    pub without_hystart: bool,
}

/// Segments that no packet holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a packet has {HEADER_BYTES} to {MTU_BYTES_MAX} bytes with its headers")]
pub struct SegmentError;

impl TcpChoice {
    /// The TCP on a path with this MTU.
    /// # Errors
    /// Segments without payload, and packets above 65,535 bytes.
    pub fn model_for_mtu(&self, mtu_bytes: u32) -> Result<TcpModel, SegmentError> {
        let stack = match self.stack {
            Stack::Today => TcpModel::TODAY,
            Stack::Of1999 => TcpModel::OF_1999,
        };
        let mss_bytes = self.mss_bytes.unwrap_or_else(|| mtu_bytes.saturating_sub(HEADER_BYTES));
        if mss_bytes == 0 || mss_bytes > MTU_BYTES_MAX - HEADER_BYTES {
            return Err(SegmentError);
        }
        let named = self.congestion_control.map(CongestionControl::from);
        let congestion_control = named.unwrap_or(stack.congestion_control);
        // Linux has HyStart in CUBIC alone.
        let cubic = matches!(congestion_control, CongestionControl::Cubic { .. });
        Ok(TcpModel {
            mss_bytes,
            header_bytes: HEADER_BYTES,
            congestion_control,
            recovery: self.recovery.unwrap_or(stack.recovery),
            window_bytes: self.window_bytes.unwrap_or(stack.window_bytes),
            initial_window: self.initial_window.unwrap_or(stack.initial_window),
            hystart: stack.hystart && cubic && !self.without_hystart,
            ..stack
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_fills_the_packets_of_its_path() {
        let of_1999 = TcpChoice { stack: Stack::Of1999, ..TcpChoice::default() };
        // MTU 9180 (RFC 2225) less 52; two segments (RFC 2581), Reno, 2 MB.
        let model = of_1999.model_for_mtu(9180).expect("a possible segment");
        assert_eq!(model, TcpModel { mss_bytes: 9128, ..TcpModel::OF_1999 });
        let today = TcpChoice::default().model_for_mtu(1500).expect("a possible segment");
        assert_eq!((today.mss_bytes, today.initial_window, today.hystart), (1448, 10, true));
    }

    #[test]
    fn what_is_named_takes_the_place_of_what_the_stack_has() {
        let choice = TcpChoice {
            congestion_control: Some(ControlName::Reno),
            recovery: Some(Stack::Today.recovery(false)),
            window_bytes: Some(65_536),
            initial_window: Some(4),
            mss_bytes: Some(536),
            ..TcpChoice::default()
        };
        let model = choice.model_for_mtu(1500).expect("a possible segment");
        assert_eq!(model.congestion_control, CongestionControl::RENO);
        assert_eq!((model.recovery, model.window_bytes), (LossRecovery::NewReno, 65_536));
        assert_eq!((model.initial_window, model.mss_bytes), (4, 536));
        assert!(!model.hystart, "Reno has none");
    }

    #[test]
    fn a_segment_holds_something_and_fits_its_packet() {
        let with = |mss_bytes| TcpChoice { mss_bytes, ..TcpChoice::default() };
        assert_eq!(with(None).model_for_mtu(52), Err(SegmentError));
        assert_eq!(with(Some(0)).model_for_mtu(1500), Err(SegmentError));
        assert_eq!(with(Some(65_484)).model_for_mtu(1500), Err(SegmentError));
        assert!(with(Some(65_483)).model_for_mtu(1500).is_ok());
    }
}
