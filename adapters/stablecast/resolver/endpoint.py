"""The UDP sockets of one resolution machine, and the loop that drives it.

Datagrams are sent by the socket itself: a relay sends each to many clients, tens of thousands a second. A datagram that
the kernel does not accept at once is dropped, as the network would drop it.
"""

import asyncio
import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

from stablecast.runtime import driver, machine
from stablecast.runtime.address import parse
from stablecast.runtime.datagrams import DatagramSocket, Sent
from stablecast.runtime.driver import UntracedDriver, describe, report
from stablecast.runtime.machine import Socket
from stablecast.transports.resolution.udp.effects import SendCopies, SendDatagram
from stablecast.transports.resolution.udp.inputs import DatagramArrived

RECEIVE_BUFFER = 1 << 20
"""Bytes that the kernel may hold for reading: a burst of advertisements is not lost while the process is busy."""

_parsed = lru_cache(maxsize=32_768)(parse)

InputT_contra = TypeVar("InputT_contra", contravariant=True)
InputT = TypeVar("InputT")
EffectT_co = TypeVar("EffectT_co", covariant=True)
EffectT = TypeVar("EffectT")


class CountingMachine(driver.Machine[InputT_contra | DatagramArrived, EffectT_co], Protocol[InputT_contra, EffectT_co]):
    """The machine contract (`stablecast.transports.resolution`), with counters."""

    def counters(self) -> dict[str, int]:
        """Return the counters of the machine by name."""


class Endpoint(Generic[InputT, EffectT]):
    """Drive one machine with its sockets on the running event loop."""

    def __init__(self, machine: CountingMachine[InputT, EffectT], on_effect: Callable[[EffectT], None]) -> None:
        """Drive `machine` once a socket is open; effects other than datagrams go to `on_effect`.

        An effect that raises is counted in `effects_failed` and reported; the others are performed. Resolution repeats
        its messages, so a datagram that was not sent counts as lost.
        """
        self.machine = machine
        self.send_errors = self.send_drops = self.effects_failed = 0
        self._read_errors = 0
        self._on_effect = on_effect
        self._sending: Socket | None = None
        self._branches: dict[str, Socket] = {}
        self._main: DatagramSocket | None = None
        self._readers: dict[str, DatagramSocket] = {}
        self._moved: dict[str, str] = {}
        self._named: dict[str, str] = {}
        self._heard: dict[str, float] = {}
        self._sockets: list[DatagramSocket] = []
        self._driver: UntracedDriver[InputT | DatagramArrived, EffectT] | None = None

    def open(self, sock: Socket) -> None:
        """Send from this socket, read it, and start the machine's timer."""
        self._sending = sock
        self._driver = UntracedDriver(self.machine, self._perform, self._on_failed)
        self._main = self.read(sock)

    def begin(self) -> None:
        """Do what is due at once, without an input."""
        if self._driver is not None:
            self._driver.wake()

    def branch(self, to: str, sock: Socket) -> None:
        """Send to the peer `to` from this socket, and read it."""
        self._branches[to] = sock
        self._readers[to] = self.read(sock)

    def change(self, sock: Socket, to: str = "") -> None:
        """Send from and read another socket, because this host has another address; `to`: only for that peer."""
        changed = self._readers[to] if to else self._main
        if changed is None:
            sock.close()
            return
        changed.move(sock)
        if to:
            self._branches[to] = sock
        else:
            self._sending = sock

    def move(self, peer: str, to: str) -> None:
        """Send what is for `peer` to the address `to`, and hear it as `peer`: the machine knows its first address."""
        self._named = {place: name for place, name in self._named.items() if name != peer}
        self._moved[peer] = to
        self._named[to] = peer

    def watch(self, peers: Iterable[str]) -> None:
        """Note when a datagram of each of these peers arrives, for `heard_within`."""
        self._heard = dict.fromkeys(peers, -math.inf)

    def heard_within(self, peer: str, seconds: float) -> bool:
        return machine.clock.monotonic() - self._heard[peer] < seconds

    def read(self, sock: Socket) -> DatagramSocket:
        """Read one more socket until `shut`."""
        self._sockets.append(DatagramSocket(sock, self._on_read))
        return self._sockets[-1]

    def shut(self, sock: DatagramSocket) -> None:
        """Close a socket that was read, and keep its count of errors."""
        self._sockets.remove(sock)
        self._read_errors += sock.read_errors
        sock.close()

    def feed(self, event: InputT) -> None:
        """Feed one input and perform its effects; do nothing before `open` and after `close`."""
        if self._driver is not None:
            self._driver.feed(event)

    async def close(self) -> None:
        """Close the sockets; nothing is sent or reported afterwards."""
        if self._driver is not None:
            self._driver.close()
        self._sending = self._main = None
        for sock in self._sockets:
            sock.close()
        await asyncio.sleep(0)  # Loops forget a reader in their next turn.

    @property
    def port(self) -> int:
        """Return the local port; 0 before `open` and after `close`."""
        return self._sockets[0].port if self._sockets else 0

    def statistics(self) -> dict[str, int]:
        """Return the counters of the machine and of the sockets."""
        return {
            **self.machine.counters(),
            "send_errors": self.send_errors,
            "send_drops": self.send_drops,
            "receive_errors": self._read_errors + sum(sock.read_errors for sock in self._sockets),
            "effects_failed": self.effects_failed,
        }

    def _on_read(self, found: list[Sent]) -> None:
        if self._driver is None:
            return
        if self._heard:
            found = [(self._named.get(sender, sender), those) for sender, those in found]
            self._heard |= {sender: machine.clock.monotonic() for sender, _ in found if sender in self._heard}
        self._driver.feed_all(DatagramArrived(bytes(one), sender) for sender, those in found for one in those)

    def _perform(self, effect: EffectT) -> None:
        match effect:
            case SendDatagram(to, data):
                self._send(to, data)
            case SendCopies(clients, data):
                for to in clients:
                    self._send(to, data)
            case _:
                self._on_effect(effect)

    def _on_failed(self, effect: object, error: Exception) -> None:
        self.effects_failed += 1
        report(f"{describe(effect)} of resolution failed", error)

    def _send(self, to: str, data: bytes) -> None:
        if self._sending is None:
            return
        try:
            sending = self._branches.get(to, self._sending) if self._branches else self._sending
            sending.sendto(data, _parsed(self._moved.get(to, to) if self._moved else to))
        except BlockingIOError:
            self.send_drops += 1
        except Exception:  # noqa: BLE001 - peers name some addresses, which may be malformed
            self.send_errors += 1
