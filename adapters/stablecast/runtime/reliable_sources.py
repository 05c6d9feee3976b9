"""The LBT-RM or LBT-RU sessions of a context's sources, on sockets."""

import asyncio
import secrets
import socket
from collections import deque
from collections.abc import Callable

import attrs

from stablecast.runtime import datagrams, multicast
from stablecast.runtime.address import check_ip
from stablecast.runtime.datagrams import DatagramSocket, Sent
from stablecast.runtime.effect_execution import describe, guard, report
from stablecast.runtime.ports import PortError
from stablecast.runtime.source_strings import Where
from stablecast.runtime.untraced_driver import Timed
from stablecast.transports.reliable import effects as fx
from stablecast.transports.reliable.batches import BatchMark
from stablecast.transports.reliable.inputs import (
    CloseSession,
    DatagramsReceived,
    Flush,
    ForgetTopic,
    OpenSession,
    SourceInput,
    Submit,
)
from stablecast.transports.reliable.lbtrm import LbtrmSources
from stablecast.transports.reliable.lbtru import LbtruSources
from stablecast.transports.reliable.settings import SourceSettings

PORTS = (14380, 14389)
"""Where LBT-RU sessions are (transport_lbtru_port_low, _high of a context)."""

MAX_SESSION_ID = 0xFFFF_FFFF

TOGETHER_SECONDS = 0.01
"""What sources say of themselves within so long leaves together, behind the first, which leaves at once."""

TOGETHER_BYTES = 64 * 1024
"""So much of it does not wait for the end of that."""


MAX_SAID_BYTES = 1024 * 1024
"""So much of it waits where the rate limit is reached."""


@attrs.define
class _Session:
    """Sockets of a session: what it says leaves by one, and what it is told comes to the other, or the same."""

    where: Where
    hearing: DatagramSocket
    saying: DatagramSocket
    closed: asyncio.Event = attrs.field(factory=asyncio.Event)


