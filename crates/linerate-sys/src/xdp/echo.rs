//! Echo in XDP: a filter that hands the answers to a prober's AF_XDP socket, and a reflector that
//! answers in the driver.
//!
//! Offsets are those of Ethernet without VLAN tags, IPv4 without options (RFC 791), IPv6 without
//! extension headers (RFC 8200) and ICMP echo (RFC 792, RFC 4443 §4). All else goes to the kernel.

use std::net::IpAddr;
use std::os::fd::AsRawFd;

use crate::Result;
use crate::bpf::{
    Asm, AttachMode, JumpCondition, JumpLabel, MappedArray, ProgramOptions, Reg, Size, SocketMap,
    XdpLink, XdpProgram, action, helper,
};

const IPV4: i32 = 0x0800;
const IPV6: i32 = 0x86dd;
/// First byte of the echo message.
const MESSAGE_V4: i16 = 34;
const MESSAGE_V6: i16 = 54;
const ECHO_BYTES: i16 = 8;
/// Queues that a filter can tell apart; cards have a few hundred at most.
const QUEUES: u32 = 1024;
/// Time to live of answers, as Linux sends them.
const TTL: i32 = 64;

const IDENTIFIER: usize = 0;
const ELSEWHERE: usize = 1;
/// No identifier of 16 bits is this.
const NOBODY: u64 = 1 << 16;

/// Takes the echo replies of one host with one identifier for AF_XDP sockets, until dropped.
#[derive(Debug)]
pub struct EchoFilter {
    link: XdpLink,
    sockets: SocketMap,
    state: MappedArray,
}

impl EchoFilter {
    /// Puts the filter on an interface of the calling thread's namespace; it takes nothing yet.
    /// # Errors
    /// When another program is there, or without CAP_BPF and CAP_NET_ADMIN.
    pub fn attach(ifindex: u32, peer: IpAddr) -> Result<Self> {
        let (sockets, state) = (SocketMap::new(QUEUES)?, MappedArray::new("echo_filter", 2)?);
        state.set_word(IDENTIFIER, NOBODY);
        let asm = filter(peer, &sockets, &state);
        let program = XdpProgram::load("linerate_echo", &asm, &ProgramOptions::default())?;
        Ok(Self { link: XdpLink::attach(&program, ifindex, AttachMode::Best)?, sockets, state })
    }

    /// Redirects the replies of a receive queue to a socket.
    /// # Errors
    /// When `socket` is not an AF_XDP socket bound to that queue.
    pub fn redirect_queue(&self, queue: u32, socket: &impl AsRawFd) -> Result<()> {
        self.sockets.set_socket(queue, socket)
    }

    /// Redirects only replies with this identifier from now on.
    pub fn show_only(&self, identifier: u16) {
        let as_loaded = u16::from_ne_bytes(identifier.to_be_bytes());
        self.state.set_word(IDENTIFIER, as_loaded.into());
    }

    /// Replies that came in on a queue without a socket, and went to the kernel.
    pub fn elsewhere(&self) -> u64 {
        self.state.get(ELSEWHERE)
    }

    /// True if the program runs in the driver (native XDP).
    pub const fn is_native(&self) -> bool {
        self.link.is_native()
    }
}

/// Answers echo requests to the addresses of an interface, until dropped.
#[derive(Debug)]
pub struct EchoReflector {
    link: XdpLink,
    answered: MappedArray,
}

impl EchoReflector {
    /// Puts the reflector on an interface of the calling thread's namespace.
    /// # Errors
    /// When another program is there, or without CAP_BPF and CAP_NET_ADMIN.
    pub fn attach(ifindex: u32, addresses: &[IpAddr]) -> Result<Self> {
        let answered = MappedArray::new("echo_reflector", 1)?;
        let asm = reflector(addresses, &answered);
        let program = XdpProgram::load("linerate_reflect", &asm, &ProgramOptions::default())?;
        Ok(Self { link: XdpLink::attach(&program, ifindex, AttachMode::Best)?, answered })
    }

    /// Number of echo requests answered so far.
    pub fn answered(&self) -> u64 {
        self.answered.get(0)
    }

    /// True if the program runs in the driver (native XDP).
    pub const fn is_native(&self) -> bool {
        self.link.is_native()
    }
}

/// Registers: R6 the context, R7 the start of the frame, R8 its end.
fn load_context(asm: &mut Asm) {
    asm.mov(Reg::R6, Reg::R1);
    asm.load_memory(Size::Word, Reg::R7, Reg::R6, 0);
    asm.load_memory(Size::Word, Reg::R8, Reg::R6, 4);
}

