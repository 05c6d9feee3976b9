"""Faults planted at the edge of one endpoint of a simulated world: once it is told, or does, what it should not.

All that is outside sees it: the driver acts on it, the simulator's checkers watch it, the trace holds it. The machine
itself goes on as if nothing had been. So it is known which endpoint is to blame, and for which record.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast
from unittest import mock

import attrs

from stablecast.core.machine import serial
from stablecast.core.protocol.effects import Effect, Notify, Send
from stablecast.core.protocol.inputs import Arrived, Input, Tick
from stablecast.core.protocol.messages import Role
from stablecast.evidence.trace.live_trace import LiveTrace
from stablecast.evidence.trace.trace_recorder import Recorder
from stablecast.lab.schedules.faults import Fault
from stablecast.lab.sim.runner import run
from stablecast.lab.sim.schedule import Schedule
from stablecast.lab.sim.setup import WorldSetup
from stablecast.runtime.driver import Driven

Effects = list[Effect]
Mishears = Callable[[Any, Input], Input | None]
"""Return another input for the machine; None: not now."""

Misdoes = Callable[[Any, Input, Effects], Effects | None]
"""Return other effects; None: not now."""

SENDS: Final = tuple((900 + 40 * run, 7) for run in range(60))


@attrs.frozen
class Lie:
    """A fault.

    Attributes:
        role: Who does it.
        name: What is done, in words.
        rule: What the simulator's checkers call it.
        misdoes, mishears: The fault, one of both.
        setup, faults: The world.
        judged: What the judges of traces call the record, by default the same; `replay`: only that the machine does not
            do this.
    """

    role: Role
    name: str
    rule: str
    misdoes: Misdoes | None = None
    mishears: Mishears | None = None
    setup: WorldSetup = WorldSetup()
    faults: tuple[Fault, ...] = ()
    judged: str = attrs.Factory(lambda self: self.rule, takes_self=True)


@attrs.define
class Told:
    """The place of a lie: the trace and the record, once it was told."""

    lie: Lie
    path: Path | None = None
    record: int = -1


@contextmanager
def lying(lie: Lie) -> Iterator[Told]:
    """Make one endpoint of this role lie once."""
    told = Told(lie)

    def step(driven: Driven[Any, Any], event: Input, now: int) -> Sequence[Effect]:
        machine, trace = driven.machine, cast("LiveTrace | None", driven.recorder)
        recorder = None if trace is None else cast("Recorder", trace.recorder)
        able = told.path is None and recorder is not None and recorder.role is lie.role
        heard = lie.mishears(machine, event) if able and lie.mishears else None
        if isinstance(event, Tick):
            machine.handle_timeout(now)
        else:
            machine.receive(event if heard is None else heard, now)
        effects = machine.take_effects()
        done = lie.misdoes(machine, event, list(effects)) if able and lie.misdoes else None
        effects = effects if done is None else done
        if recorder is not None and (heard is not None or done is not None):
            told.path, told.record = recorder.path, recorder._first + len(recorder._records)
        if trace is not None:
            trace.record(event if heard is None else heard, now, effects)
        return effects

    def timeout(driven: Driven[Any, Any], now: int) -> Sequence[Effect]:
        return step(driven, Tick(), now)

    with mock.patch.object(Driven, "feed", step), mock.patch.object(Driven, "timeout", timeout):
        yield told


def tell(lie: Lie, directory: Path, seed: int) -> tuple[Told, list[str]]:
    """Run a world with a lie; return its place, and the rules that the checkers saw broken."""
    with lying(lie) as told:
        report = run(Schedule(seed, SENDS, lie.faults, lie.setup), directory)
    return told, [one.rule for one in report.violations]


# Moments, and the lie at each of them.


def at(kind: type, change: Callable[[Any, Any], Any], when: Callable[[Any, Any], bool] = lambda *_: True) -> Misdoes:
    """Change the first effect of this kind (or message, or event) to another one, to several, or to nothing."""

    def misdo(machine: Any, _: Input, effects: Effects) -> Effects | None:
        for place, effect in enumerate(effects):
            inner = effect.message if isinstance(effect, Send) else effect.event if isinstance(effect, Notify) else None
            if isinstance(effect, kind) and when(machine, effect):
                return [*effects[:place], *_list(change(machine, effect)), *effects[place + 1 :]]
            if isinstance(inner, kind) and when(machine, inner):
                changed = change(machine, inner)
                field = "message" if isinstance(effect, Send) else "event"
                return [*effects[:place], attrs.evolve(effect, **{field: changed}), *effects[place + 1 :]]
        return None

    return misdo


def after(kind: type, more: Callable[[Any, Any], Any], when: Callable[[Any, Any], bool] = lambda *_: True) -> Misdoes:
    """Add an effect after an input (or message) of this kind."""

    def misdo(machine: Any, event: Input, effects: Effects) -> Effects | None:
        inner = event.message if isinstance(event, Arrived) else event
        if isinstance(inner, kind) and when(machine, inner):
            return [*effects, *_list(more(machine, inner))]
        return None

    return misdo


def hearing(kind: type, change: Callable[[Any, Any], Any], when: Callable[[Any, Any], bool]) -> Mishears:
    """Replace an arriving message of this kind by another one."""

    def mishear(machine: Any, event: Input) -> Input | None:
        if isinstance(event, Arrived) and isinstance(event.message, kind) and when(machine, event.message):
            return Arrived(change(machine, event.message))
        return None

    return mishear


def _list(one: Any) -> list[Any]:
    return one if isinstance(one, list) else [one]


def shift(field: str, by: int) -> Callable[[Any, Any], Any]:
    """Return a change of this number."""
    return lambda _, one: attrs.evolve(one, **{field: getattr(one, field) + by})


def busy(machine: Any, *_: Any) -> bool:
    """Return whether some thirty messages have passed."""
    return bool(newest(machine) > 30)


def newest(machine: Any) -> int:
    if hasattr(machine, "repositories"):
        return max((one.newest for one in machine.repositories.values()), default=-1)
    return (machine.window.next or 0) - 1


def extended(machine: Any, number: int) -> int:
    return serial.extend(number, newest(machine))
