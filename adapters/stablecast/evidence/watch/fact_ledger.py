"""The facts of all followed traces, and the rules between traces, judged as the facts come.

The rules are those of `cross_rules`. Facts are *questions*, which a rule judges, or *ground*, on which it does so;
some are both. New facts wait in a *round*. A round is judged when every trace that may confirm it has been read up to
a later time than the round: the recorders write in order, so what was recorded before is known then. After that its
questions are forgotten, and its ground is joined to ranges, so that the ledger does not grow with the records.

A trace that was silent does not confirm anything, as with an endpoint that was killed. What cannot be decided for that
reason is reported once.
"""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator
from typing import Final

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.messages import Incarnation
from stablecast.evidence.trace.cross_ground import Told, Witness
from stablecast.evidence.trace.cross_rules import Across, Suspect, by_kind
from stablecast.evidence.trace.facts import UNCOUNTED, Fact

MARGIN_NS: Final = 1_500 * MILLISECOND
"""A trace confirms a round if records of it were read this much later, ns: the time between two readings, and a second
for which pieces of traces wait for a disk or for a copy from another host."""

EARLY_NS: Final = 2 * SECOND
"""Age from which a round is judged although some traces do not confirm it yet."""

PROMPT_NS: Final = 6 * SECOND
"""Age of a round up to which it is judged again whenever one more trace confirms it."""

SILENCE_NS: Final = 10 * SECOND
"""A trace without new records for this time is not waited for."""

SUSPENSE_NS: Final = 30 * SECOND
"""Age at which a round is judged for the last time, whatever traces confirm it."""

MAX_ROUNDS: Final = 128
"""Rounds that wait; the oldest is judged for the last time when another one comes."""

MAX_LIVES: Final = 4096
"""Lives of sources that are remembered; the one that was not mentioned for longest is forgotten."""

MAX_FORGOTTEN: Final = 1 << 16
"""Forgotten lives that are remembered as such, so that nothing is claimed about them."""

MAX_TRACES: Final = 4096
"""Ended traces that are remembered as evidence; the one that ended first is forgotten."""

MAX_SAME: Final = 16
"""Facts of one kind, trace, life and peer about connections that are remembered."""

MAX_FEW: Final = 1 << 14
"""Facts of one trace and of one kind without ranges that are remembered."""

MAX_ACCUSED: Final = 1 << 10
"""Stable numbers that broke a rule and are remembered with their records."""

MAX_REPORTED: Final = 1 << 14
"""Suspects and undecidable questions that are remembered, so that each is reported once."""

QUESTIONS: Final = frozenset(("stable", "turned", "acked", "delivered", "wrote", "heard", "listened", "announced"))
"""Kinds of facts that a rule judges; facts of other kinds are only its ground."""

JOINED: Final = frozenset(("sent", "said", "held"))
"""Kinds of ground that are joined to ranges."""

GROWING: Final = frozenset(("confirmed", "reach"))
"""Kinds of ground of which the last number counts."""

CONNECTIONS: Final = frozenset(("parted", "context"))
"""Kinds of ground of which the records count, too."""

Key = tuple[str, str, Incarnation, str]
"""Kind, trace, life and peer of facts."""


@attrs.define
class _Range:
    """Joined facts: the first one, and all their numbers."""

    told: Told
    numbers: RangeSet = attrs.field(factory=RangeSet)


@attrs.define
class _Round:
    """Facts that were read at one time, and the traces that did not confirm them when they were judged last."""

    read_ns: int
    told: list[Told]
    missing: int | None = None


@attrs.frozen
class Standing:
    """A trace as the ledger needs it: the evidence, whether it is whole and ended, and its last reading."""

    witness: Witness
    whole: bool
    ended: bool
    read_ns: int


@attrs.define
class LedgerFinding:
    """New suspects, and new sentences about what cannot be decided."""

    suspects: list[Suspect] = attrs.field(factory=list)
    notes: list[str] = attrs.field(factory=list)


