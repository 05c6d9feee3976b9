"""Judging one frame by itself: what a worker that has just this frame can say.

A frame starts with a snapshot, so any frame can be replayed alone; how neighbours fit together is `verify`'s business.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.core.effects import Effect
from stablecast.core.messages import Role
from stablecast.trace import rules
from stablecast.trace.collecting import uncollected
from stablecast.trace.converter import (
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
from stablecast.trace.errors import SchemaError
from stablecast.trace.facts import Book, Gatherer, gatherer, identity
from stablecast.trace.frames import LIMIT, Frame, Head, digest
from stablecast.trace.replay import Step, replayed
from stablecast.trace.reports import Violation
from stablecast.trace.rules import Rule

DAMAGE: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What becomes of a snapshot that fits the schema and means nothing."""

SHOWN: Final = 300
"""Characters of a value in a sentence; `expected` and `found` of a violation hold all of it."""


@attrs.define
class Known:
    """A machine whose state is known: that of the digest. Frame after frame it need not be restored."""

    digest: str = ""
    machine: Endpoint | None = None

    def take(self, head: Head) -> Endpoint:
        """The machine as a frame begins, which may change now. Raises SchemaError if the snapshot is none."""
        machine, self.machine = self.machine, None
        if isinstance(machine, MACHINES[head.role]) and head.digest == self.digest:
            return machine
        return restore(head.role, head.snapshot)

    def learn(self, machine: Endpoint, digest: str) -> None:
        """The machine as a frame ends."""
        self.machine, self.digest = machine, digest


