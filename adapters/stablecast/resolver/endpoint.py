"""UDP sockets and one resolution machine: feed, drain, perform, re-arm.

Sockets are read and written directly: the relay sends tens of thousands of datagrams a second, and a datagram that the
kernel does not take at once is lost as if the network had lost it.
"""

import asyncio
import errno
import socket
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

from stablecast.runtime import untraced_driver
from stablecast.runtime.address import join, parse
from stablecast.runtime.alarm import Alarm
from stablecast.runtime.effect_execution import describe, perform_all, report
from stablecast.runtime.resolver_error import ResolverError
from stablecast.transports.resolution.udp.effects import SendCopies, SendDatagram
from stablecast.transports.resolution.udp.inputs import DatagramArrived

RECEIVE_BUFFER = 1 << 20
"""Bytes that the kernel may hold for us: a burst of advertisements is not lost while the process is busy."""

MAX_BATCH = 64
"""Datagrams that are read before timers and other sockets have their turn."""

MAX_DATAGRAM = 65_535

ANY_PORT = 0

InputT_contra = TypeVar("InputT_contra", contravariant=True)
InputT = TypeVar("InputT")
EffectT_co = TypeVar("EffectT_co", covariant=True)
EffectT = TypeVar("EffectT")

_parsed = lru_cache(maxsize=32_768)(parse)


class Machine(
    untraced_driver.Machine[InputT_contra | DatagramArrived, EffectT_co], Protocol[InputT_contra, EffectT_co]
):
    """The machine contract (`stablecast.transports.resolution`)."""

    def counters(self) -> dict[str, int]:
        """What happened so far."""


def bind(
    interface: str, ports: Sequence[int], receive_buffer: int = RECEIVE_BUFFER, send_buffer: int = 0
) -> socket.socket:
    """A datagram socket on `interface` and the first of `ports` that is free; buffers in bytes, 0: the system's.

    Raises:
        ResolverError: If this machine has no such interface, or its ports may not be used.
        OSError: With EADDRINUSE, if all of the ports are in use.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        for option, size in ((socket.SO_RCVBUF, receive_buffer), (socket.SO_SNDBUF, send_buffer)):
            if size:
                sock.setsockopt(socket.SOL_SOCKET, option, size)
        _bind_first(sock, interface, ports)
    except OSError as error:
        sock.close()
        match error.errno:
            case errno.EADDRNOTAVAIL:
                remedy = f"{interface} is not an address of this machine: choose one that `ip address` shows"
            case errno.EACCES:
                remedy = f"port {ports[-1]} may not be used by this user: choose one above 1023"
            case _:
                raise
        raise ResolverError(remedy) from error
    return sock


def _bind_first(sock: socket.socket, interface: str, ports: Sequence[int]) -> None:
    for port in ports[:-1]:
        try:
            sock.bind((interface, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            return
    sock.bind((interface, ports[-1]))


class Endpoint(Generic[InputT, EffectT]):
    """Drives one machine with its sockets on the running event loop."""

    def __init__(self, machine: Machine[InputT, EffectT], on_effect: Callable[[EffectT], None]) -> None:
        """Drive `machine`; its effects other than datagrams go to `on_effect`.

        An effect that raises is counted in `effects_failed` and reported; the others are performed. Resolution repeats
        what it says, so a datagram that was not sent is one that was lost.
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
        self._alarm = Alarm(self._wake)

    def open(self, sock: socket.socket) -> None:
        """Sends from this socket from now on, and reads it."""
        self._sending = sock
        self.read(sock)
        self._rearm()

    def read(self, sock: socket.socket) -> None:
        """Reads one more socket."""
        self._reading.append(sock)
        self._loop.add_reader(sock, self._on_readable, sock)

    def shut(self, sock: socket.socket) -> None:
        """Reads it no more, and closes it."""
        self._reading.remove(sock)
        self._loop.remove_reader(sock)
        sock.close()

    def feed(self, event: InputT) -> None:
        """Feeds one input and does what follows; does nothing once closed."""
        if self._sending is not None:
            self.machine.receive(event, time.monotonic_ns())
            self._perform()

    async def close(self) -> None:
        """Closes the sockets; nothing is sent or reported afterwards."""
        self._alarm.set(None)
        self._sending = None
        for sock in list(self._reading):
            self.shut(sock)
        await asyncio.sleep(0)  # Loops forget a reader in their next turn.

    @property
    def port(self) -> int:
        """The local port; 0 once closed."""
        return 0 if self._sending is None else int(self._sending.getsockname()[1])

    def statistics(self) -> dict[str, int]:
        """The machine's counters and the sockets'."""
        errors = {"send_errors": self.send_errors, "send_drops": self.send_drops, "receive_errors": self.receive_errors}
        return {**self.machine.counters(), **errors, "effects_failed": self.effects_failed}

    def _on_readable(self, sock: socket.socket) -> None:
        """Peers, or anybody, sent something."""
        for _ in range(MAX_BATCH):
            try:
                data, sender = sock.recvfrom(MAX_DATAGRAM)
            except BlockingIOError:
                break
            except OSError:
                self.receive_errors += 1  # Somebody did not want an earlier datagram; the machines repeat what matters.
                continue
            self.machine.receive(DatagramArrived(data, join(*sender)), time.monotonic_ns())
        self._perform()

    def _perform(self) -> None:
        try:
            perform_all(self.machine.take_effects(), self._perform_one, self._on_failed)
        finally:
            self._rearm()

    def _perform_one(self, effect: EffectT) -> None:
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
        except Exception:  # noqa: BLE001 - also addresses that cannot be written: peers name some of them
            self.send_errors += 1

    def _rearm(self) -> None:
        self._alarm.set(None if self._sending is None else self.machine.next_timeout())

    def _wake(self) -> None:
        self.machine.handle_timeout(time.monotonic_ns())
        self._perform()
