"""The language of the project: plain sentences, imperative docstrings, nouns as names, comments that say why.

A machine sees only the common mistakes. `ALLOWED` counts those that are left, room by room; it may only shrink.
`python -m tests.test_language` lists them with file and line.
"""

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import attrs
import pytest

from tests.support.tree import LAYERS, ROOT, name, python_files

SENTENCE_WORDS: Final = 25
"""Words of a sentence in a document."""

DOCSTRING_CHARACTERS: Final = 25
"""Characters of a public docstring; shorter ones repeat the name."""

CODE_PER_WHY: Final = 60
"""Lines of code for each comment inside functions, in the rooms where a wrong change costs most."""

WHY_ROOMS: Final = (
    "core/stablecast/core",
    "adapters/stablecast/store/journal",
    "adapters/stablecast/runtime",
    "transports/stablecast/transports/reliable",
)

DOCUMENTS: Final = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "spec/*.md",
    "handbook/**/*.md",
)

HEADLESS = re.compile(r"^(?:What|Who|Whom|Whose|Whether|Whatever|Whoever|Which|How|So many|Of (?!course\b))\b")
"""A sentence that begins with a clause in place of a subject. A question may."""

GERUNDS: Final[Mapping[str, str]] = {
    "encoding": "the field's word for messages to bytes",
    "decoding": "the field's word for bytes to messages",
    "testing": "the user's word for the plugin, as in unittest and numpy.testing",
    "embedding": "a chapter about an activity of the reader",
}
"""Modules and chapters that are named by a gerund, each with its reason."""

METAPHORS: Final = frozenset({"berth", "berths", "inlet", "peace", "room", "shelf", "agenda", "lifeline"})

SYNONYMS: Final[Mapping[str, str]] = {
    "admission": "registration",
    "admitting": "registration",
    "enlistment": "registration",
    "enrollment": "registration",
    "whereabouts": "address",
}
"""Near-synonyms in names of modules and classes, each with the word to use."""

FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
MARKUP = re.compile(r"<!--.*?-->|`[^`]*`|\]\([^)]*\)|https?://\S+", re.DOTALL)
END = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`\[*\"(\d])|\n")

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@attrs.frozen
class Mistake:
    """A place (`file:line`) and the words that are wrong there."""

    place: str
    text: str


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


# ------------------------------------------------------------------------------------------------------- documents


def documents() -> list[Path]:
    """The documents that people read."""
    return sorted(path for pattern in DOCUMENTS for path in ROOT.glob(pattern))


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Each sentence of a document with its line; code blocks, headings, tables and link targets are left out."""
    blank = FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    paragraph: list[str] = []
    begin = 0
    for number, line in enumerate([*blank.splitlines(), ""], 1):
        bare = "" if line.startswith("    ") else line.strip()  # indented lines are code
        item = re.match(r"(?:[-*]|\d+\.) +", bare)
        if paragraph and (not bare or item or bare.startswith(("|", "#", ">"))):
            yield from ((begin, part) for part in _split(" ".join(paragraph)))
            paragraph = []
        if bare and not bare.startswith(("|", "#", "<!--")):
            begin = begin if paragraph else number
            paragraph.append(bare[item.end() :] if item else bare)


def _split(paragraph: str) -> list[str]:
    plain = MARKUP.sub(lambda found: "x" if found[0].startswith("`") else "]", paragraph)
    return [part for part in re.split(r"(?<=[.!?])[)\"*]*\s+", plain) if part]


def long_sentences(path: Path) -> Iterator[Mistake]:
    """The sentences with more words than a reader keeps in mind."""
    for line, sentence in sentences(_read(path)):
        words = len(re.findall(r"[\w'/-]+", sentence))
        if words > SENTENCE_WORDS:
            yield Mistake(f"{name(path)}:{line}", f"{words} words: {sentence[:70]}")


def headless_sentences(path: Path) -> Iterator[Mistake]:
    """The sentences that begin with a clause in place of a subject."""
    for line, sentence in sentences(_read(path)):
        if HEADLESS.match(sentence.lstrip("*_")) and not sentence.endswith("?"):
            yield Mistake(f"{name(path)}:{line}", sentence[:70])


