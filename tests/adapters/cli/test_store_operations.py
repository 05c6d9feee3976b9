"""`stablecast store inspect|scrub|export|evict|drain` and `stablecast top`, as a person runs them."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import zstandard

from stablecast.cli import store_operations
from stablecast.ops.monitor import Monitor, MonitorSettings, Permission
from stablecast.ops.operations.target import TOKEN_VARIABLE, OperationError
from stablecast.store import observatory
from stablecast.text import console
from stablecast.text.exit_status import guarded
from tests.adapters.ops.monitor.staged_store import Staged, busy
from tests.adapters.ops.operations.store_directory import kept
from tests.support.program import outcome

TOKEN = "open-sesame"


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observatory, "FRESH_NS", 0)
    monkeypatch.setattr("stablecast.ops.monitor.board.SWEEP_SECONDS", 0)
    monkeypatch.setattr(store_operations, "POLL_SECONDS", 0)
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)


@asynccontextmanager
async def monitored(staged: Staged) -> AsyncIterator[str]:
    """The address of a monitor that shows this store."""
    monitor = Monitor(MonitorSettings(permission=Permission.READ_WRITE, token=TOKEN), [staged.watched()])
    monitor.start()
    try:
        base = f"http://{monitor.address}"
        while await asyncio.to_thread(guarded, lambda: store_operations.inspect(base, None, as_json=True)):  # noqa: ASYNC110
            await asyncio.sleep(0)
        yield base
    finally:
        await monitor.stop()


async def ran(command: Callable[[], int]) -> int:
    return await asyncio.to_thread(command)


def said(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_tables_for_a_file_are_wide_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the tests themselves write to a terminal."""
    monkeypatch.setattr("sys.stdout", io.StringIO())
    monkeypatch.delenv("COLUMNS", raising=False)
    assert console.printer().width == console.FILE_COLUMNS
    monkeypatch.setenv("COLUMNS", "99")
    assert console.printer().width == 99


async def test_a_directory_is_inspected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = str(await kept(tmp_path))
    assert store_operations.inspect(directory, None, as_json=True) == 0
    assert [one["reg_id"] for one in said(capsys)["sources"]] == [1001, 1002]
    assert store_operations.inspect(directory, None, as_json=False) == 0
    assert "quotes" in capsys.readouterr().out


