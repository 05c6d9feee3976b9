"""Charts: the lowered rows do what the library's engine does, and every defect of a declaration fails at import."""

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.errors import InvariantError, MisuseError
from stablecast.core.machine.chart import Chart, ChartError, Row, States, fire, lower
from tests.core.small_charts import DEFECTS, Pair, PairEvent, PairState, declared_chart, flipping, one_way
from tests.support.rendered_charts import render_mermaid, render_table


class LinkState(IntEnum):
    DOWN = 0
    TRYING = 1
    UP = 2
    CLOSED = 3


class LinkEvent(IntEnum):
    DIAL = 0
    ANSWER = 1
    TICK = 2
    HANG_UP = 3


class LinkChart(Chart):
    """Guards of both kinds, several rows per pair, internal and external self-transitions, a final state."""

    states = States.from_enum(LinkState, initial=LinkState.DOWN, final=LinkState.CLOSED, use_enum_instance=True)
    dial = states.DOWN.to(states.TRYING, on="send_dial") | states.TRYING.to.itself(unless="tired", on="send_dial")
    answer = (
        states.TRYING.to(states.UP, cond=["even", "small"], on=["note", "greet"])
        | states.TRYING.to(states.DOWN, cond="even", unless="small", on="note")
        | states.UP.to.itself(internal=True, cond="small", on="note")
    )
    tick = states.TRYING.to(states.DOWN, cond="tired") | states.UP.to.itself(internal=True, on="note")
    hang_up = states.TRYING.to(states.CLOSED) | states.UP.to(states.CLOSED, on="greet")


@attrs.define
class Link:
    """The machine that the chart speaks of; it logs what it does."""

    state: LinkState = LinkState.DOWN
    dials: int = 0
    log: list[tuple[str, int, LinkState]] = attrs.field(factory=list)

    def even(self, n: int) -> bool:
        return n % 2 == 0

    def small(self, n: int) -> bool:
        return n < 5

    def tired(self, n: int) -> int:
        return self.dials // 3  # An int, as guards count by their truth.

    def send_dial(self, n: int) -> None:
        self.dials += 1
        self.log.append(("send_dial", n, self.state))

    def note(self, n: int) -> None:
        self.log.append(("note", n, self.state))

    def greet(self, n: int) -> None:
        self.log.append(("greet", n, self.state))


IGNORED = {
    LinkState.DOWN: (LinkEvent.TICK,),
    LinkState.UP: (LinkEvent.DIAL,),
    LinkState.CLOSED: (LinkEvent.TICK, LinkEvent.ANSWER),
}
REJECTED = {
    LinkState.DOWN: (LinkEvent.ANSWER, LinkEvent.HANG_UP),
    LinkState.CLOSED: (LinkEvent.DIAL, LinkEvent.HANG_UP),
}
TABLE = lower(LinkChart, Link, LinkState, LinkEvent, ignore=IGNORED, reject=REJECTED)


def accepted_by_library(engine: Chart, event: IntEnum, n: int) -> bool:
    try:
        engine.send(event.name.lower(), n)
    except Chart.TransitionNotAllowed:
        return False
    return True


def accepted_by_rows(machine: Link, event: LinkEvent, n: int) -> bool:
    try:
        return fire(TABLE, machine, event, n)
    except MisuseError:
        return False


@given(st.lists(st.tuples(st.sampled_from(LinkEvent), st.integers(0, 9)), max_size=12))
@settings(max_examples=100, deadline=None)
def test_rows_do_what_the_library_does(inputs: list[tuple[LinkEvent, int]]) -> None:
    lowered, model = Link(), Link()
    engine = LinkChart(model=model)
    for event, n in inputs:
        assert accepted_by_rows(lowered, event, n) is accepted_by_library(engine, event, n)
        assert lowered == model


class Spot(IntEnum):
    A = 0
    B = 1
    C = 2


class Push(IntEnum):
    X = 0
    Y = 1


