"""Network namespaces with the hosts of one network, or of two networks with an address translator between them.

    python -m tests.support.namespaces nat DEVICE_A DEVICE_B           translate until killed
    python -m tests.support.namespaces source IP RESOLVER TOPIC COUNT    send until killed
    python -m tests.support.namespaces receiver IP RESOLVER TOPIC COUNT  print COUNT messages

RESOLVER is a relay `ip:port`, or a network `a.b.c.d/n` for multicast.

Hosts of network A see the hosts of B. Hosts of B see one address only: 192.168.1.1, which is 10.1.1.50 in A (T-222).
The translator works on frames, in Python, because then the kernel needs only namespaces and veth pairs.
"""

import asyncio
import os
import select
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

import attrs

from stablecast.client import Context, resolution
from tests.support.pcap import checksum
from tests.support.program import Program, running

HIDDEN = socket.inet_aton("10.1.1.50")
SHOWN = socket.inet_aton("192.168.1.1")
MAC_A, MAC_NA, MAC_NB, MAC_B = ("02:00:00:00:00:0" + digit for digit in "1234")
IPV4 = b"\x08\x00"
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23
CHECKSUM_AT = {6: 16, 17: 6}
"""Offset of the checksum in the headers of TCP and UDP, by protocol number."""


@attrs.frozen
class Networks:
    a: str
    b: str
    translator: str


def reason_to_skip() -> str:
    """Return why this machine permits no namespaces, or an empty string if it does."""
    if shutil.which("ip") is None:
        return "the program `ip` is missing"
    name = f"sc{os.getpid()}x"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if done.returncode:
        return f"network namespaces are not permitted: {done.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], check=True)
    return ""


@contextmanager
def two_networks() -> Iterator[Networks]:
    """Make the networks A (10.1.0.0/16) and B (192.168.1.0/24) with a translator between them."""
    mark = f"sc{os.getpid()}"
    here = Networks(f"{mark}a", f"{mark}b", f"{mark}n")
    with ExitStack() as stack:
        for name in (here.a, here.b, here.translator):
            _ip("netns", "add", name)
            stack.callback(_ip, "netns", "del", name)
            _ip("-n", name, "link", "set", "lo", "up")
        for name, device, inner, mac, inner_mac in (
            (here.a, "a0", "na", MAC_A, MAC_NA),
            (here.b, "b0", "nb", MAC_B, MAC_NB),
        ):
            ends = ["netns", name, "type", "veth", "peer", "name", inner, "netns", here.translator]
            _ip("link", "add", device, *ends)
            _ip("-n", name, "link", "set", device, "address", mac, "up")
            _ip("-n", here.translator, "link", "set", inner, "address", inner_mac, "up")
        _ip("-n", here.a, "addr", "add", "10.1.1.50/16", "dev", "a0")
        _ip("-n", here.b, "addr", "add", "192.168.1.7/24", "dev", "b0")
        _ip("-n", here.a, "route", "add", "default", "via", "10.1.0.1")
        _ip("-n", here.a, "neigh", "add", "10.1.0.1", "lladdr", MAC_NA, "dev", "a0")
        _ip("-n", here.b, "neigh", "add", "192.168.1.1", "lladdr", MAC_NB, "dev", "b0")
        stack.enter_context(inside(here.translator, "tests.support.namespaces", "nat", "na", "nb"))
        yield here


@contextmanager
def one_network() -> Iterator[tuple[str, str]]:
    """Make two hosts, 10.29.3.1 and 10.29.3.2, that receive each other's multicast."""
    left, right = f"sc{os.getpid()}l", f"sc{os.getpid()}r"
    with ExitStack() as stack:
        for name in (left, right):
            _ip("netns", "add", name)
            stack.callback(_ip, "netns", "del", name)
            _ip("-n", name, "link", "set", "lo", "up")
        _ip("link", "add", "e0", "netns", left, "type", "veth", "peer", "name", "e0", "netns", right)
        for name, address in ((left, "10.29.3.1/24"), (right, "10.29.3.2/24")):
            _ip("-n", name, "addr", "add", address, "dev", "e0")
            _ip("-n", name, "link", "set", "e0", "up")
        yield left, right


