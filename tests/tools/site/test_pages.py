"""The pages of the handbook: their programs run, their outputs are real.

`STABLECAST_REWRITE=1 pytest tests/tools/site/test_pages.py`, or `make site-outputs`, writes the outputs anew.
"""

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.tree import ROOT, name
from tools.site.assembly import INCLUDED, MADE, captioned, relinked, with_contents
from tools.site.drawings import pictures
from tools.site.links import broken
from tools.site.pages import HANDBOOK, fences, pages, steps
from tools.site.play import REWRITE, played, running
from tools.site.sequences import _names
from tools.site.sphinx_glossary import meaning_of, meanings
from tools.site.terminals import Shell

PAGES: Final = pages()
PLAYED: Final = [path for path in PAGES if any(block.is_console for block in fences(path.read_text(encoding="utf-8")))]

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

FENCED = re.compile(r"^(?:```.*?^```|\|.*?)$", re.MULTILINE | re.DOTALL)
MOST_WORDS: Final = 900
"""Words of a page without its blocks and tables."""

TO_GLOSSARY = re.compile(r"\[([^\]]+)\]\([./\w-]*glossary\.md(?:#[\w-]+)?\)")


def masked(text: str) -> str:
    """Return a text without the identities and instants that a small change of any program changes."""
    for pattern, word in VOLATILE.items():
        text = re.sub(pattern, word, text)
    return text


def silent_steps(text: str) -> list[bool]:
    """Return for each command of a page whether it prints nothing."""
    shown = (block for block in fences(text) if block.is_console)
    return [not step.output for block in shown for step in steps(block.body)]


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


SAYS: Final = re.compile("not registered with enough stores|no relay answers|no source answered|none could be joined")
"""The sentence of a program whose stores or relay are away."""

DAEMON: Final = re.compile(r"stablecast (lbmrd|store) (?!status|read|evict)")


@pytest.mark.parametrize("away", ["store", "lbmrd", "both"])
def test_each_program_of_the_pages_says_within_a_minute_who_is_away(
    away: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a relay those programs work on that know their stores and have no other program to find."""
    ran = 0
    for path in PLAYED:
        text = path.read_text(encoding="utf-8")
        files = {block.caption: block.body for block in fences(text) if block.is_file}
        shown = [step.command for block in fences(text) if block.is_console for step in steps(block.body)]
        commands = list(dict.fromkeys([*running(text), *shown]))
        with Shell().open() as shell:
            for name_, body in files.items():
                shell.save("", name_, body)
            for number, command in enumerate(commands):
                found = DAEMON.search(command)
                if found and away not in ("both", found[1]):
                    shell.run(f"daemon {number}", command)
                program = command.removeprefix("python ").split(" ", 1)[0]
                if command == f"python {program}" and "Context(" in files.get(program, ""):
                    caplog.clear()
                    lines = shell.run(program, command)
                    shell.run("clock", "sleep 60")
                    told = "\n".join([*lines, *shell.output(program), *caplog.messages])
                    assert SAYS.search(told) or (away == "lbmrd" and told and "Error" not in told), f"{path}: {told}"
                    ran += 1
    assert ran > 10


def _programs() -> Iterator[tuple[str, str]]:
    for path in PAGES:
        for block in fences(path.read_text(encoding="utf-8")):
            if block.language == "python":
                yield f"{name(path)}: {block.caption or block.body[:40]}", block.body


def test_the_programs_of_the_pages_are_python() -> None:
    for place, text in _programs():
        compile(text, place, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


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


def test_what_a_forge_shows_becomes_what_sphinx_knows() -> None:
    """Captions, the pages of an index, programs that the tree has, and pages that are made with the site."""
    page = "**Terminal 2**\n\n```console\n$ ls\n```\n"
    assert captioned(page) == "```{code-block} console\n:caption: Terminal 2\n\n$ ls\n```\n"
    assert captioned("```console\n$ ls\n```\n") == "```console\n$ ls\n```\n"
    index = "[one](one.md) [far](../howto/far.md) [two](two/index.md) [one](one.md) [all](../../spec/index.md)\n"
    assert with_contents(index).partition(":hidden:\n\n")[2] == "one\ntwo/index\n../../spec/index\n```\n"
    assert INCLUDED.findall("see\n\n[embed.py](../../examples/embed.py)\n") == ["../../examples/embed.py"]
    metrics = "[metrics](../../adapters/stablecast/ops/monitor/metrics.py)"
    assert relinked(metrics, Path("handbook/howto/page.md")) == "[metrics](../reference/metrics.md)"
    assert all((ROOT / file).is_file() for file in MADE)


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html#here">x</a><a href="b.html#there">x</a><a href="c.html">x</a>')
    (tmp_path / "b.html").write_text('<p id="here"><script src="https://far.example/x.js"></script>')
    assert list(broken(tmp_path)) == [
        "a.html: b.html#there has no such place",
        "a.html: c.html does not exist",
        "b.html: https://far.example/x.js comes from another host",
    ]


def test_a_picture_numbers_receivers_in_the_order_of_their_traces() -> None:
    """File 10 of a process is later than file 9."""
    records = [
        {"t": number, "n": 0, "role": "receiver", "file": f"receiver-a-4-{number}.sct", "endpoint": "a"}
        for number in (9, 10)
    ]
    assert _names(records) == {"receiver-a-4-9.sct": "receiver1", "receiver-a-4-10.sct": "receiver2"}


def test_the_pictures_are_the_drawings() -> None:
    shown = {name: (HANDBOOK / "static" / name).read_text(encoding="utf-8") for name in pictures()}
    assert shown == pictures()


def test_no_page_needs_the_site_to_be_read() -> None:
    """A forge shows a directive as code with odd first lines, and a comment not at all."""
    wrong = [name(page) for page in PAGES if re.search(r"^```\{|^<!--", page.read_text(encoding="utf-8"), re.MULTILINE)]
    assert not wrong, "\n".join(wrong)


def test_pages_are_short() -> None:
    long = {name(page): len(FENCED.sub("", page.read_text(encoding="utf-8")).split()) for page in PAGES}
    assert not {page: words for page, words in long.items() if words > MOST_WORDS}
