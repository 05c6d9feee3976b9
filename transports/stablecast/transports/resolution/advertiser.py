"""The source side: tells the domain of the context's sources, and answers who asks for them.

* A source is advertised at creation, then through the initial and the sustaining phase for as long as it lives.
* A query for its topic is answered at once, in a datagram of its own, and does not shift the phases (6.14 as observed).
* A source leaves without a word: receivers learn it from the transport.
"""

from typing import assert_never

import attrs

from stablecast.core.errors import MisuseError
from stablecast.transports.resolution.effects import Transmit
from stablecast.transports.resolution.inputs import AddSource, AdvertiserInput, Heard, RemoveSource
from stablecast.transports.resolution.packing import share, size
from stablecast.transports.resolution.records import SourceRecord, advertisement, check_topic
from stablecast.transports.resolution.schedule import ADVERTISING, Pace, Rounds
from stablecast.transports.wire import lbmr

MAX_SOURCES = 65_536
"""Sources of one context."""

U32 = 1 << 32

FIRST_TTL = 16
LATER_TTL = 60
"""The product's time-to-live fields: 16 in the very first TIR of a source, 60 in all others; receivers ignore them."""


@attrs.define
class Advertiser:
    """Advertises the sources of one context.

    Attributes:
        instance: The 8 bytes that name the context.
    """

    instance: bytes
    pace: Pace = ADVERTISING
    sources: dict[int, tuple[lbmr.Advertisement, int]] = attrs.field(factory=dict, init=False)
    topics: dict[str, list[int]] = attrs.field(factory=dict, init=False)
    rounds: Rounds[int] = attrs.field(init=False)
    outbox: list[Transmit] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self.rounds = Rounds(self.pace)

    def __bool__(self) -> bool:
        return bool(self.sources)

    def receive(self, event: AdvertiserInput, now: int) -> None:
        """Feeds one input.

        Raises:
            MisuseError: If a source cannot be written on the wire, is there already, or is one too many.
        """
        match event:
            case AddSource():
                self._add(event, now)
            case RemoveSource():
                self._remove(_key(event.session_id, event.index))
            case Heard(packet):
                for topic in dict.fromkeys(q.name for q in packet.queries if isinstance(q, lbmr.TopicQuery)):
                    self._transmit(self.topics.get(topic, []))
            case _:
                assert_never(event)

    def handle_timeout(self, now: int) -> None:
        """Advertises whose turn it is."""
        self._transmit(self.rounds.take(now))

    def next_timeout(self) -> int | None:
        """When `handle_timeout` is due, in nanoseconds."""
        return self.rounds.next()

    def take_effects(self) -> list[Transmit]:
        """What to do, in order."""
        effects, self.outbox = self.outbox, []
        return effects

    def advertised(self, topic: str) -> tuple[lbmr.Advertisement, ...]:
        """The advertisements of the topic's sources."""
        return tuple(self.sources[key][0] for key in self.topics.get(topic, []))

    def _add(self, event: AddSource, now: int) -> None:
        check_topic(event.topic)
        if not (0 <= event.session_id < U32 and 0 <= event.index < U32):
            raise MisuseError(f"session ID {event.session_id} and index {event.index} must be 32-bit numbers")
        key = _key(event.session_id, event.index)
        if key in self.sources:
            raise MisuseError(f"session {event.session_id:#x} has a source with index {event.index} already")
        if len(self.sources) == MAX_SOURCES:
            raise MisuseError(f"a context has at most {MAX_SOURCES} sources: remove one or use another context")
        record = SourceRecord(
            event.address, event.session_id, event.index, event.request_address, event.persistent, self.instance
        )
        tir = advertisement(event.topic, record, LATER_TTL)
        self.sources[key] = (tir, size(tir))
        self.topics.setdefault(event.topic, []).append(key)
        self.outbox.append(Transmit(advertisements=(attrs.evolve(tir, ttl=FIRST_TTL),)))
        self.rounds.begin(key, now)

    def _remove(self, key: int) -> None:
        source = self.sources.pop(key, None)
        if source is None:
            return
        self.rounds.stop(key)
        topic = source[0].name
        self.topics[topic].remove(key)
        if not self.topics[topic]:
            del self.topics[topic]

    def _transmit(self, keys: list[int]) -> None:
        self.outbox += (Transmit(advertisements=group) for group in share(self.sources[key] for key in keys))


def _key(session_id: int, index: int) -> int:
    return session_id << 32 | index
