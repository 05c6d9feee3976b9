"""The charts of the machines: the lowered tables do what the chart library does, and classify every pair."""

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.errors import MisuseError
from stablecast.core.machine.chart import Chart, fire
from stablecast.core.receiver import RECEIVER, ReceiverChart, ReceiverState, ReceiverStep
from stablecast.core.receiver.hot_failover import HOT, HotChart, HotEvent, HotState
from stablecast.core.registration.store_registration import (
    REGISTRATION,
    RegistrationChart,
    RegistrationEvent,
    RegistrationState,
)
from stablecast.core.source import SOURCE, SourceChart, SourceState, SourceStep
from stablecast.core.store.client_lifetime import LIFETIME, LifetimeChart, LifetimeEvent, LifetimeState
from stablecast.core.store.proxy_election import ELECTION, ElectionChart, ElectionEvent, ElectionState

Table = Mapping[tuple[Any, Any], tuple[Any, ...]]
CHARTS: list[tuple[type[Chart], Table, type[IntEnum], type[IntEnum]]] = [
    (LifetimeChart, LIFETIME, LifetimeState, LifetimeEvent),
    (ElectionChart, ELECTION, ElectionState, ElectionEvent),
    (RegistrationChart, REGISTRATION, RegistrationState, RegistrationEvent),
    (SourceChart, SOURCE, SourceState, SourceStep),
    (ReceiverChart, RECEIVER, ReceiverState, ReceiverStep),
    (HotChart, HOT, HotState, HotEvent),
]


def recorder(table: Table, initial: IntEnum) -> type:
    """A machine whose guards read the bits of the input and whose actions log themselves."""
    guards = sorted({name for rows in table.values() for row in rows for name, _ in row.guards})
    actions = {name for rows in table.values() for row in rows for name in row.actions}

    def guard(bit: int) -> Callable[[Any, int], bool]:
        return lambda self, n: bool(n >> bit & 1)

    def action(name: str) -> Callable[[Any, int], None]:
        return lambda self, n: self.log.append((name, n, self.state))

    def start(self: Any) -> None:
        self.state, self.log = initial, []

    body: dict[str, Any] = {name: guard(bit) for bit, name in enumerate(guards)}
    return type("Recorder", (), {"__init__": start, **body, **{name: action(name) for name in actions}})


@pytest.mark.parametrize(("chart", "table", "states", "steps"), CHARTS)
@given(data=st.data())
@settings(max_examples=30)
def test_the_tables_do_what_the_library_does(
    chart: type[Chart], table: Table, states: type[IntEnum], steps: type[IntEnum], data: st.DataObject
) -> None:
    kind = recorder(table, next(iter(states)))
    lowered, model = kind(), kind()
    engine = chart(model=model)
    for event, n in data.draw(st.lists(st.tuples(st.sampled_from(list(steps)), st.integers(0, 1)), max_size=12)):
        try:
            accepted = fire(table, lowered, event, n)
        except MisuseError:
            accepted = False
        try:
            engine.send(event.name.lower(), n)
        except Chart.TransitionNotAllowed:
            assert not accepted
        else:
            assert accepted
        assert (lowered.state, lowered.log) == (model.state, model.log)


@pytest.mark.parametrize(("chart", "table", "states", "steps"), CHARTS)
def test_every_pair_is_classified(
    chart: type[Chart], table: Table, states: type[IntEnum], steps: type[IntEnum]
) -> None:
    """Taken and ignored pairs are in the table; what is absent is rejected: only a defect here can bring it about."""
    rejected = {(state.name, event.name) for state in states for event in steps} - {
        (state.name, event.name) for state, event in table
    }
    expected = {
        LifetimeChart: 1,
        ElectionChart: 15,
        RegistrationChart: 8,
        SourceChart: 24,
        ReceiverChart: 19,
        HotChart: 8,
    }
    assert len(rejected) == expected[chart]
    assert {target for rows in table.values() for row in rows for target in [row.target]} <= set(states)
