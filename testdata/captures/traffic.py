#!/usr/bin/env python3
"""Traffic for `record`: bytes over TCP or UDP to a receiver that it starts with the command given;
frames with one and two VLAN tags; a tunnel interface that takes packets and answers none.

    traffic.py tcp|udp ADDRESS BYTES COMMAND...
    traffic.py tagged INTERFACE
    traffic.py tunnel INTERFACE
"""

import fcntl
import os
import socket
import struct
import subprocess
import sys

KIND = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}
PORT = 5001


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def receive(kind, address):
    with socket.socket(family(address), KIND[kind]) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((address, PORT))
        if kind == "udp":
            print("ready", flush=True)
            server.recv(65536)
            return
        server.listen()
        print("ready", flush=True)
        peer, _ = server.accept()
        while peer.recv(1 << 20):
            pass


def send(kind, address, size, command):
    receiver = subprocess.Popen([*command, sys.argv[0], "receive", kind, address],
                                stdout=subprocess.PIPE)
    receiver.stdout.readline()
    with socket.socket(family(address), KIND[kind]) as client:
        client.connect((address, PORT))
        client.sendall(bytes(size))
    receiver.wait(10)


def datagram(size):
    """An IPv4 packet of UDP from 198.51.100.1:4000 to 198.51.100.2:4001; checksums are 0."""
    udp = struct.pack(">HHHH", 4000, 4001, 8 + size, 0) + bytes(size)
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0xb8, 20 + len(udp), 1, 0, 64, 17, 0,
                       bytes([198, 51, 100, 1]), bytes([198, 51, 100, 2]))
    return head + udp


def tagged(interface):
    addresses = bytes.fromhex("020000000002 020000000001")
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.bind((interface, 0))
        raw.send(addresses + struct.pack(">HHH", 0x8100, 0x6007, 0x0800) + datagram(100))
        raw.send(addresses + struct.pack(">HHHHH", 0x88a8, 9, 0x8100, 7, 0x0800) + datagram(200))


def tunnel(interface):
    """Makes the interface (TUNSETIFF: IFF_TUN without packet information) and reads it empty."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(descriptor, 0x400454ca, struct.pack("16sH", interface.encode(), 0x1001))
    while True:
        os.read(descriptor, 65536)


if __name__ == "__main__":
    if sys.argv[1] == "tagged":
        tagged(sys.argv[2])
    elif sys.argv[1] == "tunnel":
        tunnel(sys.argv[2])
    elif sys.argv[1] == "receive":
        receive(*sys.argv[2:4])
    else:
        send(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
