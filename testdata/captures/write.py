#!/usr/bin/env python3
"""Writes the captures that no tool at hand writes, byte by byte: other byte orders, pcapng with
all its clocks and blocks, rare link layers. Needs ethernet_us.pcap and ethernet_ns.pcap beside it,
whose packets it writes again.

    testdata/captures/write.py DIRECTORY
"""

import os
import struct
import sys

SECOND = 1_700_000_000
V4 = bytes.fromhex("4500 0021 0001 0000 4011 0000 c0000201 c0000202")
V6 = bytes.fromhex("60000000 000d 11 40 20010db8000000000000000000000001"
                   "20010db8000000000000000000000002")
UDP = struct.pack(">HHHH", 4000, 4001, 13, 0) + b"hello"
V4_UDP, V6_UDP = V4 + UDP, V6 + UDP
ETHERNET = bytes.fromhex("020000000002 020000000001")


def pcap(packets, link=1, order="<", nano=False, snaplen=65535):
    """`packets` are (ns, original length, data)."""
    unit = 1 if nano else 1000
    magic = 0xa1b23c4d if nano else 0xa1b2c3d4
    out = struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, snaplen, link)
    for ns, length, data in packets:
        fraction = ns % 10**9 // unit
        out += struct.pack(order + "IIII", ns // 10**9, fraction, len(data), length) + data
    return out


def read(path):
    """The packets of a little-endian pcap file."""
    data = open(path, "rb").read()
    unit = 1 if struct.unpack_from("<I", data)[0] == 0xa1b23c4d else 1000
    at, packets = 24, []
    while at < len(data):
        sec, fraction, captured, length = struct.unpack_from("<IIII", data, at)
        packets.append((sec * 10**9 + fraction * unit, length, data[at + 16:at + 16 + captured]))
        at += 16 + captured
    return packets


def pad(data):
    return data + bytes(-len(data) % 4)


def block(order, kind, body):
    total = len(body) + 12
    return struct.pack(order + "II", kind, total) + body + struct.pack(order + "I", total)


def options(order, *pairs):
    out = b"".join(struct.pack(order + "HH", code, len(value)) + pad(value)
                   for code, value in pairs)
    return out + bytes(4) if pairs else b""


def section(order, *pairs):
    return block(order, 0x0a0d0d0a, struct.pack(order + "IHHq", 0x1a2b3c4d, 1, 0, -1)
                 + options(order, *pairs))


def interface(order, link=1, snaplen=0, *pairs):
    return block(order, 1, struct.pack(order + "HHI", link, 0, snaplen) + options(order, *pairs))


def enhanced(order, index, units, data, length=None, *pairs):
    head = struct.pack(order + "IIIII", index, units >> 32, units & 0xffffffff, len(data),
                       len(data) if length is None else length)
    return block(order, 6, head + pad(data) + options(order, *pairs))


def obsolete(order, index, units, data):
    head = struct.pack(order + "HHIIII", index, 0xffff, units >> 32, units & 0xffffffff, len(data),
                       len(data))
    return block(order, 2, head + pad(data))


def simple(order, data, length):
    return block(order, 3, struct.pack(order + "I", length) + pad(data))


def clocks(order):
    """One packet an interface, each at 1700000000.5 s, in another unit each."""
    half = SECOND * 2 + 1
    frame = ETHERNET + b"\x08\x00" + V4_UDP
    kinds = [
        ([], half * 500_000),
        ([(9, b"\x03")], half * 500),
        ([(9, b"\x09")], half * 500_000_000),
        ([(9, bytes([0x80 | 1]))], half),
        ([(9, bytes([0x80 | 32]))], half << 31),
        ([(9, b"\x09"), (14, struct.pack(order + "q", SECOND))], 500_000_000),
        ([(9, b"\x06"), (14, struct.pack(order + "q", -3600))], half * 500_000 + 3_600_000_000),
    ]
    out = section(order)
    for pairs, _ in kinds:
        out += interface(order, 1, 0, *pairs)
    for index, (_, units) in enumerate(kinds):
        out += enhanced(order, index, units, frame)
    return out


def blocks(order):
    """Every kind of block, the unknown ones among them."""
    frame = ETHERNET + b"\x08\x00" + V4_UDP
    units = SECOND * 10**6
    return b"".join([
        section(order, (1, b"a comment"), (3, b"an operating system"), (0x1234, b"unknown")),
        interface(order, 1, 40, (2, b"eth0"), (8, struct.pack(order + "Q", 10**9)), (9, b"\x06")),
        block(order, 4, bytes(4)),
        enhanced(order, 0, units, frame[:40], len(frame), (1, b"odd"),
                 (2, struct.pack(order + "I", 2)), (4, bytes(8))),
        block(order, 0x0bad, b"from elsewhere !"),
        enhanced(order, 0, units + 1, frame[:39], len(frame), (2, struct.pack(order + "I", 1))),
        simple(order, frame[:40], len(frame)),
        simple(order, frame[:33], 33),
        obsolete(order, 0, units + 2, frame[:38]),
        block(order, 5, struct.pack(order + "III", 0, units >> 32, units & 0xffffffff)),
        block(order, 0x80000001, bytes(8)),
        enhanced(order, 0, units + 3, b"", 0),
    ])


def odd_frames():
    jumbo = bytes.fromhex("06 00 c2 04") + struct.pack(">I", 70_000)
    tcp = struct.pack(">HHIIBBHHH", 4000, 4001, 1, 1, 0x80, 0x10, 100, 0, 0) + bytes(12)
    v6 = bytearray(V6)
    big = bytes(v6[:4]) + struct.pack(">HBB", 0, 0, 64) + bytes(v6[8:]) + jumbo + tcp
    extended = (bytes(v6[:4]) + struct.pack(">HBB", 13 + 8 + 16, 60, 64) + bytes(v6[8:])
                + bytes.fromhex("2b 00 01 04 00000000")
                + bytes.fromhex("11 01 04 00") + bytes(12) + UDP)
    v4_options = (bytes([0x46]) + V4[1:2] + struct.pack(">H", 37) + V4[4:] + bytes([1, 1, 1, 0])
                  + UDP)
    v4_zero = V4[:2] + bytes(2) + V4[4:9] + b"\x06" + V4[10:] + tcp
    v4_dscp = V4[:1] + b"\xb8" + V4[2:] + UDP
    snap = bytes.fromhex("aaaa03 000000 0800") + V4_UDP
    pppoe = bytes.fromhex("1100 0001") + struct.pack(">H", 2 + len(V4_UDP)) + b"\x00\x21" + V4_UDP
    mpls = bytes.fromhex("00010040 00020140") + V6_UDP
    return [
        (60, ETHERNET + b"\x08\x00" + V4_UDP + bytes(13)),
        (0, ETHERNET + b"\x08\x00" + v4_options),
        (70_054, ETHERNET + b"\x08\x00" + v4_zero),
        (0, ETHERNET + b"\x08\x00" + v4_dscp),
        (14 + 40 + 70_000, ETHERNET + b"\x86\xdd" + big),
        (0, ETHERNET + b"\x86\xdd" + extended),
        (60, ETHERNET + struct.pack(">H", len(snap)) + snap),
        (0, ETHERNET + b"\x88\x64" + pppoe),
        (0, ETHERNET + b"\x88\x47" + mpls),
        (0, ETHERNET + bytes.fromhex("88a8 0009 8100 6007 0800") + V4_UDP),
        (0, ETHERNET + struct.pack(">H", 38) + bytes.fromhex("424203") + bytes(35)),
        (0, ETHERNET + b"\x88\xcc" + bytes(46)),
    ]


def numbered(frames):
    """At 1700000000 s and one second more for each."""
    return [((SECOND + i) * 10**9, length or len(data), data)
            for i, (length, data) in enumerate(frames)]


def links():
    v4, v6 = (lambda head: (0, head + V4_UDP)), (lambda head: (0, head + V6_UDP))
    return {
        "null": (0, [v4(struct.pack("<I", 2)), v6(struct.pack("<I", 30)),
                     v6(struct.pack("<I", 24))]),
        "null_big_endian": (0, [v4(struct.pack(">I", 2)), v6(struct.pack(">I", 28))]),
        "loop": (108, [v4(struct.pack(">I", 2)), v6(struct.pack(">I", 24))]),
        "ppp": (9, [v4(b"\xff\x03\x00\x21"), v6(b"\xff\x03\x00\x57"), v4(b"\x00\x21"),
                    v4(b"\x21")]),
        "ppp_hdlc": (50, [v4(b"\xff\x03\x00\x21"), v6(b"\xff\x03\x00\x57")]),
        "cisco_hdlc": (104, [v4(b"\x0f\x00\x08\x00"), v6(b"\x8f\x00\x86\xdd")]),
        "ipv4": (228, [v4(b"")]),
        "ipv6": (229, [v6(b"")]),
    }


def main():
    here, out = os.path.dirname(os.path.abspath(sys.argv[0])), sys.argv[1]

    def write(name, data):
        with open(os.path.join(out, name), "wb") as file:
            file.write(data)

    us = read(os.path.join(here, "ethernet_us.pcap"))[:8]
    ns = read(os.path.join(here, "ethernet_ns.pcap"))[:8]
    write("big_endian_us.pcap", pcap(us, order=">"))
    write("big_endian_ns.pcap", pcap(ns, order=">", nano=True))
    for order, name in (("<", "little_endian"), (">", "big_endian")):
        body = section(order) + interface(order, 1, 0, (9, b"\x09"))
        body += b"".join(enhanced(order, 0, at, data, length) for at, length, data in ns)
        write(f"{name}.pcapng", body)
        write(f"clocks_{name}.pcapng", clocks(order))
        write(f"blocks_{name}.pcapng", blocks(order))
    two = [section(order) + interface(order) + enhanced(order, 0, us[at][0] // 1000, us[at][2])
           for at, order in enumerate("<><")]
    write("sections.pcapng", b"".join(two))
    write("odd_frames.pcap", pcap(numbered(odd_frames())))
    fcs = [(0, ETHERNET + b"\x08\x00" + V4_UDP + bytes(13) + b"\xde\xad\xbe\xef")]
    write("ethernet_fcs.pcap", pcap(numbered(fcs), link=1 | 1 << 26 | 2 << 28))
    for name, (link, frames) in links().items():
        order = ">" if name == "null_big_endian" else "<"
        write(f"link_{name}.pcap", pcap(numbered(frames), link, order))
    many = section("<")
    for link, _ in links().values():
        many += interface("<", link)
    for index, (_, frames) in enumerate(links().values()):
        many += enhanced("<", index, SECOND * 10**6, frames[0][1])
    write("links.pcapng", many)


if __name__ == "__main__":
    main()
