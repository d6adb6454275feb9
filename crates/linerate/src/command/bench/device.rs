//! `--device` of `linerate bench`: what is made on this machine and put between the ports.

use std::str::FromStr;
use std::time::Duration;

use linerate_core::units::{Fraction, parse_span};

use super::words::{count, settings, value};

/// A device of this program's own.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Device {
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
    pub(super) buffer_frames: Option<u64>,
    /// Delay of every frame.
    pub(super) latency: Duration,
    /// Share of frames lost at random.
    pub(super) loss: f64,
    /// It stops for the second span once in the first.
    pub(super) stall: Option<Stall>,
}

/// `20s/5ms`: 5 ms of standstill every 20 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stall {
    pub(super) every: Duration,
    pub(super) length: Duration,
}

const NAMES: &str = "cable, bridge, router, xdp-router, forwarder, planted:KEY=VALUE,…";
const KEYS: [&str; 6] =
    ["frames_per_sec", "bits_per_sec", "buffer_frames", "latency", "loss", "stall"];

impl FromStr for Device {
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
            "frames_per_sec" => planted.frames_per_sec = Some(count(key, text)?),
            "bits_per_sec" => planted.bits_per_sec = Some(count(key, text)?),
            "buffer_frames" => planted.buffer_frames = Some(count(key, text)?),
            "latency" => planted.latency = span(text)?,
            "loss" => planted.loss = value::<Fraction>(key, text)?.value(),
            _ => {
                let (every, length) =
                    text.split_once('/').ok_or("stall is EVERY/LENGTH: 20s/5ms")?;
                let stall = Stall { every: span(every)?, length: span(length)? };
                if stall.length.is_zero() || stall.length >= stall.every {
                    return Err("stall: the standstill is shorter than the time between".to_owned());
                }
                planted.stall = Some(stall);
            }
        }
    }
    if planted.frames_per_sec.is_none() && planted.bits_per_sec.is_none() {
        return Err("it lacks frames_per_sec=N or bits_per_sec=N, its capacity".to_owned());
    }
    if planted.loss >= 1.0 {
        return Err("loss is below 1".to_owned());
    }
    Ok(planted)
}

impl Device {
    /// Its name.
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

    /// Whether the kernel's filters see its frames.
    pub(super) const fn filters(&self) -> bool {
        matches!(self, Self::Router)
    }

    /// Whether it forwards by the headers of IP, and so only IP.
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
        let stall = Stall { every: Duration::from_secs(20), length: Duration::from_millis(5) };
        let expected = Planted {
            frames_per_sec: Some(100_000),
            bits_per_sec: None,
            buffer_frames: Some(64),
            latency: Duration::from_micros(10),
            loss: 1e-5,
            stall: Some(stall),
        };
        assert_eq!(text.parse(), Ok(Device::Planted(expected)));
        assert_eq!("xdp-router".parse::<Device>().map(|it| it.name()), Ok("xdp-router"));
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
            ("planted:frames_per_sec=1k,loss=1", "loss is below 1"),
            ("planted:frames_per_sec=1k,stall=5ms", "EVERY/LENGTH"),
            ("planted:frames_per_sec=1k,stall=5ms/20s", "shorter"),
        ] {
            let error = wrong.parse::<Device>().expect_err(wrong);
            assert!(error.contains(part) && !error.contains('\n'), "{wrong}: {error}");
        }
    }
}
