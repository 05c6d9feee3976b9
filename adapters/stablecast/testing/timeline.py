"""The timeline of a world: faults, starts and ends of programs, notes, printed lines and uncaught errors."""

import hashlib
from typing import Final

import attrs

from stablecast.testing.schedule import MILLISECOND

SHOWN: Final = 200
"""Entries of a timeline that are printed; those in the middle of a longer one are counted only."""

KEPT: Final = 20_000
"""Entries that are kept; a program may print without end."""

FAULT, PLACE, PROGRAM, OUTPUT, NOTE, ERROR = "fault", "place", "program", "output", "note", "error"


@attrs.frozen
class Happening:
    """One entry of a timeline: the time in ns since the start of the world, the host, the kind of entry, and a text."""

    at: int
    host: str
    kind: str
    text: str


class WorldTimeline:
    """The happenings of one world in their order.

    Attributes:
        happenings: The entries.
        moves: The number of entries that show that something moved: all but faults, and the lines that they struck.
        last: The latest such entry.
    """

    def __init__(self) -> None:
        self.happenings: list[Happening] = []
        self.moves = 0
        self.last: Happening | None = None

    def add(self, at: int, host: str, kind: str, text: str) -> None:
        """Append an entry at a time in ns."""
        happening = Happening(at, host, kind, text)
        if kind not in (FAULT, PLACE):
            self.moves += 1
            self.last = happening
        if len(self.happenings) < KEPT:
            self.happenings.append(happening)

    def clear(self) -> None:
        """Forget all entries, because time begins anew."""
        self.happenings.clear()
        self.moves, self.last = 0, None

    def digest(self) -> str:
        digest = hashlib.sha256()
        for one in self.happenings:
            digest.update(f"{one.at} {one.host} {one.kind} {one.text}\n".encode(errors="backslashreplace"))
        return digest.hexdigest()

    def lines(self, shown: int = SHOWN) -> list[str]:
        """Return the entries as lines for people; a line counts those that are left out."""
        width = max((len(one.host) for one in self.happenings), default=0)
        lines = [_line(one, width) for one in self.happenings]
        if len(lines) > shown:
            lines[shown // 2 : -shown // 2] = [f"... {len(lines) - shown:,} entries are not shown ..."]
        return lines


def _line(one: Happening, width: int) -> str:
    mark = {FAULT: "!! ", PLACE: "!! ", OUTPUT: "> ", NOTE: "-- ", ERROR: "** "}.get(one.kind, "")
    return f"{one.at / MILLISECOND:12,.3f} ms  {one.host:{width}}  {mark}{one.text}"
