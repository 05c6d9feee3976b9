"""An extension of Sphinx: a link to the glossary shows the meaning of its word when the pointer rests on it."""

import re
from pathlib import Path
from typing import Any, Final

from tests.support.tree import ROOT

GLOSSARY: Final = ROOT / "spec" / "glossary.md"
ROW = re.compile(r"^\| ([^|]+?) \| ([^|]+?) \| [^|]* \|$", re.MULTILINE)
HEAD: Final = "word"


def meanings(path: Path = GLOSSARY) -> dict[str, str]:
    """Return the meaning of each word of the glossary; a row with several words counts for each."""
    found: dict[str, str] = {}
    for words, meaning in ROW.findall(path.read_text(encoding="utf-8")):
        text = re.sub(r"[`*]|\]\([^)]*\)|\[", "", meaning)
        head = re.sub(r"[`*]", "", words)
        for word in [head, head.partition(" (")[0], *head.split(", ")]:
            if word != HEAD:
                found.setdefault(word.lower(), text)
    return found


def meaning_of(text: str, known: dict[str, str]) -> str | None:
    """Return the meaning of a word of a page, also of its plural and of common forms; None if there is none."""
    word = re.sub(r"\s+", " ", text.lower().strip())
    forms = [word, word.removesuffix("s"), word.removesuffix("es"), re.sub(r"ies$", "y", word)]
    forms += [word.removesuffix("ed"), word.removesuffix("d"), f"{word.removesuffix('ing')}e"]
    return next((known[form] for form in forms if form in known), None)


def _explain(app: Any, doctree: Any, _: str) -> None:
    from docutils import nodes  # noqa: PLC0415 - the tests of the pages do without Sphinx

    known = meanings()
    for reference in doctree.findall(nodes.reference):
        if re.search(r"glossary\.html(?:#|$)", reference.get("refuri", "")):
            meaning = meaning_of(reference.astext(), known)
            if meaning is not None:
                reference["reftitle"] = meaning
                reference["classes"].append("term")


def setup(app: Any) -> dict[str, bool]:
    app.connect("doctree-resolved", _explain)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
