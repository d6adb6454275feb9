//! `--device` of `linerate bench`: what is made on this machine and put between the ports.

use std::str::FromStr;
use std::time::Duration;

use linerate_core::lab::BUFFER_FRAMES_MAX;
use linerate_core::units::{BitRate, Fraction, parse_span};

use super::words::{parse_count, parse_value, settings};

/// A device of this program's own.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum DeviceArg {
    /// A cable: the tester alone.
    Cable,
    /// The kernel's bridge.
    Bridge,
    /// The kernel's router.
    Router,
    /// A router in XDP that asks the kernel's forwarding table.
    XdpRouter,
    /// Frames from one port to the other in XDP, unlooked at.
    Forwarder,
    /// A device with known properties: the truth for a search.
    Planted(Planted),
}

/// Properties of a planted device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Planted {
    /// Frames per second that it serves.
    pub(super) frames_per_sec: Option<u64>,
    /// Rate of the medium behind it, bit/s.
    pub(super) bits_per_sec: Option<u64>,
    /// Frames that wait at most.
    pub(super) buffer_frames: Option<u32>,
    /// Delay of every frame.
    pub(super) latency: Duration,
    /// One frame of so many is lost, at random.
    pub(super) loss_one_in: Option<u32>,
    /// It stops for the second span once in the first.
    pub(super) stall: Option<PeriodicStall>,
}

/// `20s/5ms`: 5 ms of standstill every 20 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PeriodicStall {
    pub(super) every: Duration,
    pub(super) length: Duration,
}

const NAMES: &str = "cable, bridge, router, xdp-router, forwarder, planted:KEY=VALUE,…";
const KEYS: [&str; 6] =
    ["frames_per_sec", "bits_per_sec", "buffer_frames", "latency", "loss", "stall"];

impl FromStr for DeviceArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "cable" => Ok(Self::Cable),
            "bridge" => Ok(Self::Bridge),
            "router" => Ok(Self::Router),
            "xdp-router" => Ok(Self::XdpRouter),
            "forwarder" => Ok(Self::Forwarder),
            _ => match text.split_once(':') {
                Some(("planted", properties)) => planted(properties).map(Self::Planted),
                _ => Err(format!("one of {NAMES}")),
            },
        }
    }
}

fn planted(text: &str) -> Result<Planted, String> {
    let mut planted = Planted::default();
    for (key, text) in settings(text, &KEYS)? {
        let span = |text: &str| parse_span(text).map_err(|error| format!("{key}: {error}"));
        match key {
            "frames_per_sec" => planted.frames_per_sec = Some(parse_count(key, text)?),
            "bits_per_sec" => planted.bits_per_sec = Some(parse_bit_rate(key, text)?),
            "buffer_frames" => planted.buffer_frames = Some(buffer(key, text)?),
            "latency" => planted.latency = span(text)?,
            "loss" => planted.loss_one_in = one_in(key, text)?,
            _ => {
                let (every, length) =
                    text.split_once('/').ok_or("stall is EVERY/LENGTH: 20s/5ms")?;
                let stall = PeriodicStall { every: span(every)?, length: span(length)? };
                if stall.length.is_zero() || stall.length >= stall.every {
                    return Err("stall: the standstill is shorter than the time between".to_owned());
                }
                planted.stall = Some(stall);
            }
        }
    }
    if planted.frames_per_sec.is_none() && planted.bits_per_sec.is_none() {
        return Err("it lacks frames_per_sec=N or bits_per_sec=RATE, its capacity".to_owned());
    }
    Ok(planted)
}

fn parse_bit_rate(key: &str, text: &str) -> Result<u64, String> {
    let bits = parse_value::<BitRate>(key, text)?.bits_per_sec();
    if bits < 1000 { Err(format!("{key} is below 1 kbit/s")) } else { Ok(bits) }
}

fn buffer(key: &str, text: &str) -> Result<u32, String> {
    let frames =
        u32::try_from(parse_count(key, text)?).ok().filter(|frames| *frames <= BUFFER_FRAMES_MAX);
    frames.ok_or_else(|| format!("{key}: at most {BUFFER_FRAMES_MAX}"))
}

/// A share as one in so many frames, rounded; none for 0.
fn one_in(key: &str, text: &str) -> Result<Option<u32>, String> {
    let share = parse_value::<Fraction>(key, text)?.as_f64();
    if share > 0.5 {
        return Err(format!("{key} is at most 0.5"));
    }
    if share > 0.0 && share < 1.0 / f64::from(u32::MAX) {
        return Err(format!("{key} is 0, or one in 4 billion and more"));
    }
    // Between 2 and the largest u32.
    Ok((share > 0.0).then(|| (1.0 / share).round() as u32))
}

impl DeviceArg {
    /// Name of the kind of device.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Cable => "cable",
            Self::Bridge => "bridge",
            Self::Router => "router",
            Self::XdpRouter => "xdp-router",
            Self::Forwarder => "forwarder",
            Self::Planted(_) => "planted",
        }
    }

    /// True when the kernel's filters see its frames.
    pub(super) const fn filters(&self) -> bool {
        matches!(self, Self::Router)
    }

    /// True when it can have more than two ports.
    pub(super) const fn has_many_ports(&self) -> bool {
        matches!(self, Self::Bridge | Self::Router)
    }

    /// True when it forwards by the headers of IP, and so only IP.
    pub(super) const fn routes(&self) -> bool {
        matches!(self, Self::Router | Self::XdpRouter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_device_has_the_properties_that_it_is_given() {
        let text = "planted:frames_per_sec=100k,buffer_frames=64,latency=10us,loss=1e-5,\
                    stall=20s/5ms";
        let stall =
            PeriodicStall { every: Duration::from_secs(20), length: Duration::from_millis(5) };
        let expected = Planted {
            frames_per_sec: Some(100_000),
            bits_per_sec: None,
            buffer_frames: Some(64),
            latency: Duration::from_micros(10),
            loss_one_in: Some(100_000),
            stall: Some(stall),
        };
        assert_eq!(text.parse(), Ok(DeviceArg::Planted(expected)));
        assert_eq!("xdp-router".parse::<DeviceArg>().map(|device| device.name()), Ok("xdp-router"));
    }

    #[test]
    fn what_is_no_device_is_refused_in_one_line() {
        for (wrong, part) in [
            ("switch", "one of cable"),
            ("planted", "one of cable"),
            ("router:filters=1", "one of cable"),
            ("planted:", "is none of frames_per_sec="),
            ("planted:latency=1us", "its capacity"),
            ("planted:frames_per_sec=0", "no whole number above 0"),
            ("planted:frames_per_sec=1k,loss=1", "at most 0.5"),
            ("planted:frames_per_sec=1k,stall=5ms", "EVERY/LENGTH"),
            ("planted:frames_per_sec=1k,stall=5ms/20s", "shorter"),
        ] {
            let error = wrong.parse::<DeviceArg>().expect_err(wrong);
            assert!(error.contains(part) && !error.contains('\n'), "{wrong}: {error}");
        }
    }
}
