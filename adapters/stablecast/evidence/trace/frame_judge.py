"""The verdict on one frame by itself, as a worker gives it that has no other frame.

A frame starts with a snapshot, so any frame can be replayed alone; `trace_judge` compares neighbours.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import attrs

from stablecast.core.protocol.effects import Broadcast, Effect, Notify, Send
from stablecast.core.protocol.inputs import Arrived
from stablecast.core.protocol.messages import Role
from stablecast.evidence.trace import endpoint_rules
from stablecast.evidence.trace.converter import (
    MACHINES,
    Endpoint,
    Json,
    decode_effects,
    decode_input,
    encode_effect,
    encode_input,
    restore,
    snapshot,
)
from stablecast.evidence.trace.cross_ground import Witness
from stablecast.evidence.trace.errors import SchemaError
from stablecast.evidence.trace.facts import Book, Gatherer, Take, gatherer, identity
from stablecast.evidence.trace.frame_link import FrameLink
from stablecast.evidence.trace.frame_replay import BATCH, Answering, Step
from stablecast.evidence.trace.frames import LIMIT, Foot, FramePortion, FrameReader, Head, digest
from stablecast.evidence.trace.reports import FrameVerdict, TraceViolation
from stablecast.evidence.trace.rule_protocol import Ask, EndpointRule, at_of
from stablecast.runtime import garbage_collection

DAMAGE: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of a snapshot that fits the schema and makes no sense."""

SHOWN: Final = 300
"""Characters of a value in a sentence; `expected` and `found` of a violation hold all of it."""


class Violate(Protocol):
    def __call__(self, record: int, rule: str, text: str, expected: Any = None, found: Any = None) -> None: ...


def unjudged(*_: object, **__: object) -> None:
    """Ignore violations where no rule is asked."""


class RecordWatch:
    """A pass over the records of a frame; `judged` counts the records so far.

    Most rules judge a few classes of records only, so each has handlers by class. The subject of a record is the
    message that arrives or is sent, the event that the application gets, and else the record itself.
    """

    def __init__(self, standing: Sequence[EndpointRule], gatherer: Gatherer, book: Book, violate: Violate) -> None:
        """Watch for these rules and this collector of facts; report violations to `violate`."""
        self._book = book
        self._violate = violate
        rules, facts = [(rule.name, rule.handlers()) for rule in standing], gatherer.handlers()
        self._inputs = _by_class([(name, handlers[0]) for name, handlers in rules], facts[0])
        self._effects = _by_class([(name, handlers[1]) for name, handlers in rules], facts[1])
        self._timed = [(rule.name, at) for rule in standing if (at := at_of(rule)) is not None]
        self.judged = 0

    def judge(self, steps: Sequence[Step]) -> None:
        on_input, on_effect, book = self._inputs.get, self._effects.get, self._book
        number: int
        event: Any
        effect: Any
        for number, now, event, effects in steps:
            book.record, book.time = number, now
            for name, at in self._timed:
                if (text := at(number, now)) is not None:
                    self._violate(number, name, f"record {number}: {text}")
            came = event.message if event.__class__ is Arrived else event
            if (asked := on_input(came.__class__)) is not None:
                rules, take = asked
                for name, ask in rules:
                    if (text := ask(came)) is not None:
                        self._violate(number, name, f"record {number}: {text}", None, encode_input(event))
                if take is not None:
                    take(came, event, book)
            for effect in effects:
                kind = effect.__class__
                went = effect.event if kind is Notify else effect.message if kind in _MESSAGES else effect
                if (asked := on_effect(went.__class__)) is not None:
                    rules, take = asked
                    for name, ask in rules:
                        if (text := ask(went)) is not None:
                            self._violate(number, name, f"record {number}: {text}", None, encode_effect(effect))
                    if take is not None:
                        take(went, effect, book)
        self.judged += len(steps)


def _by_class(
    rules: Iterable[tuple[str, Mapping[type, Ask]]], takes: Mapping[type, Take]
) -> dict[type, tuple[list[tuple[str, Ask]], Take | None]]:
    asks: dict[type, list[tuple[str, Ask]]] = {}
    for name, by_class in rules:
        for kind, ask in by_class.items():
            asks.setdefault(kind, []).append((name, ask))
    return {kind: (asks.get(kind, []), takes.get(kind)) for kind in {*asks, *takes}}


@attrs.define
class KnownState:
    """A machine in the state of the digest, so that the next frame need not restore it."""

    digest: str = ""
    machine: Endpoint | None = None

    def machine_for(self, head: Head) -> Endpoint:
        """Return the machine as a frame begins; the caller may change it. Raise SchemaError for a bad snapshot."""
        machine, self.machine = self.machine, None
        if isinstance(machine, MACHINES[head.role]) and head.digest == self.digest:
            return machine
        return restore(head.role, head.snapshot)

    def learn(self, machine: Endpoint, digest: str) -> None:
        """Keep the machine as a frame ends."""
        self.machine, self.digest = machine, digest


