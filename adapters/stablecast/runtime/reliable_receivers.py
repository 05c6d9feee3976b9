"""The LBT-RM and LBT-RU sessions that the receivers of a context joined, on sockets."""

from collections.abc import Callable, Sequence

import attrs

from stablecast.runtime import datagrams, machine, multicast
from stablecast.runtime.address import check_ip, join, parse
from stablecast.runtime.datagrams import DatagramSocket, Sent
from stablecast.runtime.driver import UntracedDriver, guard, report
from stablecast.runtime.source_strings import Where
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.reliable import effects as fx
from stablecast.transports.reliable.inputs import LeaveSession, ReceiverInput, SessionDatagrams
from stablecast.transports.reliable.lbtrm import LbtrmReceiver, by_name, name_of
from stablecast.transports.reliable.lbtru import LbtruReceiver
from stablecast.transports.reliable.settings import LBTRM_RECEIVER, LBTRU_RECEIVER, ReceiverSettings
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmc import Message

PORTS = (14360, 14379)
"""Ports of LBT-RU receivers (transport_lbtru_port_low, _high of a receiver); after them, one of the system's choice."""

Listener = Callable[[fx.ReceiverEffect], None]
"""Callback for the effects of a session; it must not raise."""


class Joined:
    """The membership of one listener in a session. It gets the items of all topics until it claims some."""

    def __init__(self, session: "_JoinedSession", listener: Listener) -> None:
        """Add a listener to a session; `ReliableReceivers.join` calls this."""
        self._session = session
        self.listener = listener

    @property
    def where(self) -> Where:
        return self._session.where

    @property
    def machine(self) -> LbtrmReceiver | LbtruReceiver:
        return self._session.machine

    @property
    def port(self) -> int:
        """Return the local port that receives the datagrams of the session."""
        return self._session.hearing.port

    def statistics(self) -> dict[str, int]:
        return self._session.statistics()

    def repairs(self) -> tuple[int, int]:
        """Return the numbers that the session requested by NAKs, and those that arrived twice."""
        counted = self._session.machine.statistics
        return counted.naks_sent, counted.duplicate_data

    def claim(self, topic: int) -> None:
        """Get the items of this topic index, and of others that are claimed, instead of all items.

        Thousands of receivers may share one session. Each would otherwise look at the messages of all others.
        """
        self._session.claim(self, topic)

    def pause(self) -> None:
        """Stop reading the socket, also for the other sessions that share it."""
        self._session.hearing.pause(self)

    def resume(self) -> None:
        """Continue to read, unless another listener has paused the socket."""
        self._session.hearing.resume(self)

    def close(self) -> None:
        """Leave the session; the last listener to leave ends it."""
        self.resume()
        self._session.leave(self)


@attrs.define(eq=False)
class _JoinedSession:
    """A session and its listeners; the last one to leave ends it. One of LBT-RU hears at one of its `ports`."""

    where: Where
    machine: LbtrmReceiver | LbtruReceiver
    hearing: DatagramSocket
    _saying: DatagramSocket
    _on_closed: Callable[[], None]
    ports: tuple[int, int] = PORTS
    joined: dict[Joined, set[int]] = attrs.field(factory=dict)
    _claimed: dict[int, dict[Joined, None]] = attrs.field(factory=dict)
    _closed: bool = False
    _driver: UntracedDriver[ReceiverInput, fx.ReceiverEffect] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._driver = UntracedDriver(self.machine, self._perform, self._on_failed)

    def begin(self, machine: LbtrmReceiver | LbtruReceiver) -> None:
        """Drive another machine, which joins the session anew; the listeners stay."""
        self._driver.close()
        self.machine = machine
        self._driver = UntracedDriver(machine, self._perform, self._on_failed)
        self._driver.wake()

    def arrived(self, found: list[memoryview]) -> None:
        self._driver.feed(SessionDatagrams(tuple(found)))

    def statistics(self) -> dict[str, int]:
        """Return the counters of the session, and the number of its listeners."""
        return {**self.machine.statistics.as_dict(), "joined": len(self.joined)}

    def claim(self, who: Joined, topic: int) -> None:
        """Pass a listener the items of a topic index, and no others but those that it claims."""
        if who in self.joined:
            self.joined[who].add(topic)
            self._claimed.setdefault(topic, {})[who] = None

    def leave(self, who: Joined) -> None:
        """Remove a listener; end the session after the last one."""
        for topic in self.joined.pop(who, ()):
            del self._claimed[topic][who]
            if not self._claimed[topic]:
                del self._claimed[topic]
        if not self.joined:
            self.close()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._driver.feed(LeaveSession())
            self._driver.close()
            self._on_closed()

    def _perform(self, effect: fx.ReceiverEffect) -> None:
        if isinstance(effect, fx.SendDatagrams):
            self._saying.send(effect.to, effect.datagrams)
            return
        if isinstance(effect, fx.SessionEnded):
            self.close()  # Before the listeners are called: one that joins again must get a new session.
        for one, theirs in self._shares(effect):
            guard(f"a listener to {self.where} failed", one.listener, theirs)

    def _shares(self, effect: fx.ReceiverEffect) -> Sequence[tuple[Joined, fx.ReceiverEffect]]:
        """Return the part of an effect for each listener: its topics, if it claimed any."""
        if len(self.joined) == 1 or not isinstance(effect, fx.Received | fx.TopicLost):
            return [(one, effect) for one in self.joined]  # A single listener drops what it did not claim.
        shares: list[tuple[Joined, fx.ReceiverEffect]] = [
            (one, effect) for one, claims in self.joined.items() if not claims
        ]
        if isinstance(effect, fx.TopicLost):
            return shares + [(one, effect) for one in self._claimed.get(effect.topic_index, ())]
        items: dict[Joined, list[Run | Message]] = {}
        for item in effect.items:
            for one in self._claimed.get(_topic_of(item), ()):
                items.setdefault(one, []).append(item)
        return shares + [(one, fx.Received(theirs)) for one, theirs in items.items()]

    def _on_failed(self, effect: object, error: Exception) -> None:
        """Report the error; the protocol repeats a NAK or a request that was not sent."""
        report(f"the session {self.where} could not send", error)