@attrs.define
class FactLedger:
    """The ground and the waiting rounds of all traces."""

    joined: dict[Key, _Range] = attrs.field(factory=dict)
    growing: dict[Key, Told] = attrs.field(factory=dict)
    small: dict[tuple[str, str], "OrderedDict[tuple[object, ...], Told]"] = attrs.field(
        factory=lambda: defaultdict(OrderedDict)
    )
    connections: dict[Key, "deque[Told]"] = attrs.field(factory=lambda: defaultdict(lambda: deque(maxlen=MAX_SAME)))
    accused: "deque[Told]" = attrs.field(factory=lambda: deque(maxlen=MAX_ACCUSED))
    rounds: "deque[_Round]" = attrs.field(factory=deque)
    lives: "OrderedDict[Incarnation, None]" = attrs.field(factory=OrderedDict)
    forgotten: "OrderedDict[Incarnation, None]" = attrs.field(factory=OrderedDict)
    past: "OrderedDict[str, Standing]" = attrs.field(factory=OrderedDict)
    reported: "OrderedDict[object, None]" = attrs.field(factory=OrderedDict)

    def add(self, told: Iterable[Told], now_ns: int) -> None:
        fresh = list(told)
        if fresh:
            for one in fresh:
                self._mention(one.fact.life)
                self.learn(one)
            if waiting := [one for one in fresh if one.fact.kind in QUESTIONS]:
                self.rounds.append(_Round(now_ns, waiting))

    def judge(self, traces: Collection[Standing], now_ns: int) -> LedgerFinding:
        """Judge the rounds that traces confirm by now; forget those that need no more traces."""
        found = LedgerFinding()
        everyone = [*self.past.values(), *traces]
        while self.rounds:
            oldest = self.rounds[0]
            missing = self._missing(oldest, traces, now_ns)
            last = not missing or now_ns - oldest.read_ns >= SUSPENSE_NS or len(self.rounds) > MAX_ROUNDS
            if not last:
                break
            self._decide(oldest, everyone, found, last=True)
            self.rounds.popleft()
            self._settle(oldest)
        for waiting in self.rounds:
            missing = self._missing(waiting, traces, now_ns)
            fewer = waiting.missing is None or missing < waiting.missing
            if fewer and EARLY_NS <= now_ns - waiting.read_ns <= PROMPT_NS:
                waiting.missing = missing
                self._decide(waiting, everyone, found, last=False)
        self._bound(found)
        return found

    def _missing(self, waiting: _Round, traces: Iterable[Standing], now_ns: int) -> int:
        """Return the number of traces that may still confirm a round."""
        return sum(not _confirms(one, waiting) and now_ns - one.read_ns < SILENCE_NS for one in traces)

    def _decide(self, waiting: _Round, traces: Iterable[Standing], found: LedgerFinding, *, last: bool) -> None:
        witnesses = [attrs.evolve(one.witness, complete=one.whole and _confirms(one, waiting)) for one in traces]
        # Traces that confirm a round confirm the earlier ones, whose stable numbers are ground of S2 and S3.
        earlier = (one for before in self.rounds if before.read_ns < waiting.read_ns for one in before.told)
        asked = [*waiting.told, *(one for one in earlier if one.fact.kind == "stable")]
        known = [one for one in asked if one.fact.life not in self.forgotten]
        facts = by_kind([*self._ground(any(one.fact.kind == "listened" for one in known)), *known])
        finding = Across(witnesses, facts).judge()
        for suspect in finding.suspects:
            if self._first_time((suspect.path, suspect.record, suspect.rule, suspect.kind, suspect.number)):
                found.suspects.append(suspect)
        if last:
            found.notes += [text for text in finding.untold if self._first_time(text)]

    def _first_time(self, key: object) -> bool:
        if key in self.reported:
            self.reported.move_to_end(key)
            return False
        self.reported[key] = None
        if len(self.reported) > MAX_REPORTED:
            self.reported.popitem(last=False)
        return True

    def learnt(self) -> Iterator[Told]:
        """Yield the ground that is not joined to ranges."""
        yield from self.growing.values()
        for facts in self.small.values():
            yield from facts.values()
        for some in self.connections.values():
            yield from some

    def _ground(self, with_control: bool) -> Iterator[Told]:
        """Yield all ground; control messages are many, and few rounds ask for them."""
        for one in self.joined.values():
            for first, stop in one.numbers:
                yield attrs.evolve(one.told, fact=attrs.evolve(one.told.fact, first=first, last=stop - 1))
        yield from self.accused
        yield from self.growing.values()
        for (_, kind), facts in self.small.items():
            if with_control or kind != "spoke":
                yield from facts.values()
        for some in self.connections.values():
            yield from some

    def learn(self, told: Told) -> None:
        """Join ground at once: what confirms a fact may be read after it."""
        fact = told.fact
        key = fact.kind, told.trace, fact.life, fact.peer
        if fact.kind in JOINED:
            self.join(told, [(fact.first, fact.last + 1)])
        elif fact.kind in GROWING:
            before = self.growing.get(key)
            if before is None or before.fact.last < fact.last:
                self.growing[key] = told
        elif fact.kind in CONNECTIONS:
            self.connections[key].append(told)
        elif fact.kind not in QUESTIONS:
            self._keep(told)

    def _settle(self, done: _Round) -> None:
        """Forget the questions of a judged round; stable numbers are ground for later lives."""
        suspects = {key[:4] for key in self.reported if isinstance(key, tuple)}
        for told in done.told:
            fact = told.fact
            if fact.kind == "stable" and _accused(told, suspects):
                self.accused.append(told)  # It keeps its record, because an earlier life may turn out to have it.
            elif fact.kind == "stable":
                self.join(told, [(fact.first, fact.last + 1)])

    def join(self, told: Told, ranges: Iterable[tuple[int, int]]) -> None:
        """Add ranges of numbers, each with its first number and the one after its last, to the ground of this fact."""
        key = told.fact.kind, told.trace, told.fact.life, told.fact.peer
        self.joined.setdefault(key, _Range(told)).numbers.update(ranges)

    def _keep(self, told: Told) -> None:
        """Keep a fact of which there are few: of those that state the same the first one, of proxies the newest."""
        fact = told.fact
        facts = self.small[told.trace, fact.kind]
        key = () if fact.kind == "began" else (fact.life, fact.peer, fact.first, fact.last)
        if fact.kind in ("retired", "proxy"):
            facts[key] = told
        else:
            facts.setdefault(key, told)
        while len(facts) > MAX_FEW:
            _, gone = facts.popitem(last=False)
            if fact.kind == "spoke":  # From now on this endpoint may have sent any message.
                any_message = attrs.evolve(gone.fact, life=0, first=UNCOUNTED, last=UNCOUNTED)
                facts[0, fact.peer, UNCOUNTED, UNCOUNTED] = attrs.evolve(gone, fact=any_message)

    def _mention(self, life: Incarnation) -> None:
        if life:
            self.lives[life] = None
            self.lives.move_to_end(life)

    def end(self, standing: Standing) -> None:
        """Remember a trace that is no longer followed as evidence."""
        self.past[standing.witness.trace] = standing

    def _bound(self, found: LedgerFinding) -> None:
        """Forget lives and traces beyond the bounds, and report it."""
        while len(self.lives) > MAX_LIVES:
            self._forget_life(self.lives.popitem(last=False)[0])
            if self._first_time("lives"):
                found.notes.append(f"more than {MAX_LIVES:,} lives of sources: nothing is decided about forgotten ones")
        while len(self.past) > MAX_TRACES:
            trace, _ = self.past.popitem(last=False)
            self._forget_trace(trace)
            if self._first_time("traces"):
                found.notes.append(f"more than {MAX_TRACES:,} ended traces: the oldest confirm nothing any more")

    def _forget_life(self, life: Incarnation) -> None:
        self.forgotten[life] = None
        if len(self.forgotten) > MAX_FORGOTTEN:
            self.forgotten.popitem(last=False)
        for table in (self.joined, self.growing, self.connections):
            for key in [key for key in table if key[2] == life]:
                del table[key]
        for facts in self.small.values():
            for one in [one for one, told in facts.items() if told.fact.life == life]:
                del facts[one]

    def _forget_trace(self, trace: str) -> None:
        """Forget a trace. Lives whose numbers a store had by it count as lost from now on, as S2 and S3 have it."""
        lives = {key[2] for key in self.joined if key[:2] == ("held", trace)}
        for table in (self.joined, self.growing, self.connections):
            for key in [key for key in table if key[1] == trace]:
                del table[key]
        for few in [few for few in self.small if few[0] == trace]:
            del self.small[few]
        for life in lives:
            self._keep(Told("", "", 0, Fact("withdrew", 0, 0, life, "", 0, 0)))


def _confirms(one: Standing, waiting: _Round) -> bool:
    """Return whether a trace has all that its endpoint recorded before this round."""
    return one.ended or one.read_ns >= waiting.read_ns + MARGIN_NS


def _accused(told: Told, suspects: Collection[tuple[object, ...]]) -> bool:
    return any((told.path, told.fact.record, rule, told.fact.kind) in suspects for rule in ("S1", "S2"))
