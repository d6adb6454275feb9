//! What a tester has to know of an interface before and after it measures with it, in one look:
//! whether it is usable, and what in it may stand for a limit of the device.
//!
//! Each fact has its own source, and is absent where the driver does not tell: rtnetlink
//! ([`crate::netlink`]), ethtool ([`crate::ethtool`]) and the NAPI contexts
//! ([`crate::netlink::napis`]). Left out: the processors' counts ([`crate::host`]).

use crate::Result;
use crate::ethtool::{self, Offload, Pause};
use crate::netlink::{self, LinkFacts, Napi, RouteSocket};

/// Facts about one interface at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceFacts {
    /// State, MTU, address and counters.
    pub link: LinkFacts,
    /// Name of its driver.
    pub driver: Option<String>,
    /// Speed that the driver tells; absent for virtual links, whose figure is fiction.
    pub speed_bps: Option<u64>,
    /// It sends and receives at once.
    pub full_duplex: Option<bool>,
    /// What it does with PAUSE frames.
    pub pause: Option<Pause>,
    /// Offloads that are on.
    pub offloads: Vec<Offload>,
    /// Its NAPI contexts.
    pub napis: Vec<Napi>,
}

impl InterfaceFacts {
    /// Looks at an interface in the namespace of the calling thread.
    /// # Errors
    /// When there is none of this index.
    pub fn of(ifindex: u32) -> Result<Self> {
        let link = RouteSocket::open()?.link_by_index(ifindex)?;
        let name = &link.name;
        // Virtual links have a kind, and tell a speed that nobody keeps.
        let is_hardware = link.kind.is_none();
        let speed = || ethtool::speed_bps(name).ok().flatten();
        let is_on = |it: &Offload| ethtool::offload(name, *it).unwrap_or(false);
        Ok(Self {
            driver: ethtool::driver(name).ok(),
            speed_bps: is_hardware.then(speed).flatten(),
            full_duplex: ethtool::is_full_duplex(name).ok().flatten(),
            pause: ethtool::pause(name).ok().flatten(),
            offloads: Offload::ALL.into_iter().filter(is_on).collect(),
            napis: netlink::napis(ifindex).unwrap_or_default(),
            link,
        })
    }
}
