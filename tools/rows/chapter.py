"""The table of rows: `spec/rows.md` is the data, one line of a table for each row.

    | P-308 | the limit that is exceeded first counts | core | flight | shown |

The cells are id, text, part, group and status. A status is one of:

    shown                   a user sees what the text says, and a test shows it
    differently: REASON     a user sees something else, for this reason, and a test shows what it is
    not here: REASON        there is no such thing; `spec/not_here.md` says what a user loses
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

import attrs

from tests.support.tree import ROOT

CHAPTER: Final = ROOT / "spec" / "rows.md"
NOT_HERE: Final = ROOT / "spec" / "not_here.md"
ADVICE: Final = ROOT / "spec" / "advice.md"
PARTS: Final = frozenset(
    {
        "core",
        "transports",
        "client",
        "store daemon",
        "resolver",
        "configuration",
        "monitor",
        "docs",
        "examples",
        "out of scope",
    }
)
SHOWN: Final = "shown"
DIFFERENTLY: Final = "differently"
ABSENT: Final = "not-here"
STATUSES: Final = (SHOWN, DIFFERENTLY, ABSENT)

_ROW = re.compile(r"^\| ([PRTM]-\d{3}) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_OTHER = re.compile(r"^\| (T\d+|U\d+|C-\d{2}) \| ", re.MULTILINE)
_ANY = re.compile(r"^\| ([PRTM]-\d{3}|T\d+|U\d+|C-\d{2}) \|", re.MULTILINE)
_ID = re.compile(r"\b[PRTM]-\d{3}\b")


@attrs.frozen
class Row:
    """One documented behaviour, and whether a user of stablecast has it."""

    row_id: str
    text: str
    part: str
    group: str
    status: str
    reason: str

    @property
    def kind(self) -> str:
        """The letter of the id: P persistence, R routers, T topic resolution, M what is mentioned only."""
        return self.row_id[0]


@cache
def stated() -> frozenset[str]:
    """Return the rows that no program can show: a chapter for people states them."""
    return frozenset(_ID.findall(ADVICE.read_text(encoding="utf-8")))


def rows(chapter: str) -> dict[str, Row]:
    """Return the rows of a chapter by id.

    Raises:
        ValueError: If an id occurs twice, or if a line of a table is not a row of five cells with a known status.
    """
    found: dict[str, Row] = {}
    for row_id, text, part, group, cell in _ROW.findall(chapter):
        status, _, reason = cell.partition(": ")
        status = status.replace(" ", "-")
        if status not in STATUSES or (status == SHOWN) == bool(reason):
            raise ValueError(f"{row_id} has the status {cell!r}; write shown, or differently or not here with a reason")
        found[row_id] = Row(row_id, text, part, group, status, reason)
    listed = _ANY.findall(chapter)
    for row_id in listed:
        if listed.count(row_id) > 1:
            raise ValueError(f"{row_id} occurs twice in the chapter; give one of them an id of its own")
        if "-" in row_id and row_id[0] in "PRTM" and row_id not in found:
            raise ValueError(f"{row_id} has not five cells: id, text, part, group and status")
    return found


def other_rules(chapter: str) -> set[str]:
    """Return the ids of traps (T1), uncertain points (U1) and contradictions (C-01)."""
    return set(_OTHER.findall(chapter))


def committed() -> dict[str, Row]:
    return rows(CHAPTER.read_text(encoding="utf-8"))


def explained(chapter: str) -> set[str]:
    """Return the rows whose absence the first cells of a table in `spec/not_here.md` explain."""
    cells = re.findall(r"^\| ([^|]+) \|", chapter, re.MULTILINE)
    return {row for cell in cells for row in _ID.findall(cell)}


def groups(table: Iterable[Row]) -> dict[str, list[str]]:
    """Return the ids of each group, in the order of the table. Rows that are not here are in no group."""
    found: dict[str, list[str]] = {}
    for row in table:
        if row.status != ABSENT:
            found.setdefault(row.group, []).append(row.row_id)
    return found