@attrs.define
class FrameJudge:
    """One pass over one frame. `found` keeps the first violation of each rule, `book` what the frame tells of others.

    `fresh`: no frame of its trace told what this one begins with. `address`, `life` and `patience` are those of a
    witness (`stablecast.trace.across`), once the frame has been judged. `known` is what the frame before left.
    """

    path: Path
    frame: Frame
    fresh: bool = False
    found: dict[str, Violation] = attrs.field(factory=dict)
    book: Book = attrs.field(factory=Book)
    address: str = ""
    life: int = 0
    patience: int = 0
    known: Known = attrs.field(factory=Known)

    def run(self, standing: list[Rule] | None) -> list[Rule] | None:
        """Judges the frame; returns the rules with what they remember now.

        Args:
            standing: The rules as the frame before left them, None to begin with this frame's snapshot.
        """
        with uncollected():
            return self._run(standing)

    def _run(self, standing: list[Rule] | None) -> list[Rule] | None:
        head = self.frame.head
        try:
            machine = self.known.take(head)
        except SchemaError as error:
            self.violate(head.first, "schema", f"the snapshot before record {head.first} is {error}")
            return None
        try:
            standing = rules.begin(machine) if standing is None else standing
            gatherer = self._open_book(machine)
        except DAMAGE as error:
            self.violate(head.first, "schema", f"the snapshot before record {head.first} makes no sense: {error!r}")
            return None
        replay = replayed(self.frame, machine)
        steps = self._doubt() if replay is None else replay
        self._judge(steps, standing)
        self._gather(steps, gatherer)
        if replay is not None:
            self.known.learn(machine, self.frame.foot.digest)
        else:
            self._replay(restore(head.role, head.snapshot), steps)
        return standing

    def _doubt(self) -> list[Step]:
        """The records, as far as they can be decoded."""
        self._check_count()
        steps = self._decode()
        self._check_times(steps)
        return steps

    def _open_book(self, machine: Endpoint) -> Gatherer:
        self.address, self.life, self.patience = identity(machine)
        self.book.record, self.book.time = self.frame.head.first, self.frame.head.time
        return gatherer(machine, self.book, fresh=self.fresh)

    def violate(self, record: int, rule: str, text: str, expected: Any = None, found: Any = None) -> None:
        """Notes a broken rule, if it is the first time."""
        if rule not in self.found:
            self.found[rule] = Violation(self.path, record, rule, text, expected, found, self._time_of(record))

    def _time_of(self, record: int) -> int:
        head, lines = self.frame.head, self.frame.records
        at = record - head.first
        time = lines[at].get("t") if 0 <= at < len(lines) else None
        return time if isinstance(time, int) and -LIMIT < time < LIMIT else head.time

    def note(self, broken: Iterable[tuple[int, str, str, Any, Any]]) -> None:
        """Notes broken rules: record, rule, sentence, what was expected and what was found."""
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
            text = f"the frame ends after {len(numbers)} records and says that it has {promised}"
            self.violate(first + min(len(numbers), promised), "numbering", text, promised, len(numbers))

    def _decode(self) -> list[Step]:
        """The records, up to the first that cannot be decoded."""
        role, steps = self.frame.head.role, []
        for at, line in enumerate(self.frame.records, self.frame.head.first):
            try:
                steps.append(_step(role, line))
            except SchemaError as error:
                self.violate(at, "schema", f"record {at} is {error}", None, line)
                break
        return steps

    def _check_times(self, steps: list[Step]) -> None:
        before = self.frame.head.time
        for step in steps:
            if step.now < before:
                self.violate(
                    step.number, "time", f"record {step.number} is earlier than what precedes it", before, step.now
                )
                return
            before = step.now

    def _judge(self, steps: list[Step], standing: list[Rule]) -> None:
        watchers: dict[type, list[Rule]] = {}
        for rule in standing:
            for kind in rule.watches:
                watchers.setdefault(kind, []).append(rule)
        for step in steps:
            for rule in watchers.get(type(step.event), ()):
                text = rule.on_input(step.event)
                if text is not None:
                    self._blame(step, rule, text, encode_input(step.event))
            for effect in step.effects:
                for rule in watchers.get(type(effect), ()):
                    text = rule.on_effect(effect)
                    if text is not None:
                        self._blame(step, rule, text, encode_effect(effect))

    def _blame(self, step: Step, rule: Rule, text: str, found: Json) -> None:
        self.violate(step.number, rule.name, f"record {step.number}: {text}", None, found)

    def _gather(self, steps: list[Step], gatherer: Gatherer) -> None:
        book, watched = self.book, gatherer.watches
        for step in steps:
            if type(step.event) in watched or not watched.isdisjoint(map(type, step.effects)):
                book.record, book.time = step.number, step.now
                gatherer.take(step.event, step.effects, book)

    def _replay(self, machine: Endpoint, steps: list[Step]) -> None:
        for step in steps:
            try:
                machine.receive(step.event, step.now)  # type: ignore[arg-type] # decoded for this very role
                effects: Sequence[Effect] = machine.take_effects()
            except Exception as error:  # noqa: BLE001 - a machine restored from a forged trace may fail in any way
                text = f"record {step.number}: the machine cannot take it: {type(error).__name__}: {error}"
                self.violate(step.number, "replay", text, None, encode_input(step.event))
                return
            if effects != step.effects:
                self._differ(step, effects)
                return
        if len(steps) == len(self.frame.records) and digest(snapshot(machine)) != self.frame.foot.digest:
            last = steps[-1].number if steps else self.frame.head.first
            text = f"the state after record {last} is not the one that was recorded"
            self.violate(last, "replay", text, digest(snapshot(machine)), self.frame.foot.digest)

    def _differ(self, step: Step, effects: Sequence[Effect]) -> None:
        pairs = zip(effects, step.effects, strict=False)
        at = next(
            (at for at, (mine, theirs) in enumerate(pairs) if mine != theirs), min(len(effects), len(step.effects))
        )
        expected = encode_effect(effects[at]) if at < len(effects) else None
        found = encode_effect(step.effects[at]) if at < len(step.effects) else None
        text = f"record {step.number}, effect {at}: expected {_show(expected)}, found {_show(found)}"
        self.violate(step.number, "replay", text, expected, found)


def _step(role: Role, line: Json) -> Step:
    match line:
        case {"n": int(number), "t": int(now), "in": dict(event), "out": list(effects)} if len(line) == 4:
            if not (-LIMIT < number < LIMIT and -LIMIT < now < LIMIT):
                raise SchemaError("not a record: its number or time does not fit 64 bits")
            return Step(number, now, decode_input(role, event), decode_effects(role, effects))
        case _:
            raise SchemaError("not a record of n, t, in and out")


def _show(value: Json | None) -> str:
    if value is None:
        return "nothing"
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
