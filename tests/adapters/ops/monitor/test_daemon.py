"""The monitor of a daemon as its configuration asks for it, and operations on it while it runs."""

import asyncio
import io
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from stablecast.client import Context, Receiver, Source
from stablecast.ops.operations.inspection import inspect
from stablecast.ops.operations.monitor_client import MonitorClient, drained
from stablecast.ops.operations.target import Remote
from stablecast.store.statistics import StatKind
from tests.support.network import network
from tests.support.program import running

CONFIG = """<?xml version="1.0"?>
<ume-store version="1.3">
  <daemon>
    <log type="console"/>
    <web-monitor permission="read-write">127.0.0.1:0</web-monitor>{more}
  </daemon>
  <stores>
    <store name="orders-store" interface="127.0.0.1" port="0">
      <ume-attributes>
        <option type="store" name="disk-cache-directory" value="{directory}/cache"/>
        <option type="store" name="disk-state-directory" value="{directory}/state"/>{options}
      </ume-attributes>
      <topics>
        <topic pattern="orders" type="direct">
          <ume-attributes><option type="store" name="repository-type" value="disk"/></ume-attributes>
        </topic>
      </topics>
    </store>
  </stores>
</ume-store>
"""


@contextmanager
def daemon(directory: Path, more: str = "", options: str = "") -> Iterator[tuple[str, str]]:
    """A daemon with one store: where that listens, and the monitor's address."""
    for name in ("cache", "state"):
        (directory / name).mkdir()
    config = directory / "stores.xml"
    config.write_text(CONFIG.format(directory=directory, more=more, options=options), encoding="utf-8")
    with running("store", config, "--new", "--json") as program:
        yield program.json_line()["address"], f"http://{program.json_line()['monitor']}"


@asynccontextmanager
async def at_work(store: str) -> AsyncIterator[tuple[Source, Receiver]]:
    """A source that has sent ten messages, and a receiver that has read four of them."""
    async with Context(session_id=1) as context, Context(session_id=2) as other:
        source = await context.source("orders", stores=[store])
        receiver = other.receiver("orders", source=source.config.transport)
        await source.send_many(b"%d" % number for number in range(10))
        await source.wait_stable_through(9)
        for _ in range(4):
            (await anext(receiver)).consumed()
        yield source, receiver


@pytest.mark.rows("P-614", "P-807", "P-903")
async def test_a_daemon_is_watched_and_operated(tmp_path: Path) -> None:
    """It answers at its port, with the configured permission; P-903: what it says of a store."""
    with daemon(tmp_path) as (store, base):
        async with at_work(store) as (source, receiver), aiohttp.ClientSession(base) as session:

            async def told(path: str) -> Any:
                async with session.get(path) as answer:
                    return await answer.json() if answer.status == 200 else None

            while not (page := await told("/api/stores/0/sources")) or not page["sources"]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            [shown] = page["sources"]
            assert (shown["topic"], shown["messages"], shown["window"]) == ("orders", 10, [0, 0, 9])
            view = await told("/api/stores/0")
            assert (view["name"], view["address"]) == ("orders-store", store)
            assert view["patterns"] == [["orders", "direct", "disk"]]
            client = MonitorClient(Remote(base, 0))
            report = await asyncio.to_thread(client.scrub)
            assert (report["clean"], report["messages"]) == (True, 10)
            file = io.BytesIO()
            await asyncio.to_thread(client.export, {}, file)
            assert file.getvalue().startswith(b"\x28\xb5\x2f\xfd")
            seen: list[dict[int, int]] = []
            draining = asyncio.create_task(asyncio.to_thread(drained, client, lambda: time.sleep(0.05), seen.append))
            for _ in range(6):
                (await anext(receiver)).consumed()
            await draining
            assert "accepted again" in client.change("drain", on=0)
            [reader] = shown["receivers"]
            assert "was removed from this store" in client.change("evict", reg_id=reader["reg_id"])
            assert source.next_number == 10
    [kept] = inspect(tmp_path / "cache")["sources"]
    assert (kept["last"], kept["receivers"]) == (9, [])


STATISTICS = """
    <daemon-monitor topic="statistics"><publishing-interval><group name="default" ivl="1"/></publishing-interval>
    </daemon-monitor>"""


@pytest.mark.rows("P-966", "M-022")
async def test_statistics_are_published_on_their_topic(tmp_path: Path) -> None:
    """As documented, for whoever listens; a configuration at every interval, statistics when they change."""
    async with network(tmp_path) as net:
        listener = await net.context(session_id=3)
        relay = f'<option type="lbm-context" name="resolver_unicast_daemon" value="{net.relays[0].address}"/>'
        with daemon(tmp_path, STATISTICS, relay) as (store, _):
            receiver = listener.receiver("statistics")
            async with at_work(store):
                found = [(await anext(receiver)).payload for _ in range(30)]
            await receiver.close()
    kinds = Counter(int.from_bytes(payload[2:4], "little") for payload in found)
    assert all(payload[:2] == b"BE" and len(payload) == int.from_bytes(payload[6:8], "little") for payload in found)
    assert set(kinds) >= {
        StatKind.STORE_CONFIG,
        StatKind.PATTERN_CONFIG,
        StatKind.TOPIC_CONFIG,
        StatKind.SOURCE_CONFIG,
    }
    assert kinds[StatKind.SOURCE] < kinds[StatKind.SOURCE_CONFIG]
