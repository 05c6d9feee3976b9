"""Queries of contexts in topic resolution, and the advertisements that answer them.

A context is known by the number in its datagrams, else by their address. Its queries name the topics that it wants. A
session carries every topic of its source, so a receiver of one topic gets the others, too.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from stablecast.evidence.capture.decoder import CapturePacket
from stablecast.evidence.capture.ip import Endpoint, endpoint_text
from stablecast.evidence.capture.ports import TransportKey
from stablecast.evidence.capture.statements import At
from stablecast.transports.wire import lbmr

MAX_CONTEXTS: Final = 1 << 12
"""Contexts that are followed, at most."""

MAX_TOPICS: Final = 1 << 14
"""Topics of one context and topics of the capture that are followed, at most."""

_REPEATED_GROUP: Final = re.compile(r"[)\]][*+?{]|\\\d")
"""A pattern with a repeated group may take for ever, so it counts as one that wants every topic."""


@attrs.define
class TopicQueries:
    """Queries of a context for a topic since its last advertisement: first packet and time, last time, number."""

    frame: int
    first_ns: int
    last_ns: int
    count: int = 0


@attrs.define
class ContextHistory:
    """The queries of one context.

    Attributes:
        whose: Address and port of its datagrams.
        queries: By topic.
        most: The longest row of queries without an advertisement, by topic.
        patterns: Wanted patterns; None stands for one that is not evaluated.
        frame: The first packet with a query.
        before: Messages of each session by topic index, at that packet.
    """

    whose: Endpoint
    queries: dict[str, TopicQueries] = attrs.field(factory=dict)
    most: dict[str, TopicQueries] = attrs.field(factory=dict)
    patterns: set["re.Pattern[str] | None"] = attrs.field(factory=set)
    frame: int = 0
    before: dict[TransportKey, Counter[int]] = attrs.field(factory=dict)

    @property
    def name(self) -> str:
        return f"the context at {endpoint_text(self.whose)}"

    def wants(self, topic: str | None) -> bool:
        """Return whether the context asks for a topic; for an unknown one it may."""
        if topic is None or topic in self.queries:
            return True
        return any(pattern is None or pattern.search(topic) for pattern in self.patterns)


@attrs.define
class ResolutionHistory:
    """All contexts of a capture, the names of topics, and the time of each session's last advertisement."""

    contexts: dict[bytes | Endpoint, ContextHistory] = attrs.field(factory=dict)
    names: dict[tuple[TransportKey, int], str] = attrs.field(factory=dict)
    advertised_ns: dict[TransportKey, int] = attrs.field(factory=dict)
    _advertised: dict[str, int] = attrs.field(factory=dict)

    def add(self, at: At, packet: lbmr.Packet, sessions: Mapping[TransportKey, Counter[int]]) -> None:
        """Follow the next datagram of topic resolution; `sessions` has the messages so far by topic index."""
        for tir in packet.advertisements:
            self._advertise(at, tir)
        if not packet.queries:
            return
        context = self._context(at, packet)
        if context is None:
            return
        if not context.frame:
            context.frame = at.frame
            context.before = {session: Counter(topics) for session, topics in sessions.items()}
        for query in packet.queries:
            if isinstance(query, lbmr.WildcardQuery):
                context.patterns.add(_compiled(query.pattern))
            else:
                self._query(at, context, query.name)

    def rows(self) -> Iterator[tuple[ContextHistory, str, TopicQueries]]:
        """Yield the longest row of queries without an advertisement, of each context and topic."""
        for context in self.contexts.values():
            for topic, now in context.queries.items():
                before = context.most.get(topic)
                yield context, topic, before if before is not None and before.count > now.count else now

    def _context(self, at: At, packet: lbmr.Packet) -> ContextHistory | None:
        ids = [option.source_id for option in packet.options if isinstance(option, lbmr.SourceId)]
        key = ids[0] if ids else at.ends[0]
        if key not in self.contexts and len(self.contexts) < MAX_CONTEXTS:
            self.contexts[key] = ContextHistory(at.ends[0])
        return self.contexts.get(key)

    def _query(self, at: At, context: ContextHistory, topic: str) -> None:
        row = context.queries.get(topic)
        if row is None:
            if len(context.queries) >= MAX_TOPICS:
                return
            row = context.queries[topic] = TopicQueries(at.frame, at.time_ns, at.time_ns)
        if row.first_ns <= self._advertised.get(topic, -1):
            if row.count > context.most.get(topic, row).count or topic not in context.most:
                context.most[topic] = attrs.evolve(row)
            row.frame, row.first_ns, row.count = at.frame, at.time_ns, 0
        row.last_ns, row.count = at.time_ns, row.count + 1

    def _advertise(self, at: At, tir: lbmr.Advertisement) -> None:
        if len(self._advertised) < MAX_TOPICS or tir.name in self._advertised:
            self._advertised[tir.name] = at.time_ns
        session = transport_of(tir.transport)
        if session is None:
            return
        if len(self.names) < MAX_TOPICS:
            self.names[session, tir.index] = tir.name
        if len(self.advertised_ns) < MAX_TOPICS or session in self.advertised_ns:
            self.advertised_ns[session] = at.time_ns


def transport_of(transport: object) -> TransportKey | None:
    """Return the session that an advertisement names; None for transports without one."""
    match transport:
        case lbmr.LbtrmTransport():
            return transport.source_address, transport.nak_port, transport.session_id
        case lbmr.LbtruTransport():
            return transport.address, transport.port, transport.session_id
        case _:
            return None


def advertised(packet: CapturePacket) -> Iterator[TransportKey]:
    """Yield the sessions that a packet of topic resolution advertises."""
    first = packet.layers[0].record if packet.layers else None
    if isinstance(first, lbmr.Packet):
        for tir in first.advertisements:
            session = transport_of(tir.transport)
            if session is not None:
                yield session


def _compiled(pattern: str) -> "re.Pattern[str] | None":
    if _REPEATED_GROUP.search(pattern):
        return None
    try:
        return re.compile(pattern)
    except re.error:
        return None
