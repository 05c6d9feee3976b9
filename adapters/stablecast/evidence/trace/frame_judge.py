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
from stablecast.evidence.trace.errors import SchemaError
from stablecast.evidence.trace.facts import Book, Gatherer, Take, gatherer, identity
from stablecast.evidence.trace.frame_replay import Step, replayed
from stablecast.evidence.trace.frames import LIMIT, Head, TraceFrame, digest
from stablecast.evidence.trace.reports import TraceViolation
from stablecast.evidence.trace.rule_protocol import Ask, EndpointRule, at_of
from stablecast.runtime import garbage_collection

DAMAGE: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of a snapshot that fits the schema and makes no sense."""

SHOWN: Final = 300
"""Characters of a value in a sentence; `expected` and `found` of a violation hold all of it."""


class Violate(Protocol):
    """Callback that takes a violation."""

    def __call__(self, record: int, rule: str, text: str, expected: Any = None, found: Any = None) -> None:
        """Take record, rule, sentence, expected and found value."""


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
        """Judge the next records and gather their facts."""
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
    """Return the rules, by name, and the collector that handle each class."""
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


@attrs.define
class FrameJudge:
    """The judge of one frame; `found` keeps the first violation of each rule, `book` the facts.

    `fresh`: no earlier frame of its trace stated the beginning of this one. `address`, `life` and `patience` are those
    of a witness (`cross_rules`), once the frame has been judged. `known` is the state after the frame before.
    """

    path: Path
    frame: TraceFrame
    fresh: bool = False
    found: dict[str, TraceViolation] = attrs.field(factory=dict)
    book: Book = attrs.field(factory=Book)
    address: str = ""
    life: int = 0
    patience: int = 0
    known: KnownState = attrs.field(factory=KnownState)

    def run(self, standing: list[EndpointRule] | None) -> list[EndpointRule] | None:
        """Judge the frame; return the rules with their state at its end.

        Args:
            standing: The rules as the frame before left them, None to begin with this frame's snapshot.
        """
        with garbage_collection.paused():
            return self._run(standing)

    def _run(self, standing: list[EndpointRule] | None) -> list[EndpointRule] | None:
        head = self.frame.head
        try:
            machine = self.known.machine_for(head)
        except SchemaError as error:
            self.violate(head.first, "schema", f"the snapshot before record {head.first} is {error}")
            return None
        try:
            standing = endpoint_rules.begin(machine) if standing is None else standing
            gatherer = self._open_book(machine)
        except DAMAGE as error:
            self.violate(head.first, "schema", f"the snapshot before record {head.first} makes no sense: {error!r}")
            return None
        if self._follow(machine, watch := RecordWatch(standing, gatherer, self.book, self.violate)):
            self.known.learn(machine, self.frame.foot.digest)
            return standing
        # The rules have not seen the unreadable records, so they begin again with the next snapshot.
        return standing if self.doubt(watch) else None

    def doubt(self, watch: RecordWatch) -> bool:
        """Judge a frame that is in doubt, from the records on that `watch` has not seen, and replay it by schema.

        Return whether all of its records can be decoded. Raise SchemaError for a bad snapshot.
        """
        head = self.frame.head
        steps = self._decoded()
        watch.judge(steps[watch.judged :])
        self._replay(restore(head.role, head.snapshot), steps)
        return len(steps) == self.frame.count

    def _follow(self, machine: Endpoint, watch: RecordWatch) -> bool:
        """Replay the frame and judge its records while they are beyond doubt; return whether all of them are."""
        for steps in replayed(self.frame, machine):
            if steps is None:
                return False
            watch.judge(steps)
        return True

    def _decoded(self) -> list[Step]:
        """Return the records that can be decoded."""
        self._check_count()
        steps = self._decode()
        self._check_times(steps)
        return steps

    def _open_book(self, machine: Endpoint) -> Gatherer:
        self.address, self.life, self.patience = identity(machine)
        self.book.record, self.book.time = self.frame.head.first, self.frame.head.time
        return gatherer(machine, self.book, fresh=self.fresh)

    def violate(self, record: int, rule: str, text: str, expected: Any = None, found: Any = None) -> None:
        """Note a broken rule, unless an earlier record of the frame broke it."""
        if rule not in self.found:
            self.found[rule] = TraceViolation(self.path, record, rule, text, expected, found, self._time_of(record))

    def _time_of(self, record: int) -> int:
        head, lines = self.frame.head, self.frame.records
        at = record - head.first
        time = lines[at].get("t") if 0 <= at < len(lines) else None
        return time if isinstance(time, int) and -LIMIT < time < LIMIT else head.time

    def note(self, broken: Iterable[tuple[int, str, str, Any, Any]]) -> None:
        """Note broken rules: record, rule, sentence, expected and found value."""
        for record, rule, text, expected, found in broken:
            self.violate(record, rule, text, expected, found)

    def _check_count(self) -> None:
        promised, first = self.frame.foot.records, self.frame.head.first
        numbers = [line.get("n") for line in self.frame.records]
        for expected, found in enumerate(numbers, first):
            if found != expected:
                text = f"record {expected} is missing, record {found} stands in its place"
                self.violate(expected, "numbering", text, expected, found)
                return
        if len(numbers) != promised:
            text = f"the frame ends after {len(numbers)} records and claims {promised}"
            self.violate(first + min(len(numbers), promised), "numbering", text, promised, len(numbers))

    def _decode(self) -> list[Step]:
        """Return the records before the first one that cannot be decoded."""
        role, steps = self.frame.head.role, []
        for at, line in enumerate(self.frame.records, self.frame.head.first):
            try:
                steps.append(step_of(role, line))
            except SchemaError as error:
                self.violate(at, "schema", f"record {at} is {error}", None, line)
                break
        return steps

    def _check_times(self, steps: list[Step]) -> None:
        before = self.frame.head.time
        for number, now, _, _ in steps:
            if now < before:
                self.violate(number, "time", f"record {number} is earlier than what precedes it", before, now)
                return
            before = now

    def _replay(self, machine: Endpoint, steps: list[Step]) -> None:
        for number, now, event, recorded in steps:
            try:
                machine.receive(event, now)  # type: ignore[arg-type] # decoded for this very role
                effects: Sequence[Effect] = machine.take_effects()
            except Exception as error:  # noqa: BLE001 - a machine restored from a forged trace may fail in any way
                text = f"record {number}: the machine cannot take it: {type(error).__name__}: {error}"
                self.violate(number, "replay", text, None, encode_input(event))
                return
            if effects != recorded:
                self._differ(number, recorded, effects)
                return
        foot = self.frame.foot
        if foot.ends_known and len(steps) == len(self.frame.records) and digest(snapshot(machine)) != foot.digest:
            last = steps[-1][0] if steps else self.frame.head.first
            text = f"the state after record {last} is not the one that was recorded"
            self.violate(last, "replay", text, digest(snapshot(machine)), foot.digest)

    def _differ(self, number: int, recorded: Sequence[Effect], effects: Sequence[Effect]) -> None:
        pairs = zip(effects, recorded, strict=False)
        at = next((at for at, (mine, theirs) in enumerate(pairs) if mine != theirs), min(len(effects), len(recorded)))
        expected = encode_effect(effects[at]) if at < len(effects) else None
        found = encode_effect(recorded[at]) if at < len(recorded) else None
        text = f"record {number}, effect {at}: expected {_show(expected)}, found {_show(found)}"
        self.violate(number, "replay", text, expected, found)


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
