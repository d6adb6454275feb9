//! Forwarding in XDP: a router by the kernel's own tables (bpf_fib_lookup), and a wire between two
//! interfaces.
//!
//! The router hands to the kernel what it cannot do itself: unknown neighbours, its own addresses,
//! hop limits that end, options. RFC 1812 §5.3.1 and RFC 1141 for the hop count and its checksum.

use crate::Result;
use crate::bpf::{
    Asm, AttachMode, DeviceMap, JumpCondition, JumpLabel, MappedArray, ProgramOptions, Reg, Size,
    XdpLink, XdpProgram, action, helper,
};

const IN: usize = 0;
const FORWARDED: usize = 1;
const PASSED: usize = 2;
const WORDS: usize = 3;

/// struct bpf_fib_lookup on the stack: 64 bytes; offsets in it.
const FIB: i16 = -64;
const FIB_TOT_LEN: i16 = 6;
const FIB_IFINDEX: i16 = 8;
const FIB_SRC: i16 = 16;
const FIB_DST: i16 = 32;
const FIB_SMAC: i16 = 52;
const FIB_DMAC: i16 = 58;
const ETHERNET_BYTES: i16 = 14;
/// BPF_F_BROADCAST: to every interface of the map.
const BROADCAST: i32 = 1 << 3;

/// Frame counts of a [`Router`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouterCounts {
    /// Frames received.
    pub frames_in: u64,
    /// Frames forwarded to another interface.
    pub forwarded: u64,
    /// Frames passed to the kernel's network stack.
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
        let program =
            XdpProgram::load("linerate_route", &router(&counts), &ProgramOptions::default())?;
        let attach = |ifindex: &u32| XdpLink::attach(&program, *ifindex, mode);
        let links = ifindexes.iter().map(attach).collect::<Result<_>>()?;
        Ok(Self { links, counts })
    }

    /// Frame counts since the router was attached.
    pub fn counts(&self) -> RouterCounts {
        RouterCounts {
            frames_in: self.counts.get(IN),
            forwarded: self.counts.get(FORWARDED),
            passed: self.counts.get(PASSED),
        }
    }

    /// True if all its programs run in their drivers (native XDP).
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
        Self::with_targets(from, &[to], mode)
    }

    /// A wire that is broken in a certain way: every frame comes out twice.
    /// # Errors
    /// As [`Wire::attach`].
    pub fn doubling(from: u32, to: u32, mode: AttachMode) -> Result<Self> {
        Self::with_targets(from, &[to, to], mode)
    }

    fn with_targets(from: u32, to: &[u32], mode: AttachMode) -> Result<Self> {
        let counts = MappedArray::new("wire_counts", 1)?;
        let devices = DeviceMap::new(to)?;
        let mut asm = Asm::new();
        increment_counter(&mut asm, &counts, IN);
        asm.load_map(Reg::R1, &devices);
        asm.mov(Reg::R2, 0);
        asm.mov(Reg::R3, if to.len() > 1 { BROADCAST } else { 0 });
        asm.call_helper(helper::REDIRECT_MAP);
        asm.exit();
        let program = XdpProgram::load("linerate_wire", &asm, &ProgramOptions::default())?;
        Ok(Self { _link: XdpLink::attach(&program, from, mode)?, counts })
    }

    /// Number of frames received so far.
    pub fn frames(&self) -> u64 {
        self.counts.get(IN)
    }
}

/// Adds 1 to a counter, whatever processor. Changes R1 and R2.
fn increment_counter(asm: &mut Asm, counts: &MappedArray, word: usize) {
    let offset = u32::try_from(word * 8).expect("a few words");
    asm.map_value(Reg::R1, counts.bpf_map(), offset);
    asm.mov(Reg::R2, 1);
    asm.atomic_add(Reg::R1, 0, Reg::R2);
}

