"""The questions of routers whether a topic or a pattern is used, and contexts that want it and do not answer.

A router forgets what nobody answers for, and its domain gets nothing of it until somebody asks for it again. A context
that asked before and asks again was there all the time, so it should have answered.
"""

from typing import Final

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.evidence.capture.statements import At
from stablecast.transports.wire import lbmr, lbmr_extended

TRIES: Final = 5
"""Questions without an answer after which a router forgets a topic."""

APART_NS: Final = SECOND
"""Time between two rounds of questions at least, ns: nearer ones are copies of one, as a relay makes them."""

MAX_SYMBOLS: Final = 1 << 10
"""Topics and patterns of one domain that are followed, at most."""

MAX_HOLDERS: Final = 64
"""Contexts that want one of them and are followed, at most."""


@attrs.define
class _Symbol:
    """Who wants a topic or pattern, and the questions since the last sign of it."""

    holders: set[bytes] = attrs.field(factory=set)
    rounds: int = 0
    asked_ns: int = 0
    frame: int = 0


@attrs.define
class UseQuestions:
    """The questions in one domain.

    Attributes:
        unanswered: By topic or pattern: the packets of the last question and of the query after it.
    """

    unanswered: dict[lbmr.Query, tuple[int, int]] = attrs.field(factory=dict)
    _symbols: dict[lbmr.Query, _Symbol] = attrs.field(factory=dict)

    def add(self, at: At, packet: lbmr.AnyPacket | lbmr_extended.Packet, instance: bytes, *, router: bool) -> None:
        if isinstance(packet, lbmr.Packet) and not router:
            for query in packet.queries:
                self._wanted(at, query, instance)
        elif isinstance(packet, lbmr_extended.Packet) and isinstance(packet.body, lbmr_extended.Management):
            for record in packet.body.records:
                if record.type == lbmr_extended.LEAVE:
                    self._symbols.get(record.query, _Symbol()).holders.discard(instance)
                elif record.type == lbmr_extended.USE and record.answers:
                    self._symbols.get(record.query, _Symbol()).rounds = 0
                elif record.type == lbmr_extended.USE and router:
                    self._asked(at, record.query)

    def _wanted(self, at: At, query: lbmr.Query, instance: bytes) -> None:
        known = self._symbols.get(query)
        if known is None:
            if len(self._symbols) >= MAX_SYMBOLS:
                return
            known = self._symbols[query] = _Symbol()
        if known.rounds >= TRIES and instance in known.holders:
            self.unanswered.setdefault(query, (known.frame, at.frame))
        known.rounds = 0
        if len(known.holders) < MAX_HOLDERS:
            known.holders.add(instance)

    def _asked(self, at: At, query: lbmr.Query) -> None:
        known = self._symbols.get(query)
        if known is not None and at.time_ns - known.asked_ns >= APART_NS:
            known.rounds, known.asked_ns, known.frame = known.rounds + 1, at.time_ns, at.frame
