"""The generated pages of the reference: calls, commands, metrics and errors.

They are written when the site is built, from the code that is installed, so none can be stale.
"""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import typer

from stablecast.cli.app import app
from stablecast.client.delivery import IteratedReceiver
from stablecast.core.errors import StablecastError
from stablecast.core.protocol.messages import Refusal, Refused, Role
from stablecast.core.protocol.refusals import sentence
from stablecast.ops.monitor.metrics import exposition
from stablecast.text.exit_status import FAILED, INTERRUPTED

MODULES: Final = {
    "stablecast.client": "The client for asyncio",
    "stablecast.sync": "The client that blocks",
    "stablecast.typed": "Typed payloads",
    "stablecast.testing": "Tests of applications",
    "stablecast.core": "The core, for embedders",
    "stablecast.core.protocol.events": "Events",
}
"""The public modules with their titles."""

HELP = re.compile(r"^# HELP (\S+) (.*)\n# TYPE \S+ (\S+)$", re.MULTILINE)
RULE = re.compile(r" \((?:[A-Z]-?\d+(?:, )?)+\)")
STATUSES: Final = {
    0: "The command did what it was asked.",
    FAILED: "It failed, or a judge found something. One sentence on standard error names the object and the remedy.",
    2: "An option or argument is wrong. The text names it; `--help` ends with an example.",
    INTERRUPTED: "An interrupt ended it early.",
}
"""Exit statuses of all commands."""

SPACES = re.compile(r"\s+")


def write(folder: Path) -> None:
    api = folder / "api"
    api.mkdir(parents=True, exist_ok=True)
    for module in MODULES:
        (api / f"{module}.md").write_text(api_page(module), encoding="utf-8")
    (api / "index.md").write_text(api_index(), encoding="utf-8")
    (folder / "commands.md").write_text(commands_page(), encoding="utf-8")
    (folder / "metrics.md").write_text(metrics_page(), encoding="utf-8")
    (folder / "exceptions.md").write_text(exceptions_page(), encoding="utf-8")


# ------------------------------------------------------------------------------------------------------------- calls


def public(module: str) -> dict[str, Any]:
    """Return the public objects of a module by name: those of `__all__`, or the classes that it defines."""
    found = importlib.import_module(module)
    names = getattr(found, "__all__", None)
    if names is None:
        names = [name for name, value in vars(found).items() if inspect.isclass(value) and value.__module__ == module]
    return {name: getattr(found, name) for name in names if not name.startswith("_")}


def api_page(module: str) -> str:
    """Return the page of a module, whose content Sphinx takes from types and docstrings."""
    lines = [f"# {MODULES[module]}", "", f"`{module}`", "", "```{eval-rst}", f".. currentmodule:: {module}", ""]
    for name, value in public(module).items():
        if inspect.isclass(value):
            lines += [f".. autoclass:: {name}", "   :members:", "   :special-members: __aiter__, __iter__"]
            if issubclass(value, IteratedReceiver):
                lines.append("   :inherited-members: object")
            lines.append("")
        elif inspect.isroutine(value):
            lines += [f".. autofunction:: {name}", ""]
        elif inspect.ismodule(value):
            lines += [f"``{name}``", f"   {first_sentence(value.__doc__)}", ""]
    return "\n".join([*lines, "```", ""])


def api_index() -> str:
    rows = [
        f"| [`{module}`]({module}.md) | {title} | {', '.join(f'`{name}`' for name in list(public(module))[:6])} ... |"
        for module, title in MODULES.items()
    ]
    head = ["# Calls", "", "The pages come from the types and docstrings of the code.", "", "| module | for | names |"]
    listed = ["", "```{toctree}", ":hidden:", "", *MODULES, "```", ""]
    return "\n".join([*head, "|---|---|---|", *rows, *listed])


def first_sentence(text: str | None) -> str:
    return SPACES.sub(" ", (text or "").strip().partition("\n\n")[0])


