"""All source sessions of a context over one kind of transport, which share the rate limits.

While submitted data waits for the next interval, the context is blocked with all its sessions. `Unblocked` reports the
end of this.

The packets of a session have neither bytes nor addresses (`packets`). LBT-RM and LBT-RU each encode packets, choose
addressees, and handle datagrams of receivers.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import groupby
from typing import assert_never

import attrs

from stablecast.core.errors import MisuseError
from stablecast.core.machine.timers import soonest
from stablecast.transports.reliable import inputs
from stablecast.transports.reliable.effects import SendDatagrams, SourceClosed, SourceEffect, Unblocked
from stablecast.transports.reliable.packets import SourcePacket
from stablecast.transports.reliable.rates import RateLimiter
from stablecast.transports.reliable.settings import MAX_SESSIONS, RateSettings
from stablecast.transports.reliable.source_session import Addressed, SessionState, SourceSession
from stablecast.transports.wire.errors import WireError

HEADER_BYTES = 20
"""Bytes of a data datagram before its messages; with LBT-RU the session ID is included."""


@attrs.define
class SourceSessions(ABC):
    """Sessions by the driver's number, a machine. `said` holds their packets, `out` the other effects."""

    rates: RateSettings
    limiter: RateLimiter = attrs.field(init=False)
    sessions: dict[int, SourceSession] = attrs.field(factory=dict, init=False)
    said: list[Addressed] = attrs.field(factory=list, init=False)
    out: list[SourceEffect] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self.limiter = RateLimiter(self.rates)

    # The part of each transport.

    @abstractmethod
    def begin(self, event: inputs.OpenSession) -> None:
        """Note the address of an opened session."""

    @abstractmethod
    def hear(self, session: SourceSession, octets: bytes, sender: str, now: int) -> bool:
        """Handle a datagram for a session, and return whether it has a meaning here. Raises WireError."""

    @abstractmethod
    def encode(self, number: int, packet: SourcePacket) -> list[bytes]:
        """Return the datagrams of a session's packet."""

    @abstractmethod
    def audience(self, number: int, to: str) -> Iterable[str]:
        """Return the addresses for a packet to `to`, or to everybody."""

    @abstractmethod
    def part(self, number: int) -> None:
        """Handle the end of a session."""

    # The common part.

    @property
    def blocked(self) -> bool:
        """True if nothing may be submitted until `Unblocked`."""
        return self.limiter.blocked

    def receive(self, event: inputs.SourceInput, now: int) -> None:
        """Feed one input.

        Raises:
            MisuseError: If the session is unknown, closed or blocked, or cannot send the messages; if the number of a
                new session is in use; or if there are too many sessions.
        """
        match event:
            case inputs.Submit():
                self.get(event.session).submit(event, now)
            case inputs.DatagramsReceived(number, datagrams):
                session = self.get(number)
                for octets, sender in datagrams:
                    try:
                        session.statistics.dgrams_dropped += not self.hear(session, octets, sender, now)
                    except WireError:
                        session.statistics.dgrams_dropped += 1
            case inputs.OpenSession():
                self._open(event)
            case inputs.Flush(number):
                self.get(number).flush(now)
            case inputs.ForgetTopic(number, topic):
                self.get(number).marks.forget(topic)
            case inputs.CloseSession(number, linger):
                self.get(number).close(linger, now)
            case _:
                assert_never(event)

    def handle_timeout(self, now: int) -> None:
        blocked = self.blocked
        repairs, data = self.limiter.release(now)
        for item in repairs:
            self.sessions[item.session].resend(item.number, item.to, now)
        for item in data:
            self.sessions[item.session].transmit(item.number, now)
        # Marks wait for the next call if senders wait for `Unblocked`: otherwise a context with many idle topics would
        # send nothing but marks.
        freed = blocked and not self.blocked
        ended: list[int] = []
        for session in self.sessions.values():
            session.handle_timeout(now, marks=not freed)
            if session.state is SessionState.CLOSED:
                ended.append(session.number)
        self._flush()
        for number in ended:
            del self.sessions[number]
            self.limiter.forget(number)
            self.part(number)
            self.out.append(SourceClosed(number))
        if blocked and not self.blocked:
            self.out.append(Unblocked())

    def next_timeout(self) -> int | None:
        """Return when `handle_timeout` is due, in nanoseconds."""
        return soonest(self.limiter.next_release(), *[session.next_timeout() for session in self.sessions.values()])

    def take_effects(self) -> list[SourceEffect]:
        """Return the effects since the last call, in order."""
        self._flush()
        effects, self.out = self.out, []
        return effects

    def statistics(self, number: int) -> dict[str, int]:
        """Return the counters of a session. Raises MisuseError for an unknown session."""
        session = self.get(number)
        waiting = [sum(item.session == number for item in queue) for queue in (self.limiter.data, self.limiter.repairs)]
        window = (len(session.window), session.window.payload_bytes)
        return session.statistics.as_dict(window, (waiting[0], waiting[1]))

    def get(self, number: int) -> SourceSession:
        """Return a session. Raises MisuseError for an unknown one."""
        session = self.sessions.get(number)
        if session is None:
            raise MisuseError(f"there is no session {number}: open it first")
        return session

    def _open(self, event: inputs.OpenSession) -> None:
        number = event.session
        if number in self.sessions:
            raise MisuseError(f"there is a session {number} already: give it another number")
        if len(self.sessions) >= MAX_SESSIONS:
            raise MisuseError(f"a context has at most {MAX_SESSIONS} sessions: let sources share them")
        self.sessions[number] = SourceSession.of(number, event.settings, HEADER_BYTES, self.limiter, self.said)
        self.begin(event)

    def _flush(self) -> None:
        """Encode the packets of the sessions; consecutive packets to one addressee leave together."""
        if not self.said:
            return
        said = self.said[:]
        self.said.clear()  # the sessions hold the same list
        for (number, to), those in groupby(said, key=_whom):
            datagrams = tuple([octets for one in those for octets in self.encode(number, one.packet)])
            for address in self.audience(number, to):
                self.out.append(SendDatagrams(number, address, datagrams))


def _whom(said: Addressed) -> tuple[int, str]:
    return said.session, said.to
