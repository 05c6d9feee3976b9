"""Captures of a simulated world: the packets that each host sends and gets, as a capture program writes them.

A world has streams and no packets of TCP, so segments, connection requests, resets and acknowledgements are written for
what its streams do. Times are those of the wall clock of the host.
"""

import errno
import struct
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

import pytest

from stablecast.lab.world.clock import EPOCH_NS
from stablecast.lab.world.network import DatagramPort, SimulatedNetwork, is_group
from stablecast.lab.world.stream_end import StreamEnd
from stablecast.lab.world.streams import TcpSocket
from tests.support import captures
from tests.support.captures import datagram, segment
from tests.support.pcap import Address

FIN, SYN, RST, PUSH, ACK = 1, 2, 4, 8, 16
ISN: Final = 1000
ICMP: Final = 1

Timed = tuple[int, bytes]
"""A packet and its time in ns of the world."""


class _Numbers:
    """Sequence numbers of what one end sends: the next one, those on their way, and those that wait for the path."""

    def __init__(self) -> None:
        self.next = ISN + 1
        self.flying: deque[int] = deque()
        self.stalled: deque[int] = deque()
        self.again: deque[int] = deque()


class WorldCapture:
    """The packets of all hosts, by address."""

    def __init__(self) -> None:
        self.hosts: dict[str, list[Timed]] = defaultdict(list)
        self.numbers: WeakKeyDictionary[StreamEnd, _Numbers] = WeakKeyDictionary()

    def add(self, now: int, host: str, packet: bytes) -> None:
        self.hosts[host].append((now, packet))

    def stream(self, end: StreamEnd) -> _Numbers:
        return self.numbers.setdefault(end, _Numbers())

    def write(self, directory: Path, ahead: Mapping[str, int] | None = None, **form: Any) -> list[Path]:
        """Write one file for each host; clocks of some hosts are `ahead` ns. Return the files."""
        directory.mkdir(exist_ok=True)
        found = []
        for host, packets in self.hosts.items():
            path = directory / f"{host}.pcap"
            path.write_bytes(octets(packets, EPOCH_NS + (ahead or {}).get(host, 0), **form))
            found.append(path)
        return found


def octets(packets: list[Timed], epoch: int, link: int = captures.RAW, tags: int = 0, snap: int = 262_144) -> bytes:
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, snap, link)]
    for at, packet in sorted(packets, key=lambda one: one[0]):
        seconds, rest = divmod(epoch + at, 1_000_000_000)
        frame = captures.framed(link, packet, tags)
        parts.append(struct.pack("<IIII", seconds, rest, len(frame[:snap]), len(frame)) + frame[:snap])
    return b"".join(parts)


def refusal(host: str, to: str, packet: bytes) -> bytes:
    """Return the message of ICMP by which a host refuses a datagram."""
    body = struct.pack(">BBHI", 3, 3, 0, 0) + packet[:28]
    head = datagram((host, 1), (to, 1), body[8:])
    return head[:9] + bytes((ICMP,)) + b"\0\0" + head[12:20] + body


@contextmanager
def captured() -> Iterator[WorldCapture]:
    """Capture at each host of the worlds that run meanwhile."""
    capture = WorldCapture()
    with pytest.MonkeyPatch.context() as patch:
        _tap_streams(capture, patch)
        _tap_connections(capture, patch)
        _tap_datagrams(capture, patch)
        yield capture


def _wrap(patch: pytest.MonkeyPatch, owner: type, name: str, around: Callable[..., Any]) -> None:
    before = getattr(owner, name)
    patch.setattr(owner, name, lambda self, *args: around(self, lambda: before(self, *args), *args))


