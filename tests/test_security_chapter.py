"""Each row of the chapter's attackers and bounds names tests that attack it, and these are there."""

import re
from collections.abc import Iterator

import pytest

from tests.support.tree import ROOT

CHAPTER = (ROOT / "spec" / "security.md").read_text(encoding="utf-8")
TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def rows() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the first words of each row of the two tables, with its tests."""
    for title in ("Attackers", "Bounds"):
        section = CHAPTER.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        _, _, *found = (line for line in section.splitlines() if line.startswith("|"))
        for line in found:
            cells = line.strip("|").split(" | ")
            yield cells[0].strip(), TEST.findall(cells[-1])


ROWS = dict(rows())


def test_both_tables_are_read() -> None:
    assert len(ROWS) > 25


@pytest.mark.parametrize("row", ROWS)
def test_a_row_names_tests_that_are_there(row: str) -> None:
    assert ROWS[row]
    for file, name in ROWS[row]:
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), name
