"""Render the chapter of the specification that lists every model, its graphs and its constants, from the record."""

from pathlib import Path

from stablecast.lab.model.catalog import Configuration, RecordedGraph, configurations, load

MARK = "<!-- rendered from tla/: `STABLECAST_REWRITE=1 pytest tests/models` -->\n"
"""The rest of the chapter below this line is generated."""


def render(models: Path) -> str:
    """Return the tables of every model: its graphs, and its other configurations."""
    known = load(models)
    every = configurations(models)
    parts: list[str] = []
    for model in sorted({one.model for one in every}):
        mine = [one for one in every if one.model == model]
        parts += [f"## {model}", *_graphs(mine, known), *_others(mine)]
    return "\n\n".join(parts) + "\n"


def _graphs(mine: list[Configuration], known: dict[str, RecordedGraph]) -> list[str]:
    rows = ["| graph | for | constants | states | edges | steps deep | digest |", "|---|---|---|---|---|---|---|"]
    for one in mine:
        if one.name in known:
            entry = known[one.name]
            constants = ", ".join(f"{name} {value}" for name, value in entry.constants.items())
            digests = entry.digests
            cells = (one.path.stem, one.purpose, constants, f"{digests.nodes:,}", f"{digests.edges:,}")
            rows.append(f"| {' | '.join(cells)} | {len(digests.depths) - 1} | `{digests.actions[:16]}` |")
    return ["\n".join(rows)] if len(rows) > 2 else []


def _others(mine: list[Configuration]) -> list[str]:
    rows = ["| configuration | shows | verdict | of |", "|---|---|---|---|"]
    for one in mine:
        stated = " ".join((*one.invariants, *one.properties))
        rows.append(f"| {one.path.stem} | {one.purpose} | {one.expected} | {stated} |")
    return ["\n".join(rows)]
