"""`stablecast read` and `stablecast topics` against stores."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stablecast.cli.app import app
from stablecast.core.errors import StablecastError
from tests.support.program import lbmrd, outcome, store


def invoked(*arguments: str) -> tuple[int, str, str]:
    """Run a command in this process; return status, output and the sentence of its failure."""
    result = CliRunner().invoke(app, arguments)
    failed = result.exception if isinstance(result.exception, StablecastError) else None
    return result.exit_code, result.stdout, result.stderr if failed is None else str(failed)


def test_a_topic_is_read_again_and_shown(tmp_path: Path) -> None:
    with lbmrd() as (_, resolver), store(tmp_path) as (_, address):
        lines = tmp_path / "lines"
        lines.write_text("".join(f"line {number}\n" for number in range(20)))
        send = ["send", "orders", "--resolver", resolver, "--session-id", "7", "--store", address, "--linger", "0"]
        assert outcome(*send, "--file", str(lines))[0] == 0
        read = ["read", "orders", "--store", address]
        assert invoked(*read) == (0, lines.read_text(), "")
        assert invoked(*read, "--since", "last 2") == (0, "line 18\nline 19\n", "")
        status, out, err = invoked(*read, "--since", "10 min ago", "--until", "2", "--json")
        assert (status, err) == (0, "")
        found = [json.loads(line) for line in out.splitlines()]
        assert [(one["source"], one["number"], one["payload"]) for one in found] == [(7, 0, "line 0"), (7, 1, "line 1")]
        assert all(one["came_at"].startswith("20") and len(one["life"]) == 16 for one in found)
        status, out, _ = invoked("topics", "--store", address, "--json")
        [shown] = [json.loads(line) for line in out.splitlines()]
        assert (status, shown["topic"], shown["source"], shown["ranges"], shown["messages"]) == (
            0, "orders", 7, [[0, 19]], 20,
        )  # fmt: skip
        assert shown["oldest"] <= shown["newest"]
        assert shown["stable"] == 19
        assert "0-19" in invoked("topics", "--store", address)[1]
        replay = ["replay", "orders", "--store", address, "--speed", "0"]
        assert invoked(*replay, "--since", "last 2") == (0, "line 18\nline 19\n", "")
        status, out, err = invoked(*replay, "--into", "copies", "--session-id", "9", "--json")
        assert (status, json.loads(out)) == (0, {"topic": "copies", "sent": 20, "missing": 0})
        assert invoked("read", "copies", "--store", address) == (0, lines.read_text(), "")
        assert invoked(*replay, "--into", "orders")[0] == 1
        status, out, err = invoked("read", "other", "--store", address)
        assert (status, out) == (1, "")
        assert "no store holds a source of 'other'" in err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["read", "t"], "name the stores of the topic"),
        (["topics"], "name the stores of the topic"),
        (["read", "t", "--store", "x"], "'x' is not an address"),
        (["read", "t", "--store", "127.0.0.1:1", "--since", "soon"], "'soon' is no place in a topic"),
        (["read", "t", "--store", "127.0.0.1:1", "--since", "9", "--until", "3"], "has no number"),
        (["read", "t", "--store", "127.0.0.1:1", "--until", "0"], "cannot end at 0"),
        (["read", "t", "--store", "127.0.0.1:1", "--quorum", "2"], "cannot be reached with 1 stores"),
        (["read", "t", "--store", "127.0.0.1:1", "--patience", "0.2"], "0 of 1 stores of 't' answered"),
        (["replay", "t"], "name the stores of the topic"),
        (["replay", "t", "--store", "127.0.0.1:1", "--speed", "-1"], "Invalid value for '--speed'"),
        (["replay", "t", "--store", "127.0.0.1:1", "--speed", "inf"], "cannot run at inf times the pace"),
        (["replay", "t", "--store", "127.0.0.1:1", "--max-pause", "inf"], "makes no sense"),
        (["replay", "t", "--store", "127.0.0.1:1", "--into", "t"], "is the topic that is read: name another one"),
        (["topics", "--store", "127.0.0.1:1", "--patience", "0.2"], "store 127.0.0.1:1 does not answer"),
        (["archive", "t", "--output", "/proc/none"], "name the stores of the topic"),
        (["archive", "t", "--store", "127.0.0.1:1"], "Missing option '--output'"),
        (
            ["archive", "t", "--output", "/proc/none", "--store", "127.0.0.1:1", "--pace", "slow"],
            "--pace is receivers or",
        ),
        (["archive", "t", "--output", "/proc/none", "--store", "127.0.0.1:1"], "/proc/none cannot be written: "),
        (["archive", "t", "--output", "/proc", "--store", "127.0.0.1:1"], "/proc has other files and is no archive"),
        (["store", "export", "/proc/none", "--output", "x.parquet"], "there is no directory /proc/none"),
        (["store", "export", "http://127.0.0.1:1", "--output", "x.parquet"], "a running store sends .jsonl.zst"),
        (["store", "export", "/proc", "--output", "x.csv", "--first", "5", "--last", "3"], "is above --last 3"),
        (["store", "export", "/proc", "--output", "x.csv", "--since", "soon"], "'soon' is no time"),
    ],
)
def test_wrong_arguments_get_a_sentence(arguments: list[str], text: str) -> None:
    status, out, err = invoked(*arguments)
    assert status
    assert out == ""
    assert text in " ".join(err.replace("\u2502", " ").split())