fn emit_pass(asm: &mut Asm, label: JumpLabel) {
    asm.bind_label(label);
    asm.mov(Reg::R0, action::PASS);
    asm.exit();
}

/// On to `other` unless the frame is an echo message of this kind, whole and in one packet.
fn require_echo(asm: &mut Asm, ethertype: i32, kind: i32, other: JumpLabel) {
    let (protocol_at, protocol, at) =
        if ethertype == IPV4 { (23, 1, MESSAGE_V4) } else { (20, 58, MESSAGE_V6) };
    asm.mov(Reg::R1, Reg::R7);
    asm.add(Reg::R1, i32::from(at + ECHO_BYTES));
    asm.jump_if(JumpCondition::Greater, Reg::R1, Reg::R8, other);
    asm.load_memory(Size::Half, Reg::R1, Reg::R7, 12);
    asm.swap_be(Reg::R1, 16);
    asm.jump_if(JumpCondition::NotEqual, Reg::R1, ethertype, other);
    if ethertype == IPV4 {
        asm.load_memory(Size::Byte, Reg::R1, Reg::R7, 14);
        asm.jump_if(JumpCondition::NotEqual, Reg::R1, 0x45, other);
        // More fragments, or an offset.
        asm.load_memory(Size::Half, Reg::R1, Reg::R7, 20);
        asm.swap_be(Reg::R1, 16);
        asm.jump_if(JumpCondition::AnyBit, Reg::R1, 0x3fff, other);
    }
    asm.load_memory(Size::Byte, Reg::R1, Reg::R7, protocol_at);
    asm.jump_if(JumpCondition::NotEqual, Reg::R1, protocol, other);
    asm.load_memory(Size::Half, Reg::R1, Reg::R7, at);
    asm.swap_be(Reg::R1, 16);
    asm.jump_if(JumpCondition::NotEqual, Reg::R1, kind << 8, other);
}

/// On to `equal` when the address at `at` of the frame is this one.
fn if_address(asm: &mut Asm, at: i16, addr: IpAddr, equal: JumpLabel) {
    match addr {
        IpAddr::V4(addr) => {
            asm.load_memory(Size::Word, Reg::R1, Reg::R7, at);
            asm.load_imm64(Reg::R2, u32::from_ne_bytes(addr.octets()).into());
            asm.jump_if(JumpCondition::Equal, Reg::R1, Reg::R2, equal);
        }
        IpAddr::V6(addr) => {
            let differs = asm.new_label();
            let octets = addr.octets();
            for (offset, half) in [0, 8].into_iter().zip(octets.as_chunks::<8>().0) {
                asm.load_memory(Size::Double, Reg::R1, Reg::R7, at + offset);
                asm.load_imm64(Reg::R2, u64::from_ne_bytes(*half));
                asm.jump_if(JumpCondition::NotEqual, Reg::R1, Reg::R2, differs);
            }
            asm.jump_to(equal);
            asm.bind_label(differs);
        }
    }
}

fn increment_counter(asm: &mut Asm, counts: &MappedArray, word: usize) {
    asm.map_value(Reg::R1, counts.bpf_map(), u32::try_from(word * 8).expect("a few words"));
    asm.mov(Reg::R2, 1);
    asm.atomic_add(Reg::R1, 0, Reg::R2);
}

fn filter(peer: IpAddr, sockets: &SocketMap, state: &MappedArray) -> Asm {
    let mut asm = Asm::new();
    let [other, of_peer, given] = [asm.new_label(), asm.new_label(), asm.new_label()];
    load_context(&mut asm);
    let (ethertype, kind, source, message) = match peer {
        IpAddr::V4(_) => (IPV4, 0, 26, MESSAGE_V4),
        IpAddr::V6(_) => (IPV6, 129, 22, MESSAGE_V6),
    };
    require_echo(&mut asm, ethertype, kind, other);
    if_address(&mut asm, source, peer, of_peer);
    asm.jump_to(other);
    asm.bind_label(of_peer);
    asm.map_value(Reg::R1, state.bpf_map(), (IDENTIFIER * 8) as u32);
    asm.load_memory(Size::Double, Reg::R1, Reg::R1, 0);
    asm.load_memory(Size::Half, Reg::R2, Reg::R7, message + 4);
    asm.jump_if(JumpCondition::NotEqual, Reg::R1, Reg::R2, other);
    asm.load_map(Reg::R1, sockets);
    asm.load_memory(Size::Word, Reg::R2, Reg::R6, 16);
    asm.mov(Reg::R3, action::PASS);
    asm.call_helper(helper::REDIRECT_MAP);
    asm.jump_if(JumpCondition::NotEqual, Reg::R0, action::PASS, given);
    increment_counter(&mut asm, state, ELSEWHERE);
    asm.mov(Reg::R0, action::PASS);
    asm.bind_label(given);
    asm.exit();
    emit_pass(&mut asm, other);
    asm
}

