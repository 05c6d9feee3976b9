"""The monitor in its own thread."""

import asyncio
import threading
import urllib.request

import pytest

from stablecast.core.errors import ConfigError
from stablecast.ops.monitor import Monitor, MonitorSettings
from stablecast.ops.monitor import server as tested
from stablecast.runtime.ports import PortError
from stablecast.store import observatory
from tests.adapters.ops.monitor.staged_store import Staged, busy


async def fetched(monitor: Monitor, path: str) -> str:
    def fetch() -> str:
        with urllib.request.urlopen(f"http://{monitor.address}{path}") as answer:
            return str(answer.read().decode())

    return await asyncio.to_thread(fetch)


def threads() -> int:
    return sum(thread.name == "monitor" for thread in threading.enumerate())


async def test_it_serves_from_start_to_stop() -> None:
    monitor = Monitor(MonitorSettings(), [busy().watched()])
    assert monitor.address == "127.0.0.1:0"
    monitor.start()
    try:
        assert "Overview" in await fetched(monitor, "/")
        assert "stablecast_store_health" in await fetched(monitor, "/metrics")
    finally:
        await monitor.stop()
    with pytest.raises(OSError, match="refused"):
        await fetched(monitor, "/")
    assert threads() == 0


async def test_who_looks_is_cut_off_at_the_end() -> None:
    monitor = Monitor(MonitorSettings(), [busy().watched()])
    monitor.start()
    opened = await asyncio.to_thread(urllib.request.urlopen, f"http://{monitor.address}/live")
    assert await asyncio.to_thread(opened.readline) == b"event: blocks\n"
    await monitor.stop()
    await asyncio.to_thread(opened.read)
    opened.close()


async def test_a_port_in_use_is_told_at_once() -> None:
    monitor = Monitor(MonitorSettings(), [Staged().watched()])
    monitor.start()
    try:
        host, _, port = monitor.address.rpartition(":")
        with pytest.raises(PortError):
            Monitor(MonitorSettings(host, int(port)), []).start()
    finally:
        await monitor.stop()


async def test_what_fails_at_the_start_is_raised_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ConfigError("broken")

    monkeypatch.setattr(tested, "Site", broken)
    with pytest.raises(ConfigError, match="broken"):
        Monitor(MonitorSettings(), []).start()


async def test_what_fails_later_ends_it_aloud(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store goes on; the monitor is gone, and its thread says why."""
    said: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", said.append)
    monkeypatch.setattr(observatory, "FRESH_NS", 0)
    monkeypatch.setattr("stablecast.ops.monitor.board.SWEEP_SECONDS", 0)
    staged = Staged()
    monitor = Monitor(MonitorSettings(), [staged.watched()])
    monitor.start()
    del staged.reports
    assert monitor._thread is not None
    await asyncio.to_thread(monitor._thread.join)
    assert [args.exc_type for args in said] == [AttributeError]


async def test_a_viewer_that_says_nothing_whole_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow or silent request takes no place for ever; one that asks in time is answered, and may ask again."""
    monkeypatch.setattr(tested, "HEAD_SECONDS", 0.2)
    monitor = Monitor(MonitorSettings(), [busy().watched()])
    monitor.start()
    try:
        host, port = monitor.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n")
        assert await reader.read() == b""
        writer.close()
        assert "Overview" in await fetched(monitor, "/")
    finally:
        await monitor.stop()


async def test_one_viewer_too_many_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are served on."""
    monkeypatch.setattr(tested, "MAX_VIEWERS", 1)
    monitor = Monitor(MonitorSettings(), [busy().watched()])
    monitor.start()
    host, port = monitor.address.split(":")
    first, asking = await asyncio.open_connection(host, int(port))
    second, other = await asyncio.open_connection(host, int(port))
    try:
        assert await second.read() == b""
        asking.write(f"GET / HTTP/1.1\r\nHost: {monitor.address}\r\n\r\n".encode())
        assert b"200" in await first.readline()
    finally:
        for one in (asking, other):
            one.close()
            await one.wait_closed()
        await monitor.stop()
