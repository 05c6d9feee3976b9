"""The LBT-RM and LBT-RU sessions that a context's receivers joined, on sockets."""

import secrets
import socket
import time
from collections.abc import Callable

import attrs

from stablecast.runtime import datagrams, multicast
from stablecast.runtime.address import check_ip, join, parse
from stablecast.runtime.datagrams import DatagramSocket, Sent
from stablecast.runtime.effect_execution import guard, report
from stablecast.runtime.ports import PortError
from stablecast.runtime.source_strings import Where
from stablecast.runtime.untraced_driver import Timed
from stablecast.transports.reliable import effects as fx
from stablecast.transports.reliable.inputs import LeaveSession, ReceiverInput, SessionDatagrams
from stablecast.transports.reliable.lbtrm import LbtrmReceiver, by_name, name_of
from stablecast.transports.reliable.lbtru import LbtruReceiver
from stablecast.transports.reliable.settings import LBTRM_RECEIVER, LBTRU_RECEIVER, ReceiverSettings

PORTS = (14360, 14379)
"""Where LBT-RU receivers are (transport_lbtru_port_low, _high of a receiver); then at a port of the system's choice."""


Listener = Callable[[fx.ReceiverEffect], None]
"""Gets what a session brings, and must not raise."""


class Joined:
    """A session as one of those has it who joined it."""

    def __init__(self, session: "_Session", listener: Listener) -> None:
        """Begin."""
        self._session = session
        self.listener = listener

    @property
    def where(self) -> Where:
        """Which session it is."""
        return self._session.where

    @property
    def machine(self) -> LbtrmReceiver | LbtruReceiver:
        """What decides."""
        return self._session.machine

    @property
    def port(self) -> int:
        """Where datagrams of the session come."""
        return self._session.hearing.port

    def statistics(self) -> dict[str, int]:
        """The session's counters."""
        return self._session.statistics()

    def pause(self) -> None:
        """Read no more for now; nobody else at the same socket hears anything either."""
        self._session.hearing.pause(self)

    def resume(self) -> None:
        """Read on, unless another one wants none."""
        self._session.hearing.resume(self)

    def close(self) -> None:
        """Leave."""
        self.resume()
        self._session.leave(self)


class _Session:
    """A session, and all who joined it; the last one to leave ends it."""

    def __init__(
        self,
        where: Where,
        machine: LbtrmReceiver | LbtruReceiver,
        hearing: DatagramSocket,
        saying: DatagramSocket,
        on_closed: Callable[[], None],
    ) -> None:
        """Begin."""
        self.where = where
        self.machine = machine
        self.hearing = hearing
        self.joined: list[Joined] = []
        self._saying = saying
        self._on_closed = on_closed
        self._closed = False
        self._timed: Timed[ReceiverInput, fx.ReceiverEffect] = Timed(machine, self._perform, self._on_failed)

    def arrived(self, found: list[memoryview]) -> None:
        """Datagrams of the session."""
        self._timed.feed(SessionDatagrams(tuple(found)))

    def statistics(self) -> dict[str, int]:
        """The session's counters, and how many joined it."""
        return {**self.machine.statistics.as_dict(), "joined": len(self.joined)}

    def leave(self, who: Joined) -> None:
        """One of those who joined listens no more."""
        if who in self.joined:
            self.joined.remove(who)
        if not self.joined:
            self.close()

    def close(self) -> None:
        """Nobody listens any more, or there is nothing to hear."""
        if not self._closed:
            self._closed = True
            self._timed.feed(LeaveSession())
            self._timed.close()
            self._on_closed()

    def _perform(self, effect: fx.ReceiverEffect) -> None:
        if isinstance(effect, fx.SendDatagrams):
            self._saying.send(effect.to, effect.datagrams)
            return
        if isinstance(effect, fx.SessionEnded):
            self.close()  # Who joins it again from now on begins another.
        for one in tuple(self.joined):
            guard(f"a listener to {self.where} failed", one.listener, effect)

    def _on_failed(self, effect: object, error: Exception) -> None:
        """Leave what was lost to the protocol: a NAK or a request that was not sent is due again."""
        report(f"the session {self.where} could not send", error)


