//! Forwarding in XDP: a router by the kernel's own tables (bpf_fib_lookup), and a wire between two
//! interfaces.
//!
//! The programs are in `bpf/forward.c`. The router hands to the kernel what it cannot do itself:
//! unknown neighbours, its own addresses, hop limits that end, options. RFC 1812 §5.3.1 and RFC
//! 1141 for the hop count and its checksum.

use crate::Result;
use crate::bpf::{
    AttachMode, Code, Constants, DeviceMap, MappedArray, Place, Program, ProgramOptions, XdpLink,
};

const IN: usize = 0;
const FORWARDED: usize = 1;
const PASSED: usize = 2;
const WORDS: usize = 3;

const OBJECT: &[u8] = include_bytes!("../../bpf/forward.o");
/// BPF_F_BROADCAST: to every interface of the map.
const BROADCAST: u64 = 1 << 3;

/// What a router did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouterCounts {
    /// Frames that came in.
    pub frames_in: u64,
    /// Frames that it sent on.
    pub forwarded: u64,
    /// Frames that the kernel got.
    pub passed: u64,
}

/// A router between interfaces of one namespace, until dropped.
#[derive(Debug)]
pub struct Router {
    links: Vec<XdpLink>,
    counts: MappedArray,
}

impl Router {
    /// Routes what comes in on these interfaces of the calling thread's namespace, where
    /// forwarding is on (net.ipv4.ip_forward, net.ipv6.conf.all.forwarding).
    /// # Errors
    /// When another program is on one of them, or privileges are absent.
    pub fn attach(ifindexes: &[u32], mode: AttachMode) -> Result<Self> {
        let counts = MappedArray::new("router_counts", WORDS)?;
        let names = [("counts", Place::Value(counts.map()))];
        let code = Code { object: OBJECT, program: "route", names: &names };
        let program = Program::load("linerate_route", &code, &ProgramOptions::default())?;
        let attach = |ifindex: &u32| XdpLink::attach(&program, *ifindex, mode);
        let links = ifindexes.iter().map(attach).collect::<Result<_>>()?;
        Ok(Self { links, counts })
    }

    /// What it has done so far.
    pub fn counts(&self) -> RouterCounts {
        RouterCounts {
            frames_in: self.counts.get(IN),
            forwarded: self.counts.get(FORWARDED),
            passed: self.counts.get(PASSED),
        }
    }

    /// Whether it runs in the drivers.
    pub fn is_native(&self) -> bool {
        self.links.iter().all(XdpLink::is_native)
    }
}

/// A wire from one interface to another, until dropped: every frame goes out as it came in.
#[derive(Debug)]
pub struct Wire {
    _link: XdpLink,
    counts: MappedArray,
}

impl Wire {
    /// Sends what comes in on `from` out of `to`; both in the calling thread's namespace.
    /// # Errors
    /// When an interface does not exist, another program is on it, or privileges are absent.
    pub fn attach(from: u32, to: u32, mode: AttachMode) -> Result<Self> {
        Self::with(from, &[to], mode)
    }

    /// A wire that is broken in a certain way: every frame comes out twice.
    /// # Errors
    /// As [`Wire::attach`].
    pub fn doubling(from: u32, to: u32, mode: AttachMode) -> Result<Self> {
        Self::with(from, &[to, to], mode)
    }

    fn with(from: u32, to: &[u32], mode: AttachMode) -> Result<Self> {
        let counts = MappedArray::new("wire_counts", 1)?;
        let devices = DeviceMap::new(to)?;
        let plan = Constants::new("wire_plan", &[if to.len() > 1 { BROADCAST } else { 0 }])?;
        let names = [
            ("counts", Place::Value(counts.map())),
            ("devices", Place::Map(&devices)),
            ("plan", Place::Value(plan.map())),
        ];
        let code = Code { object: OBJECT, program: "wire", names: &names };
        let program = Program::load("linerate_wire", &code, &ProgramOptions::default())?;
        Ok(Self { _link: XdpLink::attach(&program, from, mode)?, counts })
    }

    /// Frames that came in so far.
    pub fn frames(&self) -> u64 {
        self.counts.get(IN)
    }
}
