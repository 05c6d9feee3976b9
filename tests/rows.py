"""Compare the rows of `spec/rows.md` with the tests that cite them.

    python -m tests.rows          rows of the core that no test cites; the exit status is 1 if there are any
    python -m tests.rows --all    every row with its part and the tests that cite it

A test cites a row by its id anywhere in its file, also in a range: `P-319..P-321`.
"""

import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.support.tree import ROOT, name, python_files

CHAPTER = ROOT / "spec" / "rows.md"
PARTS = frozenset(
    {
        "core",
        "transports",
        "client",
        "store daemon",
        "configuration",
        "monitor",
        "docs",
        "examples",
        "out of scope",
    }
)
THESE = frozenset({"tests/rows.py", "tests/test_rows.py"})
"""Files about citations. Their ids are not citations."""

_ROW = re.compile(r"^\| (P-\d{3}|T\d+|U\d+|C-\d{2}) \| .*? \|(?: ([^|]+) \|)?$", re.MULTILINE)
_CITED = re.compile(r"\bP-(\d{3})(?:\.\.(?:P-)?(\d{3}))?\b")
_RULE = re.compile(r"\b(?:P-\d{3}|T\d{1,2}|U\d{1,2}|C-\d{2})\b")


def rows(chapter: str) -> dict[str, str]:
    """Return the third cell of each row of a chapter by id: the part of a P row.

    Raises:
        ValueError: If an id occurs twice.
    """
    found: dict[str, str] = {}
    for row, cell in _ROW.findall(chapter):
        if row in found:
            raise ValueError(f"{row} occurs twice in the chapter; give one of them an id of its own")
        found[row] = cell
    return found


def cited(text: str, known: Iterable[str]) -> set[str]:
    """Return the P rows that a text cites: both ends of a range, known or not, and the `known` rows between them."""
    found: set[str] = set()
    numbers = {int(row[2:]) for row in known if row.startswith("P-")}
    for first, last in _CITED.findall(text):
        found.add(f"P-{first}")
        if last:
            between = numbers & set(range(int(first), int(last)))
            found |= {f"P-{last}", *(f"P-{number:03}" for number in between)}
    return found


def rules(source: str) -> set[str]:
    """Return the ids of all kinds in comments and strings of a module's source."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    texts = (token.string for token in tokens if token.type in (tokenize.COMMENT, tokenize.STRING))
    return {rule for text in texts for rule in _RULE.findall(text)}


def citations(files: Iterable[Path], known: Iterable[str]) -> dict[str, list[str]]:
    """Return for each row the files that cite it."""
    known = list(known)
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in files:
        for row in cited(path.read_text(encoding="utf-8"), known):
            found[row].append(name(path))
    return dict(found)


def test_files() -> list[Path]:
    """Return the files whose citations count."""
    return [path for path in python_files("tests") if name(path) not in THESE]


def missing(parts: dict[str, str], by_row: dict[str, list[str]]) -> list[str]:
    """Return the rows of the core that no test cites."""
    return [row for row, part in parts.items() if part == "core" and row not in by_row]


def lines(parts: dict[str, str], by_row: dict[str, list[str]]) -> Iterator[str]:
    """Yield every P row with its part and the tests that cite it."""
    for row, part in parts.items():
        if row.startswith("P-"):
            yield f"{row}  {part:13}  {' '.join(by_row.get(row, ['-']))}"


def main(arguments: Sequence[str]) -> int:
    """Print the rows and return the exit status."""
    parts = rows(CHAPTER.read_text(encoding="utf-8"))
    by_row = citations(test_files(), parts)
    uncited = missing(parts, by_row)
    for line in lines(parts, by_row) if "--all" in arguments else uncited:
        print(line)
    return 1 if uncited else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