@attrs.define
class _Group:
    """A group that is heard, and the sessions of it by host and by how their datagrams name them."""

    socket: DatagramSocket
    sessions: dict[tuple[str, bytes], _Session] = attrs.field(factory=dict)


class ReliableReceivers:
    """The sessions that a context's receivers joined; all of one group share a socket.

    Who joins a session that is joined already shares it, with the settings of the first. `strange` counts datagrams of
    no session that was joined.
    """

    def __init__(self, interface: str) -> None:
        """None yet."""
        self.interface = check_ip(interface)
        self._groups: dict[str, _Group] = {}
        self._sessions: dict[Where, _Session] = {}
        self._asking: DatagramSocket | None = None
        self.strange = 0

    @property
    def asking(self) -> str:
        """Where NAKs to groups' sources come from; empty before a group is joined."""
        return "" if self._asking is None else join(self.interface, self._asking.port)

    def join(
        self,
        where: Where,
        listener: Listener,
        settings: ReceiverSettings | None = None,
        ports: tuple[int, int] = (0, 0),
    ) -> Joined:
        """Join a session, with LBT-RU from the first free one of `ports`; (0, 0): of `PORTS`. Raises PortError."""
        session = self._sessions.get(where)
        if session is None:
            begun = self._join_group(where, settings) if where.group else self._connect(where, settings, ports)
            session = self._sessions[where] = begun
        joined = Joined(session, listener)
        session.joined.append(joined)
        return joined

    def all_statistics(self) -> dict[str, dict[str, int]]:
        """The counters of each session, by source string."""
        return {f"receiver {where}": session.statistics() for where, session in self._sessions.items()}

    def close(self) -> None:
        """Leave all."""
        for session in tuple(self._sessions.values()):
            session.close()
        if self._asking is not None:
            self._asking.close()
            self._asking = None

    def _join_group(self, where: Where, settings: ReceiverSettings | None) -> _Session:
        if self._asking is None:
            self._asking = DatagramSocket(datagrams.bind(self.interface, 0), self._on_strange)
        group = self._groups.get(where.group)
        if group is None:
            group = self._groups[where.group] = self._hear(where.group)
        key = (where.host, name_of(where.port, where.session_id))

        def closed() -> None:
            del self._sessions[where]
            del group.sessions[key]
            if not group.sessions:
                del self._groups[where.group]
                group.socket.close()

        begun = (secrets.randbits(64), time.monotonic_ns(), settings or LBTRM_RECEIVER)
        machine = LbtrmReceiver(where.address, where.session_id, *begun)
        session = group.sessions[key] = _Session(where, machine, group.socket, self._asking, closed)
        return session

    def _hear(self, address: str) -> _Group:
        def read(found: list[Sent]) -> None:
            for sender, those in found:
                host = sender.rpartition(":")[0]
                for name, ours in by_name(those).items():
                    session = group.sessions.get((host, name))
                    if session is None:
                        self.strange += len(ours)
                    else:
                        session.arrived(ours)

        group = _Group(DatagramSocket(multicast.hearing(*parse(address), self.interface), read))
        return group

    def _connect(self, where: Where, settings: ReceiverSettings | None, ports: tuple[int, int]) -> _Session:
        def read(found: list[Sent]) -> None:
            for sender, those in found:
                if sender == where.address:
                    session.arrived(those)
                else:
                    self.strange += len(those)

        def closed() -> None:
            del self._sessions[where]
            endpoint.close()

        endpoint = DatagramSocket(self._port(ports if ports[0] else PORTS), read)
        begun = (secrets.randbits(64), time.monotonic_ns(), settings or LBTRU_RECEIVER)
        machine = LbtruReceiver(where.address, where.session_id, *begun)
        session = _Session(where, machine, endpoint, endpoint, closed)
        return session

    def _port(self, ports: tuple[int, int]) -> socket.socket:
        """The first free port of the range, else one of the system's choice."""
        try:
            return datagrams.bind(self.interface, *ports)
        except PortError:
            return datagrams.bind(self.interface, 0)

    def _on_strange(self, found: list[Sent]) -> None:
        self.strange += sum(len(those) for _, those in found)
