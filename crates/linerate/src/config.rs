//! The configuration file: hosts by name with what is known of the path to them, and defaults.
//!
//! Left out: everything else that flags say. `docs/manual/config.md` describes it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use linerate_core::record::{Failure, Fault, KnownPath, PathPlan};
use linerate_core::theory::link::LinkTechnology;
use linerate_core::units::BitRate;
use serde::Deserialize;

use crate::command::quantity::{rate_text, rate_with_unit};
use crate::paths;

/// Path below the directory of configuration files.
const BELOW_CONFIG: &str = "linerate/config.toml";

/// The whole configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Settings for every host.
    #[serde(default)]
    defaults: Defaults,
    /// Hosts by the name that the user gives them.
    #[serde(default)]
    hosts: BTreeMap<String, HostEntry>,
    /// Path of the file that was read.
    #[serde(skip)]
    path: PathBuf,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Defaults {
    port: Option<u16>,
    link: Option<String>,
    capacity: Option<String>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostEntry {
    address: Option<String>,
    port: Option<u16>,
    link: Option<String>,
    capacity: Option<String>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
}

/// Link or capacity of the path to a host, which the user knows.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct KnownFlags {
    /// Slowest link of the path, for the ceiling: 1g, 10g, ds3, oc3-atm, vdsl2:50m, ... as for
    /// linerate ceiling
    #[arg(long, value_name = "LINK", value_parser = known_link)]
    link: Option<String>,
    /// Rate of IP packets (headers included) that the path carries, in bit/s, for the ceiling
    #[arg(long, value_name = "RATE", value_parser = some_rate)]
    capacity: Option<BitRate>,
}

/// A rate that carries something.
fn some_rate(text: &str) -> Result<BitRate, String> {
    let rate = rate_with_unit(text)?;
    if rate.bits_per_sec() > 0 { Ok(rate) } else { Err("such a path carries nothing".to_owned()) }
}

impl KnownFlags {
    /// The known link or capacity, if a flag gives one.
    pub(crate) fn known_path(&self) -> Option<KnownPath> {
        let flag = if self.link.is_some() { "--link" } else { "--capacity" };
        known_path_of(self.link.clone(), self.capacity, flag.to_owned())
    }
}

fn known_path_of(
    link: Option<String>,
    capacity_bps: Option<BitRate>,
    source: String,
) -> Option<KnownPath> {
    let told = link.is_some() || capacity_bps.is_some();
    told.then_some(KnownPath { link, capacity_bps, source })
}

/// Settings of a host that a command line names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Profile {
    /// Name or address to connect to.
    pub(crate) host: String,
    /// Its name in the file, where it is there.
    pub(crate) name: Option<String>,
    /// Port of the host, where the file gives one.
    pub(crate) port: Option<u16>,
    /// Known link or capacity of the path.
    pub(crate) known: Option<KnownPath>,
}

impl Config {
    /// The user's file; an empty one where there is none.
    /// # Errors
    /// One line for a file that cannot be read or has a mistake, and for a missing one that
    /// `LINERATE_CONFIG` names.
    pub(crate) fn load() -> Result<Self, Failure> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        if let Some(named) = set("LINERATE_CONFIG") {
            return Self::read(Path::new(&named));
        }
        let base = set("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || Some(PathBuf::from(set("HOME")?).join(".config"));
        match base.or_else(home).map(|base| base.join(BELOW_CONFIG)) {
            Some(path) if path.exists() => Self::read(&path),
            _ => Ok(Self::default()),
        }
    }

    fn read(path: &Path) -> Result<Self, Failure> {
        let text = paths::read(path)?;
        Self::from_toml(&text, path).map_err(|reason| {
            Failure::new(Fault::Usage, "read", path.display().to_string(), reason)
                .advise("linerate help config lists the keys")
        })
    }

    fn from_toml(text: &str, path: &Path) -> Result<Self, String> {
        let mut config: Self =
            linerate_core::tree::from_toml(text).map_err(|error| mistake(text, &error))?;
        config.path = path.to_owned();
        let hosts = config.hosts.iter().map(|(name, host)| (name.as_str(), host));
        for (name, host) in hosts {
            let place = |key: &str, error: String| format!("hosts.{name}.{key}: {error}");
            check_known_path(&host.link, &host.capacity)
                .map_err(|(key, error)| place(key, error))?;
        }
        let Defaults { link, capacity, .. } = &config.defaults;
        check_known_path(link, capacity)
            .map_err(|(key, error)| format!("defaults.{key}: {error}"))?;
        Ok(config)
    }

    /// Settings of a host from the file, below those of the flags.
    pub(crate) fn profile(&self, host: &str, flags: &KnownFlags) -> Profile {
        let found = self.hosts.get(host);
        let file = self.path.display();
        let by_host = found.and_then(|entry| {
            let capacity = entry.capacity.as_ref().and_then(|rate| rate.parse().ok());
            known_path_of(entry.link.clone(), capacity, format!("hosts.{host} of {file}"))
        });
        let capacity = self.defaults.capacity.as_ref().and_then(|rate| rate.parse().ok());
        let by_default =
            known_path_of(self.defaults.link.clone(), capacity, format!("defaults of {file}"));
        let address = found.and_then(|entry| entry.address.clone());
        Profile {
            host: address.unwrap_or_else(|| host.to_owned()),
            name: found.map(|_| host.to_owned()),
            port: found.and_then(|entry| entry.port).or(self.defaults.port),
            known: flags.known_path().or(by_host).or(by_default),
        }
    }

    /// The names of the hosts.
    pub(crate) fn host_names(&self) -> impl Iterator<Item = &str> {
        self.hosts.keys().map(String::as_str)
    }

