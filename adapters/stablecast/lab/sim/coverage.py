"""Count the states and transitions of the declared charts that the worlds visit.

`fire` looks each (state, event) pair up in its chart's table, tries the rows, and reads the target of the row that ran.
While `watching`, the tables count look-ups and the rows count targets.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import attrs

from stablecast.core.machine.chart import Row
from stablecast.core.receiver import endpoint as receiver
from stablecast.core.registration import store_registration
from stablecast.core.source import endpoint as source
from stablecast.core.store import client_lifetime, proxy_election

CHARTS: Final = {
    "registration": (store_registration, "REGISTRATION"),
    "lifetime": (client_lifetime, "LIFETIME"),
    "source": (source, "SOURCE"),
    "receiver": (receiver, "RECEIVER"),
    "election": (proxy_election, "ELECTION"),
}
"""Module and name of each chart's table."""

Seen = Counter[str]
"""Number of visits of states and transitions (`name_of`), by name."""


def name_of(state: str, event: str, row: Row[Any]) -> str:
    """Return `STATE.EVENT` with the guards of this row.

    >>> name_of("SHUT", "OPEN", Row((("locked", False), ("day", True)), (), 0))
    'SHUT.OPEN[not locked, day]'
    """
    guards = ", ".join(name if expected else f"not {name}" for name, expected in row.guards)
    return f"{state}.{event}[{guards}]" if guards else f"{state}.{event}"


class _Row:
    """Count how often its target is read, which happens when it has run."""

    def __init__(self, row: Row[Any], name: str, entered: str, seen: Seen) -> None:
        self.guards, self.actions = row.guards, row.actions
        self._row = row
        self._name = name
        self._entered = entered
        self._seen = seen

    @property
    def target(self) -> Any:
        self._seen[self._name] += 1
        if self._entered:
            self._seen[self._entered] += 1
        return self._row.target


class _Table(dict[Any, tuple[_Row, ...]]):
    """Count look-ups."""

    def __init__(self, table: Mapping[Any, tuple[Row[Any], ...]], seen: Seen) -> None:
        super().__init__()
        self._seen = seen
        for (state, event), rows in table.items():
            self[state, event] = tuple(
                _Row(row, name_of(state.name, event.name, row), row.target.name * (row.target is not state), seen)
                for row in rows
            )

    def get(self, key: Any, default: Any = None) -> Any:
        """Count a look-up and return the rows."""
        self._seen[key[0].name] += 1
        return super().get(key, default)


@attrs.define
class Coverage:
    """Hold the counts by chart, in `seen`, which gets all charts."""

    seen: dict[str, Seen] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        for name in CHARTS:
            self.seen.setdefault(name, Counter())

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count what happens in this process within the context."""
        tables = {name: getattr(module, attribute) for name, (module, attribute) in CHARTS.items()}
        try:
            for name, (module, attribute) in CHARTS.items():
                setattr(module, attribute, _Table(tables[name], self.seen[name]))
            yield
        finally:
            for name, (module, attribute) in CHARTS.items():
                setattr(module, attribute, tables[name])

    def as_json(self) -> dict[str, Any]:
        """Return visits of each state and transition by chart, and those never made."""
        return {name: self._of(name) for name in CHARTS}

    def _of(self, name: str) -> dict[str, Any]:
        table: Mapping[Any, tuple[Row[Any], ...]] = getattr(*CHARTS[name])
        seen = self.seen[name]
        states = {state.name: seen[state.name] for state in type(next(iter(table))[0])}
        transitions = [name_of(state.name, event.name, row) for (state, event), rows in table.items() for row in rows]
        visits = {transition: seen[transition] for transition in transitions}
        missing = [what for what, count in (*states.items(), *visits.items()) if not count]
        return {"states": states, "transitions": visits, "never": missing}
