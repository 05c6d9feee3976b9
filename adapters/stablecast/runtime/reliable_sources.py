"""The LBT-RM or LBT-RU sessions of the sources of a context, on sockets."""

import asyncio
from collections import deque
from collections.abc import Callable

import attrs

from stablecast.runtime import datagrams, machine, multicast
from stablecast.runtime.address import check_ip
from stablecast.runtime.datagrams import DatagramSocket, Sent
from stablecast.runtime.driver import UntracedDriver, describe, guard, report
from stablecast.runtime.ports import PortError
from stablecast.runtime.source_strings import Where
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
"""Ports of LBT-RU sessions (transport_lbtru_port_low, _high of a context)."""

MAX_SESSION_ID = 0xFFFF_FFFF

TOGETHER_SECONDS = 0.01
"""Time in which control messages of the sources gather after the first, which leaves at once."""

TOGETHER_BYTES = 64 * 1024
"""Bytes of gathered control messages that leave before that time is over."""

MAX_SAID_BYTES = 1024 * 1024
"""Bytes of control messages that may wait while the rate limit is reached."""


@attrs.define
class _SourceSession:
    """The sockets of a session: `saying` sends and `hearing` receives; they may be the same socket."""

    where: Where
    hearing: DatagramSocket
    saying: DatagramSocket


