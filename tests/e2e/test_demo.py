"""`stablecast demo` as its users run it: its output, the kept files, and the cleanup after an interrupt."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from stablecast.store.store_log import ASKED
from tests.support.processes import alive, children
from tests.support.program import outcome, running

SHORT = ("--messages", "200", "--seconds", "3")
LEAST = {"Recovery.receiver": 5}
"""Changes that a run exceeds, by view; the default is ten. A receiver has three lives and acknowledges once a turn."""

KINDS = {"receiver": 1, "source": 1, "store": 1, "all": 1}


LATE = ("unicast resolver 127.0.0.1:", "no active resolver instances")
"""Prefixes of log lines about a relay that did not answer for a second, as on a busy machine."""


def _check_result(result: dict[str, Any]) -> None:
    assert (result["sent"], result["delivered"], result["lost"], result["duplicates"]) == (200, 200, 0, 0)
    assert result["crashes"] == KINDS
    assert (result["verified"], result["violations"], result["problems"]) == (True, 0, [])
    assert result["records"] > 200
    assert all(result["ports"][protocol] for protocol in ("lbmr", "lbttcp"))


def _check_members(traces: Path) -> None:
    """Check that every change in the traces is a step of a model, or is reported as out of bounds."""
    status, out, err = outcome("model", "trace", traces, "--json")
    assert (status, err) == (0, "")
    for view in json.loads(out)["views"]:
        print(f"{view['view']}: {view['members']} members, {view['steps_seen']} of {view['steps']} steps seen")
        assert (view["strangers"], view["told"]) == (0, [])
        assert view["members"] > LEAST.get(view["view"], 10)


def test_all_messages_arrive_and_the_kept_traces_can_be_verified(tmp_path: Path) -> None:
    place = tmp_path / "demo"
    status, out, err = outcome("demo", "--json", *SHORT, "--keep", place)
    assert (status, err) == (0, "")
    result = json.loads(out)
    _check_result(result)
    traces = [Path(name) for name in result["traces"]]
    assert sorted((place / "traces").iterdir()) == traces
    roles = {trace.name.partition("-")[0] for trace in traces}
    assert roles == {"source", "receiver", "store"}
    status, out, err = outcome("verify", place / "traces", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["records"] == result["records"]
    _check_members(place / "traces")
    logged = [line for log in place.glob("*.log") for line in log.read_text().splitlines()]
    usual = ("is known", ASKED, "came back")
    assert [line for line in logged if not line.endswith(usual) and not line.startswith(LATE)] == []
    status, out, err = outcome("demo", *SHORT, "--keep", place)
    assert (status, out, err) == (1, "", f"stablecast: the directory {place} is not empty: name a new one\n")


def test_another_seed_prints_a_story_for_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with running("demo", *SHORT, "--seed", "2") as demo:
        status, out, err = demo.end()
    assert status == 0
    assert "every message arrived" in out
    for text in (
        "kill -9 receiver",
        "source back after",
        "kill -9 all stores, receiver and source",
        "all 200 messages",
    ):
        assert text in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after", ["are up", "kill -9 store", None])
def test_an_interrupt_leaves_nothing(
    after: str | None, number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interrupt comes during the start (None), while messages flow, or while a store is away."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with running("demo", *SHORT) as demo:
        assert demo.process.stderr is not None
        if after is None:
            while not children(demo.process.pid):
                assert demo.process.poll() is None
        else:
            while after not in demo.process.stderr.readline():
                assert demo.process.poll() is None
        started = children(demo.process.pid)
        demo.interrupt(number)
        status, out, err = demo.end()
    assert (status, out) == (130, "")
    assert "Traceback" not in err
    assert started
    assert not any(alive(child) for child in started)
    assert list(tmp_path.iterdir()) == []


def test_a_failing_process_is_named_with_its_last_line(tmp_path: Path) -> None:
    with running("demo", *SHORT, "--keep", tmp_path / "demo") as demo:
        assert demo.process.stderr is not None
        assert "are up" in demo.process.stderr.readline()
        (tmp_path / "demo" / "received").unlink()
        (tmp_path / "demo" / "received").mkdir()  # the receiver cannot open it when it returns
        status, out, err = demo.end()
    assert (status, out) == (1, "")
    assert err.splitlines()[-1] == (
        f"stablecast: receiver ended with status 1; its last output: "
        f"'stablecast: {tmp_path}/demo/received cannot be used: Is a directory; name a file'; "
        f"stores, traces and logs are in {tmp_path}/demo"
    )
