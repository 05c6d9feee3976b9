"""The entry point: what users can mend is one sentence and a status that is not 0."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from stablecast.cli import main
from stablecast.cli.app import ORDER, app
from stablecast.cli.examples import EXAMPLES
from stablecast.core.errors import StablecastError
from stablecast.text.exit_status import guarded
from tests.support.program import outcome
from tests.support.tree import PYTHON_PATH

COMPLETING = {
    "bash": {"COMP_WORDS": "stablecast rec", "COMP_CWORD": "1"},
    "zsh": {"_TYPER_COMPLETE_ARGS": "stablecast rec"},
    "fish": {"_TYPER_COMPLETE_ARGS": "stablecast rec", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}
"""The variables by which each shell asks a program for completions."""


def test_no_command_shows_the_five_that_a_user_needs_first() -> None:
    status, out, err = outcome()
    assert (status, err) == (0, "")
    assert re.findall(r"^  stablecast (\w+)", out, re.MULTILINE) == ["demo", "up", "receive", "send", "verify"]


def _paths(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if path:
        yield path
    for name, below in getattr(command, "commands", {}).items():
        yield from _paths(below, (*path, name))


def test_every_command_has_an_example_that_it_understands() -> None:
    root: Any = typer.main.get_command(app)
    assert {" ".join(path) for path in _paths(root)} == EXAMPLES.keys()
    for path, text in EXAMPLES.items():
        program, *arguments = shlex.split(text)
        assert program == "stablecast"
        assert text.startswith(f"stablecast {path}"), text
        command, context = root, None
        while hasattr(command, "resolve_command"):
            context = command.make_context(program, arguments, parent=context)
            program, command, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
        command.make_context(program, arguments, parent=context)


def test_help_ends_with_the_example() -> None:
    for arguments, example in ((("send",), EXAMPLES["send"]), (("store", "scrub"), EXAMPLES["store scrub"])):
        _, out, _ = outcome(*arguments, "--help")
        assert out.rstrip().endswith(f"Example:\n    {example}")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands(shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stablecast.cli.main"],
        env={**os.environ, "PYTHONPATH": PYTHON_PATH, **COMPLETING[shell], "_STABLECAST_COMPLETE": f"complete_{shell}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "receive" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["stroe"], "store"),
        (["demo", "--messages", "3"], "messages"),
        (["send"], "topic"),
        (["send", "orders", "--session-id", "-1"], "session-id"),
        (["receive", "orders", "--wrong"], "--wrong"),
        (["receive", "orders"], "--resolver"),
        (["up", "--stores", "0"], "stores"),
    ],
)
def test_wrong_usage_is_told_without_a_traceback(arguments: list[str], told: str) -> None:
    status, out, err = outcome(*arguments)
    assert (status, out) == (2, "")
    assert told in err
    assert "Traceback" not in err


@pytest.mark.parametrize("group", [(), ("store",), ("trace",), ("model",), ("capture",)])
def test_help_names_every_command_and_cuts_nothing_short(group: tuple[str, ...]) -> None:
    status, out, _ = outcome(*group, "--help")
    assert status == 0
    assert "..." not in out.partition("Commands:")[2]
    if not group:
        named = re.findall(r"^  (\w+)  ", out.partition("Commands:")[2], re.MULTILINE)
        assert named == list(ORDER)


def test_help_imports_nothing_that_a_command_needs() -> None:
    """`--help` waits for its imports, and each of these takes longer than all that it needs."""
    program = "import sys, stablecast.cli.app; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    heavy = {"asyncio", "attrs", "lxml", "pyarrow", "pyspark", "rich", "statemachine", "uvloop", "zstandard"}
    assert heavy & set(done.stdout.split()) == set()


def test_a_store_and_a_client_import_nothing_that_they_may_do_without() -> None:
    """A store that has no names, no proxies and no traces starts without what these take; nobody needs Spark or XML."""
    loads = {
        "stablecast.cli.daemons": {
            "stablecast.client",
            "stablecast.resolver",
            "stablecast.evidence.trace.trace_recorder",
            "zstandard",
        },
        "stablecast.client": {
            "stablecast.store",
            "stablecast.evidence.trace.trace_recorder",
            "stablecast.evidence.trace.trace_judge",
            "rich",
        },
    }
    for program, needless in loads.items():
        code = f"import sys, {program}; print(*sorted(sys.modules))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert (needless | {"lxml", "pyarrow", "pyspark"}) & set(done.stdout.split()) == set(), program


def _fails(error: BaseException) -> int:
    raise error


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (StablecastError("the thing is wrong: mend it"), "stablecast: the thing is wrong: mend it\n"),
        (
            FileNotFoundError(2, "", "x.txt"),
            "stablecast: x.txt cannot be used: No such file or directory; correct the path\n",
        ),
        (FileExistsError(17, "", b"x.txt"), "stablecast: x.txt cannot be used: File exists; choose another name\n"),
        (IsADirectoryError(21, "", 7), "stablecast: 7 cannot be used: Is a directory; name a file\n"),
        (
            OSError(5, "Input/output error", "x.txt"),
            "stablecast: x.txt cannot be used: Input/output error; check the disk\n",
        ),
        (OSError(28, "No space left on device"), "stablecast: No space left on device\n"),
        (OSError("odd"), "stablecast: odd\n"),
    ],
)
def test_a_failure_is_one_sentence(error: Exception, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(lambda: _fails(error)) == 1
    assert capsys.readouterr() == ("", sentence)


def test_an_interrupt_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(lambda: _fails(KeyboardInterrupt())) == 130
    assert capsys.readouterr() == ("", "")


def test_a_bug_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        guarded(lambda: _fails(ZeroDivisionError()))


@pytest.mark.parametrize("missing", ["typer", "stablecast.core.gone"])
def test_a_missing_extra_is_told_and_a_missing_module_of_ours_is_a_bug(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "stablecast.cli.app", raising=False)
    monkeypatch.setitem(sys.modules, "stablecast.cli.cluster", None)

    class Finder:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> None:
            if name == "stablecast.cli.app":
                raise ModuleNotFoundError(f"No module named '{missing}'", name=missing)

    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    with pytest.raises(ModuleNotFoundError if missing.startswith("stablecast") else SystemExit) as told:
        main.main()
    if isinstance(told.value, SystemExit):
        assert told.value.code == (
            "a package that stablecast needs is missing: pip install stablecast (typer is missing)"
        )


def test_an_extra_that_only_a_command_needs_is_told_likewise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands import what they need when they are run."""

    def run() -> int:
        raise ModuleNotFoundError("No module named 'zstandard'", name="zstandard")

    monkeypatch.setattr("stablecast.cli.app.run", run)
    with pytest.raises(SystemExit, match=r"pip install stablecast \(zstandard is missing\)"):
        main.main()
