"""Lowering of declared charts: the chart is the source, and the rows run.

A machine module declares its states and events as IntEnums, its transitions as a `Chart` (structure and *names* of
guards and actions only), and its guards and actions as methods of one attrs class:

    class DoorChart(Chart):
        states = States.from_enum(DoorState, initial=DoorState.SHUT, use_enum_instance=True)
        open = states.SHUT.to(states.OPEN, unless="locked", on="ring")
        shut = states.OPEN.to(states.SHUT)

    TABLE = lower(DoorChart, Door, DoorState, DoorEvent, ignore={DoorState.SHUT: (DoorEvent.SHUT,)}, reject={...})

`lower` runs at import and fails unless every (state, event) pair is classified: it has transitions, or it is ignored
(nothing happens), or it is rejected (`fire` raises). `fire` then works on the rows alone, because the library's own
engine costs a hundred microseconds an event. Both keep one order, so either can check the other: transitions of a pair
are tried as declared, and the state changes after the actions.

A rejected pair is *absent* from the table, so a lookup needs no second structure. Event names that start with `error_`
or `done_state_` would declare a second, dotted event in the library and are refused.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from inspect import isfunction
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import attrs
from statemachine import StateChart
from statemachine.callbacks import CallbackGroup
from statemachine.states import States

from stablecast.core.errors import InvariantError, MisuseError, StablecastError

__all__ = ["Chart", "ChartError", "HasState", "Row", "States", "Table", "fire", "lower"]

S = TypeVar("S", bound=IntEnum)
E = TypeVar("E", bound=IntEnum)


class ChartError(StablecastError):
    """A chart cannot be lowered; raised while the machine's module is imported."""


class Chart(StateChart[Any]):
    """Base of every declared chart; it makes the library's engine keep the rules of `fire`.

    Errors propagate, an event without a transition is refused, and actions still see the source state.
    """

    catch_errors_as_events = False
    allow_event_without_transition = False
    atomic_configuration_update = True


_POLICIES = ("catch_errors_as_events", "allow_event_without_transition", "atomic_configuration_update")


@attrs.frozen
class Row(Generic[S]):
    """One lowered transition.

    Attributes:
        guards: Names of the guard methods, each with the truth value that lets the row run.
        actions: Names of the action methods, in order.
        target: The state after the actions; the source state itself for an internal transition.
    """

    guards: tuple[tuple[str, bool], ...]
    actions: tuple[str, ...]
    target: S


Table: TypeAlias = Mapping[tuple[S, E], tuple[Row[S], ...]]
"""Rows of each accepted (state, event) pair. No rows: the event is ignored. No entry: it is rejected."""


class HasState(Protocol[S]):
    """The part of a machine that `fire` needs besides the methods that the chart names."""

    state: S


def lower(
    chart: type[Chart],
    machine: type,
    states: type[S],
    events: type[E],
    ignore: Mapping[S, Iterable[E]] | None = None,
    reject: Mapping[S, Iterable[E]] | None = None,
) -> Table[S, E]:
    """Lower a declared chart to the rows that `fire` runs.

    Args:
        chart: The declaration; flat, without bodies, its events named like the members of `events` in lower case.
        machine: The class whose methods the chart names as guards and actions.
        states: The enum that the chart's states were made from.
        events: The enum of all events.
        ignore: By state, the events that change nothing there.
        reject: By state, the events that only a caller's mistake can cause there.

    Returns:
        The table, in the order of `states` and, within a state, of `events`.

    Raises:
        ChartError: If a (state, event) pair is not classified exactly once, a name does not exist, a row can never run,
            or the chart uses a feature that is not lowered.
    """
    _check_chart(chart, states)
    rows = _rows(chart, machine, events)
    ignored, rejected = _pairs(ignore), _pairs(reject)
    table: dict[tuple[S, E], tuple[Row[S], ...]] = {}
    for pair in ((state, event) for state in states for event in events):
        classes = (pair in rows) + (pair in ignored) + (pair in rejected)
        if classes != 1:
            name = f"{chart.__name__}: ({pair[0].name}, {pair[1].name})"
            raise ChartError(f"{name} has {classes} classes; give it transitions, or list it once to ignore or reject")
        if pair not in rejected:
            table[pair] = tuple(rows.get(pair, ()))
    return table


