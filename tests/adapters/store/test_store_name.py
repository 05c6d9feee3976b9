"""A store that is found by its name."""

import asyncio
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stablecast.client import Context, resolution
from stablecast.config.option_kinds import Value
from stablecast.resolver import RelayDaemon
from stablecast.runtime.address import AddressError
from stablecast.runtime.connection_pool import ConnectionPool
from stablecast.store.distant_sources import DistantSources
from stablecast.store.journal import Journal
from stablecast.store.log_lines import Severity
from stablecast.store.name_service import NameService
from stablecast.store.settings import StoreSettings
from stablecast.store.store_log import StoreLog
from tests.adapters.store.test_store import TOPIC, serving, started
from tests.support.network import LOCAL, others, until, unused_port


@pytest.mark.rows("P-201", "P-815")
async def test_a_source_finds_its_store_by_name(tmp_path: Path) -> None:
    """Wherever it listens."""
    relay = await RelayDaemon.start(LOCAL, 0)
    async with (
        serving(tmp_path, context_name="remote-store", resolver=[relay.address]) as store,
        Context(session_id=1, resolver=[relay.address]) as context,
    ):
        source = await context.source(TOPIC, options={"ume_store_name": "remote-store"})
        await (await source.send(b"one")).stable()
        assert len(store.machine.status.repositories) == 1
    await relay.close()


@pytest.mark.rows("P-815", "T-201")
async def test_a_source_finds_its_store_by_name_in_a_multicast_group(tmp_path: Path) -> None:
    """And at the pace that the store's options give."""
    group: dict[str, Value] = {
        "resolver_multicast_address": "239.255.77.80",
        "resolver_multicast_port": unused_port(),
        "resolver_multicast_interface": LOCAL,
        "resolver_multicast_ttl": 0,
    }
    async with (
        serving(tmp_path, context_name="remote-store", resolution=group),
        Context(session_id=1, resolution=resolution(options=group)) as context,
    ):
        source = await context.source(TOPIC, options={"ume_store_name": "remote-store"})
        await (await source.send(b"one")).stable()


@pytest.mark.rows("P-206", "P-680", "T-207")
async def test_two_stores_of_one_name_are_logged_once_at_all_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    relay = await RelayDaemon.start(LOCAL, 0)
    lines: asyncio.Queue[tuple[Severity, str, str, str]] = asyncio.Queue()
    named: dict[str, Any] = {
        "context_name": "twice",
        "resolver": [relay.address],
        "log": lambda *line: lines.put_nowait(line),
    }
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    caplog.set_level(logging.INFO, logger="stablecast")
    async with (
        serving(tmp_path / "one", name="one", **named) as one,
        serving(tmp_path / "two", name="two", **named) as two,
        Context(session_id=1, resolver=[relay.address]) as context,
    ):
        source = await context.source(TOPIC, options={"ume_store_name": "twice"})
        found: dict[str, tuple[Severity, str]] = {}
        while len(found) < 2:
            severity, who, code, text = await lines.get()
            if code == "resolution":
                assert who not in found
                found[who] = (severity, text)
        assert found == {
            who: (Severity.WARNING, f"another store at {other.address} is called 'twice' as well")
            for who, other in (("one", two), ("two", one))
        }
        await until(lambda: "several stores are called 'twice'" in caplog.text)
        await (await source.send(b"one")).stable()
        assert caplog.text.count("several stores are called 'twice'") == 1
    await relay.close()


@pytest.mark.parametrize(
    "options",
    [{}, {"resolver_datagram_max_size": 500}],
)
async def test_without_a_relay_a_service_or_a_group_nobody_answers(options: dict[str, Value], tmp_path: Path) -> None:
    before = others()
    settings = StoreSettings(f"{LOCAL}:0", tmp_path, context_name="a", resolution=options)
    log = StoreLog("a", lambda *_: None, Counter(), Counter())
    pool = ConnectionPool(lambda _: None, lambda _: None, LOCAL)
    naming = NameService(settings, LOCAL, log, pool, DistantSources(lambda *_: None))
    await naming.start("127.0.0.1:1")
    await naming.close()
    assert others() == before


async def test_a_relay_that_is_none_ends_the_start_and_nothing_is_left_running(tmp_path: Path) -> None:
    before = others()
    with pytest.raises(AddressError, match="'nowhere' is not an address"):
        await started(tmp_path, context_name="a", resolver=["nowhere"])
    assert others() == before
    await Journal.open(tmp_path).close()
