//! Devices that raw frames are sent through: how a router or switch does its work and where, and
//! devices without a network stack between two links.
//!
//! A forwarder hands every frame from one link to the other by a program at the interface (XDP). A
//! planted device does the same with a capacity, a buffer, a latency and losses that the plan says:
//! the truth that a search has to find. Left out: what carries this out, which is the engine's.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::problem::{Checked, Problem, Step};
use super::{RouterPlan, SwitchPlan};
use crate::units::parse_span;

/// Most frames in a planted device's buffer: the size of its queue.
pub const BUFFER_FRAMES_MAX: u32 = 65_536;
/// Highest processor number that can be asked for (CPU_SETSIZE of the C library is 1024).
const CPU_MAX: u32 = 1023;
/// Slower than any modem; as the least rate of a link.
const BITS_PER_SEC_MIN: u64 = 1_000;
/// Longest latency: stamps in test frames are good for differences up to 4.29 s.
const LATENCY_MAX: Duration = Duration::from_secs(1);
/// Longest time from stall to stall.
const STALL_EVERY_MAX: Duration = Duration::from_secs(86_400);

/// Forwarding engine of a router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RouterHow {
    /// The kernel's network stack.
    #[default]
    Kernel,
    /// A program at the interface that asks the kernel's routes (XDP).
    Xdp,
}

/// Form in which filter rules are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FilterShape {
    /// A list of rules: a packet is compared with each.
    #[default]
    Rules,
    /// One rule with a set of as many elements, which is looked up.
    Set,
}

/// Context in which a device forwards: softirq or a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// The CPU of the sender, as part of sending: it cannot be overloaded, and its cost adds to the
    /// sender's.
    #[default]
    Inline,
    /// Kernel threads of its own (threaded NAPI): frames that arrive too fast are lost.
    Threaded,
}

/// Kind of a device without a network stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// Every frame goes out on the other link, unchanged.
    Forwarder,
    /// Forwards frames with a given capacity, buffer, latency and losses.
    Planted,
}

/// A device between two links, without addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DevicePlan {
    /// Name, unique among the nodes.
    pub name: String,
    /// Kind of the device; all keys below but `placement` and `cpu` are of a planted one.
    pub kind: DeviceKind,
    /// Frames that it forwards in a second, in each direction; no limit when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames_per_sec: Option<u64>,
    /// Rate of the medium behind it in bit/s, in each direction; a frame takes 24 bytes more than
    /// is sent (FCS, preamble and gap). No limit when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits_per_sec: Option<u64>,
    /// Frames that may wait, the one in transmission among them; 64 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_frames: Option<u32>,
    /// Delay of every frame beside its waiting: `1us`. None when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<String>,
    /// The device begins to send before a frame is in as a whole: the time of the frame itself is
    /// no part of its delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_through: Option<bool>,
    /// One frame of so many is lost, at random; none when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_one_in: Option<u32>,
    /// Seed of the losses; 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Times in which it does nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall: Option<StallPlan>,
    /// Context in which it forwards.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub placement: Placement,
    /// CPU of its kernel threads, where it has its own; the kernel's choice when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
}

/// Stalls of a planted device: period and length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StallPlan {
    /// Time from the begin of one to the begin of the next: `20s`.
    pub every: String,
    /// Length of each stall: `50ms`.
    pub lasting: String,
}

/// Frames that wait in a planted device whose plan names no buffer.
pub const BUFFER_FRAMES_DEFAULT: u32 = 64;

fn reject_key(at: &[Step], key: &'static str, message: impl Into<String>) -> Checked {
    let path = at.iter().cloned().chain([Step::Key(key)]).collect();
    Err(Problem { path, message: message.into() })
}