def fire(table: Table[S, E], machine: HasState[S], event: E, *args: object) -> bool:
    """Run the first row of (machine.state, event) whose guards hold.

    Guards and actions are called with `args`. The state is set after the actions, so they still see the source state.
    If an action raises, the state stays. An action must neither set the state nor fire on the same machine.

    Returns:
        True if a row ran; False if the event is ignored in this state or no row's guards hold.

    Raises:
        MisuseError: If the event is rejected in this state.
        InvariantError: If an action changed the state.
    """
    state = machine.state
    rows = table.get((state, event))
    if rows is None:
        name = f"{type(machine).__name__} in state {state.name}"
        raise MisuseError(f"{name} cannot take {event.name}; check its state before the call")
    for row in rows:
        for name, expected in row.guards:
            if bool(getattr(machine, name)(*args)) is not expected:
                break
        else:
            for name in row.actions:
                getattr(machine, name)(*args)
            # An action that changed the state would make this row's target wrong, and the chart a lie.
            if machine.state is not state:
                raise InvariantError(f"{type(machine).__name__} changed state inside an action of {event.name}")
            machine.state = row.target
            return True
    return False


def _pairs(listed: Mapping[S, Iterable[E]] | None) -> set[tuple[S, E]]:
    return {(state, event) for state, events in (listed or {}).items() for event in events}


def _rows(chart: type[Chart], machine: type, events: type[E]) -> dict[tuple[Any, E], list[Row[Any]]]:
    """Return the rows of the chart, by pair and in order of declaration."""
    by_name = {event.name.lower(): event for event in events}
    rows: dict[tuple[Any, E], list[Row[Any]]] = {}
    for transition in (transition for state in chart.states for transition in state.transitions):
        where = f"{chart.__name__}: {transition.event or 'a transition'} in {transition.source.id}"
        row = _row(transition, where)
        for name in (*(name for name, _ in row.guards), *row.actions):
            if name in by_name:  # The library would trigger the event instead of calling the method.
                raise ChartError(f"{where} uses the event name {name} for a guard or action; rename the method")
            if not callable(getattr(machine, name, None)):
                raise ChartError(
                    f"{where} names {name}, which is not a method of {machine.__name__}; add or correct it"
                )
        for event_name in map(str, transition.events):
            if event_name not in by_name:
                raise ChartError(f"{where} has an event that {events.__name__} lacks: {event_name}; add it there")
            earlier = rows.setdefault((transition.source.value, by_name[event_name]), [])
            # The first row without a guard always runs, so a later one would be dead text.
            if earlier and not earlier[-1].guards:
                raise ChartError(f"{where} can never run, as the one before has no guard; remove it or reorder them")
            earlier.append(row)
    if not rows:
        raise ChartError(f"{chart.__name__} declares no transitions; a machine without any needs no chart")
    return rows


def _row(transition: Any, where: str) -> Row[Any]:
    if transition.is_eventless or len(transition.targets) != 1:
        raise ChartError(f"{where} is not lowered; declare exactly one event-driven target (itself, if internal)")
    guards: list[tuple[str, bool]] = []
    actions: list[str] = []
    for spec in _declared_callbacks(transition):
        if not isinstance(spec.func, str) or spec.group not in (CallbackGroup.COND, CallbackGroup.ON):
            raise ChartError(
                f"{where} has a callback that is not lowered: {spec}; use names in cond, unless and on only"
            )
        if spec.group == CallbackGroup.COND:
            guards.append((spec.func, spec.expected_value))
        else:
            actions.append(spec.func)
    return Row(guards=tuple(guards), actions=tuple(actions), target=transition.target.value)


def _check_chart(chart: type[Chart], states: type[S]) -> None:
    """Refuse every feature of the library that the rows would not reproduce."""
    name = chart.__name__
    if any(getattr(chart, policy) is not getattr(Chart, policy) for policy in _POLICIES):
        raise ChartError(f"{name} overrides a policy of Chart {_POLICIES}; remove the override")
    bodies = [key for base in chart.__mro__ if base not in Chart.__mro__ for key in _bodies(base)]
    if bodies or chart._class_listeners:
        raise ChartError(f"{name} has bodies or listeners {bodies}; move them to the methods of the machine")
    for event in chart._events:
        if event.delay or event.internal:
            raise ChartError(f"{name}: event {event} is delayed or internal, which is not lowered; use a TimerTable")
    for state in chart.states:
        if state.states or state.history or state.parallel or any(_declared_callbacks(state)):
            raise ChartError(f"{name}: {state.id} nests, forks or has callbacks, which is not lowered; use flat states")
    values = [state.value for state in chart.states]
    if set(values) != set(states) or not all(isinstance(value, states) for value in values):
        raise ChartError(f"{name} has other states than {states.__name__}; make them with States.from_enum")


def _bodies(base: type) -> Iterator[str]:
    return (key for key, value in vars(base).items() if isfunction(value))


def _declared_callbacks(owner: Any) -> Iterator[Any]:
    """Yield the callbacks that the chart declares, not those that the library finds by naming convention."""
    return (spec for spec in owner._specs if not spec.is_convention)
