"""Play the pages of the handbook: run what they show and return their text with the real outputs."""

from pathlib import Path
from typing import Final

from tools.site.pages import Fence, Step, console, fences, pages, replaced, steps
from tools.site.sequences import sequence
from tools.site.terminals import Shell

REWRITE: Final = "STABLECAST_REWRITE"


def running(text: str) -> list[str]:
    """Return the commands of a page that run before its first block."""
    return [step.command for block in fences(text) if block.is_before for step in steps(block.body)]


def rewrite() -> None:
    """Write the outputs of all pages anew."""
    for path in pages():
        path.write_text(played(path), encoding="utf-8")


def played(path: Path) -> str:
    """Return the text of a page with the outputs of its commands."""
    text = path.read_text(encoding="utf-8")
    blocks = list(fences(text))
    if not any(block.is_console for block in blocks):
        return text
    with Shell().open() as shell:
        for number, command in enumerate(running(text)):
            shell.run(f"hidden {number}", command)
        return replaced(text, list(_bodies(shell, blocks)))


def _bodies(shell: Shell, blocks: list[Fence]) -> "list[tuple[Fence, str]]":
    found: list[tuple[Fence, str]] = []
    for block in blocks:
        if block.is_file:
            shell.save("", block.caption, block.body)
        elif block.is_console:
            done = [
                Step(step.command, shell.run(block.caption, step.command))
                for step in steps(block.body) or [Step("", ())]
            ]
            found.append((block, console(done)))
        elif block.language == "mermaid":
            shell.run("hidden end", "pkill -INT -f stablecast")  # a running program has not written its newest records
            shell.run("hidden end", "sleep 1")
            found.append((block, sequence(shell.run("hidden trace", "stablecast trace dump run --json"))))
    return found
