"""Child processes: ready, stopped, killed; and how it is told when they do not do their part."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from stablecast.runtime import child_programs as processes
from stablecast.runtime.child_programs import Child, ChildError, Report, start_all
from tests.support.processes import alive

GOOD = """
import json, os, signal, sys
signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
print(json.dumps({"count": 1}))
told = {"arguments": sys.argv[1:], "told": os.environ.get("TOLD")}
print(json.dumps({"ready": True, "pid": os.getpid(), **told}), flush=True)
signal.pause()
"""
DEAF = GOOD.replace("lambda *_: sys.exit(0)", "signal.SIG_IGN")
GRUMPY = GOOD.replace("sys.exit(0)", "sys.exit('no mood')")
BROKEN = "import sys; print('first', file=sys.stderr); sys.exit('out of order')"
SILENT = "import signal; signal.pause()"
LEAVING = 'import sys; print("{\\"ready\\": true}", flush=True); sys.exit(4)'


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The module `played`, empty: tests write what the child is to do."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path / "played.py"


def _child(
    program: Path,
    text: str,
    *arguments: str,
    log: bool = True,
    on_end: Callable[[ChildError], None] | None = None,
) -> tuple[Child, list[ChildError], list[Report]]:
    program.write_text(text)
    ends: list[ChildError] = []
    reports: list[Report] = []
    child = Child(
        "player",
        ["played", *arguments],
        on_end or ends.append,
        on_report=reports.append,
        environment={"TOLD": "yes"},
        log=program.with_suffix(".log") if log else None,
    )
    return child, ends, reports


async def test_start_stop_and_start_again_elsewhere(program: Path) -> None:
    child, ends, reports = _child(program, GOOD, "--listen", "1")
    first = await child.start()
    assert (first["arguments"], first["told"]) == (["--listen", "1"], "yes")
    await child.stop()
    assert not alive(first["pid"])
    child.listen_at("2")
    second = await child.start()
    assert second["arguments"] == ["--listen", "2"]
    await child.kill()
    assert not alive(second["pid"])
    await child.stop()
    await child.kill()
    assert ends == []
    assert reports == [{"count": 1}, first, {"count": 1}, second]


async def test_a_child_that_was_never_started_is_stopped_and_killed() -> None:
    child = Child("nobody", [], lambda error: None)
    await child.stop()
    await child.kill()


@pytest.mark.parametrize(
    ("log", "words"), [(True, "its last output: 'out of order'"), (False, "see its messages above")]
)
async def test_one_that_ends_before_it_is_ready(log: bool, words: str, program: Path) -> None:
    child, ends, _ = _child(program, BROKEN, log=log)
    with pytest.raises(ChildError) as told:
        await child.start()
    assert str(told.value) == f"player ended with status 1; {words}"
    assert ends == []


async def test_one_that_is_never_ready(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "READY_SECONDS", 0.1)
    child, _, _ = _child(program, SILENT)
    with pytest.raises(ChildError, match=r"^player was not ready after 0\.1 s; it printed nothing$"):
        await child.start()
    await child.kill()


async def test_one_that_ends_later_by_itself(program: Path) -> None:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[ChildError] = loop.create_future()
    child, _, _ = _child(program, LEAVING, on_end=ended.set_result)
    await child.start()
    assert str(await ended) == "player ended with status 4; it printed nothing"
    await child.stop()


async def test_one_that_does_not_stop(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "STOP_SECONDS", 0.1)
    child, ends, _ = _child(program, DEAF)
    ready = await child.start()
    with pytest.raises(ChildError, match=r"^player did not stop within 0\.1 s of an interrupt$"):
        await child.stop()
    assert not alive(ready["pid"])
    assert ends == []


async def test_one_that_stops_badly(program: Path) -> None:
    child, ends, _ = _child(program, GRUMPY)
    await child.start()
    with pytest.raises(ChildError, match=r"^player ended with status 1; its last output: 'no mood'$"):
        await child.stop()
    assert ends == []


async def test_when_one_of_several_fails_none_is_still_about_to_start(program: Path, tmp_path: Path) -> None:
    good, _, _ = _child(program, GOOD)
    (tmp_path / "broken.py").write_text(BROKEN)
    broken = Child("broken", ["broken"], lambda error: None, log=tmp_path / "broken.log")
    before = asyncio.all_tasks()
    with pytest.raises(ChildError, match=r"^broken ended with status 1; its last output: 'out of order'$"):
        await start_all((good, broken))
    await good.kill()
    assert asyncio.all_tasks() == before
