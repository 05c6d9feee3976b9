"""Pages of the handbook: their code blocks, and their text with other outputs.

The bold line above a fence is its caption, on a forge as on the site: a file (`orders.py`), a terminal (`Terminal 2`)
or a terminal of a host (`On store-a`). A `console` fence without a caption belongs to the first terminal. In a console
each line after `$ ` is a command, `^C` is an interrupt, and everything else is output.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

from tests.support.tree import ROOT

HANDBOOK: Final = ROOT / "handbook"
CONSOLE: Final = "console"
TERMINAL: Final = "Terminal 1"
BEFORE: Final = "Run first, each in its own terminal"
INTERRUPT: Final = "^C"
FILES: Final = ("python", "xml", "ini", "toml", "text", "yaml", "dockerfile", "json", "bash")
"""Languages of blocks that are files if they have a caption."""

FENCE = re.compile(
    r"^(?:\*\*(?P<caption>[^*\n]+)\*\*\n\n)?```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)


@attrs.frozen
class Step:
    """One command of a console with the output that the page shows. No command: output that came meanwhile."""

    command: str
    output: Sequence[str]


@attrs.frozen
class Fence:
    """A fenced block of a page: its language, its caption, its text and where the text stands."""

    language: str
    caption: str
    body: str
    span: tuple[int, int]

    @property
    def is_console(self) -> bool:
        """Return whether the block is a piece of a terminal."""
        return self.language == CONSOLE and not self.is_before

    @property
    def is_before(self) -> bool:
        """Return whether its commands run before all others, each in a terminal that the page does not show again."""
        return self.caption == BEFORE

    @property
    def is_file(self) -> bool:
        """Return whether the reader saves the block as a file."""
        return self.language in FILES and bool(self.caption)


def pages() -> list[Path]:
    """Return the pages that people wrote, sorted."""
    return sorted(path for path in HANDBOOK.rglob("*.md") if "build" not in path.relative_to(HANDBOOK).parts)


def fences(text: str) -> Iterator[Fence]:
    """Yield the fenced blocks of a page, in order."""
    for found in FENCE.finditer(text):
        caption = found["caption"] or (TERMINAL if found["language"] == CONSOLE else "")
        yield Fence(found["language"], caption, found["body"], found.span("body"))


def steps(body: str) -> list[Step]:
    """Return the commands of a console with their outputs."""
    commands: list[tuple[str, list[str]]] = []
    lines = iter(body.splitlines())
    for line in lines:
        if line.startswith("$ ") or line == INTERRUPT:
            command = line.removeprefix("$ ")
            while command.endswith("\\"):
                command += "\n" + next(lines)
            commands.append((command, []))
        else:
            if not commands:
                commands.append(("", []))
            commands[-1][1].append(line)
    return [Step(command, tuple(output)) for command, output in commands]


def console(played: Sequence[Step]) -> str:
    lines: list[str] = []
    for step in played:
        if step.command:
            lines.append(step.command if step.command == INTERRUPT else f"$ {step.command}")
        lines += step.output
    return "".join(f"{line}\n" for line in lines)


def replaced(text: str, bodies: Sequence[tuple[Fence, str]]) -> str:
    """Return the text of a page with other bodies of some fences."""
    for fence, body in sorted(bodies, key=lambda one: one[0].span, reverse=True):
        begin, end = fence.span
        text = text[:begin] + body + text[end:]
    return text
