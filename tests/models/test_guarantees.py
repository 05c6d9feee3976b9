"""The chapter of guarantees: what it names as evidence exists, what there is is named, and its bounds are rendered."""

import os
import re
from collections.abc import Iterable

import pytest

from stablecast.evidence.rules.judges import ONE_TRACE, SIMULATOR, TRACES_TOGETHER
from stablecast.lab.model import catalog
from tests.support.evidence import BLOCK, MODELS, Evidence, Model, rows, section, spans
from tests.support.tree import ROOT

PAGE = ROOT / "spec" / "guarantees.md"
TEXT = PAGE.read_text(encoding="utf-8")
EVIDENCE = Evidence.read(catalog.folder())
KINDS = ["comes from", "model", "one trace", "traces together", "simulator", "tests", "not shown"]

HEADINGS = [found for found in re.findall(r"^## (.+)$", TEXT, re.MULTILINE) if "| evidence |" in section(TEXT, found)]
PROPERTY = re.compile(r"`([A-Z]\w+\.[A-Z]\w+)`")
CONFIGURATION = re.compile(r"`([A-Z]\w+/\w+)`")
RULE = re.compile(r"\b[A-Z]\d\b")
TEST = re.compile(r"`test_\w+`")


def of(heading: str) -> dict[str, str]:
    """Return the contents of a section, by kind of evidence."""
    return {row[0]: row[1] for row in rows(section(TEXT, heading))}


def named(kind: str) -> set[str]:
    """The rules that all sections name under a kind of evidence, but for those that are said not to be there."""
    return {rule for heading in HEADINGS for rule in RULE.findall(re.sub(r"None for \w\d", "", of(heading)[kind]))}


def wrong(kind: str, said: str) -> str | None:
    """Return the kinds of evidence that a section neither names nor denies."""
    pattern = {"model": PROPERTY, "tests": TEST}.get(kind, RULE)
    return (
        None
        if said.startswith("none") or kind in ("comes from", "not shown") or pattern.search(said)
        else f"{kind}: {said}"
    )


def test_the_bounds_are_those_of_the_configurations() -> None:
    if os.environ.get("STABLECAST_REWRITE"):
        PAGE.write_text(EVIDENCE.rendered(TEXT), encoding="utf-8")
    else:
        assert EVIDENCE.rendered(TEXT) == TEXT, "STABLECAST_REWRITE=1 pytest tests/models renders it anew"


def test_each_guarantee_has_a_section() -> None:
    links = list(dict.fromkeys(link for row in rows(TEXT) for link in re.findall(r"\(#([\w-]+)\)", row[2])))
    assert links == [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in HEADINGS]


@pytest.mark.parametrize("heading", HEADINGS)
def test_a_section_says_what_there_is_and_what_there_is_not(heading: str) -> None:
    said = of(heading)
    assert list(said) == KINDS
    assert [wrong(kind, text) for kind, text in said.items() if wrong(kind, text)] == []


@pytest.mark.parametrize("heading", HEADINGS)
def test_what_a_section_names_of_the_models_is_checked_there(heading: str) -> None:
    """A property is defined and must hold somewhere; a configuration that breaks a guarantee is expected to."""
    text = section(TEXT, heading)
    properties = PROPERTY.findall(of(heading)["model"])
    for stated in properties:
        model, _, name = stated.partition(".")
        assert name in Model.read(ROOT / "tla" / model / f"{model}.tla").defined, stated
        assert EVIDENCE.holds(stated), stated
    assert [one for block in BLOCK.findall(text) for one in block[1].split()] == properties
    known = {one.name: one.expected for one in EVIDENCE.every}
    for configuration in CONFIGURATION.findall(text):
        assert known[configuration].startswith("violates "), configuration


def test_every_property_stands_behind_a_guarantee() -> None:
    assert set(PROPERTY.findall(TEXT)) == EVIDENCE.properties()


@pytest.mark.parametrize(
    ("kind", "there"),
    [
        ("one trace", set(ONE_TRACE.checks)),
        ("traces together", set(TRACES_TOGETHER.checks)),
        ("simulator", set(SIMULATOR.checks) - {"X1"}),
    ],
)
def test_every_rule_that_is_watched_stands_behind_a_guarantee(kind: str, there: Iterable[str]) -> None:
    assert named(kind) == there


def test_what_is_neither_there_nor_denied_is_seen() -> None:
    assert wrong("simulator", "it looks") == "simulator: it looks"
    assert wrong("tests", "`test_something`") is None
    assert wrong("one trace", "none") is None


def test_what_values_a_constant_takes() -> None:
    first = {"A": "1", "B": "{}", "C": '"one and two"', "D": "{2}", "E": "3", "F": "{2}", "Mutant": "no"}
    second = {"A": "4", "B": '{"die", "crash"}', "C": '"three"', "D": "{2}", "E": "3", "F": "{1, 3}", "Mutant": "no"}
    said = ["A 1 to 4", "B within {crash, die}", "C one and two / three", "D {2}", "E 3", "F within {1, 2, 3}"]
    assert spans([first, second]) == "; ".join(said)


def test_properties_that_hold_alike_are_told_together() -> None:
    table = EVIDENCE.table(["Rpp.Room", "Rpp.Settled", "Rpp.Progress"])
    assert [row[0] for row in rows(table)] == ["`Rpp.Room`, `Rpp.Settled`", "`Rpp.Progress`"]
    assert rows(table)[1][2] == "none"
    assert "mut_whatever_room_bug" in rows(table)[0][4]


def test_all_models_have_a_module() -> None:
    assert {one.model for one in EVIDENCE.every} == set(MODELS)