impl DevicePlan {
    /// A device of this kind and name, with defaults for all else.
    pub fn new(name: &str, kind: DeviceKind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            frames_per_sec: None,
            bits_per_sec: None,
            buffer_frames: None,
            latency: None,
            cut_through: None,
            loss_one_in: None,
            seed: None,
            stall: None,
            placement: Placement::default(),
            cpu: None,
        }
    }

    /// Delay of a frame in the device, without queueing.
    pub fn latency(&self) -> Duration {
        let told = self.latency.as_deref().map(parse_span);
        told.and_then(Result::ok).unwrap_or_default()
    }

    pub(super) fn check_settings(&self, at: &[Step]) -> Checked {
        check_placement(self.placement, self.cpu, at)?;
        if self.kind == DeviceKind::Forwarder {
            if let Some((key, _)) = self.planted_keys().into_iter().find(|(_, there)| *there) {
                return reject_key(
                    at,
                    key,
                    format!("a forwarder has no key '{key}'; a planted has"),
                );
            }
            return Ok(());
        }
        self.check_numbers(at)?;
        if let Some(text) = &self.latency {
            let latency = parse_span(text).or_else(|error| invalid_key(at, "latency", error))?;
            if latency > LATENCY_MAX {
                return reject_key(
                    at,
                    "latency",
                    "a latency above 1 s; stamps of frames wrap at 4 s",
                );
            }
        }
        match &self.stall {
            Some(stall) => stall.check_times(at),
            None => Ok(()),
        }
    }

    fn check_numbers(&self, at: &[Step]) -> Checked {
        if self.frames_per_sec == Some(0) {
            return reject_key(at, "frames_per_sec", "0 frames/s forwards nothing");
        }
        if self.bits_per_sec.is_some_and(|bits| bits < BITS_PER_SEC_MIN) {
            return reject_key(at, "bits_per_sec", "a rate below 1 kbit/s");
        }
        match self.buffer_frames {
            Some(frames) if !(1..=BUFFER_FRAMES_MAX).contains(&frames) => {
                let message = format!("{frames} frames; 1 to {BUFFER_FRAMES_MAX} are allowed");
                return reject_key(at, "buffer_frames", message);
            }
            _ => {}
        }
        if self.loss_one_in.is_some_and(|frames| frames < 2) {
            return reject_key(at, "loss_one_in", "one of less than 2 frames is every frame");
        }
        if self.seed.is_some() && self.loss_one_in.is_none() {
            return reject_key(at, "seed", "a seed without loss_one_in decides nothing");
        }
        Ok(())
    }

    fn planted_keys(&self) -> [(&'static str, bool); 8] {
        [
            ("frames_per_sec", self.frames_per_sec.is_some()),
            ("bits_per_sec", self.bits_per_sec.is_some()),
            ("buffer_frames", self.buffer_frames.is_some()),
            ("latency", self.latency.is_some()),
            ("cut_through", self.cut_through.is_some()),
            ("loss_one_in", self.loss_one_in.is_some()),
            ("seed", self.seed.is_some()),
            ("stall", self.stall.is_some()),
        ]
    }
}

impl StallPlan {
    /// Time from the begin of one to the begin of the next, and length of each; none where a text
    /// is no time, which the check rules out.
    pub fn period_and_length(&self) -> Option<(Duration, Duration)> {
        Some((parse_span(&self.every).ok()?, parse_span(&self.lasting).ok()?))
    }

    fn check_times(&self, at: &[Step]) -> Checked {
        let at: Vec<Step> = at.iter().cloned().chain([Step::Key("stall")]).collect();
        let every = parse_span(&self.every).or_else(|error| invalid_key(&at, "every", error))?;
        let lasting =
            parse_span(&self.lasting).or_else(|error| invalid_key(&at, "lasting", error))?;
        if lasting.is_zero() {
            return reject_key(&at, "lasting", "a stall of no time; leave stall out");
        }
        if every <= lasting {
            return reject_key(&at, "every", "stalls follow each other without a pause");
        }
        if every > STALL_EVERY_MAX {
            return reject_key(&at, "every", "more than a day from stall to stall");
        }
        Ok(())
    }
}

fn invalid_key<T>(
    at: &[Step],
    key: &'static str,
    error: impl std::fmt::Display,
) -> Result<T, Problem> {
    let path = at.iter().cloned().chain([Step::Key(key)]).collect();
    Err(Problem { path, message: error.to_string() })
}

impl RouterPlan {
    pub(super) fn check_device(&self, at: &[Step]) -> Checked {
        check_placement(self.placement, self.cpu, at)?;
        if self.how == RouterHow::Xdp && self.filters > 0 {
            let message = "a router of how = \"xdp\" forwards before any filter; leave filters out";
            return reject_key(at, "filters", message);
        }
        if self.filter_shape == FilterShape::Set && self.filters == 0 {
            return reject_key(at, "filter_shape", "filter_shape without filters");
        }
        Ok(())
    }
}

impl SwitchPlan {
    pub(super) fn check_device(&self, at: &[Step]) -> Checked {
        check_placement(self.placement, self.cpu, at)
    }
}

fn check_placement(placement: Placement, cpu: Option<u32>, at: &[Step]) -> Checked {
    match cpu {
        Some(cpu) if cpu > CPU_MAX => {
            reject_key(at, "cpu", format!("CPU {cpu} is out of range; 0 to {CPU_MAX} are allowed"))
        }
        Some(_) if placement == Placement::Inline => {
            let message = "an inline device runs where the sender does; \
                           cpu belongs to placement = \"threaded\"";
            reject_key(at, "cpu", message)
        }
        _ => Ok(()),
    }
}
