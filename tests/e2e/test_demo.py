"""`stablecast demo` as its users run it: what it says, what it leaves, what an interrupt leaves."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import alive, children
from tests.support.program import outcome, running

pytestmark = pytest.mark.timeout(300)  # a demo gives up by itself after 123 s, and says then what it waited for

SHORT = ("--messages", "200", "--seconds", "3")
LEAST = {"Recovery.receiver": 5}
"""Changes that a run has more of, else ten: a receiver has three lives, and tells of what it consumed once a turn."""

KINDS = {"receiver": 1, "source": 1, "store": 1, "all": 1}


LATE = ("unicast resolver 127.0.0.1:", "no active resolver instances")
"""How lines begin that tell of a relay which did not answer for a second, as on a busy machine."""


def _good(said: dict[str, Any]) -> None:
    assert (said["sent"], said["delivered"], said["lost"], said["duplicates"]) == (200, 200, 0, 0)
    assert said["crashes"] == KINDS
    assert (said["verified"], said["violations"], said["problems"]) == (True, 0, [])
    assert said["records"] > 200
    assert all(said["ports"][protocol] for protocol in ("lbmr", "lbttcp"))


def _members(traces: Path) -> None:
    """Every change is a step of a model, or told as out of bounds."""
    status, out, err = outcome("model", "trace", traces, "--json")
    assert (status, err) == (0, "")
    for view in json.loads(out)["views"]:
        print(f"{view['view']}: {view['members']} members, {view['steps_seen']} of {view['steps']} steps seen")
        assert (view["strangers"], view["told"]) == (0, [])
        assert view["members"] > LEAST.get(view["view"], 10)


def test_everything_arrives_and_what_is_kept_can_be_verified(tmp_path: Path) -> None:
    place = tmp_path / "demo"
    status, out, err = outcome("demo", "--json", *SHORT, "--keep", place)
    assert (status, err) == (0, "")
    said = json.loads(out)
    _good(said)
    traces = [Path(name) for name in said["traces"]]
    assert sorted((place / "traces").iterdir()) == traces
    roles = {trace.name.partition("-")[0] for trace in traces}
    assert roles == {"source", "receiver", "store"}
    status, out, err = outcome("verify", place / "traces", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["records"] == said["records"]
    _members(place / "traces")
    told = [line for log in place.glob("*.log") for line in log.read_text().splitlines()]
    assert [line for line in told if not line.endswith("is known") and not line.startswith(LATE)] == []
    status, out, err = outcome("demo", *SHORT, "--keep", place)
    assert (status, out, err) == (1, "", f"stablecast: the directory {place} is not empty: name a new one\n")


def test_another_seed_for_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with running("demo", *SHORT, "--seed", "2") as demo:
        status, out, err = demo.end()
    assert status == 0
    assert "every message arrived" in out
    for told in (
        "kill -9 receiver",
        "source back after",
        "kill -9 all stores, receiver and source",
        "all 200 messages",
    ):
        assert told in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after", ["are up", "kill -9 store", None])
def test_an_interrupt_leaves_nothing(
    after: str | None, number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever it comes: while everything is still starting (None), while messages flow, while a store is away."""
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


def test_a_process_that_fails_is_named_with_what_it_said(tmp_path: Path) -> None:
    with running("demo", *SHORT, "--keep", tmp_path / "demo") as demo:
        assert demo.process.stderr is not None
        assert "are up" in demo.process.stderr.readline()
        (tmp_path / "demo" / "received").unlink()
        (tmp_path / "demo" / "received").mkdir()  # the receiver cannot open it when it comes back
        status, out, err = demo.end()
    assert (status, out) == (1, "")
    assert err.splitlines()[-1] == (
        f"stablecast: receiver ended with status 1; it said "
        f"'stablecast: {tmp_path}/demo/received is a directory: name a file'; "
        f"stores, traces and logs are in {tmp_path}/demo"
    )