@pytest.mark.rows("P-711")
async def test_a_directory_is_scrubbed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Damage is told by the exit status too."""
    directory = await kept(tmp_path)
    assert store_operations.scrub(str(directory), None, as_json=True) == 0
    assert said(capsys)["clean"]
    (directory / "00000002.seg").touch()
    [path] = directory.glob("00000001.seg")
    path.write_bytes(bytes(100))
    assert store_operations.scrub(str(directory), None, as_json=False) == store_operations.DAMAGED
    assert "damaged: 00000001.seg" in capsys.readouterr().out


async def test_a_directory_is_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory, file = str(await kept(tmp_path / "store")), tmp_path / "out.jsonl.zst"
    given = {"source": 1001, "first": 3, "since": "2020-01-01", "until": "2300-01-01"}
    assert store_operations.export(directory, str(file), given, None) == 0
    assert "7 messages" in capsys.readouterr().err
    with pytest.raises(FileExistsError):
        store_operations.export(directory, str(file), {}, None)


async def test_an_export_that_fails_leaves_no_file(tmp_path: Path) -> None:
    directory = str(await kept(tmp_path / "store"))
    for name, given in (
        ("out.csv", {}),
        ("out.jsonl.zst", {"source": 5}),
        ("out.jsonl.zst", {"first": 3, "last": 2}),
        ("out.jsonl.zst", {"since": "2026-01-01", "until": "2026-01-01"}),
    ):
        with pytest.raises(OperationError):
            store_operations.export(directory, str(tmp_path / name), given, None)
        assert not (tmp_path / name).exists()


async def test_evicting_must_be_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = str(await kept(tmp_path))
    with pytest.raises(OperationError, match="--yes"):
        store_operations.evict(directory, 1001, None, yes=False, token=None, as_json=False)
    assert await ran(lambda: store_operations.evict(directory, 1001, 3, yes=True, token=None, as_json=False)) == 0
    assert capsys.readouterr().out == "let go: 3\n"
    assert await ran(lambda: store_operations.evict(directory, 1001, None, yes=True, token=None, as_json=True)) == 0
    assert said(capsys) == {"forgotten": [1001, 2001, 2002]}


async def test_a_directory_is_drained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = str(await kept(tmp_path))
    assert await ran(lambda: store_operations.drain(directory, undo=False, token=None, as_json=True)) == 0
    assert said(capsys) == {"let_go": 2, "remaining": {"1001": 8}}
    with pytest.raises(OperationError, match="only a running store"):
        store_operations.drain(directory, undo=True, token=None, as_json=True)


async def test_a_running_store_is_inspected_and_changed(capsys: pytest.CaptureFixture[str]) -> None:
    staged = busy()
    async with monitored(staged) as base:
        assert said(capsys)["store"]["name"] == "orders"
        assert await ran(lambda: store_operations.inspect(base, None, as_json=False)) == 0
        assert "quotes" in capsys.readouterr().out
        assert await ran(lambda: store_operations.evict(base, 1002, None, yes=True, token=None, as_json=False)) == 0
        assert capsys.readouterr().out == "1002 was removed from this store\n"
        with pytest.raises(OperationError, match="stop it"):
            await ran(lambda: store_operations.evict(base, 1001, 5, yes=True, token=None, as_json=False))
        assert 1002 not in staged.clients.records


async def test_a_running_store_is_drained(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    staged = busy()

    def sleep(_: float) -> None:
        staged.acknowledge(1001, 2001, 1001 << 32 | 17, 499)
        for receiver in (2002, 2003):
            staged.acknowledge(1002, receiver, 1002 << 32 | 17, 3999)

    async with monitored(staged) as base:
        capsys.readouterr()
        monkeypatch.setattr("stablecast.cli.store_operations.time.sleep", sleep)
        assert await ran(lambda: store_operations.drain(base, undo=False, token=None, as_json=False)) == 0
        told = capsys.readouterr().out.splitlines()
        assert told[0] == "2 sources have receivers up to 4,000 messages behind"
        assert told[-1].startswith("Drained")
        assert await ran(lambda: store_operations.drain(base, undo=True, token=None, as_json=False)) == 0
        assert not staged.draining
        staged.data(1001 << 32 | 17, 500, 7)
        monkeypatch.setattr(
            "stablecast.cli.store_operations.time.sleep", lambda _: staged.acknowledge(1001, 2001, 1001 << 32 | 17, 506)
        )
        capsys.readouterr()
        assert await ran(lambda: store_operations.drain(base, undo=False, token=None, as_json=True)) == 0
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["done"].startswith("Drained")


async def test_a_running_store_is_exported(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    directory = await kept(tmp_path / "store")
    async with monitored(Staged(directory=str(directory))) as base:
        capfdbinary.readouterr()
        assert await ran(lambda: store_operations.scrub(base, None, as_json=True)) == 0
        capfdbinary.readouterr()
        since = {"source": 1002, "since": "2020-01-01"}
        assert await ran(lambda: store_operations.export(base, str(tmp_path / "a.jsonl.zst"), since, None)) == 0
        with (tmp_path / "a.jsonl.zst").open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as reader:
            assert [json.loads(line)["number"] for line in reader.readall().splitlines()] == [100, 101, 102]
        with pytest.raises(OperationError, match="export its directory for Parquet"):
            await ran(lambda: store_operations.export(base, str(tmp_path / "a.parquet"), {}, None))


async def test_top_shows_a_running_store(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    async with monitored(busy()) as base:
        capsys.readouterr()
        assert await ran(lambda: store_operations.top(base, "health", 20, once=True, token=None)) == 0
        assert "3 of 3 sources" in capsys.readouterr().out
        turns = iter([None, None])

        def sleep(_: float) -> None:
            try:
                next(turns)
            except StopIteration:
                raise KeyboardInterrupt from None

        monkeypatch.setattr("stablecast.cli.store_operations.time.sleep", sleep)
        assert await ran(lambda: guarded(lambda: store_operations.top(base, "lag", 20, once=False, token=None))) == 130


def test_top_wants_a_monitor(tmp_path: Path) -> None:
    with pytest.raises(OperationError, match="name its monitor"):
        store_operations.top(str(tmp_path), "health", 20, once=True, token=None)
    with pytest.raises(OperationError, match="is no order"):
        store_operations.top("http://127.0.0.1:1", "size", 20, once=True, token=None)


async def test_the_commands_are_there(tmp_path: Path) -> None:
    """One of each, in processes of their own; the rest of this module calls what they call."""
    directory = await kept(tmp_path)
    status, out, _ = await asyncio.to_thread(outcome, "store", "inspect", directory, "--json")
    assert (status, len(json.loads(out)["sources"])) == (0, 2)
    status, out, _ = await asyncio.to_thread(outcome, "store", "scrub", directory)
    assert (status, "pass" in out) == (0, True)
    status, _, err = await asyncio.to_thread(outcome, "store", "evict", directory, "1001")
    assert (status, "--yes" in err) == (1, True)
    status, out, _ = await asyncio.to_thread(outcome, "store", "drain", directory)
    assert (status, out) == (0, "let go: 2\nremaining: {1001: 8}\n")
    status, _, err = await asyncio.to_thread(
        outcome, "store", "export", directory, "--output", str(tmp_path / "x.jsonl.zst"), "--source", "1002"
    )
    assert (status, err) == (0, "3 messages\n")
    status, _, err = await asyncio.to_thread(outcome, "top", "http://127.0.0.1:1", "--once")
    assert (status, "does not answer" in err) == (1, True)
    assert (tmp_path / "x.jsonl.zst").read_bytes().startswith(b"\x28\xb5\x2f\xfd")