def judged_alone(path: Path, portion: FramePortion, known: KnownState) -> FrameVerdict:
    """Return the verdict on a whole frame, as a worker gives it that has no other frame. Raise TraceError."""
    judge = FrameJudge.of(path, portion, known)
    judge.begin()
    judge.judge(portion)
    return judge.verdict(portion)


@attrs.define
class FrameJudge:
    """The judge of one frame, whose records come in portions.

    Records are replayed fast while they are beyond doubt. From the first doubt on they are judged by the schema, from
    the beginning of the frame.

    Attributes:
        path, head, offset: Its file, its first line, and where it begins.
        fresh: Whether no earlier frame of its trace stated the beginning of this one.
        known: The state after the frame before.
        book: The facts.
        found: The first violation of each rule.
        address, life, patience: Those of a witness (`cross_rules`).
        standing: The rules as far as the frame is judged; None if they must begin again with the next snapshot.
        count: Records so far.
        last_ns: The clock at the last record.
        machine: The machine, which replay changes.
    """

    path: Path
    head: Head
    offset: int
    fresh: bool
    known: KnownState
    book: Book
    found: dict[str, TraceViolation] = attrs.field(factory=dict)
    address: str = ""
    life: int = 0
    patience: int = 0
    standing: list[EndpointRule] | None = None
    count: int = 0
    last_ns: int = attrs.field(default=attrs.Factory(lambda self: self.head.time, takes_self=True))
    machine: Endpoint | None = None
    _watch: RecordWatch | None = None
    _answering: Answering | None = None
    _schema: "_BySchema | None" = None

    @classmethod
    def of(
        cls,
        path: Path,
        portion: FramePortion,
        known: KnownState | None = None,
        *,
        fresh: bool = False,
        book: Book | None = None,
    ) -> "FrameJudge":
        """Return the judge of the frame that this portion begins."""
        head, offset, book = portion.head, portion.offset, book or Book()
        book.record, book.time = head.first, portion.frame.start
        return cls(path, head, offset, fresh or offset == 0 or head.gap > 0, known or KnownState(), book)

    def begin(self, standing: list[EndpointRule] | None = None) -> None:
        """Restore the machine; `standing` has the rules as the frame before left them, None to begin them here."""
        with garbage_collection.paused():
            self._begin(standing)

    def _begin(self, standing: list[EndpointRule] | None) -> None:
        head, start = self.head, self.book.time
        try:
            self.machine = machine = self.known.machine_for(head)
            self.address, self.life, self.patience = identity(machine)
            standing = endpoint_rules.begin(machine) if standing is None else standing
            self.book.record, self.book.time = head.first, head.time
            facts = gatherer(machine, self.book, fresh=self.fresh)
        except SchemaError as error:
            self.violate(head.first, "schema", f"the snapshot before record {head.first} is {error}")
        except DAMAGE as error:
            self.book.time = start
            self.violate(head.first, "schema", f"the snapshot before record {head.first} makes no sense: {error!r}")
        else:
            self.standing = standing
            self._watch = RecordWatch(standing, facts, self.book, self.violate)
            self._answering = Answering(head, machine)

    def judge(self, portion: FramePortion) -> None:
        """Judge more records of the frame. Raise TraceError if they cannot be read."""
        with garbage_collection.paused():
            self._judge(portion)
        self.count += portion.frame.count
        self.last_ns = portion.frame.end if portion.body else self.last_ns

    def _judge(self, portion: FramePortion) -> None:
        foot, watch = portion.foot, self._watch
        if watch is None:
            return
        if self._schema is not None:
            self._schema.judge(portion.frame.records, foot)
        elif not self._replay(portion, watch):
            self._answering = None
            self._schema = _BySchema(self, watch, restore(self.head.role, self.head.snapshot))
            self._schema.judge(portion.frame.records if not self.count else self._again(portion), foot)
        elif foot is not None and self.machine is not None:
            self.known.learn(self.machine, foot.digest)
        if foot is not None and self._schema is not None and not self._schema.readable:
            # The rules have not seen the unreadable records.
            self.standing = None

    def _replay(self, portion: FramePortion, watch: RecordWatch) -> bool:
        """Replay a portion and judge its records while they are beyond doubt; return whether all of them are."""
        body, foot, answering, machine, at = portion.body, portion.foot, self._answering, self.machine, 0
        if answering is None or machine is None:
            return False
        if foot is not None and self.count + portion.frame.count != foot.records:
            return False
        while at < len(body):
            end = body.find(b"\n", at + BATCH) + 1 or len(body)
            try:
                steps = answering.to(body[at:end])
            except Exception:  # noqa: BLE001 - a forged record may make a machine fail in any way
                return False
            watch.judge(steps)
            at = end
        return foot is None or not foot.ends_known or digest(snapshot(machine)) == foot.digest

    def _again(self, portion: FramePortion) -> list[Json]:
        """Return all records up to this portion: the frame is read again, of a file that may be growing."""
        records, count = list[Json](), self.count + portion.frame.count
        for more in FrameReader.at(self.path, self.offset).read():
            if len(records) >= count:
                break
            records += more.frame.records
        return records[:count]

    def verdict(self, portion: FramePortion) -> FrameVerdict:
        """Return the verdict after this portion, and forget its facts."""
        head, foot, book = self.head, portion.foot, self.book
        witness = Witness("", head.role, self.address, self.life, False, self.last_ns, self.patience)
        behind = None if foot is None else FrameLink.behind(head, self.count, foot.digest, self.last_ns)
        found = list(self.found.values())
        facts, pauses = book.taken()
        return FrameVerdict(
            self.path,
            self.offset,
            portion.begins,
            FrameLink.before(head),
            behind,
            head.gap,
            foot is not None and foot.closed,
            portion.frame.count,
            portion.frame.start if portion.begins else head.time,
            witness,
            facts,
            found,
            pauses,
        )

    def violate(self, record: int, rule: str, text: str, expected: Any = None, found: Any = None) -> None:
        """Note a broken rule, unless an earlier record of the frame broke it."""
        if rule not in self.found:
            self.found[rule] = TraceViolation(self.path, record, rule, text, expected, found, self._time_of(record))

    def _time_of(self, record: int) -> int:
        times, at = ([] if self._schema is None else self._schema.times), record - self.head.first
        return times[at] if 0 <= at < len(times) else self.book.time if record == self.book.record else self.head.time