# ------------------------------------------------------------------------------------------------------------- code


def docstrings(path: Path) -> Iterator[tuple[Documented, str, str]]:
    """Each docstring of a file: its node, the name that it documents, and its text."""
    for node in ast.walk(ast.parse(_read(path))):
        if isinstance(node, Documented) and (text := ast.get_docstring(node)):
            yield node, getattr(node, "name", path.stem), text


def headless_docstrings(path: Path) -> Iterator[Mistake]:
    """The docstrings that begin with a clause in place of a verb or a noun."""
    for node in ast.walk(ast.parse(_read(path))):
        match node:  # Docstrings of constants and attributes are such expressions, too.
            case ast.Expr(value=ast.Constant(value=str(text))) if HEADLESS.match(text):
                yield Mistake(f"{name(path)}:{node.lineno}", text[:70])


def headless_comments(path: Path) -> Iterator[Mistake]:
    """Find the comments that begin with a clause in place of a subject."""
    for token in tokenize.generate_tokens(io.StringIO(_read(path)).readline):
        text = token.string.lstrip("# ")
        if token.type is tokenize.COMMENT and HEADLESS.match(text) and not text.endswith("?"):
            yield Mistake(f"{name(path)}:{token.start[0]}", text[:70])


def short_docstrings(path: Path) -> Iterator[Mistake]:
    """The public docstrings that are too short to tell more than the name."""
    for node, called, text in docstrings(path):
        if not called.startswith("_") and len(text) < DOCSTRING_CHARACTERS and not isinstance(node, ast.Module):
            yield Mistake(f"{name(path)}:{getattr(node, 'lineno', 1)}", f"{called}: {text}")