fn reflector(addresses: &[IpAddr], answered: &MappedArray) -> Asm {
    let mut asm = Asm::new();
    let [other, ipv6] = [asm.new_label(), asm.new_label()];
    load_context(&mut asm);
    // Not to a group of stations: RFC 1122 §3.2.2.6 leaves those unanswered.
    asm.mov(Reg::R1, Reg::R7);
    asm.add(Reg::R1, 14);
    asm.jump_if(JumpCondition::Greater, Reg::R1, Reg::R8, other);
    asm.load_memory(Size::Byte, Reg::R1, Reg::R7, 0);
    asm.jump_if(JumpCondition::AnyBit, Reg::R1, 1, other);
    let (v4, v6): (Vec<IpAddr>, Vec<IpAddr>) =
        addresses.iter().partition(|address| address.is_ipv4());
    for (ethertype, own, next) in [(IPV4, v4, ipv6), (IPV6, v6, other)] {
        if ethertype == IPV6 {
            asm.bind_label(ipv6);
        }
        // The verifier refuses what nothing leads to.
        if own.is_empty() {
            continue;
        }
        let ours = asm.new_label();
        let request = if ethertype == IPV4 { 8 } else { 128 };
        require_echo(&mut asm, ethertype, request, next);
        let target = if ethertype == IPV4 { 30 } else { 38 };
        own.iter().for_each(|addr| if_address(&mut asm, target, *addr, ours));
        asm.jump_to(next);
        asm.bind_label(ours);
        turn_into_reply(&mut asm, ethertype);
        increment_counter(&mut asm, answered, 0);
        asm.mov(Reg::R0, action::TX);
        asm.exit();
    }
    emit_pass(&mut asm, other);
    asm
}

/// Turns the echo request into its reply.
fn turn_into_reply(asm: &mut Asm, ethertype: i32) {
    swap_bytes(asm, Size::Half, 0, 6, 6);
    if ethertype == IPV4 {
        swap_bytes(asm, Size::Word, 26, 30, 4);
        asm.load_memory(Size::Byte, Reg::R3, Reg::R7, 22);
        asm.lsh(Reg::R3, 8);
        asm.store_memory(Size::Byte, Reg::R7, 22, TTL);
        update_checksum(asm, 24, TTL << 8);
        asm.mov(Reg::R3, 8 << 8);
        asm.store_memory(Size::Byte, Reg::R7, MESSAGE_V4, 0);
        update_checksum(asm, MESSAGE_V4 + 2, 0);
    } else {
        swap_bytes(asm, Size::Word, 22, 38, 16);
        asm.store_memory(Size::Byte, Reg::R7, 21, TTL);
        asm.mov(Reg::R3, 128 << 8);
        asm.store_memory(Size::Byte, Reg::R7, MESSAGE_V6, 129);
        update_checksum(asm, MESSAGE_V6 + 2, 129 << 8);
    }
}

/// Swaps `bytes` bytes between two offsets in the frame.
fn swap_bytes(asm: &mut Asm, size: Size, one: i16, other: i16, bytes: i16) {
    let step = if matches!(size, Size::Half) { 2 } else { 4 };
    for at in (0..bytes).step_by(step) {
        asm.load_memory(size, Reg::R1, Reg::R7, one + at);
        asm.load_memory(size, Reg::R2, Reg::R7, other + at);
        asm.store_memory(size, Reg::R7, one + at, Reg::R2);
        asm.store_memory(size, Reg::R7, other + at, Reg::R1);
    }
}

