"""Several kinds of resolution of one context: a source that two of them find is reported once, at its best place.

Every kind gets every input. A reported source is forgotten when the receiver asks again, or when a kind reports the end
of the source. Receivers that stay without a source are reported, with the reasons that each kind knows. A topic that
only patterns want is abandoned when every kind has abandoned it since its receiver lost its last source.
"""

from collections.abc import Callable, Sequence

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.resolver.resolution import NamesInput, OnRecord, Resolution, nothing
from stablecast.runtime import machine
from stablecast.runtime.alarm import Alarm
from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.resolution.udp import inputs
from stablecast.transports.resolution.unresolved_receivers import UnresolvedTopics
from stablecast.transports.resolution.ways import Ways


@attrs.frozen
class Wait:
    """A receiver without a session: how long it has waited, and the reasons that each kind of resolution knows."""

    topic: str
    seconds: float
    reason: str


class Combined(Resolution):
    """The kinds of one context. Pass `found`, `gone` and `abandoned` to them as their callbacks, then `add` them."""

    def __init__(
        self,
        on_found: OnRecord,
        on_wait: Callable[[Sequence[Wait]], None] = nothing,
        on_abandoned: Callable[[str], None] = nothing,
        on_gone: OnRecord = nothing,
    ) -> None:
        """Report sources to `on_found`, their ends to `on_gone`, and abandoned topics to `on_abandoned`.

        `on_wait` gets the receivers that have waited for long.

        The callbacks may call back and must not raise.
        """
        self._on_found = on_found
        self._on_gone = on_gone
        self._on_wait = on_wait
        self._on_abandoned = on_abandoned
        self._wanted: set[str] = set()
        self._abandoned: dict[str, set[str]] = {}
        self._kinds: list[Resolution] = []
        self._ways: dict[str, Ways] = {}
        self._waiting = UnresolvedTopics()
        self._alarm = Alarm(self._wake)

    def add(self, kinds: Sequence[Resolution]) -> None:
        """Pass all further inputs to these kinds as well."""
        self._kinds += kinds

    @property
    def silent(self) -> bool:
        """Return whether nobody who answered before answers any more, of no kind."""
        return bool(self._kinds) and all(kind.silent for kind in self._kinds)

    def move(self, interface: str) -> None:
        for kind in self._kinds:
            kind.move(interface)

    def found(self, topic: str, record: SourceRecord) -> None:
        """Report a source that a kind found, unless it is joined already, there or at a better place."""
        self._abandoned.pop(topic, None)
        ways = self._ways.setdefault(topic, Ways())
        self._report(topic, ways, ways.found(record))

    def gone(self, topic: str, record: SourceRecord) -> None:
        """Forget and report a source whose end a kind reports. It is reported again when it is found again.

        If it is known at another place as well, that place is reported.
        """
        ways = self._ways.get(topic, Ways())
        joined, other = ways.gone(record)
        if joined:
            self._on_gone(topic, record)
        self._report(topic, ways, other)

    def _report(self, topic: str, ways: Ways, record: SourceRecord | None) -> None:
        if record is not None:
            try:
                self._on_found(topic, record)
            except BaseException:
                ways.gone(record)  # The report failed: the next time it is found, it is reported again.
                raise

    def abandoned(self, kind: str, topic: str) -> None:
        """Note that the kind of this name has abandoned a topic that only patterns want."""
        kinds = self._abandoned.setdefault(topic, set())
        kinds.add(kind)
        if len(kinds) == len(self._kinds):
            del self._abandoned[topic]
            self._ways.pop(topic, None)
            self._on_abandoned(topic)

    def feed(self, event: inputs.ResolutionInput) -> None:
        """Pass one input to every kind, and note which receivers wait. Raises MisuseError."""
        if isinstance(event, inputs.AddReceiver | inputs.RemoveReceiver | inputs.Unresolved):
            self._ways.pop(event.topic, None)  # The receiver starts anew: all sources are reported to it again.
            self._abandoned.pop(event.topic, None)
        if isinstance(event, inputs.AddPattern):
            self._ways = {topic: ways for topic, ways in self._ways.items() if topic in self._wanted}
        if isinstance(event, inputs.RemoveReceiver | inputs.Resolved):
            self._waiting.end(event.topic)
        if isinstance(event, inputs.RemoveReceiver):
            self._wanted.discard(event.topic)
        for kind in self._kinds:
            kind.feed(event)
        if isinstance(event, inputs.AddReceiver):
            self._wanted.add(event.topic)
        if isinstance(event, inputs.AddReceiver | inputs.Unresolved):
            self._begin_waiting(event.topic)

    def _begin_waiting(self, topic: str) -> None:
        if topic in self._wanted:
            self._waiting.begin(topic, machine.clock.monotonic_ns())
            self._alarm.set(self._waiting.next())

    def lost(self, topic: str, address: str, *, others: bool) -> None:
        """Note that a receiver lost the source at `address`; with `others` of the topic it does not wait.

        A source that is found at that address again is reported again, because it may be another life. A source that
        is known at another place is reported there.
        """
        ways = self._ways.get(topic, Ways())
        gone, instead = ways.lost(address)
        if not others and not instead:
            self.unresolved(topic)
            return
        if not others:
            self._begin_waiting(topic)
        for record in gone:
            for kind in self._kinds:
                kind.feed(inputs.SourceLost(topic, record.session_id, record.index))
        for record in instead:
            self._report(topic, ways, record)

    @property
    def over_udp(self) -> bool:  # type: ignore[override] # it follows from the kinds
        """Return whether a kind finds stores by name."""
        return any(kind.over_udp for kind in self._kinds)

    def feed_names(self, event: NamesInput) -> None:
        """Pass one input to every kind that has it. Raises MisuseError."""
        for kind in self._kinds:
            kind.feed_names(event)

    def why(self, topic: str) -> str:
        """Return the reasons of all kinds why the receiver of `topic` may have no session."""
        return "; ".join(kind.why(topic) for kind in self._kinds)

    def waiting(self) -> list[Wait]:
        """Return the receivers without a session, longest waiting first."""
        now = machine.clock.monotonic_ns()
        waits = [self._wait(topic, now - since) for topic, since in self._waiting.since.items()]
        return sorted(waits, key=lambda wait: -wait.seconds)

    async def close(self) -> None:
        self._alarm.set(None)
        for kind in self._kinds:
            await kind.close()

    def _wait(self, topic: str, waited: int) -> Wait:
        return Wait(topic, waited / SECOND, self.why(topic))

    def _wake(self) -> None:
        waits = [
            self._wait(topic, waited)
            for topic, waited in self._waiting.due_reports(machine.clock.monotonic_ns()).items()
        ]
        self._alarm.set(self._waiting.next())
        if waits:
            self._on_wait(waits)
