"""Every row of the specification is shown by a marked test, or stands in the list of what is not here."""

import re

import pytest

from tests.support.tree import name, python_files
from tools.mutants.mutant import Test as KillerTest
from tools.mutants.table import MUTANTS
from tools.rows import __main__ as command
from tools.rows import chapter, evidence, marks

TEXT = chapter.CHAPTER.read_text(encoding="utf-8")
TABLE = chapter.committed()
EVIDENCE = evidence.committed_evidence()
LAST_CORE_TRAP = 24

A_TEST = """
@pytest.mark.rows("P-001", "T-001")
async def test_one() -> None: ...
"""
A_CASE = """
CASES: list[object] = [pytest.param(1, marks=pytest.mark.rows("P-002")), 2]

@pytest.mark.parametrize("number", CASES)
def test_two(number): ...
"""
HIDDEN = """
@pytest.mark.rows("P-003")
@pytest.mark.thorough
def test_three(): ...

@pytest.mark.rows("P-004")
def helper(): ...
"""


def test_every_row_is_complete() -> None:
    assert {row.part for row in TABLE.values()} <= chapter.PARTS
    assert {row.status for row in TABLE.values()} <= set(chapter.STATUSES)
    assert {row.row_id for row in TABLE.values() if row.group == "-"} == {
        row.row_id for row in TABLE.values() if row.status == chapter.ABSENT
    }


def test_nothing_is_missing() -> None:
    """Each row has a test, each marker a row, each group a fault, and each absence an explanation."""
    missing = list(command.gaps(EVIDENCE))
    assert not missing, "\n".join(missing)


def test_every_marker_is_bound_to_a_test_that_runs() -> None:
    stray = {name(path): marks.strays(path.read_text(encoding="utf-8")) for path in python_files("tests")}
    assert not {file: rows for file, rows in stray.items() if rows}


def test_every_trap_of_the_core_has_a_test_of_its_name() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in marks.test_files())
    named = {int(number) for number in re.findall(r"^ *(?:async )?def test_t(\d+)_", sources, re.MULTILINE)}
    assert set(range(1, LAST_CORE_TRAP + 1)) <= named


def test_every_rule_that_the_core_names_exists() -> None:
    known = {*TABLE, *chapter.other_rules(TEXT)}
    unknown = [
        f"{name(path)}: {rule}"
        for path in python_files("core")
        for rule in sorted(marks.rules(path.read_text(encoding="utf-8")) - known)
    ]
    assert not unknown, "\n".join(unknown)


def test_markers_are_read() -> None:
    assert marks.marks(A_TEST) == {"test_one": ["P-001", "T-001"]}
    assert marks.marks(A_CASE) == {"test_two": ["P-002"]}


def test_a_comment_binds_nothing() -> None:
    assert marks.marks('def test_four():\n    """P-004, pytest.mark.rows("P-004")."""  # P-004\n') == {}


def test_tests_that_do_not_run_and_helpers_bind_nothing() -> None:
    assert marks.marks(HIDDEN) == {}
    assert marks.strays(HIDDEN) == ["P-003", "P-004"]


def test_rules_are_read_from_comments_and_strings_only() -> None:
    assert marks.rules('"""P-001, C-14."""\nU64 = T7 - 1  # U4, T23\n') == {"P-001", "C-14", "U4", "T23"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("| P-001 | one | core | a | shown |\n| P-001 | two | docs | a | shown |\n", "P-001 occurs twice"),
        ("| T-001 | one | core |\n", "T-001 has not five cells"),
        ("| M-001 | one | core | a | done |\n", "M-001 has the status 'done'"),
        ("| M-001 | one | core | a | differently |\n", "M-001 has the status 'differently'"),
        ("| M-001 | one | core | a | shown: partly |\n", "M-001 has the status 'shown: partly'"),
    ],
)
def test_a_table_with_an_error_is_refused(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        chapter.rows(text)


def test_gaps_are_found() -> None:
    shown = chapter.Row("P-999", "a rule that no test shows", "core", "nothing", chapter.SHOWN, "")
    absent = chapter.Row("P-998", "a rule", "core", "-", chapter.ABSENT, "why")
    found = "\n".join(command.gaps([*EVIDENCE, evidence.Evidence(shown), evidence.Evidence(absent)]))
    assert "P-999  no test shows it" in found
    assert "group nothing: no planted fault" in found
    assert "P-998  is not here, and spec/not_here.md does not say so" in found
    without = [one for one in EVIDENCE if one.row.row_id != "P-302"]
    assert "P-302  is marked and not in the table" in "\n".join(command.gaps(without))


def test_the_command_prints_rows_groups_and_gaps(capsys: pytest.CaptureFixture[str]) -> None:
    missing = list(command.gaps(EVIDENCE))
    assert command.main([]) == bool(missing)
    assert capsys.readouterr().out.splitlines() == missing
    command.main(["--all"])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(TABLE)
    command.main(["--groups"])
    groups = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert [line.partition(":")[0] for line in groups] == list(chapter.groups(TABLE.values()))


def test_the_faults_of_rows_are_those_that_marked_tests_find() -> None:
    names = evidence.mutants_of_rows()
    assert {"both-limits-of-the-flight-must-be-exceeded", "a-log-begins-without-the-build"} <= set(names)
    by_name = {mutant.name: mutant for mutant in MUTANTS}
    marked = {test for one in EVIDENCE for test in one.tests}
    for name_of_fault in names:
        killer = by_name[name_of_fault].killer
        assert isinstance(killer, KillerTest)
        assert any(evidence.finds(test, by_name[name_of_fault]) for test in marked)