/// Registers: R6 the context, R7 the start of the frame, R8 its end.
fn router(counts: &MappedArray) -> Asm {
    let mut asm = Asm::new();
    let [ipv6, look_up, pass] = [asm.new_label(), asm.new_label(), asm.new_label()];
    asm.mov(Reg::R6, Reg::R1);
    increment_counter(&mut asm, counts, IN);
    asm.load_memory(Size::Word, Reg::R7, Reg::R6, 0);
    asm.load_memory(Size::Word, Reg::R8, Reg::R6, 4);
    for word in (0..64).step_by(8) {
        asm.store_memory(Size::Double, Reg::R10, FIB + word, 0);
    }
    within(&mut asm, 34, pass);
    asm.load_memory(Size::Half, Reg::R1, Reg::R7, 12);
    asm.swap_be(Reg::R1, 16);
    asm.jump_if(JumpCondition::Equal, Reg::R1, 0x86dd, ipv6);
    asm.jump_if(JumpCondition::NotEqual, Reg::R1, 0x0800, pass);
    ask_ipv4(&mut asm, pass);
    asm.jump_to(look_up);
    asm.bind_label(ipv6);
    ask_ipv6(&mut asm, pass);
    asm.bind_label(look_up);
    asm.load_memory(Size::Word, Reg::R1, Reg::R6, 12);
    asm.store_memory(Size::Word, Reg::R10, FIB + FIB_IFINDEX, Reg::R1);
    asm.mov(Reg::R1, Reg::R6);
    asm.mov(Reg::R2, Reg::R10);
    asm.add(Reg::R2, i32::from(FIB));
    asm.mov(Reg::R3, 64);
    asm.mov(Reg::R4, 0);
    asm.call_helper(helper::FIB_LOOKUP);
    asm.jump_if(JumpCondition::NotEqual, Reg::R0, 0, pass);
    rewrite(&mut asm);
    increment_counter(&mut asm, counts, FORWARDED);
    asm.load_memory(Size::Word, Reg::R1, Reg::R10, FIB + FIB_IFINDEX);
    asm.mov(Reg::R2, 0);
    asm.call_helper(helper::REDIRECT);
    asm.exit();
    asm.bind_label(pass);
    increment_counter(&mut asm, counts, PASSED);
    asm.mov(Reg::R0, action::PASS);
    asm.exit();
    asm
}

/// On to `short` when the frame has no `bytes`.
fn within(asm: &mut Asm, bytes: i32, short: JumpLabel) {
    asm.mov(Reg::R1, Reg::R7);
    asm.add(Reg::R1, bytes);
    asm.jump_if(JumpCondition::Greater, Reg::R1, Reg::R8, short);
}

fn ask_ipv4(asm: &mut Asm, pass: JumpLabel) {
    // No options.
    asm.load_memory(Size::Byte, Reg::R1, Reg::R7, ETHERNET_BYTES);
    asm.jump_if(JumpCondition::NotEqual, Reg::R1, 0x45, pass);
    asm.load_memory(Size::Byte, Reg::R1, Reg::R7, ETHERNET_BYTES + 8);
    asm.jump_if(JumpCondition::LessOrEqual, Reg::R1, 1, pass);
    asm.store_memory(Size::Byte, Reg::R10, FIB, libc::AF_INET);
    asm.load_memory(Size::Byte, Reg::R1, Reg::R7, ETHERNET_BYTES + 1);
    asm.store_memory(Size::Byte, Reg::R10, FIB + 12, Reg::R1);
    asm.load_memory(Size::Byte, Reg::R1, Reg::R7, ETHERNET_BYTES + 9);
    asm.store_memory(Size::Byte, Reg::R10, FIB + 1, Reg::R1);
    asm.load_memory(Size::Half, Reg::R1, Reg::R7, ETHERNET_BYTES + 2);
    asm.swap_be(Reg::R1, 16);
    asm.store_memory(Size::Half, Reg::R10, FIB + FIB_TOT_LEN, Reg::R1);
    for (to, from) in [(FIB_SRC, 12), (FIB_DST, 16)] {
        asm.load_memory(Size::Word, Reg::R1, Reg::R7, ETHERNET_BYTES + from);
        asm.store_memory(Size::Word, Reg::R10, FIB + to, Reg::R1);
    }
}

