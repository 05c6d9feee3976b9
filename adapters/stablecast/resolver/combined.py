"""Several kinds of resolution side by side, as one: a source that two of them find is reported once.

Each kind is told everything. What was reported is forgotten when the receiver asks again, or when a kind that knows
ends of sources says that the source is no more.
"""

from collections.abc import Sequence
from typing import Protocol

from stablecast.resolver.srs import OnRecord
from stablecast.transports.resolution.records import SourceRecord


class Resolution(Protocol):
    """One kind: `Resolver` or `SrsResolver`."""

    def add_source(
        self, topic: str, address: str, session_id: int, index: int, request_address: str, persistent: bool
    ) -> None:
        """Make a source known."""

    def remove_source(self, session_id: int, index: int) -> None:
        """It is no more."""

    def add_receiver(self, topic: str) -> None:
        """Want a topic."""

    def remove_receiver(self, topic: str) -> None:
        """Want it no more."""

    def resolved(self, topic: str) -> None:
        """A receiver has a session."""

    def unresolved(self, topic: str) -> None:
        """It has none any more."""

    async def close(self) -> None:
        """Stop."""


class Combined:
    """The kinds of one context. Pass `found` and `gone` to them as their callbacks, then `add` them."""

    def __init__(self, on_found: OnRecord) -> None:
        """Reports to `on_found`, which may call back and must not raise."""
        self._on_found = on_found
        self._kinds: list[Resolution] = []
        self._reported: dict[str, set[SourceRecord]] = {}

    def add(self, kinds: Sequence[Resolution]) -> None:
        """From now on these are told, too."""
        self._kinds += kinds

    def found(self, topic: str, record: SourceRecord) -> None:
        """A kind found a source."""
        reported = self._reported.setdefault(topic, set())
        if record not in reported:
            reported.add(record)
            self._on_found(topic, record)

    def gone(self, topic: str, record: SourceRecord) -> None:
        """A kind says that a source is no more; found again, it is news."""
        self._reported.get(topic, set()).discard(record)

    def add_source(
        self, topic: str, address: str, session_id: int, index: int, request_address: str, persistent: bool
    ) -> None:
        """Make a source known. Raises MisuseError."""
        for kind in self._kinds:
            kind.add_source(topic, address, session_id, index, request_address, persistent)

    def remove_source(self, session_id: int, index: int) -> None:
        """It is no more."""
        for kind in self._kinds:
            kind.remove_source(session_id, index)

    def add_receiver(self, topic: str) -> None:
        """Want a topic; for a second receiver all is reported again. Raises MisuseError."""
        self._reported.pop(topic, None)
        for kind in self._kinds:
            kind.add_receiver(topic)

    def remove_receiver(self, topic: str) -> None:
        """Want it no more."""
        self._reported.pop(topic, None)
        for kind in self._kinds:
            kind.remove_receiver(topic)

    def resolved(self, topic: str) -> None:
        """A receiver has a session."""
        for kind in self._kinds:
            kind.resolved(topic)

    def unresolved(self, topic: str) -> None:
        """It has none any more: what was reported is reported again."""
        self._reported.pop(topic, None)
        for kind in self._kinds:
            kind.unresolved(topic)

    async def close(self) -> None:
        """Stop all kinds."""
        for kind in self._kinds:
            await kind.close()
