"""Tests cite existing rows of the specification, and every row of the core has a test."""

import re

import pytest

from tests import rows
from tests.support.tree import name, python_files

ROWS = rows.rows(rows.CHAPTER.read_text(encoding="utf-8"))
BY_ROW = rows.citations(rows.test_files(), ROWS)
LAST_CORE_TRAP = 24


def test_every_row_has_a_part() -> None:
    strange = {row: part for row, part in ROWS.items() if row.startswith("P-") and part not in rows.PARTS}
    assert not strange


def test_every_cited_row_exists() -> None:
    unknown = [f"{row}: {' '.join(files)}" for row, files in sorted(BY_ROW.items()) if row not in ROWS]
    assert not unknown, "\n".join(unknown)


def test_every_row_of_the_core_is_cited() -> None:
    assert not rows.missing(ROWS, BY_ROW), "python -m tests.rows prints them"


def test_every_trap_of_the_core_has_a_test_of_its_name() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in rows.test_files())
    named = {int(number) for number in re.findall(r"^ *(?:async )?def test_t(\d+)_", sources, re.MULTILINE)}
    assert set(range(1, LAST_CORE_TRAP + 1)) <= named


def test_every_rule_that_the_core_names_exists() -> None:
    unknown = [
        f"{name(path)}: {rule}"
        for path in python_files("core")
        for rule in sorted(rows.rules(path.read_text(encoding="utf-8")) - set(ROWS))
    ]
    assert not unknown, "\n".join(unknown)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("P-319, P-306.", {"P-319", "P-306"}),
        ("P-319..P-321", {"P-319", "P-320", "P-321"}),
        ("P-319..321", {"P-319", "P-320", "P-321"}),
        ("P-526..P-530", {"P-526", "P-527", "P-528", "P-530"}),
        ("P-998..P-999", {"P-998", "P-999"}),
        ("UP-319, P-31, P-3190, T3", set()),
    ],
)
def test_citations_are_read(text: str, found: set[str]) -> None:
    assert rows.cited(text, ROWS) == found


def test_rules_are_read_from_comments_and_strings_only() -> None:
    assert rows.rules('"""P-001, C-14."""\nU64 = T7 - 1  # U4, T23\n') == {"P-001", "C-14", "U4", "T23"}


def test_an_id_that_occurs_twice_is_an_error() -> None:
    with pytest.raises(ValueError, match="P-001 occurs twice"):
        rows.rows("| P-001 | one | core |\n| P-001 | two | docs |\n")


def test_the_command_prints_missing_rows_or_everything(capsys: pytest.CaptureFixture[str]) -> None:
    missing = rows.missing(ROWS, BY_ROW)
    assert rows.main([]) == bool(missing)
    assert capsys.readouterr().out.split() == missing
    rows.main(["--all"])
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed] == [row for row in ROWS if row.startswith("P-")]


def test_the_traps_and_the_points_to_decide_are_all_there() -> None:
    counts = {kind: sum(row.startswith(kind) for row in ROWS) for kind in ("P-", "T", "U", "C-")}
    assert counts == {"P-": 474, "T": 30, "U": 22, "C-": 40}