def _tap_streams(capture: WorldCapture, patch: pytest.MonkeyPatch) -> None:
    def put(end: StreamEnd, host: str, number: int, data: bytes, flags: int) -> None:
        if end.here != end.there:
            capture.add(end._kernel.now, host, segment(end.local, end.remote, number, data, flags))

    def transmit(end: StreamEnd, go: Callable[[], None], data: bytes) -> None:
        if end.dead:
            return
        one = capture.stream(end)
        if one.again:
            number = one.again.popleft()
        else:
            number, one.next = one.next, one.next + (len(data) or 1)
        put(end, end.here, number, data, PUSH | ACK if data else FIN | ACK)
        waiting = len(end._stalled)
        go()
        (one.stalled if len(end._stalled) > waiting else one.flying).append(number)

    def arrived(end: StreamEnd, go: Callable[[], None], peer: StreamEnd, data: bytes) -> None:
        one = capture.stream(end)
        number = one.flying.popleft()
        put(end, end.there, number, data, PUSH | ACK if data else FIN | ACK)
        gone, waiting = peer.dead, len(end._stalled)
        go()
        if len(end._stalled) > waiting:
            one.stalled.append(number)
        back = capture.stream(peer).next
        put(peer, peer.here, back, b"", RST if gone else ACK)
        if end._network.passes(end.there, end.here) and not gone:
            put(peer, end.here, back, b"", ACK)

    def repeat(end: StreamEnd, go: Callable[[], None]) -> None:
        one = capture.stream(end)
        one.again, one.stalled = one.stalled, deque()
        go()
        one.again.clear()

    def reset(end: StreamEnd, go: Callable[[], None]) -> None:
        if not end.dead:
            put(end, end.here, capture.stream(end).next, b"", RST | ACK)
        go()

    def fail(end: StreamEnd, go: Callable[[], None], number: int) -> None:
        if not end.dead and number == errno.ECONNRESET and end.peer is not None:
            put(end.peer, end.here, capture.stream(end.peer).next, b"", RST | ACK)
        go()

    for around in (transmit, arrived, repeat, reset, fail):
        _wrap(patch, StreamEnd, around.__name__ if around in (repeat, reset, fail) else f"_{around.__name__}", around)


def _tap_connections(capture: WorldCapture, patch: pytest.MonkeyPatch) -> None:
    def put(one: TcpSocket, host: str, back: bool, flags: int) -> None:
        assert one.remote is not None
        source, target = (one.remote, one.local) if back else (one.local, one.remote)
        if one.host.address != one.network.route(one.host.address, one.remote[0]):
            capture.add(one.kernel.now, host, segment(source, target, ISN, b"", flags))

    def ask(one: TcpSocket, go: Callable[[], None], to: Address, patience: int) -> None:
        if not one.closed and one.connecting:
            put(one, one.host.address, back=False, flags=SYN)
        go()

    def asked(one: TcpSocket, go: Callable[[], None], there: str, to: Address, patience: int) -> None:
        if not one.closed:
            put(one, there, back=False, flags=SYN)
            found = one.network.listener(there, to)
            put(one, there, back=True, flags=RST | ACK if found is None else SYN | ACK)
        go()

    def made(one: TcpSocket, go: Callable[[], None], end: StreamEnd) -> None:
        put(one, one.host.address, back=True, flags=SYN | ACK)
        go()

    def refuse(one: TcpSocket, go: Callable[[], None], number: int) -> None:
        if not one.closed and number == errno.ECONNREFUSED:
            put(one, one.host.address, back=True, flags=RST | ACK)
        go()

    for around in (ask, asked, made, refuse):
        _wrap(patch, TcpSocket, f"_{around.__name__}", around)


def _tap_datagrams(capture: WorldCapture, patch: pytest.MonkeyPatch) -> None:
    def send(
        network: SimulatedNetwork,
        go: Callable[[], None],
        sender: DatagramPort,
        source: Address,
        to: Address,
        data: bytes,
    ) -> None:
        if not source[0].startswith("127.") and sender.host.powered:
            capture.add(network.kernel.now, sender.host.address, datagram(source, to, data))
        go()

    def deliver(
        network: SimulatedNetwork,
        go: Callable[[], None],
        there: str,
        source: Address,
        to: Address,
        data: bytes,
        sender: DatagramPort | None,
    ) -> None:
        if source[0] != there and not source[0].startswith("127."):
            packet = datagram(source, to, data)
            capture.add(network.kernel.now, there, packet)
            sockets = network.datagrams_at(there, to[1])
            if not is_group(to[0]) and sender is not None and not sockets:
                answer = refusal(there, source[0], packet)
                capture.add(network.kernel.now, there, answer)
                if network.passes(there, source[0]):
                    capture.add(network.kernel.now, source[0], answer)
        go()

    _wrap(patch, SimulatedNetwork, "send_datagram", send)
    _wrap(patch, SimulatedNetwork, "_deliver", deliver)
