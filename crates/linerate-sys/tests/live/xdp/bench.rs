//! Namespaces and cables: near - far, or near - device - far.

use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use linerate_sys::bpf::{
    Asm, DeviceMap, LiveRun, ProgramOptions, Reg, XdpProgram, available, helper,
};
use linerate_sys::netlink::{RouteSocket, VethEnd, VethPair};
use linerate_sys::netns::Netns;
use linerate_sys::{clock, userns};

/// No wait of a test takes this long on a working machine; a busy one may take seconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) const NEAR: u32 = 2;
pub(crate) const LEFT: u32 = 3;
pub(crate) const RIGHT: u32 = 4;
pub(crate) const FAR: u32 = 5;

pub(crate) const NEAR_ADDR: Ipv4Addr = Ipv4Addr::new(10, 9, 1, 1);
pub(crate) const LEFT_ADDR: Ipv4Addr = Ipv4Addr::new(10, 9, 1, 2);
pub(crate) const RIGHT_ADDR: Ipv4Addr = Ipv4Addr::new(10, 9, 2, 1);
pub(crate) const FAR_ADDR: Ipv4Addr = Ipv4Addr::new(10, 9, 2, 2);

/// Whether the host allows what the tests do; says so when not.
pub(crate) fn may_run() -> bool {
    if !userns::may_make_networks() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return false;
    }
    if let Err(reason) = available() {
        println!("skipped: {reason}");
        return false;
    }
    true
}

/// A namespace whose interfaces tell nothing by themselves.
pub(crate) fn silent_namespace() -> Netns {
    let netns = Netns::new().expect("a namespace");
    inside(&netns, || {
        for name in ["default", "all"] {
            let setting = format!("net/ipv6/conf/{name}/disable_ipv6");
            linerate_sys::sysctl::write(&setting, "1").expect("a namespace of one's own");
        }
    });
    netns
}

/// A cable of which nothing is set but its ends: no addresses, no packets by itself.
pub(crate) fn cable(ends: [(&Netns, &str, u32); 2], mtu_bytes: u32) {
    let [left, right] =
        ends.map(|(netns, name, index)| VethEnd { name, index, netns: netns.as_fd() });
    let pair = VethPair { ends: [left, right], mtu_bytes, super_packets: false };
    RouteSocket::open().and_then(|mut socket| socket.add_veth(&pair)).expect("a veth pair");
    for (netns, _, index) in ends {
        inside(netns, || RouteSocket::open().and_then(|mut it| it.set_up(index)).expect("up"));
    }
}

/// near - far.
pub(crate) struct Cable {
    pub(crate) near: Netns,
    pub(crate) far: Netns,
}

impl Cable {
    pub(crate) fn new(mtu_bytes: u32) -> Option<Self> {
        if !may_run() {
            return None;
        }
        let this = Self { near: silent_namespace(), far: silent_namespace() };
        cable([(&this.near, "near", NEAR), (&this.far, "far", FAR)], mtu_bytes);
        Some(this)
    }
}

/// near - (left, right) - far.
pub(crate) struct Path {
    pub(crate) near: Netns,
    pub(crate) device: Netns,
    pub(crate) far: Netns,
}

impl Path {
    pub(crate) fn new() -> Option<Self> {
        if !may_run() {
            return None;
        }
        let this =
            Self { near: silent_namespace(), device: silent_namespace(), far: silent_namespace() };
        cable([(&this.near, "near", NEAR), (&this.device, "left", LEFT)], 1500);
        cable([(&this.device, "right", RIGHT), (&this.far, "far", FAR)], 1500);
        Some(this)
    }
}

/// Runs `work` on a thread in the namespace.
pub(crate) fn inside<T: Send>(netns: &Netns, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            netns.enter().expect("the namespace");
            work()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Waits until it is so.
pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = clock::monotonic() + PATIENCE;
    while !is_so() {
        assert!(clock::monotonic() < end, "in vain: {what}");
        clock::sleep(Duration::from_millis(1));
    }
}

/// Sends single frames out of an interface by a program of two lines, which is not the generator.
pub(crate) struct Injector {
    program: XdpProgram,
}

impl Injector {
    pub(crate) fn new(netns: &Netns, ifindex: u32) -> Self {
        let device = inside(netns, || DeviceMap::new(&[ifindex]).expect("the interface"));
        let mut asm = Asm::new();
        asm.load_map(Reg::R1, &device);
        asm.mov(Reg::R2, 0);
        asm.mov(Reg::R3, 0);
        asm.call_helper(helper::REDIRECT_MAP);
        asm.exit();
        let program = XdpProgram::load("inject", &asm, &ProgramOptions { multi_buffer: false });
        Self { program: program.expect("accepted") }
    }

    pub(crate) fn send(&self, frame: &[u8]) {
        self.program.run_live(frame, LiveRun { repeat: 1, batch: 1 }).expect("sent");
    }
}