@attrs.define
class Recorder:
    """A machine whose guards read bits of the input and whose actions log themselves."""

    state: Spot = Spot.A
    log: list[str] = attrs.field(factory=list)

    def bit_0(self, n: int) -> bool:
        return bool(n & 1)

    def bit_1(self, n: int) -> bool:
        return bool(n & 2)

    def act_0(self, n: int) -> None:
        self.log.append(f"act_0 {n} in {self.state.name}")

    def act_1(self, n: int) -> None:
        self.log.append(f"act_1 {n} in {self.state.name}")


GUARDS = st.lists(st.sampled_from(["bit_0", "bit_1"]), unique=True, max_size=2)
ACTIONS = st.lists(st.sampled_from(["act_0", "act_1"]), unique=True, max_size=2)
ARROW = st.tuples(st.sampled_from(Spot), st.sampled_from(Spot), GUARDS, GUARDS, ACTIONS, st.booleans())
ARROWS = st.lists(ARROW, max_size=5)
INPUTS = st.lists(st.tuples(st.sampled_from(Push), st.integers(0, 3)), max_size=8)
Arrow = tuple[Spot, Spot, list[str], list[str], list[str], bool]


def generated_chart(arrows: Mapping[str, list[Arrow]]) -> type[Chart]:
    """Builds a chart with the given arrows plus a ring under event x, which keeps every state reachable."""
    states: Any = States.from_enum(Spot, initial=Spot.A, use_enum_instance=True)

    def declared(arrow: Arrow) -> Any:
        source, target, cond, unless, on, internal = arrow
        return states[source].to(
            states[target], cond=cond, unless=unless, on=on, internal=internal and source is target
        )

    body: dict[str, Any] = {"states": states}
    for name, listed in arrows.items():
        transitions = [declared(arrow) for arrow in listed if arrow[2] or arrow[3]]
        if name == "x":
            transitions += [states[spot].to(states[(spot + 1) % 3]) for spot in Spot]
        if transitions:
            body[name] = transitions[0]
            for transition in transitions[1:]:
                body[name] |= transition
    return declared_chart(body)


@given(ARROWS, ARROWS, INPUTS)
@settings(max_examples=60, deadline=None)
def test_generated_charts_agree_with_the_library(
    x: list[Arrow], y: list[Arrow], inputs: list[tuple[Push, int]]
) -> None:
    chart = generated_chart({"x": x, "y": y})
    sources = {arrow[0] for arrow in y if arrow[2] or arrow[3]}
    table = lower(chart, Recorder, Spot, Push, ignore={spot: (Push.Y,) for spot in Spot if spot not in sources})
    lowered, model = Recorder(), Recorder()
    engine = chart(model=model)
    for event, n in inputs:
        assert fire(table, lowered, event, n) is accepted_by_library(engine, event, n)
        assert lowered == model


def test_rows_are_what_was_declared() -> None:
    assert list(TABLE) == [pair for pair in ((s, e) for s in LinkState for e in LinkEvent) if pair in TABLE]
    assert TABLE[LinkState.TRYING, LinkEvent.ANSWER] == (
        Row((("even", True), ("small", True)), ("note", "greet"), LinkState.UP),
        Row((("even", True), ("small", False)), ("note",), LinkState.DOWN),
    )
    assert TABLE[LinkState.DOWN, LinkEvent.TICK] == ()
    assert (LinkState.DOWN, LinkEvent.ANSWER) not in TABLE


def test_state_changes_after_the_actions() -> None:
    link = Link()
    assert fire(TABLE, link, LinkEvent.DIAL, 1)
    assert link.log == [("send_dial", 1, LinkState.DOWN)]
    assert link.state is LinkState.TRYING


def test_ignored_event_changes_nothing() -> None:
    link = Link()
    assert not fire(TABLE, link, LinkEvent.TICK, 1)
    assert link == Link()


def test_rejected_event_is_misuse() -> None:
    link = Link()
    with pytest.raises(MisuseError, match="Link in state DOWN cannot take ANSWER; check its state before the call"):
        fire(TABLE, link, LinkEvent.ANSWER, 1)
    assert link == Link()


def lower_pair(chart: type[Chart], **classes: Mapping[PairState, Iterable[PairEvent]]) -> Mapping[Any, Any]:
    return lower(chart, Pair, PairState, PairEvent, **classes)


