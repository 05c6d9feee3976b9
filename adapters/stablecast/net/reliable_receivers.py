"""The LBT-RM and LBT-RU sessions that a context's receivers joined, on sockets."""

import secrets
import socket
import time
from collections.abc import Callable

import attrs

from stablecast.net import datagrams, multicast
from stablecast.net.address import AddressError, check_ip, join, parse
from stablecast.net.datagrams import Datagram, DatagramSocket
from stablecast.net.ports import PortError
from stablecast.net.timed import Timed
from stablecast.net.where import Where
from stablecast.transports.lbtrm import LbtrmReceiver, transport_of
from stablecast.transports.lbtru import LbtruReceiver
from stablecast.transports.reliable import effects as fx
from stablecast.transports.reliable.inputs import Arrived, Leave, ReceiverInput
from stablecast.transports.reliable.settings import LBTRM_RECEIVER, LBTRU_RECEIVER, ReceiverSettings

PORTS = (14360, 14379)
"""Where LBT-RU receivers are (transport_lbtru_port_low, _high of a receiver); then at a port of the system's choice."""


class Joined:
    """A session that a receiver joined. `on_effect` gets what it brings, and must not raise."""

    def __init__(
        self,
        where: Where,
        machine: LbtrmReceiver | LbtruReceiver,
        hearing: DatagramSocket,
        saying: DatagramSocket,
        on_effect: Callable[[fx.ReceiverEffect], None],
        on_closed: Callable[[], None],
    ) -> None:
        """Begin."""
        self.where = where
        self.machine = machine
        self._hearing = hearing
        self._saying = saying
        self._on_effect = on_effect
        self._on_closed = on_closed
        self._timed: Timed[ReceiverInput, fx.ReceiverEffect] = Timed(machine, self._perform)

    def arrived(self, found: tuple[bytes, ...]) -> None:
        """Datagrams of the session."""
        self._timed.feed(Arrived(found))

    @property
    def port(self) -> int:
        """Where datagrams of the session come."""
        return self._hearing.port

    def statistics(self) -> dict[str, int]:
        """The session's counters."""
        return self.machine.statistics.as_dict()

    def pause(self) -> None:
        """Read no more for now; other sessions at the same socket neither."""
        self._hearing.pause()

    def resume(self) -> None:
        """Read on."""
        self._hearing.resume()

    def close(self) -> None:
        """Leave."""
        self._timed.feed(Leave())
        self._timed.close()
        self._on_closed()

    def _perform(self, effect: fx.ReceiverEffect) -> None:
        if isinstance(effect, fx.SendDatagrams):
            self._saying.send(effect.to, effect.datagrams)
        else:
            self._on_effect(effect)


@attrs.define
class _Group:
    """A group that is heard, and the sessions of it by host, port for NAKs, and session ID."""

    socket: DatagramSocket
    sessions: dict[tuple[str, int, int], Joined] = attrs.field(factory=dict)


class ReliableReceivers:
    """The sessions that a context's receivers joined: all of one group share a socket.

    `strange` counts datagrams of no session that was joined.
    """

    def __init__(self, interface: str) -> None:
        """None yet."""
        self.interface = check_ip(interface)
        self._groups: dict[str, _Group] = {}
        self._joined: list[Joined] = []
        self._asking: DatagramSocket | None = None
        self.strange = 0

    @property
    def asking(self) -> str:
        """Where NAKs to groups' sources come from; empty before a group is joined."""
        return "" if self._asking is None else join(self.interface, self._asking.port)

    def join(
        self, where: Where, on_effect: Callable[[fx.ReceiverEffect], None], settings: ReceiverSettings | None = None
    ) -> Joined:
        """Join a session. Raises PortError; AddressError if it is joined already."""
        if where.group:
            return self._join_group(where, on_effect, settings or LBTRM_RECEIVER)
        return self._connect(where, on_effect, settings or LBTRU_RECEIVER)

    def all_statistics(self) -> dict[str, dict[str, int]]:
        """The counters of each session, by source string."""
        return {f"receiver {joined.where}": joined.statistics() for joined in self._joined}

    def close(self) -> None:
        """Leave all."""
        for joined in tuple(self._joined):
            joined.close()
        if self._asking is not None:
            self._asking.close()
            self._asking = None

    def _join_group(
        self, where: Where, on_effect: Callable[[fx.ReceiverEffect], None], settings: ReceiverSettings
    ) -> Joined:
        if self._asking is None:
            self._asking = DatagramSocket(datagrams.bind(self.interface, 0), self._on_strange)
        group = self._groups.get(where.group)
        if group is None:
            group = self._groups[where.group] = self._hear(where.group)
        key = (where.host, where.port, where.session_id)
        if key in group.sessions:
            raise AddressError(f"{where} is joined already")

        def closed() -> None:
            self._joined.remove(joined)
            del group.sessions[key]
            if not group.sessions:
                del self._groups[where.group]
                group.socket.close()

        machine = LbtrmReceiver(where.address, where.session_id, secrets.randbits(64), time.monotonic_ns(), settings)
        joined = Joined(where, machine, group.socket, self._asking, on_effect, closed)
        group.sessions[key] = joined
        self._joined.append(joined)
        return joined

    def _hear(self, address: str) -> _Group:
        def read(found: list[Datagram]) -> None:
            sorted_out: dict[tuple[str, int, int], list[bytes]] = {}
            for octets, sender in found:
                named = transport_of(octets)
                key = (sender.rpartition(":")[0], *named) if named else ("", 0, 0)
                sorted_out.setdefault(key, []).append(octets)
            for key, those in sorted_out.items():
                joined = group.sessions.get(key)
                if joined is None:
                    self.strange += len(those)
                else:
                    joined.arrived(tuple(those))

        group = _Group(DatagramSocket(multicast.hearing(*parse(address), self.interface), read))
        return group

    def _connect(
        self, where: Where, on_effect: Callable[[fx.ReceiverEffect], None], settings: ReceiverSettings
    ) -> Joined:
        def read(found: list[Datagram]) -> None:
            ours = tuple(octets for octets, sender in found if sender == where.address)
            self.strange += len(found) - len(ours)
            if ours:
                joined.arrived(ours)

        def closed() -> None:
            self._joined.remove(joined)
            endpoint.close()

        endpoint = DatagramSocket(self._port(), read)
        machine = LbtruReceiver(where.address, where.session_id, secrets.randbits(64), time.monotonic_ns(), settings)
        joined = Joined(where, machine, endpoint, endpoint, on_effect, closed)
        self._joined.append(joined)
        return joined

    def _port(self) -> socket.socket:
        """The first free port of the range, else one of the system's choice."""
        try:
            return datagrams.bind(self.interface, *PORTS)
        except PortError:
            return datagrams.bind(self.interface, 0)

    def _on_strange(self, found: list[Datagram]) -> None:
        self.strange += len(found)
