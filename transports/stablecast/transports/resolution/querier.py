"""The receiver side: asks for the topics that the context's receivers want, and reports the sources that answer.

* A topic is queried through the initial phase, whether resolved or not: a second source's answer may have been lost.
* In the sustaining phase it is queried for as long as it has no live session, without end (T-112, T26): a topic without
  a source is never given up.
* A source is reported once, and again after `Unresolved`.
"""

from typing import assert_never

import attrs

from stablecast.core.errors import MisuseError
from stablecast.transports.resolution.effects import Discovered, QuerierEffect, Transmit
from stablecast.transports.resolution.inputs import (
    AddReceiver,
    Heard,
    QuerierInput,
    RemoveReceiver,
    Resolved,
    Unresolved,
)
from stablecast.transports.resolution.packing import share
from stablecast.transports.resolution.records import check_topic, source_record, topic_bytes
from stablecast.transports.resolution.schedule import QUERYING, Pace, Rounds
from stablecast.transports.wire import lbmr

MAX_TOPICS = 65_536
"""Topics that the receivers of one context want."""

MAX_REPORTED = 1_024
"""Sources of one topic that are remembered as reported; beyond them the oldest may be reported again."""


@attrs.define
class Interest:
    """One wanted topic: whether it has a live session, and the sources reported: (address, session ID, index)."""

    resolved: bool = False
    reported: dict[tuple[str, int, int], None] = attrs.field(factory=dict)


@attrs.define
class Querier:
    """Queries the topics of one context's receivers."""

    pace: Pace = QUERYING
    interests: dict[str, Interest] = attrs.field(factory=dict, init=False)
    rounds: Rounds[str] = attrs.field(init=False)
    outbox: list[QuerierEffect] = attrs.field(factory=list, init=False)
    unusable: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.rounds = Rounds(self.pace)

    def __bool__(self) -> bool:
        return bool(self.interests)

    def receive(self, event: QuerierInput, now: int) -> None:
        """Feeds one input.

        Raises:
            MisuseError: If a topic name cannot be written on the wire, or is one too many.
        """
        match event:
            case AddReceiver(topic):
                self._add(topic, now)
            case RemoveReceiver(topic):
                self.interests.pop(topic, None)
                self.rounds.stop(topic)
            case Resolved(topic):
                self._on_resolved(topic)
            case Unresolved(topic):
                self._on_unresolved(topic, now)
            case Heard(packet):
                for tir in packet.advertisements:
                    self._on_advertisement(tir, packet)
            case _:
                assert_never(event)

    def handle_timeout(self, now: int) -> None:
        """Asks for the topics whose turn it is."""
        topics = self.rounds.take(now)
        records = ((lbmr.TopicQuery(topic), len(topic_bytes(topic)) + 1) for topic in topics)
        self.outbox += (Transmit(queries=group) for group in share(records))
        for topic in topics:
            self._rest(topic)

    def next_timeout(self) -> int | None:
        """When `handle_timeout` is due, in nanoseconds."""
        return self.rounds.next()

    def take_effects(self) -> list[QuerierEffect]:
        """What to do, in order."""
        effects, self.outbox = self.outbox, []
        return effects

    def _add(self, topic: str, now: int) -> None:
        check_topic(topic)
        if topic not in self.interests and len(self.interests) == MAX_TOPICS:
            raise MisuseError(f"a context receives at most {MAX_TOPICS} topics: remove one or use another context")
        self.interests[topic] = Interest()
        self.rounds.begin(topic, now)

    def _on_resolved(self, topic: str) -> None:
        interest = self.interests.get(topic)
        if interest is not None:
            interest.resolved = True
            self._rest(topic)

    def _on_unresolved(self, topic: str, now: int) -> None:
        interest = self.interests.get(topic)
        if interest is not None:
            interest.resolved = False
            interest.reported.clear()
            if topic not in self.rounds.turns:
                self.rounds.sustain(topic, now)

    def _rest(self, topic: str) -> None:
        """A resolved topic past its initial phase is not asked for."""
        if self.interests[topic].resolved and self.rounds.sustaining(topic):
            self.rounds.stop(topic)

    def _on_advertisement(self, tir: lbmr.Advertisement, packet: lbmr.Packet) -> None:
        interest = self.interests.get(tir.name)
        if interest is None:
            return
        record = source_record(tir, packet.options)
        if record is None:
            self.unusable += 1
            return
        transport = (record.address, record.session_id, record.index)
        if transport in interest.reported:
            return
        if len(interest.reported) == MAX_REPORTED:
            del interest.reported[next(iter(interest.reported))]
        interest.reported[transport] = None
        self.outbox.append(Discovered(tir.name, record))
