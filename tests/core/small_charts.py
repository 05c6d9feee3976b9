"""Small charts for the tests of lowering: sound ones, and one for each defect that `lower` must name."""

from collections.abc import Callable, Mapping
from enum import IntEnum
from types import new_class
from typing import Any, cast

import attrs
from statemachine import Event, HistoryState, State

from stablecast.core.machine.chart import Chart, States


def declared_chart(body: Mapping[str, Any]) -> type[Chart]:
    """Runs a class statement with the given body."""
    return cast("type[Chart]", new_class("DeclaredChart", (Chart,), exec_body=lambda names: names.update(body)))


class PairState(IntEnum):
    ON = 0
    OFF = 1


class PairEvent(IntEnum):
    FLIP = 0


@attrs.define
class Pair:
    """A machine with one guard, one good action and two bad ones."""

    state: PairState = PairState.ON
    data: int = 0

    def ready(self) -> bool:
        return True

    def act(self) -> None:
        self.data += 1

    def flip(self) -> None:
        self.data += 1

    def meddle(self) -> None:
        self.state = PairState.OFF

    def fail(self) -> None:
        raise RuntimeError("disk full")


def pair_states(**changes: Any) -> Any:
    return States.from_enum(PairState, **{"initial": PairState.ON, "use_enum_instance": True, **changes})


def pair_chart(**body: Any) -> type[Chart]:
    return declared_chart(body)


def flipping(on: Any = None, **arguments: Any) -> type[Chart]:
    """A sound chart, with what is given added to one of its two transitions."""
    states = pair_states()
    return pair_chart(states=states, flip=states.ON.to(states.OFF, on=on, **arguments) | states.OFF.to(states.ON))


def one_way() -> type[Chart]:
    states = pair_states(final=PairState.OFF)
    return pair_chart(states=states, flip=states.ON.to(states.OFF))


def eventless() -> type[Chart]:
    states = pair_states()
    states.ON.to(states.OFF)
    return pair_chart(states=states, flip=states.ON.to(states.OFF) | states.OFF.to(states.ON))


def delayed() -> type[Chart]:
    states = pair_states()
    return pair_chart(states=states, flip=Event(states.ON.to(states.OFF) | states.OFF.to(states.ON), delay=10))


def internal_event() -> type[Chart]:
    states = pair_states()
    return pair_chart(states=states, flip=Event(states.ON.to(states.OFF) | states.OFF.to(states.ON), internal=True))


def unreachable_row() -> type[Chart]:
    states = pair_states()
    return pair_chart(
        states=states,
        flip=states.ON.to(states.OFF) | states.ON.to.itself(on="act") | states.OFF.to(states.ON),
    )


def nested() -> type[Chart]:
    compound = State(value=PairState.ON, initial=True, states=[State("inner", initial=True)])
    off = State(value=PairState.OFF)
    return pair_chart(compound=compound, off=off, flip=compound.to(off) | off.to(compound))


def with_history() -> type[Chart]:
    inner = State("inner", initial=True)
    compound = State(value=PairState.ON, initial=True, states=[inner], history=[HistoryState("past")])
    off = State(value=PairState.OFF)
    return pair_chart(compound=compound, off=off, flip=compound.to(off) | off.to(compound))


def parallel() -> type[Chart]:
    both = State(value=PairState.ON, initial=True, parallel=True, states=[State("left"), State("right")])
    off = State(value=PairState.OFF)
    return pair_chart(both=both, off=off, flip=both.to(off) | off.to(both))


def state_callback(**callback: Any) -> type[Chart]:
    on, off = State(value=PairState.ON, initial=True, **callback), State(value=PairState.OFF)
    return pair_chart(on=on, off=off, flip=on.to(off) | off.to(on))


def raw_values() -> type[Chart]:
    states = pair_states(use_enum_instance=False)
    return pair_chart(states=states, flip=states.ON.to(states.OFF) | states.OFF.to(states.ON))


def with_body(**body: Any) -> type[Chart]:
    states = pair_states()
    return pair_chart(states=states, flip=states.ON.to(states.OFF) | states.OFF.to(states.ON), **body)


def no_transitions() -> type[Chart]:
    return pair_chart(states=pair_states(), validate_disconnected_states=False, validate_trap_states=False)


def missing_state() -> type[Chart]:
    on: Any = State(value=PairState.ON, initial=True)
    return pair_chart(on=on, flip=on.to.itself())


def two_targets() -> type[Chart]:
    states = pair_states()
    both = states.ON.to(states.OFF)
    both[0].targets.append(states.ON)
    return pair_chart(states=states, flip=both | states.OFF.to(states.ON))


def foreign_event() -> type[Chart]:
    states = pair_states()
    return pair_chart(states=states, error_flip=states.ON.to(states.OFF) | states.OFF.to(states.ON))


DEFECTS: list[tuple[str, Callable[[], type[Chart]]]] = [
    ("names absent, which is not a method of Pair", lambda: flipping("absent")),
    ("names absent, which is not a method of Pair", lambda: flipping(cond="absent")),
    ("names data, which is not a method of Pair", lambda: flipping(unless="data")),
    ("names ready and ready, which is not a method", lambda: flipping(cond="ready and ready")),
    ("uses the event name flip for a guard or action", lambda: flipping("flip")),
    ("a callback that is not lowered", lambda: flipping(before="act")),
    ("a callback that is not lowered", lambda: flipping(after="act")),
    ("a callback that is not lowered", lambda: flipping(validators="act")),
    ("a callback that is not lowered", lambda: flipping(print)),
    ("has an event that PairEvent lacks: error_flip", foreign_event),
    ("exactly one event-driven target", eventless),
    ("exactly one event-driven target", two_targets),
    ("is delayed or internal", delayed),
    ("is delayed or internal", internal_event),
    ("can never run", unreachable_row),
    ("nests, forks or has callbacks", nested),
    ("nests, forks or has callbacks", with_history),
    ("nests, forks or has callbacks", parallel),
    ("nests, forks or has callbacks", lambda: state_callback(enter="act")),
    ("nests, forks or has callbacks", lambda: state_callback(exit="act")),
    ("nests, forks or has callbacks", lambda: state_callback(invoke="act")),
    ("has other states than PairState", raw_values),
    ("has other states than PairState", missing_state),
    ("has bodies or listeners", lambda: with_body(on_flip=lambda self: None)),
    ("has bodies or listeners", lambda: with_body(listeners=[Pair])),
    ("overrides a policy", lambda: with_body(catch_errors_as_events=True)),
    ("overrides a policy", lambda: with_body(allow_event_without_transition=True)),
    ("overrides a policy", lambda: with_body(atomic_configuration_update=False)),
    ("declares no transitions", no_transitions),
]