class ReliableSources:
    """The source sessions of a context over one kind of transport.

    `streams` counts the sources that send on them; `unsaid` counts control messages that the rate limit dropped.
    """

    def __init__(self, machine: LbtrmSources | LbtruSources, interface: str) -> None:
        """Drive a machine on one interface, an IPv4 address. Raises AddressError."""
        self.machine = machine
        self.interface = check_ip(interface)
        self._driver: UntracedDriver[SourceInput, fx.SourceEffect] = UntracedDriver(
            machine, self._perform, self._on_failed
        )
        self._sessions: dict[int, _SourceSession] = {}
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
        """Open a session and return its number; LBT-RM sends to `group` (`ip:port`). Raises PortError, MisuseError.

        `ports` is the range of its port (LBT-RU) or of the port for NAKs (LBT-RM); (0, 0): the documented range.
        """
        self._last += 1
        number = self._last

        def heard(found: list[Sent]) -> None:
            came = [(bytes(octets), sender) for sender, those in found for octets in those]
            self._driver.feed(DatagramsReceived(number, tuple(came)))

        if group:
            saying = DatagramSocket(multicast.sending(self.interface), heard, group)
            hearing = DatagramSocket(self._nak_port(saying, ports if ports[0] else multicast.NAK_PORTS), heard)
        else:
            found = datagrams.bind(self.interface, *(ports if ports[0] else PORTS))
            hearing = saying = DatagramSocket(found, heard)
        where = Where(self.interface, hearing.port, session_id or machine.entropy.below(MAX_SESSION_ID) + 1, group)
        self._sessions[number] = _SourceSession(where, hearing, saying)
        address = group or where.address
        self._driver.feed(OpenSession(number, address, where.session_id, hearing.port, settings or SourceSettings()))
        return number

    def move(self, interface: str) -> None:
        """Send from another address of this host, at the same ports: datagrams name them. Raises PortError."""
        self.interface = check_ip(interface)
        for session in self._sessions.values():
            where = session.where = attrs.evolve(session.where, host=interface)
            session.hearing.move(datagrams.bind(interface, where.port))
            if session.saying is not session.hearing:
                session.saying.move(multicast.sending(interface))

    def _nak_port(self, saying: DatagramSocket, ports: tuple[int, int]) -> machine.Socket:
        try:
            return datagrams.bind(self.interface, *ports)
        except PortError:
            saying.close()
            raise

    def settings(self, number: int) -> SourceSettings:
        """Return the settings of the session's first source. Raises MisuseError if there is no such session."""
        return self.machine.get(number).settings

    def where(self, number: int) -> Where:
        """Return the address of a session, as receivers join it."""
        return self._sessions[number].where

    @property
    def blocked(self) -> bool:
        """Return whether the rate limit is reached; submit nothing until `room` returns."""
        return self.machine.blocked

    def waits(self, number: int) -> bool:
        """Return whether submitted messages of a session wait for the rate limit."""
        session = self.machine.sessions.get(number)
        return session is not None and session.window.sent != session.window.lead

    async def room(self) -> None:
        """Wait until messages may be submitted."""
        while self.machine.blocked:
            self._room.clear()
            await self._room.wait()

    def when_room(self, notify: Callable[[], None]) -> None:
        """Call `notify` once when the rate limit allows to send again, after the callers before this one."""
        self._wanting.append(notify)

    def offer(self, number: int, block: bytes, mark: BatchMark = BatchMark.NONE) -> bool:
        """Submit whole messages, back to back: data of one topic, or a control message; return whether it did.

        Only this method checks the rate limit and uses it: it submits the messages together with the control messages
        that wait for their session. It returns False if the rate limit is reached: keep the block and use `when_room`.
        Raises MisuseError for messages that can never be sent.
        """
        if self.machine.blocked:
            return False
        said = self._said.pop(number, None)
        if said:
            self._said_bytes -= sum(map(len, said))
            block = b"".join((*said, block))
        self._driver.feed(Submit(number, block, mark))
        return True

    def say(self, number: int, block: bytes) -> None:
        """Send control messages, after a short wait for those of other sources of the session.

        So a thousand sources that announce themselves need few datagrams. The messages also wait while the rate limit
        is reached; beyond `MAX_SAID_BYTES` they are dropped, because sources repeat them.
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
        """Submit the gathered messages as far as the rate limit allows; the rest waits for `Unblocked`."""
        for number in tuple(self._said):
            self._leave(number)

    def _leave(self, number: int) -> None:
        self.offer(number, b"", BatchMark.END)

    def flush(self, number: int) -> None:
        """Send the batch of a session without waiting for it to fill."""
        self._driver.feed(Flush(number))

    def forget(self, number: int, topic: int) -> None:
        self._driver.feed(ForgetTopic(number, topic))

    def statistics(self, number: int) -> dict[str, int]:
        """Return the counters of a session, and those of datagrams that its sockets refused."""
        session = self._sessions[number]
        socket = {
            "dgrams_not_sent": session.saying.dropped,
            "socket_errors": session.saying.errors + session.saying.read_errors,
        }
        return {**self.machine.statistics(number), **socket}

    def all_statistics(self) -> dict[str, dict[str, int]]:
        """Return the statistics of each session, by source string."""
        return {f"source {session.where}": self.statistics(number) for number, session in self._sessions.items()}

    def retire(self, number: int) -> None:
        """End a session after its time to linger, without waiting for it."""
        self._say_no_more(number)
        self._driver.feed(CloseSession(number))

    def _say_no_more(self, number: int) -> None:
        """Submit the gathered messages of a session; drop them if the rate limit is reached."""
        if number in self._said:
            self._leave(number)
            self._said_bytes -= sum(map(len, self._said.pop(number, ())))

    def close(self) -> None:
        """End all sessions now: notify the clients of LBT-RU, and retransmit nothing afterwards."""
        if self._gathering is not None:
            self._gathering.cancel()
        for number in tuple(self._sessions):
            self._say_no_more(number)
            self._driver.feed(CloseSession(number, linger=False))
        self._driver.wake()
        self._driver.close()
        for number in tuple(self._sessions):
            self._end(number)

    def _end(self, number: int) -> None:
        session = self._sessions.pop(number)
        session.hearing.close()
        session.saying.close()

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
            # Clients that come and go are visible in the counters.

    def _on_failed(self, effect: object, error: Exception) -> None:
        """Report the error; receivers request datagrams that were not sent."""
        report(f"{describe(effect)} of the sessions on {self.interface} failed", error)
