"""Chapters of the specification agree with the code, and cite existing files, tests and rules."""

import os
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from stablecast.core.protocol import request_window
from stablecast.core.protocol.repairs import Repair
from stablecast.core.store import retransmission
from tests.support.chapters import CHARTS, RENDERERS, blocks, constants, rendered, tables
from tests.support.tree import ROOT, name, python_files
from tools.rows import chapter as row_table

SPEC = ROOT / "spec"
CHAPTERS = sorted(SPEC.glob("*.md"))
TEXTS = {path: path.read_text(encoding="utf-8") for path in CHAPTERS}
COMPARED = [(path, table) for path, text in TEXTS.items() for table in tables(text)]

RULE = re.compile(r"\b(?:[PRTM]-\d{3}|T\d{1,2}|U\d{1,2}|C-\d{2})\b")
CITED_FILE = re.compile(r"`((?:tests|adapters|core|transports|examples)/[\w/.-]+)`")
CITED_TEST = re.compile(r"`(test_\w+)`")
CITED_MODULE = re.compile(r"`(stablecast(?:\.[a-z_]+)+)`")
FORMAL = re.compile(r"formal(?: design,)? 7\.(\d+)")
LAST_FINDING = 11
ANCHORED = re.compile(r"\]\((?!https?:)([\w./-]*)#([\w-]+)\)")
CODE = re.compile(r"(?:\b(Oddity|Finding)\(|\b_(odd)\()\s*\"([a-z-]+)\"")


def codes(kind: str) -> set[str]:
    """Return the codes of the oddities, or of the findings, in the core."""
    sources = "\n".join(path.read_text(encoding="utf-8") for path in python_files("core"))
    return {code for first, second, code in CODE.findall(sources) if kind in (first, second.replace("odd", "Oddity"))}


def first_cells(text: str, heading: str) -> set[str]:
    table = re.search(rf"^#+ {re.escape(heading)}$.*?((?:^\|[^\n]*\n)+)", text, re.MULTILINE | re.DOTALL)
    assert table is not None, f"there is no table below '{heading}'"
    return {line.split("|")[1].strip(" `") for line in table[1].splitlines()[2:]}


def headings(path: Path) -> set[str]:
    """Return the anchors of a document's headings, as the usual renderers make them."""
    titles = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_rendered_blocks_agree_with_the_code(chapter: Path) -> None:
    if os.environ.get("STABLECAST_REWRITE"):
        chapter.write_text(rendered(chapter.read_text(encoding="utf-8")), encoding="utf-8")
    text = chapter.read_text(encoding="utf-8")
    assert text == rendered(text), "STABLECAST_REWRITE=1 pytest tests/test_chapters.py renders it anew"


def test_every_chart_is_shown_once() -> None:
    assert sorted(shown for text in TEXTS.values() for shown in blocks(text, "chart")) == sorted(CHARTS)


@pytest.mark.parametrize(("chapter", "table"), COMPARED, ids=[table[0] for _, table in COMPARED])
def test_written_tables_agree_with_the_code(
    chapter: Path, table: tuple[str, list[tuple[str, str]], list[tuple[str, str]]]
) -> None:
    path, written, expected = table
    assert sorted(written) == sorted(expected), f"{name(chapter)}, {path}"


def test_every_event_message_and_flag_is_compared() -> None:
    flags = ("Registration", "Stable", "NotStable", "Confirm", "Liveness")
    unions = {f"core.protocol.events.{role}Event" for role in ("Source", "Receiver", "Store")} | {
        "core.protocol.messages.Message"
    }
    assert unions | {f"core.protocol.events.{flag}Flag" for flag in flags} <= {table[0] for _, table in COMPARED}


@pytest.mark.parametrize(
    ("chapter", "heading", "kind"),
    [("events.md", "Oddities", "Oddity"), ("source.md", "Findings", "Finding")],
)
def test_every_code_is_explained(chapter: str, heading: str, kind: str) -> None:
    assert first_cells(TEXTS[SPEC / chapter], heading) == codes(kind)


def test_every_repair_has_its_decision() -> None:
    text = TEXTS[SPEC / "decisions.md"]
    assert [repair.name for repair in Repair if f"`{repair.name}`" not in text] == []


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_links_between_chapters_lead_to_a_heading(chapter: Path) -> None:
    links = [(chapter.parent / (file or chapter.name), anchor) for file, anchor in ANCHORED.findall(TEXTS[chapter])]
    wrong = [f"{name(path)}#{anchor}" for path, anchor in links if anchor not in headings(path)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_citations_of_a_chapter_exist(chapter: Path) -> None:
    """Citations are rules, findings, files, tests and modules."""
    text = TEXTS[chapter]
    known = {*row_table.committed(), *row_table.other_rules(TEXTS[SPEC / "rows.md"])}
    sources = "\n".join(path.read_text(encoding="utf-8") for path in python_files("tests"))
    wrong = sorted(set(RULE.findall(text)) - set(known))
    wrong += [f"formal 7.{found}" for found in FORMAL.findall(text) if not 1 <= int(found) <= LAST_FINDING]
    wrong += [file for file in CITED_FILE.findall(text) if not (ROOT / file).exists()]
    wrong += [test for test in CITED_TEST.findall(text) if f"def {test}(" not in sources]
    wrong += [module for module in CITED_MODULE.findall(text) if not _exists(module)]
    assert not wrong, "\n".join(wrong)


def _exists(path: str) -> bool:
    """Return whether the path names a module or a name in one."""
    module, _, member = path.rpartition(".")
    try:
        return find_spec(path) is not None
    except ModuleNotFoundError:
        found = find_spec(module)
        return found is not None and f" {member}" in Path(found.origin or "").read_text(encoding="utf-8")


def test_a_block_is_rendered_and_the_rest_left_alone() -> None:
    text = "before\n<!-- bounds: store.deadline_queue -->\nold\n<!-- end -->\nafter\n"
    assert rendered(text) == (
        "before\n<!-- bounds: store.deadline_queue -->\n\n"
        "| constant | value | meaning |\n|---|---|---|\n\n<!-- end -->\nafter\n"
    )
    assert set(RENDERERS) == {"chart", "bounds", "options", "planted", "rules", "catalogue", "properties"}


def test_a_different_table_is_detected() -> None:
    rows = "| role | value |\n|---|---|\n| STORE | 0 |\n| `SOURCE` | 1 |\n"
    text = f"<!-- members: core.protocol.messages.Role -->\n\n{rows}"
    [(path, written, expected)] = tables(text)
    assert path == "core.protocol.messages.Role"
    assert written == [("STORE", "0"), ("SOURCE", "1")]
    assert expected == [("STORE", "0"), ("RECEIVER", "1"), ("SOURCE", "2")]


def test_documented_numbers_are_the_bounds_of_a_module() -> None:
    found = {name: value for module in (retransmission, request_window) for name, value, _ in constants(module)}
    assert found["BURST_NS"] == "100 ms"
    assert found["MAX_REQUEST_MESSAGES"] == "4,096"
