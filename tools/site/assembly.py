"""Assemble the source of the site and render it.

The source of the site is one folder with the layout of the tree: `handbook/` and `spec/`, and the generated pages of
the reference. The pages are plain Markdown that a forge shows as it is, and this module adds what only Sphinx knows.
Links out of these folders lead to the forge.
"""

import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.support.tree import ROOT
from tools.site import downloads, drawings, reference
from tools.site.pages import FENCE

BUILD: Final = ROOT / "build" / "site"
SOURCE: Final = BUILD / "source"
OUTPUT: Final = BUILD / "html"
FORGE: Final = "https://github.com/stablecast/stablecast/blob/main/"
LINK = re.compile(r"(\]\()(?!https?://|mailto:|#)([^)#\s]+)((?:#[^)\s]*)?\))")
PLAYGROUND: Final = "play/index.html"
MADE: Final = {
    "adapters/stablecast/client/__init__.py": "api/index.md",
    "adapters/stablecast/cli/app.py": "commands.md",
    "adapters/stablecast/ops/monitor/metrics.py": "metrics.md",
    "core/stablecast/core/errors.py": "exceptions.md",
}
"""Pages of the reference by the file of the tree that a forge shows in their place."""

CHILD: Final = re.compile(r"\]\(((?:[\w-]+/)?index\.md|[\w-]+\.md|\.\./\.\./spec/index\.md)\)")
"""A link of an index to a page of its folder, or to the index of another one: an entry of the side bar."""

INCLUDED = re.compile(r"^\[[\w.]+\]\(((?:\.\./)*examples/[\w.]+\.py)\)$", re.MULTILINE)
DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
REDIRECT: Final = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>stablecast</title>'
    '<meta http-equiv="refresh" content="0; url=handbook/index.html">\n'
)


def assemble(source: Path = SOURCE) -> None:
    shutil.rmtree(source, ignore_errors=True)
    for folder in ("handbook", "spec"):
        shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__", "play"))
    shutil.copytree(ROOT / "examples", source / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    (source / "spec" / "README.md").rename(source / "spec" / "index.md")
    shutil.move(source / "handbook" / "conf.py", source / "conf.py")
    shutil.move(source / "handbook" / "static", source / "static")
    for path in downloads.unpacked(downloads.MERMAID):
        shutil.copy(path, source / "static")
    reference.write(source / "handbook" / "reference")
    for page in source.rglob("*.md"):
        text = captioned(page.read_text(encoding="utf-8"))
        text = INCLUDED.sub(r"```{literalinclude} \1\n:language: python\n```", text)
        text = drawn(relinked(text, page.relative_to(source)), recorded=page.parent.name == "examples")
        text = with_contents(text) if page.name == "index.md" and page.parent.name != "spec" else text
        page.write_text(drawings.drawn(text), encoding="utf-8")
    _add_contents(source / "spec")


def captioned(text: str) -> str:
    """Return the text of a page whose captions are part of their blocks."""
    caption = r"```{code-block} \g<language>\n:caption: \g<caption>\n\n\g<body>```"
    return FENCE.sub(lambda found: found.expand(caption) if found["caption"] else found[0], text)


def with_contents(text: str) -> str:
    """Return an index with the pages that it links, in its order, as entries of the side bar."""
    listed = "\n".join(dict.fromkeys(one.removesuffix(".md") for one in CHILD.findall(text)))
    return f"{text}\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n" if listed else text


def drawn(text: str, *, recorded: bool) -> str:
    """Return the text of a page with its diagrams: drawn here if they are of recorded runs, else for a script."""

    def replace(found: re.Match[str]) -> str:
        made = f'<pre class="mermaid">{html.escape(found[1])}</pre>'
        return f"```{{raw}} html\n{drawings.sequence(found[1]) if recorded else made}\n```"

    return DIAGRAM.sub(replace, text)


def relinked(text: str, page: Path) -> str:
    """Return the text of a page with links to other folders of the tree replaced by links to the forge."""

    def replace(found: re.Match[str]) -> str:
        target = (Path("/") / page.parent / found[2]).resolve().relative_to("/")
        if target == Path("spec/README.md"):
            return f"{found[1]}{found[2].replace('README.md', 'index.md')}{found[3]}"
        if target.as_posix() in MADE:
            made = Path("handbook/reference", MADE[target.as_posix()])
            return f"{found[1]}{os.path.relpath(made, page.parent)}{found[3]}"
        if target.parts[:1] in (("handbook",), ("spec",)):
            return found[0]
        return f"{found[1]}{FORGE}{target.as_posix()}{found[3]}"

    # The page that runs the core is none of Sphinx's, so its link is plain HTML.
    text = re.sub(rf"\[([^\]]+)\]\({PLAYGROUND}\)", rf'<a href="../{PLAYGROUND}">\1</a>', text)
    return LINK.sub(replace, text)


def _add_contents(spec: Path) -> None:
    """Give the specification a table of contents for the side bar, in the order of its README."""
    index = spec / "index.md"
    text = index.read_text(encoding="utf-8")
    chapters = dict.fromkeys(re.findall(r"^\| \[[^\]]+\]\((\w+)\.md\)", text, re.MULTILINE))
    listed = "\n".join(chapters)
    index.write_text(f"{text}\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n", encoding="utf-8")


def render(source: Path = SOURCE, output: Path = OUTPUT) -> int:
    """Run Sphinx, in which a warning is an error; return its exit status."""
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-j", "auto"]
    status = subprocess.run([*command, source, output], cwd=ROOT, check=False).returncode
    (output / "index.html").write_text(REDIRECT, encoding="utf-8")
    return status