class ReliableSources:
    """The source sessions of a context over one kind of transport.

    `streams` counts the sources that send on them, `unsaid` the control messages that were dropped for the rate limit.
    """

    def __init__(self, machine: LbtrmSources | LbtruSources, interface: str) -> None:
        """None is open yet."""
        self.machine = machine
        self.interface = check_ip(interface)
        self._timed: Timed[SourceInput, fx.SourceEffect] = Timed(machine, self._perform, self._on_failed)
        self._sessions: dict[int, _Session] = {}
        self._last = 0
        self._room = asyncio.Event()
        self._wanting: deque[Callable[[], None]] = deque()
        self._said: dict[int, list[bytes]] = {}
        self._said_bytes = 0
        self._gathering: asyncio.TimerHandle | None = None
        self.streams = self.unsaid = 0

    def open(
        self,
        group: str = "",
        settings: SourceSettings | None = None,
        session_id: int = 0,
        ports: tuple[int, int] = (0, 0),
    ) -> int:
        """A new session, to `group` (`ip:port`) with LBT-RM; returns its number. Raises PortError, MisuseError.

        `ports` are those where it may be (LBT-RU), or where NAKs may come to; (0, 0): as documented.
        """
        self._last += 1
        number = self._last

        def heard(found: list[Sent]) -> None:
            came = [(bytes(octets), sender) for sender, those in found for octets in those]
            self._timed.feed(DatagramsReceived(number, tuple(came)))

        if group:
            saying = DatagramSocket(multicast.sending(self.interface), heard, group)
            hearing = DatagramSocket(self._nak_port(saying, ports if ports[0] else multicast.NAK_PORTS), heard)
        else:
            found = datagrams.bind(self.interface, *(ports if ports[0] else PORTS))
            hearing = saying = DatagramSocket(found, heard)
        where = Where(self.interface, hearing.port, session_id or secrets.randbelow(MAX_SESSION_ID) + 1, group)
        self._sessions[number] = _Session(where, hearing, saying)
        address = group or where.address
        self._timed.feed(OpenSession(number, address, where.session_id, hearing.port, settings or SourceSettings()))
        return number

    def _nak_port(self, saying: DatagramSocket, ports: tuple[int, int]) -> socket.socket:
        try:
            return datagrams.bind(self.interface, *ports)
        except PortError:
            saying.close()
            raise

    def settings(self, number: int) -> SourceSettings:
        """What its first source set. Raises MisuseError if there is no session."""
        return self.machine.get(number).settings

    def where(self, number: int) -> Where:
        """The session as receivers name it."""
        return self._sessions[number].where

    @property
    def blocked(self) -> bool:
        """Whether the rate limit is reached: nothing may be submitted until `room` returns."""
        return self.machine.blocked

    def waits(self, number: int) -> bool:
        """Whether something that was submitted to a session waits for the rate limit."""
        session = self.machine.sessions.get(number)
        return session is not None and session.window.sent != session.window.lead

    async def room(self) -> None:
        """Wait until messages may be submitted."""
        while self.machine.blocked:
            self._room.clear()
            await self._room.wait()

    def when_room(self, tell: Callable[[], None]) -> None:
        """Call this once when the rate limit is reached no more and those who asked before have had their turn."""
        self._wanting.append(tell)

    def offer(self, number: int, block: bytes, mark: BatchMark = BatchMark.NONE) -> bool:
        """Send whole messages, back to back: data of one topic, or a control message.

        This is the one place that asks for the budget and uses it: the messages, and the control messages that wait
        for their session, are submitted together. Returns False if the rate limit is reached: nothing was taken then,
        keep the block and use `when_room`. Raises MisuseError for messages that can never be sent.
        """
        if self.machine.blocked:
            return False
        said = self._said.pop(number, None)
        if said:
            self._said_bytes -= sum(map(len, said))
            block = b"".join((*said, block))
        self._timed.feed(Submit(number, block, mark))
        return True

    def say(self, number: int, block: bytes) -> None:
        """Send control messages, which may wait a moment for those of other sources of the session.

        A thousand sources that announce themselves make some datagrams of it and not thousands. Where the rate limit
        is reached they wait for room; beyond `MAX_SAID_BYTES` they are dropped, because sources repeat them.
        """
        if self._gathering is None and self.offer(number, block, BatchMark.END):
            self._gather()
            return
        if self._said_bytes + len(block) > MAX_SAID_BYTES:
            self.unsaid += 1
            return
        self._said.setdefault(number, []).append(block)
        self._said_bytes += len(block)
        if self._said_bytes >= TOGETHER_BYTES:
            self._leave_together()

    def _gather(self) -> None:
        self._gathering = asyncio.get_running_loop().call_later(TOGETHER_SECONDS, self._gathered)

    def _gathered(self) -> None:
        self._gathering = None
        if self._said:
            self._leave_together()
            self._gather()

    def _leave_together(self) -> None:
        """What was said leaves, as far as the rate limit lets it; the rest when there is room."""
        for number in tuple(self._said):
            self._leave(number)

    def _leave(self, number: int) -> None:
        self.offer(number, b"", BatchMark.END)

    def flush(self, number: int) -> None:
        """What is in the batch leaves."""
        self._timed.feed(Flush(number))

    def forget(self, number: int, topic: int) -> None:
        """A topic's source is gone."""
        self._timed.feed(ForgetTopic(number, topic))

    def statistics(self, number: int) -> dict[str, int]:
        """The counters of a session, and what its sockets did not take."""
        session = self._sessions[number]
        socket = {"dgrams_not_sent": session.saying.dropped, "socket_errors": session.saying.errors}
        return {**self.machine.statistics(number), **socket}

    def all_statistics(self) -> dict[str, dict[str, int]]:
        """The same of each session, by source string."""
        return {f"source {session.where}": self.statistics(number) for number, session in self._sessions.items()}

    async def close_session(self, number: int) -> None:
        """End a session, and wait until it has lingered."""
        session = self._sessions[number]
        self.retire(number)
        await session.closed.wait()

    def retire(self, number: int) -> None:
        """End a session once it has lingered."""
        self._say_no_more(number)
        self._timed.feed(CloseSession(number))

    def _say_no_more(self, number: int) -> None:
        """What waited for others leaves; what waits for the rate limit is dropped."""
        if number in self._said:
            self._leave(number)
            self._said_bytes -= sum(map(len, self._said.pop(number, ())))

    def close(self) -> None:
        """End all sessions now: nothing is sent again any more, and LBT-RU's clients are told."""
        if self._gathering is not None:
            self._gathering.cancel()
        for number in tuple(self._sessions):
            self._say_no_more(number)
            self._timed.feed(CloseSession(number, linger=False))
        self._timed.wake()
        self._timed.close()
        for number in tuple(self._sessions):
            self._end(number)

    def _end(self, number: int) -> None:
        session = self._sessions.pop(number)
        session.hearing.close()
        session.saying.close()
        session.closed.set()

    def _perform(self, effect: fx.SourceEffect) -> None:
        match effect:
            case fx.SendDatagrams(number, to, found):
                self._sessions[number].saying.send(to, found)
            case fx.Unblocked():
                self._room.set()
                self._leave_together()
                while self._wanting and not self.machine.blocked:
                    guard("a source that waited for the rate limit failed", self._wanting.popleft())
            case fx.SourceClosed(number):
                self._end(number)
            case _:  # Clients come and go: the counters tell.
                pass

    def _on_failed(self, effect: object, error: Exception) -> None:
        """Leave datagrams that were not sent to the protocol: receivers ask for them again."""
        report(f"{describe(effect)} of the sessions on {self.interface} failed", error)