fn ask_ipv6(asm: &mut Asm, pass: JumpLabel) {
    within(asm, 54, pass);
    asm.load_memory(Size::Byte, Reg::R1, Reg::R7, ETHERNET_BYTES + 7);
    asm.jump_if(JumpCondition::LessOrEqual, Reg::R1, 1, pass);
    asm.store_memory(Size::Byte, Reg::R10, FIB, libc::AF_INET6);
    asm.load_memory(Size::Byte, Reg::R1, Reg::R7, ETHERNET_BYTES + 6);
    asm.store_memory(Size::Byte, Reg::R10, FIB + 1, Reg::R1);
    asm.load_memory(Size::Half, Reg::R1, Reg::R7, ETHERNET_BYTES + 4);
    asm.swap_be(Reg::R1, 16);
    asm.add(Reg::R1, 40);
    asm.store_memory(Size::Half, Reg::R10, FIB + FIB_TOT_LEN, Reg::R1);
    for word in (0..32).step_by(4) {
        asm.load_memory(Size::Word, Reg::R1, Reg::R7, ETHERNET_BYTES + 8 + word);
        asm.store_memory(Size::Word, Reg::R10, FIB + FIB_SRC + word, Reg::R1);
    }
}

/// The hop count less one with its checksum, and the addresses of the next link.
fn rewrite(asm: &mut Asm) {
    let [ipv6, addresses, no_carry] = [asm.new_label(), asm.new_label(), asm.new_label()];
    asm.load_memory(Size::Half, Reg::R1, Reg::R7, 12);
    asm.swap_be(Reg::R1, 16);
    asm.jump_if(JumpCondition::Equal, Reg::R1, 0x86dd, ipv6);
    asm.load_memory(Size::Byte, Reg::R1, Reg::R7, ETHERNET_BYTES + 8);
    asm.sub(Reg::R1, 1);
    asm.store_memory(Size::Byte, Reg::R7, ETHERNET_BYTES + 8, Reg::R1);
    asm.load_memory(Size::Half, Reg::R1, Reg::R7, ETHERNET_BYTES + 10);
    asm.swap_be(Reg::R1, 16);
    asm.add(Reg::R1, 0x100);
    asm.jump_if(JumpCondition::Less, Reg::R1, 0xffff, no_carry);
    asm.add(Reg::R1, 1);
    asm.bind_label(no_carry);
    asm.swap_be(Reg::R1, 16);
    asm.store_memory(Size::Half, Reg::R7, ETHERNET_BYTES + 10, Reg::R1);
    asm.jump_to(addresses);
    asm.bind_label(ipv6);
    // `within` again, because the verifier has not seen this way through the frame.
    let whole = asm.new_label();
    asm.mov(Reg::R1, Reg::R7);
    asm.add(Reg::R1, 54);
    asm.jump_if(JumpCondition::LessOrEqual, Reg::R1, Reg::R8, whole);
    asm.mov(Reg::R0, action::DROP);
    asm.exit();
    asm.bind_label(whole);
    asm.load_memory(Size::Byte, Reg::R1, Reg::R7, ETHERNET_BYTES + 7);
    asm.sub(Reg::R1, 1);
    asm.store_memory(Size::Byte, Reg::R7, ETHERNET_BYTES + 7, Reg::R1);
    asm.bind_label(addresses);
    for (to, from) in [(0, FIB_DMAC), (6, FIB_SMAC)] {
        for word in (0..6).step_by(2) {
            asm.load_memory(Size::Half, Reg::R1, Reg::R10, FIB + from + word);
            asm.store_memory(Size::Half, Reg::R7, to + word, Reg::R1);
        }
    }
}