def repeating_docstrings(path: Path) -> Iterator[Mistake]:
    """The docstrings of functions that say nothing but the name."""
    for node, called, text in docstrings(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            words = set(re.findall(r"[a-z]+", text.lower())) - {
                "a",
                "an",
                "the",
                "of",
                "this",
                "it",
                "its",
                "return",
                "to",
            }
            if words <= set(re.findall(r"[a-z]+", called.lower())):
                yield Mistake(f"{name(path)}:{node.lineno}", f"{called}: {text[:70]}")


CHECKS: Final[Mapping[str, Callable[[Path], Iterator[Mistake]]]] = {
    "headless": headless_docstrings,
    "short": short_docstrings,
    "repeating": repeating_docstrings,
}


def room(path: Path) -> str:
    """The room of a file: the first two folders inside the portion, or the folder of tests."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[2:4][: max(1, len(parts) - 3)]) if parts[0] in LAYERS else parts[0]


@cache
def mistakes() -> dict[str, list[Mistake]]:
    """The mistakes of each kind in code and documents."""
    kinds = (*CHECKS, "comment: headless", "document: headless", "document: long")
    found: dict[str, list[Mistake]] = {kind: [] for kind in kinds}
    for path in python_files(*LAYERS):
        for kind, check in CHECKS.items():
            found[kind] += check(path)
    for path in python_files(*LAYERS, "tests", "examples"):
        found["comment: headless"] += headless_comments(path)
    for path in python_files("tests", "examples"):
        found["headless"] += headless_docstrings(path)
    for path in documents():
        found["document: headless"] += headless_sentences(path)
        found["document: long"] += long_sentences(path)
    return found


ALLOWED: Final[Mapping[str, int]] = {
    "headless": 0,
    "short": 35,
    "repeating": 0,
    "comment: headless": 0,
    "document: headless": 0,
    "document: long": 10,
}
"""Mistakes of each kind that are left. A number may only shrink."""


@pytest.mark.parametrize("kind", ALLOWED)
def test_mistakes_only_become_fewer(kind: str) -> None:
    found = mistakes()[kind]
    listed = "\n".join(f"{mistake.place}: {mistake.text}" for mistake in found)
    assert len(found) <= ALLOWED[kind], f"more than {ALLOWED[kind]}:\n{listed}"
    assert len(found) == ALLOWED[kind], f"only {len(found)} are left: lower ALLOWED[{kind!r}]"


# ------------------------------------------------------------------------------------------------------------ names


def test_modules_are_named_by_nouns_of_the_field() -> None:
    stems = {path: path.stem for path in [*python_files(*LAYERS), *ROOT.glob("spec/*.md")]}
    wrong = [
        name(path)
        for path, stem in stems.items()
        if (stem.endswith("ing") and "_" not in stem and stem not in GERUNDS)
        or METAPHORS & set(stem.split("_"))
        or SYNONYMS.keys() & set(stem.split("_"))
    ]
    assert not wrong, "\n".join(wrong)


def test_public_classes_have_names_of_their_own() -> None:
    found: dict[str, list[str]] = {}
    for path in python_files(*LAYERS):
        for node in ast.parse(_read(path)).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(name(path))
    twice = {called: places for called, places in found.items() if len(places) > 1 and called not in SAME_NAME}
    assert not twice, "\n".join(f"{called}: {', '.join(places)}" for called, places in sorted(twice.items()))


_WIRE = "a structure on the wire has the name that the public dissectors give it, in the module of its protocol"
_CLIENT = "the client's public name for what an application sends, gets or catches"
_BLOCKING = "the client that blocks has the names of the one that awaits"
SAME_NAME: Final[Mapping[str, str]] = {
    **dict.fromkeys(("Ack", "Data", "Election", "ElectionToken", "Keepalive", "Nak", "Ncf", "Option", "Packet"), _WIRE),
    **dict.fromkeys(("Request", "Reset", "RouteInfo", "SessionMessage", "SourceInfo", "Store"), _WIRE),
    **dict.fromkeys(("Batch", "Message", "NotStable", "Sent"), _CLIENT),
    **dict.fromkeys(
        ("Context", "GroupReceiver", "Reader", "Receiver", "Source", "WildcardReceiver"),
        "the client that blocks has the names of the one that awaits",
    ),
}
"""Names that two classes share, each with the reason."""


# --------------------------------------------------------------------------------------------------------- comments


def why_comments(source: str) -> tuple[int, int]:
    """Count the lines of code in a source, and the comments inside its functions."""
    spans = [
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    code: set[int] = set()
    comments = 0
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            machine = token.string.startswith(("# noqa", "# type:", "# fmt:", "# ruff:"))
            comments += not machine and any(token.start[0] in span for span in spans)
        elif token.type not in skipped and not (token.type == tokenize.STRING and token.line.strip().startswith('"""')):
            code.add(token.start[0])
    return len(code), comments


@pytest.mark.parametrize("folder", WHY_ROOMS)
def test_tricky_rooms_say_why(folder: str) -> None:
    lines, comments = map(sum, zip(*(why_comments(_read(path)) for path in python_files(folder)), strict=True))
    assert comments * CODE_PER_WHY >= lines, f"{comments} comments in {lines} lines of code"


# -------------------------------------------------------------------------------------------------- the guard itself


def test_the_mistakes_of_a_text_are_found(tmp_path: Path) -> None:
    text = (
        "# What a heading may do\n\nWhat was sent is gone. Is it? It is.\n\n- Who asks, gets.\n\n```\nWho\n```\n"
        + "word " * 30
    )
    assert [sentence for _, sentence in sentences(text)][:4] == [
        "What was sent is gone.",
        "Is it?",
        "It is.",
        "Who asks, gets.",
    ]
    source = 'def sent():\n    """Sent."""\n\n\ndef lost():\n    """What was lost on the way."""\n    x = 1  # why\n'
    assert why_comments(source) == (3, 1)
    path = ROOT / "tests" / "test_language.py"
    assert list(headless_docstrings(path)) == []


if __name__ == "__main__":
    for kind, listed in mistakes().items():
        places = Counter(mistake.place.partition(":")[0] for mistake in listed)
        print(f"{kind}: {len(listed)} in {len(places)} files")
        if kind in sys.argv[1:]:
            print("\n".join(f"  {mistake.place}: {mistake.text}" for mistake in listed))
