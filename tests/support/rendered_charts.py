"""Charts as the chapters draw them: a table of rows, and a Mermaid diagram."""

from collections.abc import Iterator
from enum import IntEnum
from typing import TypeVar

from stablecast.core.machine.chart import Row, Table

S = TypeVar("S", bound=IntEnum)
E = TypeVar("E", bound=IntEnum)


def render_table(table: Table[S, E]) -> str:
    """Return a table as Markdown: a line for each row, and one for each ignored or rejected pair."""
    lines = ["| state | event | guards | actions | next state |", "|---|---|---|---|---|"]
    states, events = _enums(table)
    for state in states:
        for event in events:
            rows = table.get((state, event))
            for row in rows or ():
                cells = ", ".join(_guard_texts(row)), ", ".join(row.actions), row.target.name
                lines.append(f"| {state.name} | {event.name} | " + " | ".join(cell or "–" for cell in cells) + " |")
            if not rows:
                verdict = "rejected" if rows is None else "ignored"
                lines.append(f"| {state.name} | {event.name} | – | – | *{verdict}* |")
    return "\n".join(lines) + "\n"


def render_mermaid(table: Table[S, E], initial: S) -> str:
    """Return a table as a Mermaid state diagram that starts in `initial`; it draws only rows that run."""
    lines = ["stateDiagram-v2", f"    [*] --> {initial.name}"]
    for (state, event), rows in table.items():
        for row in rows:
            guards = f" [{', '.join(_guard_texts(row))}]" if row.guards else ""
            actions = f" / {', '.join(row.actions)}" if row.actions else ""
            lines.append(f"    {state.name} --> {row.target.name} : {event.name}{guards}{actions}")
    return "\n".join(lines) + "\n"


def _guard_texts(row: Row[S]) -> Iterator[str]:
    return (name if expected else f"not {name}" for name, expected in row.guards)


def _enums(table: Table[S, E]) -> tuple[type[S], type[E]]:
    state, event = next(iter(table))  # Never empty: `lower` refuses a chart without transitions.
    return type(state), type(event)
