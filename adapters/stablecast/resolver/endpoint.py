"""The UDP sockets of one resolution machine, and the loop that drives it.

Sockets are read and written directly, without asyncio's transports: the relay sends tens of thousands of datagrams a
second. A datagram that the kernel does not accept at once is dropped, as the network would drop it.
"""

import asyncio
import socket
from collections.abc import Callable
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

from stablecast.runtime import driven_machine
from stablecast.runtime.address import join, parse
from stablecast.runtime.effect_execution import describe, report
from stablecast.runtime.untraced_driver import UntracedDriver
from stablecast.transports.resolution.udp.effects import SendCopies, SendDatagram
from stablecast.transports.resolution.udp.inputs import DatagramArrived

RECEIVE_BUFFER = 1 << 20
"""Bytes that the kernel may hold for reading: a burst of advertisements is not lost while the process is busy."""

MAX_BATCH = 64
"""Datagrams of one read; then timers and other sockets have their turn."""

MAX_DATAGRAM = 65_535

InputT_contra = TypeVar("InputT_contra", contravariant=True)
InputT = TypeVar("InputT")
EffectT_co = TypeVar("EffectT_co", covariant=True)
EffectT = TypeVar("EffectT")

_parsed = lru_cache(maxsize=32_768)(parse)


class CountingMachine(
    driven_machine.Machine[InputT_contra | DatagramArrived, EffectT_co], Protocol[InputT_contra, EffectT_co]
):
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
        self.send_errors = 0
        self.send_drops = 0
        self.receive_errors = 0
        self.effects_failed = 0
        self._on_effect = on_effect
        self._loop = asyncio.get_running_loop()
        self._sending: socket.socket | None = None
        self._reading: list[socket.socket] = []
        self._driver: UntracedDriver[InputT | DatagramArrived, EffectT] | None = None

    def open(self, sock: socket.socket) -> None:
        """Send from this socket, read it, and start the machine's timer."""
        self._sending = sock
        self._driver = UntracedDriver(self.machine, self._perform, self._on_failed)
        self.read(sock)

    def read(self, sock: socket.socket) -> None:
        """Read one more socket until `shut`."""
        self._reading.append(sock)
        self._loop.add_reader(sock, self._on_readable, sock)

    def shut(self, sock: socket.socket) -> None:
        """Stop reading a socket, and close it."""
        self._reading.remove(sock)
        self._loop.remove_reader(sock)
        sock.close()

    def feed(self, event: InputT) -> None:
        """Feed one input and perform its effects; do nothing before `open` and after `close`."""
        if self._driver is not None:
            self._driver.feed(event)

    async def close(self) -> None:
        """Close the sockets; nothing is sent or reported afterwards."""
        if self._driver is not None:
            self._driver.close()
        self._sending = None
        for sock in list(self._reading):
            self.shut(sock)
        await asyncio.sleep(0)  # Loops forget a reader in their next turn.

    @property
    def port(self) -> int:
        """Return the local port; 0 once closed."""
        return 0 if self._sending is None else int(self._sending.getsockname()[1])

    def statistics(self) -> dict[str, int]:
        """Return the counters of the machine and of the sockets."""
        errors = {"send_errors": self.send_errors, "send_drops": self.send_drops, "receive_errors": self.receive_errors}
        return {**self.machine.counters(), **errors, "effects_failed": self.effects_failed}

    def _on_readable(self, sock: socket.socket) -> None:
        found: list[DatagramArrived] = []
        for _ in range(MAX_BATCH):
            try:
                data, sender = sock.recvfrom(MAX_DATAGRAM)
            except BlockingIOError:
                break
            except OSError:
                self.receive_errors += 1  # A peer refused an earlier datagram; the machines repeat what matters.
                continue
            found.append(DatagramArrived(data, join(*sender)))
        if self._driver is not None:
            self._driver.feed_all(found)

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
            self._sending.sendto(data, _parsed(to))
        except BlockingIOError:
            self.send_drops += 1
        except Exception:  # noqa: BLE001 - peers name some addresses, which may be malformed
            self.send_errors += 1