    /// Labels of results with a host of the file, or with any.
    pub(crate) fn result_tags(&self, name: Option<&str>) -> BTreeMap<String, String> {
        let mut tags = self.defaults.tags.clone();
        let host = name.and_then(|name| self.hosts.get(name));
        tags.extend(host.map(|host| host.tags.clone()).unwrap_or_default());
        tags
    }
}

/// Checks that a link and a capacity can be read; a refusal names the key and the reason.
fn check_known_path(
    link: &Option<String>,
    capacity: &Option<String>,
) -> Result<(), (&'static str, String)> {
    let link = link.as_deref().map_or(Ok(()), |link| known_link(link).map(drop));
    link.map_err(|error| ("link", error))?;
    let rate = capacity.as_deref().map_or(Ok(()), |rate| rate.parse::<BitRate>().map(drop));
    rate.map_err(|error| ("capacity", error.to_string()))
}

/// Reads a link whose framing is known.
fn known_link(text: &str) -> Result<String, String> {
    rate_text(text)?;
    let plan = PathPlan { link: Some(text.to_owned()), ..PathPlan::default() };
    match plan.packet_rate_bound(false, 1500, 1) {
        Ok(Some(_)) => Ok(text.to_owned()),
        Ok(None) => Err(format!("{text:?} has no rate")),
        Err(problem) => {
            let names = linerate_core::similar_names(
                text,
                LinkTechnology::NAMED.iter().map(|known| known.name),
            );
            Err(match names.as_slice() {
                [] => problem.to_string(),
                names => format!("{text:?} is not a link; near it: {}", names.join(", ")),
            })
        }
    }
}

/// A mistake in the file on one line: its place, the problem, and the key that was probably meant.
fn mistake(text: &str, error: &linerate_core::tree::Error) -> String {
    let at = error.offset().unwrap_or(0);
    let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
    let message = error.message().lines().next().unwrap_or_default();
    let Some(rest) = message.strip_prefix("unknown field `") else {
        return format!("line {line}: {message}");
    };
    let mut words = rest.split('`').step_by(2);
    let key = words.next().unwrap_or_default();
    let known: Vec<&str> = rest.split('`').skip(2).step_by(2).collect();
    match linerate_core::similar_names(key, known.iter().copied()).first() {
        Some(meant) => format!("line {line}: unknown key {key}; {meant} is near it"),
        None => format!("line {line}: unknown key {key}; there are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[defaults]\nport = 5211\ntags = { site = \"a\", who = \"me\" }\n\n\
        [hosts.b]\naddress = \"192.0.2.7\"\nlink = \"1g\"\ntags = { site = \"b\" }\n\n\
        [hosts.c]\ncapacity = \"50M\"\nport = 5999\n";

    fn config(text: &str) -> Result<Config, String> {
        Config::from_toml(text, Path::new("/c.toml"))
    }

    #[test]
    fn a_host_has_its_own_settings_then_the_defaults_and_flags_come_first() {
        let config = config(FILE).expect("a sound file");
        let none = KnownFlags::default();
        let b = config.profile("b", &none);
        assert_eq!(
            (b.host.as_str(), b.name.as_deref(), b.port),
            ("192.0.2.7", Some("b"), Some(5211))
        );
        let known = b.known.expect("a link");
        assert_eq!(known.link.as_deref(), Some("1g"));
        assert_eq!(known.source, "hosts.b of /c.toml");
        let c = config.profile("c", &none);
        assert_eq!((c.host.as_str(), c.port), ("c", Some(5999)));
        let capacity = c.known.and_then(|known| known.capacity_bps);
        assert_eq!(capacity, Some(BitRate::from_bits_per_sec(50_000_000)));
        let flags = KnownFlags { link: Some("ds3".to_owned()), capacity: None };
        let known = config.profile("b", &flags).known.expect("by the flag");
        assert_eq!((known.link.as_deref(), known.source.as_str()), (Some("ds3"), "--link"));
        let other = config.profile("192.0.2.9", &none);
        assert_eq!((other.name, other.known, other.port), (None, None, Some(5211)));
        assert_eq!(config.result_tags(Some("b"))["site"], "b");
        assert_eq!(
            (config.result_tags(None)["site"].as_str(), config.result_tags(None).len()),
            ("a", 2)
        );
    }

    #[test]
    fn a_mistake_is_one_line_with_its_place_and_the_nearest_key() {
        for (text, part) in [
            ("[hosts.b]\nadress = \"b\"\n", "line 2: unknown key adress; address is near it"),
            ("[host.b]\n", "unknown key host; hosts is near it"),
            ("[hosts.b]\nwindow = 3\n", "there are address, port, link, capacity, tags"),
            ("[hosts.b]\nport = \"x\"\n", "line 2"),
            ("[hosts.b]\nlink = \"oc13\"\n", "hosts.b.link: \"oc13\" is not a link; near it: oc1"),
            ("[hosts.b]\ncapacity = \"fast\"\n", "hosts.b.capacity"),
            ("[defaults]\nlink = \"wifi\"\n", "defaults.link"),
            ("[hosts.b\n", "line 1"),
        ] {
            let error = config(text).expect_err(text);
            assert!(error.contains(part) && !error.contains('\n'), "{text}: {error}");
        }
    }

    #[test]
    fn links_are_those_with_a_framing() {
        for text in ["1g", "10g", "ds3", "oc3-atm", "oc12", "vdsl2:50m", "100m", "shaped:50m"] {
            assert!(known_link(text).is_ok(), "{text}: {:?}", known_link(text));
        }
        for text in ["", "wifi:54m", "fast", "oc13"] {
            assert!(known_link(text).is_err(), "{text}");
        }
    }
}
