"""Which states and transitions of the declared charts the worlds have visited.

`fire` looks each (state, event) pair up in its chart's table; while `watching`, the tables count the look-ups.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import attrs

from stablecast.core import registration
from stablecast.core.chart import Row
from stablecast.core.receiver import endpoint as receiver
from stablecast.core.source import endpoint as source
from stablecast.core.store import election, lifetime

CHARTS: Final = {
    "registration": (registration, "REGISTRATION"),
    "lifetime": (lifetime, "LIFETIME"),
    "source": (source, "SOURCE"),
    "receiver": (receiver, "RECEIVER"),
    "election": (election, "ELECTION"),
}
"""Where the table of each chart lives."""

Pair = tuple[Any, Any]


class _Counting(dict[Pair, tuple[Row[Any], ...]]):
    """A table that counts what is looked up."""

    def __init__(self, table: dict[Pair, tuple[Row[Any], ...]], seen: Counter[Pair]) -> None:
        super().__init__(table)
        self._seen = seen

    def get(self, key: Pair, default: Any = None) -> Any:
        """Counts, too."""
        self._seen[key] += 1
        return super().get(key, default)


@attrs.define
class Coverage:
    """Look-ups by chart: how often each event met each state."""

    seen: dict[str, Counter[Pair]] = attrs.field(factory=lambda: {name: Counter() for name in CHARTS})

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count what happens meanwhile in this process."""
        tables = {name: getattr(module, attribute) for name, (module, attribute) in CHARTS.items()}
        try:
            for name, (module, attribute) in CHARTS.items():
                setattr(module, attribute, _Counting(tables[name], self.seen[name]))
            yield
        finally:
            for name, (module, attribute) in CHARTS.items():
                setattr(module, attribute, tables[name])

    def add(self, other: "Coverage") -> None:
        """What another process saw."""
        for name, seen in other.seen.items():
            self.seen[name].update(seen)

    def as_json(self) -> dict[str, Any]:
        """By machine: visits of each state and transition (`STATE.EVENT`), and those never made."""
        return {name: self._of(name) for name in CHARTS}

    def _of(self, name: str) -> dict[str, Any]:
        table: dict[Pair, tuple[Row[Any], ...]] = getattr(*CHARTS[name])
        seen = self.seen[name]
        states: Counter[str] = Counter({state.name: 0 for state in type(next(iter(table))[0])})
        transitions = {
            f"{state.name}.{event.name}": seen[state, event] for (state, event), rows in table.items() if rows
        }
        for (state, _), count in seen.items():
            states[state.name] += count
        for (state, event), rows in table.items():
            if len(rows) == 1 and seen[state, event]:
                states[rows[0].target.name] += 0 if rows[0].target is state else seen[state, event]
        missing = [what for what, count in (*states.items(), *transitions.items()) if not count]
        return {"states": dict(states), "transitions": transitions, "never": missing}
