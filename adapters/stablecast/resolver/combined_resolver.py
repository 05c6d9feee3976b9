"""Several kinds of resolution side by side, as one: a source that two of them find is reported once.

Each kind is told everything. What was reported is forgotten when the receiver asks again, or when a kind that knows
ends of sources says that the source is no more. Receivers that stay without a source are told of, with what each kind
knows of the reason.
"""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.resolver.srs_resolver import OnRecord
from stablecast.runtime.alarm import Alarm
from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.resolution.udp.inputs import AddSource
from stablecast.transports.resolution.udp.settings import QueryOptions
from stablecast.transports.resolution.unresolved_receivers import UnresolvedTopics


class Resolution(Protocol):
    """One kind: `Resolver` or `SrsResolver`."""

    def add_source(self, source: AddSource) -> None:
        """Make a source known."""

    def remove_source(self, session_id: int, index: int) -> None:
        """It is no more."""

    def add_receiver(self, topic: str, options: QueryOptions | None = None) -> None:
        """Want a topic."""

    def remove_receiver(self, topic: str) -> None:
        """Want it no more."""

    def resolved(self, topic: str) -> None:
        """A receiver has a session."""

    def unresolved(self, topic: str) -> None:
        """It has none any more."""

    def lost(self, topic: str, session_id: int, index: int) -> None:
        """It has one less, and others."""

    def ask_name(self, name: str) -> bool:
        """Find the store of a name; False if this kind finds none."""

    def wake(self, flags: int, interval: float = 0, duration: float = 0) -> None:
        """Ask others to speak again of what went quiet."""

    def why(self, topic: str) -> str:
        """Why it may have none."""

    async def close(self) -> None:
        """Stop."""


@attrs.frozen
class Wait:
    """A receiver without a session: for how long, and what each kind of resolution knows of the reason."""

    topic: str
    seconds: float
    reason: str


def _unheard(_: Sequence[Wait]) -> None:
    """Nobody wants to know."""


class Combined:
    """The kinds of one context. Pass `found` and `gone` to them as their callbacks, then `add` them."""

    def __init__(self, on_found: OnRecord, on_wait: Callable[[Sequence[Wait]], None] = _unheard) -> None:
        """Reports to `on_found`, and who waits to `on_wait`; they may call back and must not raise."""
        self._on_found = on_found
        self._on_wait = on_wait
        self._kinds: list[Resolution] = []
        self._reported: dict[str, set[SourceRecord]] = {}
        self._waiting = UnresolvedTopics()
        self._alarm = Alarm(self._wake)

    def add(self, kinds: Sequence[Resolution]) -> None:
        """From now on these are told, too."""
        self._kinds += kinds

    def found(self, topic: str, record: SourceRecord) -> None:
        """A kind found a source."""
        reported = self._reported.setdefault(topic, set())
        if record not in reported:
            reported.add(record)
            try:
                self._on_found(topic, record)
            except BaseException:
                reported.discard(record)  # Nobody knows of it: found again, it is news.
                raise

    def gone(self, topic: str, record: SourceRecord) -> None:
        """A kind says that a source is no more; found again, it is news."""
        self._reported.get(topic, set()).discard(record)

    def add_source(self, source: AddSource) -> None:
        """Make a source known. Raises MisuseError."""
        for kind in self._kinds:
            kind.add_source(source)

    def remove_source(self, session_id: int, index: int) -> None:
        """It is no more."""
        for kind in self._kinds:
            kind.remove_source(session_id, index)

    def add_receiver(self, topic: str, options: QueryOptions | None = None) -> None:
        """Want a topic; for a second receiver all is reported again. Raises MisuseError."""
        self._reported.pop(topic, None)
        for kind in self._kinds:
            kind.add_receiver(topic, options)
        self._wait_for(topic)

    def remove_receiver(self, topic: str) -> None:
        """Want it no more."""
        self._reported.pop(topic, None)
        self._waiting.end(topic)
        for kind in self._kinds:
            kind.remove_receiver(topic)

    def resolved(self, topic: str) -> None:
        """A receiver has a session."""
        self._waiting.end(topic)
        for kind in self._kinds:
            kind.resolved(topic)

    def unresolved(self, topic: str) -> None:
        """It has none any more: what was reported is reported again."""
        self._reported.pop(topic, None)
        for kind in self._kinds:
            kind.unresolved(topic)
        self._wait_for(topic)

    def lost(self, topic: str, address: str) -> None:
        """A receiver lost the source that was joined at `address`, and has others: it does not wait for one.

        What was reported of that address is reported again when it is heard of again: another life may be there.
        """
        reported = self._reported.get(topic, set())
        for record in [record for record in reported if record.address == address]:
            reported.discard(record)
            for kind in self._kinds:
                kind.lost(topic, record.session_id, record.index)

    def ask_name(self, name: str) -> bool:
        """Find the store of a name; False if no kind does that. Raises MisuseError."""
        asked = [kind.ask_name(name) for kind in self._kinds]
        return any(asked)

    def wake(self, flags: int, interval: float = 0, duration: float = 0) -> None:
        """Ask others to speak again of what went quiet, every `interval` for `duration` seconds."""
        for kind in self._kinds:
            kind.wake(flags, interval, duration)

    def waiting(self) -> list[Wait]:
        """The receivers without a session, longest waiting first."""
        now = time.monotonic_ns()
        waits = [self._wait(topic, now - since) for topic, since in self._waiting.since.items()]
        return sorted(waits, key=lambda wait: -wait.seconds)

    async def close(self) -> None:
        """Stop all kinds."""
        self._alarm.set(None)
        for kind in self._kinds:
            await kind.close()

    def _wait_for(self, topic: str) -> None:
        self._waiting.begin(topic, time.monotonic_ns())
        self._alarm.set(self._waiting.next())

    def _wait(self, topic: str, waited: int) -> Wait:
        return Wait(topic, waited / SECOND, "; ".join(kind.why(topic) for kind in self._kinds))

    def _wake(self) -> None:
        waits = [self._wait(topic, waited) for topic, waited in self._waiting.take(time.monotonic_ns()).items()]
        self._alarm.set(self._waiting.next())
        if waits:
            self._on_wait(waits)