@attrs.define
class _BySchema:
    """The judge of the records of a frame in doubt: each is decoded by the schema, and its effects are compared.

    `readable`: all records so far could be decoded. `watch` may have seen some of them before the doubt.
    """

    frame: FrameJudge
    watch: RecordWatch
    machine: Endpoint
    readable: bool = True
    replaying: bool = True
    times: list[int] = attrs.field(factory=list)
    _last: int | None = None
    _before: int = attrs.field(default=attrs.Factory(lambda self: self.frame.head.time, takes_self=True))

    def judge(self, lines: list[Json], foot: Foot | None) -> None:
        """Judge the next records, and the end of the frame."""
        violate, head = self.frame.violate, self.frame.head
        for line in lines:
            expected, found, now = head.first + len(self.times), line.get("n"), line.get("t")
            self.times.append(now if isinstance(now, int) and -LIMIT < now < LIMIT else head.time)
            if found != expected:
                text = f"record {expected} is missing, record {found} stands in its place"
                violate(expected, "numbering", text, expected, found)
            if self.readable:
                self._judge(expected, line)
        if foot is not None:
            self._end(foot)

    def _judge(self, at: int, line: Json) -> None:
        violate = self.frame.violate
        try:
            step = step_of(self.frame.head.role, line)
        except SchemaError as error:
            violate(at, "schema", f"record {at} is {error}", None, line)
            self.readable = False
            return
        self._last, now = step[:2]
        if now < self._before:
            violate(self._last, "time", f"record {self._last} is earlier than what precedes it", self._before, now)
        self._before = now
        if len(self.times) > self.watch.judged:
            self.watch.judge([step])
        if self.replaying:
            self.replaying = self._replay(*step)

    def _replay(self, number: int, now: int, event: Any, recorded: Sequence[Effect]) -> bool:
        """Give a record to the machine; return whether it answers as it was recorded."""
        try:
            self.machine.receive(event, now)
            effects: Sequence[Effect] = self.machine.take_effects()
        except Exception as error:  # noqa: BLE001 - a machine restored from a forged trace may fail in any way
            text = f"record {number}: the machine cannot take it: {type(error).__name__}: {error}"
            self.frame.violate(number, "replay", text, None, encode_input(event))
            return False
        if effects == recorded:
            return True
        pairs = zip(effects, recorded, strict=False)
        at = next((at for at, (mine, theirs) in enumerate(pairs) if mine != theirs), min(len(effects), len(recorded)))
        expected = encode_effect(effects[at]) if at < len(effects) else None
        found = encode_effect(recorded[at]) if at < len(recorded) else None
        text = f"record {number}, effect {at}: expected {_show(expected)}, found {_show(found)}"
        self.frame.violate(number, "replay", text, expected, found)
        return False

    def _end(self, foot: Foot) -> None:
        violate, first, count = self.frame.violate, self.frame.head.first, len(self.times)
        if count != foot.records:
            text = f"the frame ends after {count} records and claims {foot.records}"
            violate(first + min(count, foot.records), "numbering", text, foot.records, count)
        if foot.ends_known and self.readable and self.replaying and digest(snapshot(self.machine)) != foot.digest:
            last = first if self._last is None else self._last
            text = f"the state after record {last} is not the one that was recorded"
            violate(last, "replay", text, digest(snapshot(self.machine)), foot.digest)


def step_of(role: Role, line: Json) -> Step:
    """Return the record of a line. Raise SchemaError if it is none."""
    match line:
        case {"n": int(number), "t": int(now), "in": dict(event), "out": list(effects)} if len(line) == 4:
            if not (-LIMIT < number < LIMIT and -LIMIT < now < LIMIT):
                raise SchemaError("not a record: its number or time does not fit 64 bits")
            return (number, now, decode_input(role, event), decode_effects(role, effects))
        case _:
            raise SchemaError("not a record of n, t, in and out")


def _show(value: Json | None) -> str:
    if value is None:
        return "nothing"
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


_MESSAGES: Final = (Send, Broadcast)
