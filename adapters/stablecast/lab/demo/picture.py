"""Draw a demo in a terminal: its processes, how far each one is, and the line up to which everything is stable."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import attrs
from rich.text import Text

WIDTH: Final = 36
"""Cells of the bar of all messages."""

NAME: Final = 9
"""Cells of the names on the left."""

BAR: Final = "━"
LINE: Final = "┃"


class ProcessPhase(StrEnum):
    """Name what a process does now."""

    STARTS = "starts"
    RUNS = "runs"
    KILLED = "killed"


SIGNS: Final = {
    ProcessPhase.STARTS: ("○", "yellow"),
    ProcessPhase.RUNS: ("●", "green"),
    ProcessPhase.KILLED: ("✗", "red"),
}


@attrs.frozen
class DemoScene:
    """Hold what one picture shows.

    Attributes:
        messages: Messages of the whole demo.
        sent: Messages that the source has sent. `stable` and `delivered` are those below which all are.
        conditions: The condition of each process, by its name, in the order of the picture.
        registered: Stores that have registered the source.
        status: The last line: the time and the stage.
    """

    messages: int
    sent: int
    stable: int
    delivered: int
    conditions: Mapping[str, ProcessPhase]
    registered: frozenset[str]
    status: str


def drawn(scene: DemoScene) -> Text:
    """Return the picture: a row for each process, the stable line, and the status."""
    counts = {"source": (scene.sent, "sent"), "receiver": (scene.delivered, "delivered")}
    rows = [_row(scene, name, *counts.get(name, (None, ""))) for name in scene.conditions]
    share = f"{scene.stable} stable of {scene.messages}"
    rows.append(Text.assemble(f"{'stable':>{NAME}}   ", _bar(scene, scene.stable, "cyan"), f" {share}"))
    rows.append(Text(f"{scene.status}"))
    return Text("\n").join(rows)


def _row(scene: DemoScene, name: str, count: int | None, word: str) -> Text:
    condition = scene.conditions[name]
    sign, colour = SIGNS[condition]
    head = Text.assemble(f"{name:>{NAME}} ", (sign, colour), " ")
    if count is not None:
        state = "" if condition is ProcessPhase.RUNS else f", {condition}"
        return head + _bar(scene, count, colour) + Text(f" {count} {word}{state}")
    words = "runs, has the source" if condition is ProcessPhase.RUNS and name in scene.registered else str(condition)
    return head + _bar(scene, 0, colour) + Text(f" {words}")


def _bar(scene: DemoScene, count: int, colour: str) -> Text:
    """Return a bar of some messages, with the stable line across it."""
    cells = [BAR if cell < _cell(scene, count) else " " for cell in range(WIDTH + 1)]
    line = _cell(scene, scene.stable)
    return Text.assemble(("".join(cells[:line]), colour), (LINE, "bold cyan"), ("".join(cells[line + 1 :]), colour))


def _cell(scene: DemoScene, count: int) -> int:
    return min(count, scene.messages) * WIDTH // scene.messages