def test_sound_chart_needs_no_lists_and_no_arguments() -> None:
    pair = Pair()
    assert fire(lower_pair(flipping("act", cond="ready")), pair, PairEvent.FLIP)
    assert pair == Pair(PairState.OFF, 1)


def test_state_stays_if_an_action_fails() -> None:
    pair = Pair()
    with pytest.raises(RuntimeError, match="disk full"):
        fire(lower_pair(flipping(["act", "fail"])), pair, PairEvent.FLIP)
    assert pair == Pair(PairState.ON, 1)


def test_action_must_not_set_the_state() -> None:
    with pytest.raises(InvariantError, match="Pair changed state inside an action of FLIP"):
        fire(lower_pair(flipping("meddle")), Pair(), PairEvent.FLIP)


@pytest.mark.parametrize(("message", "chart"), DEFECTS)
def test_defect_of_a_chart_fails_at_import(message: str, chart: Callable[[], type[Chart]]) -> None:
    with pytest.raises(ChartError, match=message):
        lower_pair(chart())


def test_every_pair_is_classified_exactly_once() -> None:
    off = {PairState.OFF: (PairEvent.FLIP,)}
    with pytest.raises(ChartError, match=r"DeclaredChart: \(OFF, FLIP\) has 0 classes; give it transitions"):
        lower_pair(one_way())
    with pytest.raises(ChartError, match=r"\(OFF, FLIP\) has 2 classes"):
        lower_pair(one_way(), ignore=off, reject=off)
    with pytest.raises(ChartError, match=r"\(ON, FLIP\) has 2 classes"):
        lower_pair(one_way(), ignore={PairState.ON: PairEvent})
    assert lower_pair(one_way(), ignore=off)[PairState.OFF, PairEvent.FLIP] == ()
    assert list(lower_pair(one_way(), reject=off)) == [(PairState.ON, PairEvent.FLIP)]


def test_rendered_table_has_every_pair() -> None:
    assert render_table(TABLE) == (
        "| state | event | guards | actions | next state |\n"
        "|---|---|---|---|---|\n"
        "| DOWN | DIAL | – | send_dial | TRYING |\n"
        "| DOWN | ANSWER | – | – | *rejected* |\n"
        "| DOWN | TICK | – | – | *ignored* |\n"
        "| DOWN | HANG_UP | – | – | *rejected* |\n"
        "| TRYING | DIAL | not tired | send_dial | TRYING |\n"
        "| TRYING | ANSWER | even, small | note, greet | UP |\n"
        "| TRYING | ANSWER | even, not small | note | DOWN |\n"
        "| TRYING | TICK | tired | – | DOWN |\n"
        "| TRYING | HANG_UP | – | – | CLOSED |\n"
        "| UP | DIAL | – | – | *ignored* |\n"
        "| UP | ANSWER | small | note | UP |\n"
        "| UP | TICK | – | note | UP |\n"
        "| UP | HANG_UP | – | greet | CLOSED |\n"
        "| CLOSED | DIAL | – | – | *rejected* |\n"
        "| CLOSED | ANSWER | – | – | *ignored* |\n"
        "| CLOSED | TICK | – | – | *ignored* |\n"
        "| CLOSED | HANG_UP | – | – | *rejected* |\n"
    )


def test_rendered_diagram_has_every_row() -> None:
    assert render_mermaid(TABLE, LinkState.DOWN) == (
        "stateDiagram-v2\n"
        "    [*] --> DOWN\n"
        "    DOWN --> TRYING : DIAL / send_dial\n"
        "    TRYING --> TRYING : DIAL [not tired] / send_dial\n"
        "    TRYING --> UP : ANSWER [even, small] / note, greet\n"
        "    TRYING --> DOWN : ANSWER [even, not small] / note\n"
        "    TRYING --> DOWN : TICK [tired]\n"
        "    TRYING --> CLOSED : HANG_UP\n"
        "    UP --> UP : ANSWER [small] / note\n"
        "    UP --> UP : TICK / note\n"
        "    UP --> CLOSED : HANG_UP / greet\n"
    )
