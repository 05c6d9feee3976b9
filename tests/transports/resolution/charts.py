"""The library's own engine as the oracle of a lowered chart, as in the tests of the core's charts."""

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any

from stablecast.core.errors import MisuseError
from stablecast.core.machine.chart import Chart, fire

Table = Mapping[tuple[Any, Any], tuple[Any, ...]]


def recorder(table: Table, initial: IntEnum) -> type:
    """A machine whose actions log themselves."""
    actions = {name for rows in table.values() for row in rows for name in row.actions}
    assert not any(row.guards for rows in table.values() for row in rows)

    def action(name: str) -> Callable[..., None]:
        return lambda self: self.log.append((name, self.state))

    def start(self: Any) -> None:
        self.state, self.log = initial, []

    return type("Recorder", (), {"__init__": start, **{name: action(name) for name in actions}})


def agree(chart: type[Chart], table: Table, initial: IntEnum, events: list[IntEnum]) -> None:
    """Assert that rows and library do the same for a history."""
    kind = recorder(table, initial)
    lowered, model = kind(), kind()
    engine = chart(model=model)
    for event in events:
        try:
            accepted = fire(table, lowered, event)
        except MisuseError:
            accepted = False
        try:
            engine.send(event.name.lower())
        except Chart.TransitionNotAllowed:
            assert not accepted
        else:
            assert accepted
        assert (lowered.state, lowered.log) == (model.state, model.log)
