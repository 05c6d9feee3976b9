"""The entry point: what users can mend is one sentence and a status that is not 0."""

import re
import subprocess
import sys

import pytest

from stablecast.cli import main
from stablecast.cli.app import ORDER
from stablecast.core.errors import StablecastError
from stablecast.text.exit_status import guarded
from tests.support.program import outcome


def test_no_command_shows_the_commands() -> None:
    status, out, err = outcome()
    assert status == 2
    assert all(command in out + err for command in ("demo", "up", "store", "lbmrd", "send", "receive", "verify"))


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
            "stablecast's command line needs its daemons extra: pip install 'stablecast[daemons]' (typer is missing)"
        )


def test_an_extra_that_only_a_command_needs_is_told_likewise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands import what they need when they are run."""

    def run() -> int:
        raise ModuleNotFoundError("No module named 'zstandard'", name="zstandard")

    monkeypatch.setattr("stablecast.cli.app.run", run)
    with pytest.raises(SystemExit, match=r"pip install 'stablecast\[daemons\]' \(zstandard is missing\)"):
        main.main()
