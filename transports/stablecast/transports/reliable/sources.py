"""All source sessions of a context over one kind of transport: they share the rate limits.

While what was submitted waits for the next interval the context is blocked, all its sessions alike; `Unblocked` says
when it is no more.
"""

import attrs

from stablecast.core.errors import MisuseError
from stablecast.transports.reliable.effects import SourceClosed, SourceEffect, Unblocked
from stablecast.transports.reliable.inputs import Submit
from stablecast.transports.reliable.rates import RateLimiter
from stablecast.transports.reliable.sending import Say, SessionState, SourceSession
from stablecast.transports.reliable.settings import MAX_SESSIONS, RateSettings, SourceSettings


@attrs.define
class Sources:
    """Sessions by the driver's number; `said` is what they say, `out` what else is to be done."""

    limiter: RateLimiter
    sessions: dict[int, SourceSession] = attrs.field(factory=dict)
    said: list[Say] = attrs.field(factory=list)

    @classmethod
    def of(cls, rates: RateSettings) -> "Sources":
        """No sessions yet."""
        return cls(RateLimiter(rates))

    @property
    def blocked(self) -> bool:
        """Whether nothing may be submitted now."""
        return self.limiter.blocked

    def open(self, number: int, settings: SourceSettings, header: int) -> SourceSession:
        """A new session. Raises MisuseError if the number is taken, or there are too many."""
        if number in self.sessions:
            raise MisuseError(f"there is a session {number} already: give it another number")
        if len(self.sessions) >= MAX_SESSIONS:
            raise MisuseError(f"a context has at most {MAX_SESSIONS} sessions: let sources share them")
        session = SourceSession.of(number, settings, header, self.limiter, self.said)
        self.sessions[number] = session
        return session

    def get(self, number: int) -> SourceSession:
        """A session. Raises MisuseError if there is none."""
        session = self.sessions.get(number)
        if session is None:
            raise MisuseError(f"there is no session {number}: open it first")
        return session

    def submit(self, event: Submit, now: int) -> None:
        """Messages for a session. Raises MisuseError; see `SourceSession.submit`."""
        self.get(event.session).submit(event, now)

    def handle_timeout(self, now: int) -> list[SourceEffect]:
        """Does what is due; returns what is to be told of it."""
        out: list[SourceEffect] = []
        blocked = self.limiter.blocked
        repairs, data = self.limiter.release(now)
        for item in repairs:
            self.sessions[item.session].resend(item.number, item.to, now)
        for item in data:
            self.sessions[item.session].transmit(item.number, now)
        for session in tuple(self.sessions.values()):
            session.handle_timeout(now)
            if session.state is SessionState.CLOSED:
                del self.sessions[session.number]
                self.limiter.forget(session.number)
                out.append(SourceClosed(session.number))
        if blocked and not self.limiter.blocked:
            out.append(Unblocked())
        return out

    def next_timeout(self) -> int | None:
        """When `handle_timeout` is due, in nanoseconds."""
        due = (self.limiter.next_release(), *(session.next_timeout() for session in self.sessions.values()))
        return min((at for at in due if at is not None), default=None)

    def check_invariants(self) -> None:
        """What must hold between inputs (used by tests)."""
        for session in self.sessions.values():
            session.check_invariants()
        queued = {item.session for item in (*self.limiter.data, *self.limiter.repairs)}
        assert queued <= set(self.sessions)

    def take_said(self) -> list[Say]:
        """What the sessions say, in order."""
        said = self.said[:]
        self.said.clear()  # the sessions hold the same list
        return said

    def statistics(self, number: int, clients: int = 0) -> dict[str, int]:
        """The counters of a session. Raises MisuseError if there is none."""
        session = self.get(number)
        waiting = [sum(item.session == number for item in queue) for queue in (self.limiter.data, self.limiter.repairs)]
        window = (len(session.window), session.window.payload_bytes)
        return session.statistics.as_dict(window, (waiting[0], waiting[1]), clients)
