//! The ends of `linerate path run`: namespaces by name, number, file, or made for it.

use std::fs::File;
use std::net::IpAddr;
use std::str::FromStr;

use linerate_core::record::{Failure, Fault};
use linerate_engine::failure::words_of;
use linerate_sys::netns::Netns;

/// Folder of the namespaces that ip-netns(8) names.
const NAMED: &str = "/run/netns";
/// Longest name of an interface (linux/if.h, IFNAMSIZ less the end).
const DEVICE_BYTES_MAX: usize = 15;

/// A namespace as a user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Namespace {
    /// Namespace of the program.
    Here,
    /// One made for this path.
    New,
    /// A file of it: /run/netns/NAME, /proc/PID/ns/net.
    File(String),
}

/// One end: a namespace and the name of the device to make there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EndFlag {
    pub(super) place: Namespace,
    pub(super) device: String,
}

/// Both ends, separated by a comma.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EndPair(pub(super) [EndFlag; 2]);

impl FromStr for EndPair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (left, right) = text.split_once(',').ok_or("two ends are NETNS:DEV,NETNS:DEV")?;
        let ends = [left.parse::<EndFlag>()?, right.parse::<EndFlag>()?];
        if ends[0] == ends[1] && ends[0].place != Namespace::New {
            return Err(format!("both ends are {left}: a path has two devices"));
        }
        Ok(Self(ends))
    }
}

impl FromStr for EndFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (place, device) =
            text.rsplit_once(':').ok_or("an end is NETNS:DEV, or .:DEV for here")?;
        let fits = (1..=DEVICE_BYTES_MAX).contains(&device.len());
        if !fits || device.contains(['/', ' ']) {
            return Err(format!(
                "'{device}' is no name of a device: 1 to {DEVICE_BYTES_MAX} bytes"
            ));
        }
        let place = match place {
            "" | "." => Namespace::Here,
            "new" => Namespace::New,
            file if file.contains('/') => Namespace::File(file.to_owned()),
            pid if pid.bytes().all(|byte| byte.is_ascii_digit()) => {
                Namespace::File(format!("/proc/{pid}/ns/net"))
            }
            name => Namespace::File(format!("{NAMED}/{name}")),
        };
        Ok(Self { place, device: device.to_owned() })
    }
}

impl EndFlag {
    /// Opens or makes the namespace; none for the program's own.
    pub(super) fn open_netns(&self) -> Result<Option<Netns>, Failure> {
        match &self.place {
            Namespace::Here => Ok(None),
            Namespace::New => Netns::new().map(Some).map_err(|error| {
                Failure::new(Fault::System, "make namespace for", &self.device, error)
                    .advise("run as root, or make both ends new: --ends new:path0,new:path1")
            }),
            Namespace::File(file) => match File::open(file) {
                Ok(open) => Ok(Some(Netns::from_fd(open.into()))),
                Err(error) => {
                    Err(Failure::new(Fault::Usage, "open namespace", file, words_of(&error))
                        .advise("give a name of ip netns, a PID, a file, or new"))
                }
            },
        }
    }

    /// For messages and records: `path0`, `new:path1`, `/run/netns/b:eth9`.
    pub(super) fn name(&self) -> String {
        match &self.place {
            Namespace::Here => self.device.clone(),
            Namespace::New => format!("new:{}", self.device),
            Namespace::File(file) => format!("{file}:{}", self.device),
        }
    }
}

/// An address with the length of its prefix: `198.18.0.1/30`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PrefixedAddress(pub(super) (IpAddr, u8));

impl FromStr for PrefixedAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let accepted = "an address with its prefix length is 198.18.0.1/30 or fd00::1/64";
        let (address, length) = text.split_once('/').ok_or(accepted)?;
        let address: IpAddr = address.parse().map_err(|_| accepted)?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let length = length.parse().ok().filter(|length| *length <= longest).ok_or(accepted)?;
        Ok(Self((address, length)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end_names(text: &str) -> Result<Vec<String>, String> {
        let EndPair(ends) = text.parse()?;
        Ok(ends.iter().map(EndFlag::name).collect())
    }

    #[test]
    fn an_end_is_a_namespace_and_a_device() {
        assert_eq!(end_names(".:a,new:b").expect("two ends"), ["a", "new:b"]);
        assert_eq!(
            end_names("one:a,17:a").expect("two"),
            ["/run/netns/one:a", "/proc/17/ns/net:a"]
        );
        assert_eq!(end_names("/x/y:a,:b").expect("two ends"), ["/x/y:a", "b"]);
        assert_eq!(end_names("new:a,new:a").expect("two ends"), ["new:a", "new:a"]);
    }

    #[test]
    fn what_is_no_end_is_refused_in_one_line() {
        let cases = [
            ("a", "two ends are NETNS:DEV,NETNS:DEV"),
            ("a,b", "an end is NETNS:DEV"),
            (".:a,.:a", "both ends are .:a"),
            (".:a,b:", "'' is no name of a device"),
            (".:a,b:0123456789abcdef", "1 to 15 bytes"),
        ];
        for (text, words) in cases {
            let error = end_names(text).expect_err(text);
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn an_address_has_a_prefix_that_fits() {
        assert!("198.18.0.1/30".parse::<PrefixedAddress>().is_ok());
        assert!("fd00::1/64".parse::<PrefixedAddress>().is_ok());
        for text in ["198.18.0.1", "198.18.0.1/33", "host/24", "fd00::1/129"] {
            assert!(text.parse::<PrefixedAddress>().is_err(), "{text}");
        }
    }
}
