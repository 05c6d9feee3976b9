"""The chapter of advice states each row that no program can show, and names options and tests that exist."""

import re

import pytest

from stablecast.config.options import SCOPES
from tests.rows import marks
from tests.support.tree import ROOT

TEXT = (ROOT / "spec" / "advice.md").read_text(encoding="utf-8")
LINES = dict(re.findall(r"^\| ([PT]-\d{3}) \| (.+) \|$", TEXT, re.MULTILINE))
"""The statement of each row."""


@pytest.mark.parametrize(
    ("row", "words"),
    [
        pytest.param("P-006", "defends against a component that lies", marks=pytest.mark.rows("P-006")),
        pytest.param("P-040", "A store is not an archive", marks=pytest.mark.rows("P-040")),
        pytest.param("P-130", "not fragments of IP", marks=pytest.mark.rows("P-130")),
        pytest.param("P-202", "a name for a store that may move", marks=pytest.mark.rows("P-202")),
        pytest.param("P-435", "as fast as requests are answered", marks=pytest.mark.rows("P-435")),
        pytest.param("P-527", "more stores where failures are more likely", marks=pytest.mark.rows("P-527")),
        pytest.param("P-590", "6. delay writes", marks=pytest.mark.rows("P-590")),
        pytest.param("T-001", "carries no message of an application", marks=pytest.mark.rows("T-001")),
        pytest.param("T-009", "multicast where the network carries it", marks=pytest.mark.rows("T-009")),
        pytest.param("T-018", "no redundancy and no interest", marks=pytest.mark.rows("T-018")),
        pytest.param("T-420", "run relay and service together", marks=pytest.mark.rows("T-420")),
    ],
)
def test_a_row_is_stated(row: str, words: str) -> None:
    assert words in LINES[row]


def test_every_statement_belongs_to_a_row_with_a_test() -> None:
    shown = marks.tests_by_row([ROOT / "tests" / "test_advice.py"])
    assert set(LINES) | {"P-442"} == set(shown)


@pytest.mark.rows("P-442")
def test_the_table_has_the_five_ways_of_recovery() -> None:
    table = TEXT.partition("## Five ways of recovery")[2]
    mechanisms = re.findall(r"^\| [^|]+ \| ([^|]+) \| [^|]+ \| `test_", table, re.MULTILINE)
    assert mechanisms == [
        "NAK",
        "late join",
        "durable receiver",
        "off-transport recovery",
        "proactive retransmission",
    ]


def test_options_of_the_chapter_exist() -> None:
    known = {option.name for scope in SCOPES.values() for option in scope}
    named = {name for name in re.findall(r"`([a-z]+[-_][\w-]+)`", TEXT) if not name.startswith("test_")}
    assert named <= known