@contextmanager
def star(count: int) -> Iterator[tuple[str, list[str]]]:
    """Make networks 10.71.1.0/24, 10.71.2.0/24, ... with a host .2 in each, and one host that is .1 in all of them.

    It forwards no packets. Yield its name, and those of the others.
    """
    mark = f"sc{os.getpid()}"
    middle, outer = f"{mark}m", [f"{mark}d{number}" for number in range(1, count + 1)]
    with ExitStack() as stack:
        for name in (middle, *outer):
            _ip("netns", "add", name)
            stack.callback(_ip, "netns", "del", name)
            _ip("-n", name, "link", "set", "lo", "up")
        for number, name in enumerate(outer, 1):
            device = f"e{number}"
            _ip("link", "add", "e0", "netns", name, "type", "veth", "peer", "name", device, "netns", middle)
            for place, end, host in ((name, "e0", 2), (middle, device, 1)):
                _ip("-n", place, "addr", "add", f"10.71.{number}.{host}/24", "dev", end)
                _ip("-n", place, "link", "set", end, "up")
        yield middle, outer


def inside(namespace: str, module: str, *arguments: str) -> AbstractContextManager[Program]:
    """Run a Python module as a program in a namespace, or without one if the name is empty."""
    prefix = ("ip", "netns", "exec", namespace) if namespace else ()
    return running(*arguments, program=(*prefix, sys.executable, "-m", module))


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def translate(device_a: str, device_b: str) -> None:
    """Forward frames between two devices, with addresses rewritten."""
    left, right = (_packets(device) for device in (device_a, device_b))
    macs = {left: (MAC_NB, MAC_B), right: (MAC_NA, MAC_A)}
    while True:
        for arrived in select.select([left, right], [], [])[0]:
            frame = arrived.recv(65_535)
            if frame[12:14] == IPV4:
                source, destination = (bytes.fromhex(mac.replace(":", "")) for mac in macs[arrived])
                packet = rewritten(bytearray(frame[14:]), outward=arrived is left)
                (right if arrived is left else left).send(destination + source + IPV4 + packet)


def rewritten(packet: bytearray, *, outward: bool) -> bytes:
    """Return a packet with another source address on its way from A to B, or another destination on its way back."""
    if outward and packet[12:16] == HIDDEN:
        packet[12:16] = SHOWN
    elif not outward and packet[16:20] == SHOWN:
        packet[16:20] = HIDDEN
    start = 4 * (packet[0] & 0x0F)
    length = int.from_bytes(packet[2:4])
    packet[10:12] = bytes(2)
    packet[10:12] = checksum(bytes(packet[:start]))
    at = CHECKSUM_AT.get(packet[9])
    if at is not None:
        packet[start + at : start + at + 2] = bytes(2)
        pseudo = bytes(packet[12:20]) + struct.pack(">BBH", 0, packet[9], length - start)
        packet[start + at : start + at + 2] = checksum(pseudo + bytes(packet[start:length]))
    return bytes(packet[:length])


def _packets(device: str) -> socket.socket:
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
    sock.bind((device, 0))
    sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    return sock


def _context(interface: str, resolver: str) -> Context:
    if "/" in resolver:
        return Context(interface=interface, resolution=resolution(options={"resolver_multicast_interface": resolver}))
    return Context(interface=interface, resolver=[resolver])


async def send(interface: str, resolver: str, topic: str) -> None:
    """Send a number every 20 ms."""
    async with _context(interface, resolver) as context:
        source = await context.source(topic)
        print("ready", flush=True)
        for number in range(10_000):
            await source.send(f"{number}".encode())
            await asyncio.sleep(0.02)


async def receive(interface: str, resolver: str, topic: str, count: int) -> None:
    """Print the payloads of `count` messages."""
    async with _context(interface, resolver) as context:
        receiver = context.receiver(topic)
        print("ready", flush=True)
        left = count
        async for message in receiver:
            print(message.payload.decode(), flush=True)
            left -= 1
            if not left:
                return


def main(role: str, *arguments: str) -> None:
    """Run one of the three programs."""
    if role == "nat":
        translate(*arguments)
        return
    interface, resolver, topic, count = arguments
    if role == "source":
        asyncio.run(send(interface, resolver, topic))
    else:
        asyncio.run(receive(interface, resolver, topic, int(count)))


if __name__ == "__main__":
    main(*sys.argv[1:])