def _topic_of(item: Run | Message) -> int:
    """Return the topic index of an item; -1 if it is malformed. Control messages have it in their headers."""
    if isinstance(item, Run):
        return item.topic_index
    try:
        return codec.split(codec.decode(item).incarnation)[1]
    except WireError:
        return -1


@attrs.define
class _Group:
    """A joined group, and its sessions by host and by the name that their datagrams carry."""

    socket: DatagramSocket
    sessions: dict[tuple[str, bytes], _JoinedSession] = attrs.field(factory=dict)


class ReliableReceivers:
    """The sessions that the receivers of a context joined; all sessions of one group share a socket.

    Listeners of one session share it, with the settings of the first listener. `strange` counts datagrams of sessions
    that nobody joined.
    """

    def __init__(self, interface: str) -> None:
        """Use one interface, an IPv4 address. Raises AddressError."""
        self.interface = check_ip(interface)
        self._groups: dict[str, _Group] = {}
        self._sessions: dict[Where, _JoinedSession] = {}
        self._asking: DatagramSocket | None = None
        self.strange = 0

    @property
    def asking(self) -> str:
        """Return the address that sends NAKs to the sources of groups; empty before a group is joined."""
        return "" if self._asking is None else join(self.interface, self._asking.port)

    def join(
        self,
        where: Where,
        listener: Listener,
        settings: ReceiverSettings | None = None,
        ports: tuple[int, int] = (0, 0),
    ) -> Joined:
        """Join a session; LBT-RU uses the first free port of `ports`, (0, 0): of `PORTS`. Raises PortError."""
        session = self._sessions.get(where)
        if session is None:
            begun = self._join_group(where, settings) if where.group else self._connect(where, settings, ports)
            session = self._sessions[where] = begun
        joined = Joined(session, listener)
        session.joined[joined] = set()
        return joined

    def move(self, interface: str) -> None:
        """Receive at another address of this host. Raises PortError.

        Sources of LBT-RU know a receiver by its address. So its sessions begin anew, and receivers recover the rest.
        """
        self.interface = check_ip(interface)
        if self._asking is not None:
            self._asking.move(datagrams.bind(interface, 0))
        for address, group in self._groups.items():
            group.socket.move(multicast.hearing(*parse(address), interface))
        for where, session in self._sessions.items():
            if not where.group:
                session.hearing.move(datagrams.bind_near(interface, *session.ports))
                session.begin(self._ru_receiver(where, session.machine.settings))

    def all_statistics(self) -> dict[str, dict[str, int]]:
        """Return the counters of each session, by source string."""
        return {f"receiver {where}": session.statistics() for where, session in self._sessions.items()}

    def close(self) -> None:
        for session in tuple(self._sessions.values()):
            session.close()
        if self._asking is not None:
            self._asking.close()
            self._asking = None

    def _join_group(self, where: Where, settings: ReceiverSettings | None) -> _JoinedSession:
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

        begun = (machine.entropy.bits(64), machine.clock.monotonic_ns(), settings or LBTRM_RECEIVER)
        receiver = LbtrmReceiver(where.address, where.session_id, *begun)
        session = group.sessions[key] = _JoinedSession(where, receiver, group.socket, self._asking, closed)
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

    def _connect(self, where: Where, settings: ReceiverSettings | None, ports: tuple[int, int]) -> _JoinedSession:
        def read(found: list[Sent]) -> None:
            for sender, those in found:
                if sender == where.address:
                    session.arrived(those)
                else:
                    self.strange += len(those)

        def closed() -> None:
            del self._sessions[where]
            endpoint.close()

        ports = ports if ports[0] else PORTS
        endpoint = DatagramSocket(datagrams.bind_near(self.interface, *ports), read)
        receiver = self._ru_receiver(where, settings or LBTRU_RECEIVER)
        session = _JoinedSession(where, receiver, endpoint, endpoint, closed, ports)
        return session

    @staticmethod
    def _ru_receiver(where: Where, settings: ReceiverSettings) -> LbtruReceiver:
        instance = machine.entropy.bits(64)
        return LbtruReceiver(where.address, where.session_id, instance, machine.clock.monotonic_ns(), settings)

    def _on_strange(self, found: list[Sent]) -> None:
        self.strange += sum(len(those) for _, those in found)
