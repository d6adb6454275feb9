//! State of an interface of the tester, read before and after a measurement: if it is usable, and
//! the settings that could be mistaken for a limit of the device.
//!
//! The sources are rtnetlink ([`crate::netlink`]), ethtool ([`crate::ethtool`]) and the NAPI
//! contexts ([`crate::netlink::napi_contexts`]); a fact that the driver does not report is absent.
//! Left out: the processors' counters ([`crate::host`]).

use crate::Result;
use crate::ethtool::{self, LinkPauseSettings, Offload};
use crate::netlink::{self, LinkFacts, Napi, RouteSocket};

/// State and settings of one interface at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceFacts {
    /// State, MTU, address and counters.
    pub link: LinkFacts,
    /// Name of the driver.
    pub driver: Option<String>,
    /// Speed, as the driver reports it; absent for virtual links, whose speed is not real.
    pub speed_bps: Option<u64>,
    /// True if the link is full-duplex.
    pub full_duplex: Option<bool>,
    /// Flow control by PAUSE frames.
    pub pause: Option<LinkPauseSettings>,
    /// Offloads that are on.
    pub offloads: Vec<Offload>,
    /// NAPI contexts of the interface.
    pub napis: Vec<Napi>,
}

impl InterfaceFacts {
    /// Reads the facts of an interface in the namespace of the calling thread.
    /// # Errors
    /// When there is no interface with this index.
    pub fn from_ifindex(ifindex: u32) -> Result<Self> {
        let link = RouteSocket::open()?.link_by_index(ifindex)?;
        let name = &link.name;
        // Virtual links have a kind, and report a speed that is not real.
        let is_hardware = link.kind.is_none();
        let speed = || ethtool::speed_bps(name).ok().flatten();
        let is_on = |it: &Offload| ethtool::offload(name, *it).unwrap_or(false);
        Ok(Self {
            driver: ethtool::driver(name).ok(),
            speed_bps: is_hardware.then(speed).flatten(),
            full_duplex: ethtool::is_full_duplex(name).ok().flatten(),
            pause: ethtool::pause_settings(name).ok().flatten(),
            offloads: Offload::ALL.into_iter().filter(is_on).collect(),
            napis: netlink::napi_contexts(ifindex).unwrap_or_default(),
            link,
        })
    }
}