/// The checksum at `at` after the word R3 has become `new`: RFC 1624, equation 3, with complements
/// taken on both sides.
fn update_checksum(asm: &mut Asm, at: i16, new: i32) {
    asm.load_memory(Size::Half, Reg::R1, Reg::R7, at);
    asm.swap_be(Reg::R1, 16);
    asm.add(Reg::R1, Reg::R3);
    asm.add(Reg::R1, 0xffff - new);
    for _ in 0..2 {
        asm.mov(Reg::R2, Reg::R1);
        asm.rsh(Reg::R2, 16);
        asm.and(Reg::R1, 0xffff);
        asm.add(Reg::R1, Reg::R2);
    }
    asm.swap_be(Reg::R1, 16);
    asm.store_memory(Size::Half, Reg::R7, at, Reg::R1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::{TestRun, available};

    /// RFC 1071, summed word by word.
    fn sum(bytes: &[u8]) -> u32 {
        let mut sum: u32 =
            bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum
    }

    /// A request from 192.0.2.1 to 192.0.2.2 with 4 bytes; checksums summed by hand.
    fn request() -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        frame.extend([0x45, 0, 0, 32, 0, 0, 0x40, 0, 63, 1, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        frame.extend([8, 0, 0, 0, 0x12, 0x34, 0, 7, 0xde, 0xad, 0xbe, 0xef]);
        let header = !sum(&frame[14..34]) as u16;
        frame[24..26].copy_from_slice(&header.to_be_bytes());
        let message = !sum(&frame[34..]) as u16;
        frame[36..38].copy_from_slice(&message.to_be_bytes());
        frame
    }

    fn reflected(addresses: &[IpAddr], frame: &[u8]) -> Option<TestRun> {
        if let Err(reason) = available() {
            crate::bpf::tests::skipped(&reason);
            return None;
        }
        let answered = MappedArray::new("answered", 1).expect("an array");
        let asm = reflector(addresses, &answered);
        let program = XdpProgram::load("test", &asm, &ProgramOptions::default()).expect("accepted");
        let run = program.test_run(frame).expect("a run");
        assert_eq!(answered.get(0), u64::from(run.action == action::TX.cast_unsigned()));
        Some(run)
    }

    #[test]
    fn the_reflector_turns_a_request_and_keeps_the_checksums_right() {
        let own = [[192, 0, 2, 9].into(), [192, 0, 2, 2].into()];
        let Some(run) = reflected(&own, &request()) else { return };
        assert_eq!(run.action, action::TX.cast_unsigned());
        assert_eq!(run.frame[..14], [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
        assert_eq!(run.frame[26..34], [192, 0, 2, 2, 192, 0, 2, 1]);
        assert_eq!((run.frame[22], run.frame[34]), (64, 0));
        assert_eq!(run.frame[38..], request()[38..]);
        assert_eq!((sum(&run.frame[14..34]), sum(&run.frame[34..])), (0xffff, 0xffff));
    }

    #[test]
    fn the_reflector_answers_ipv6_with_the_sum_over_the_pseudo_header() {
        let ends = ["2001:db8::1", "2001:db8::2"].map(|text| text.parse().expect("an address"));
        let [IpAddr::V6(from), IpAddr::V6(to)] = ends else { unreachable!() };
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd];
        frame.extend([0x60, 0, 0, 0, 0, 12, 58, 63]);
        frame.extend(from.octets());
        frame.extend(to.octets());
        frame.extend([128, 0, 0, 0, 0x12, 0x34, 0, 7, 0xde, 0xad, 0xbe, 0xef]);
        // RFC 8200 §8.1: addresses, length, next header.
        let pseudo = |frame: &[u8]| {
            let mut all = frame[22..54].to_vec();
            all.extend([0, 0, 0, 12, 0, 0, 0, 58]);
            all.extend(&frame[54..]);
            sum(&all)
        };
        let message = !pseudo(&frame) as u16;
        frame[56..58].copy_from_slice(&message.to_be_bytes());
        let Some(run) = reflected(&ends[1..], &frame) else { return };
        assert_eq!(run.action, action::TX.cast_unsigned());
        assert_eq!((run.frame[54], run.frame[21], pseudo(&run.frame)), (129, 64, 0xffff));
        assert_eq!(run.frame[22..38], to.octets());
    }

    #[test]
    fn what_is_not_asked_of_this_interface_goes_to_the_kernel_as_it_came() {
        let own = [[192, 0, 2, 2].into()];
        let changed = |at: usize, octet: u8| {
            let mut frame = request();
            frame[at] = octet;
            frame
        };
        let cases = [
            ("another address", changed(33, 3)),
            ("a group address", changed(0, 3)),
            ("a reply", changed(34, 0)),
            ("a fragment", changed(20, 0x20)),
            ("options", changed(14, 0x46)),
            ("UDP", changed(23, 17)),
            ("ARP", changed(13, 6)),
            ("cut short", request()[..40].to_vec()),
        ];
        for (what, frame) in cases {
            let Some(run) = reflected(&own, &frame) else { return };
            assert_eq!((run.action, &run.frame), (action::PASS.cast_unsigned(), &frame), "{what}");
        }
    }
}
