"""Long work on a store's directory, in a process beside it."""

import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from aiohttp import web

from stablecast.ops.monitor import directory_jobs
from stablecast.ops.monitor.directory_jobs import command
from stablecast.ops.monitor.settings import Permission
from tests.adapters.ops.monitor.site_client import Shown, showing
from tests.adapters.ops.monitor.staged_store import Staged
from tests.adapters.ops.operations.store_directory import kept
from tests.support.processes import children


def fake(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Another program takes the place of the real one."""

    def line(errand: str, directory: str, given: object) -> Sequence[str]:
        return (sys.executable, "-c", script)

    monkeypatch.setattr(directory_jobs, "command", line)


def writable(directory: Path) -> AbstractAsyncContextManager[Shown]:
    return showing(Staged(directory=str(directory)), permission=Permission.READ_WRITE)


def test_the_command_is_that_of_a_person() -> None:
    scrub = command("scrub", "some/where", {})
    assert scrub[scrub.index("store") :] == ("store", "scrub", "some/where", "--json")
    export = command("export", "d", {"source": 5, "since": "2026-01-01"})
    assert export[export.index("--output") :] == ("--output", "-", "--source", "5", "--since", "2026-01-01")


@pytest.mark.parametrize(
    ("errand", "given"), [("scrub", {"source": 5}), ("export", {"output": "x"}), ("export", {"first": "--output"})]
)
def test_nothing_else_can_be_slipped_in(errand: str, given: dict[str, object]) -> None:
    with pytest.raises(web.HTTPBadRequest):
        command(errand, "d", given)


async def test_what_it_prints_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, "print('x' * 200_000, end='')")
    async with writable(tmp_path) as shown:
        assert await shown.post("/api/stores/0/export") == "x" * 200_000


async def test_one_that_says_nothing_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, "raise SystemExit(3)")
    async with writable(tmp_path) as shown:
        assert "status 3" in await shown.post("/api/stores/0/export", status=400)


async def test_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And one whose asker left is ended. Others may have left children that go on, such as trackers of resources."""
    before = {*children()}
    fake(monkeypatch, "import time; print('begun', flush=True); time.sleep(1000)")
    async with writable(tmp_path) as shown, shown.client.post("/api/stores/0/scrub") as answer:
        assert await answer.content.readline() == b"begun\n"
        assert "another" in await shown.post("/api/stores/0/scrub", status=409)
    while {*children()} - before:  # noqa: ASYNC110
        await asyncio.sleep(0)


async def test_what_is_wrong_is_passed_on(tmp_path: Path) -> None:
    async with writable(tmp_path) as shown:
        assert "there is no journal in" in await shown.post("/api/stores/0/scrub", status=400)


async def test_a_directory_is_really_scrubbed_and_exported(tmp_path: Path) -> None:
    async with writable(await kept(tmp_path)) as shown:
        assert json.loads(await shown.post("/api/stores/0/scrub"))["clean"]