# ---------------------------------------------------------------------------------------------------------- commands


def commands_page() -> str:
    """Return the page of all commands, made from their declarations as the manual pages are."""
    lines = ["# Commands", "", "`stablecast manual DIRECTORY` writes the same text as manual pages.", ""]
    return "\n".join([*lines, *_command(typer.main.get_command(app), ("stablecast",), None)])


def _command(command: Any, path: tuple[str, ...], parent: Any) -> Iterator[str]:
    with command.make_context(path[-1], [], parent=parent, resilient_parsing=True) as context:
        usage = " ".join([*path, *command.collect_usage_pieces(context)])
        yield from (f"{'#' * min(len(path) + 1, 4)} {' '.join(path)}", "")
        yield from (_escaped((command.help or "").partition("Example:")[0]), "", "```text", usage, "```", "")
        records = [
            parameter.get_help_record(context)
            for parameter in command.params
            if not getattr(parameter, "hidden", False)
        ]
        if any(records):
            yield from ("| option | meaning |", "|---|---|")
            yield from (f"| `{term}` | {_escaped(text)} |" for term, text in filter(None, records))
            yield ""
        below = getattr(command, "commands", {})
        for name in command.list_commands(context) if below else ():
            yield from _command(below[name], (*path, name), context)


def _escaped(text: str) -> str:
    return re.sub(r"([|<>*_\[\]])", r"\\\1", SPACES.sub(" ", text).strip())


# --------------------------------------------------------------------------------------------------- metrics, errors


def metrics_page() -> str:
    """Return the page of the metrics, from the answer of a monitor without stores."""
    rows = [f"| `{name}` | {kind} | {_escaped(text)} |" for name, text, kind in HELP.findall("".join(exposition([])))]
    head = ["# Metrics", "", "A daemon with a [monitor](../../spec/monitor.md) serves them at `/metrics`.", ""]
    return "\n".join([*head, "| metric | kind | meaning |", "|---|---|---|", *rows, ""])


def exceptions_page() -> str:
    """Return the page of errors: exceptions of programs, refusals of stores by code, exit statuses of commands."""
    found = [value for value in public("stablecast.client").values() if _is_error(value)]
    core = [value for value in vars(importlib.import_module("stablecast.core.errors")).values() if _is_error(value)]
    tls = importlib.import_module("stablecast.runtime.tls").TlsError
    lines = [
        "# Errors",
        "",
        "## Exceptions",
        "",
        "Each is a `StablecastError`. Its text names the object and the remedy.",
    ]
    lines += ["[Ways to hold the client wrong](../../spec/misuse.md) has the texts.", ""]
    lines += ["| exception | module | cause and remedy |", "|---|---|---|"]
    for value in dict.fromkeys([*found, *core, tls]):
        module = value.__module__.rpartition(".")[0] or value.__module__
        lines.append(f"| `{value.__name__}` | `{module}` | {_escaped(RULE.sub('', value.__doc__ or ''))} |")
    lines += ["", "## Refusals of a store", "", "The event `RegistrationError` and the log have the text.", ""]
    lines += ["| code | name | cause and remedy |", "|---|---|---|"]
    lines += [f"| {int(code)} | `{code.name}` | {_escaped(_refusal(code))} |" for code in Refusal]
    lines += ["", "## Exit statuses of commands", "", "| status | cause and remedy |", "|---|---|"]
    lines += [f"| {status} | {text} |" for status, text in STATUSES.items()]
    return "\n".join([*lines, ""])


def _refusal(code: Refusal) -> str:
    """Return what the client reports for a refusal, without the store and the RegID."""
    held = 21_000 if code in (Refusal.HELD_BY_RECEIVER, Refusal.HELD_BY_SOURCE) else 0
    text = sentence("STORE", Refused(Role.SOURCE, 0, 1, 1000, 9, code, held_ms=held))
    return text.partition(": ")[2]


def _is_error(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, StablecastError)
