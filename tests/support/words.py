"""Advice about wording: plain sentences, imperative docstrings, nouns as names, comments that say why, short functions.

`make words` prints it for the files that changed, `make words ARGS=all` for all. It fails nothing: a reader decides.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs

from tests.support.changed import changed
from tests.support.tree import LAYERS, ROOT, name, python_files

SENTENCE_WORDS: Final = 25
"""Words of a sentence in a document."""

DOCSTRING_CHARACTERS: Final = 25
"""Characters of a public docstring; shorter ones repeat the name."""

CODE_PER_WHY: Final = 60
"""Lines of code for each comment inside functions, in the rooms where a wrong change costs most."""

WHY_LINES: Final = 200
"""Lines of code from which a file is asked for comments."""

FUNCTION_LINES: Final = 60
"""Lines of one function from `def` to its end, without its docstring."""

FILE_LINES: Final = 500

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

ARTICLES: Final = frozenset({"a", "an", "the", "of", "this", "it", "its", "return", "to"})
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


def documents() -> list[Path]:
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
            words = set(re.findall(r"[a-z]+", text.lower())) - ARTICLES
            if words <= set(re.findall(r"[a-z]+", called.lower())):
                yield Mistake(f"{name(path)}:{node.lineno}", f"{called}: {text[:70]}")


def doubtful_names(path: Path) -> Iterator[Mistake]:
    """Find a module or chapter that is named by an activity, a metaphor or a second word for one thing."""
    words = set(path.stem.split("_"))
    if path.stem.endswith("ing") and "_" not in path.stem and path.stem not in GERUNDS:
        yield Mistake(name(path), "named by an activity")
    for word in sorted(words & (METAPHORS | SYNONYMS.keys())):
        yield Mistake(name(path), f"'{word}': {SYNONYMS.get(word, 'a metaphor')}")


def long_code(path: Path) -> Iterator[Mistake]:
    """Find long files and functions; docstrings do not count."""
    source = _read(path)
    if (lines := len(source.splitlines())) > FILE_LINES:
        yield Mistake(name(path), f"{lines} lines")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            lines = 1 + (node.end_lineno or node.lineno) - first.lineno
            if lines > FUNCTION_LINES:
                yield Mistake(f"{name(path)}:{node.lineno}", f"{node.name} has {lines} lines")


def few_comments(path: Path) -> Iterator[Mistake]:
    """Find long files of tricky rooms with few comments inside functions."""
    code, comments = why_comments(_read(path))
    if name(path).startswith(WHY_ROOMS) and code > WHY_LINES and comments * CODE_PER_WHY < code:
        yield Mistake(name(path), f"{comments} comments in {code} lines of code")


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


EVERYWHERE: Final = (headless_docstrings, headless_comments, long_code)
IN_PRODUCTS: Final = (short_docstrings, repeating_docstrings, few_comments, doubtful_names)
IN_DOCUMENTS: Final = (headless_sentences, long_sentences, doubtful_names)


def checks(path: Path) -> tuple[Callable[[Path], Iterator[Mistake]], ...]:
    if path in documents():
        return IN_DOCUMENTS
    return EVERYWHERE + (IN_PRODUCTS if name(path).startswith(LAYERS) else ())


def main(arguments: list[str]) -> int:
    """Print the advice for changed files, or for all; return 0."""
    files = [*python_files(*LAYERS, "tests", "tools", "examples"), *documents()]
    known = None if arguments == ["all"] else changed()
    for path in files:
        if known is None or name(path) in known:
            for check in checks(path):
                for found in check(path):
                    print(f"{found.place}: {check.__name__.replace('_', ' ')}: {found.text}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
