"""The answers of the monitor: pages, the live feed, JSON, metrics, changes."""

import asyncio
import json
import time
from typing import Any

import aiohttp
import pytest

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.events import Farewell
from stablecast.core.protocol.messages import Role
from stablecast.ops.monitor import api
from stablecast.ops.monitor import site as tested
from stablecast.ops.monitor.access import MAX_BODY_BYTES
from stablecast.ops.monitor.settings import Permission
from stablecast.store import observatory
from tests.adapters.ops.monitor.site_client import HTML, Shown, showing
from tests.adapters.ops.monitor.staged_store import Staged, busy
from tests.adapters.ops.operations.store_directory import kept


@pytest.fixture(autouse=True)
def _always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observatory, "FRESH_NS", 0)


async def events(answer: aiohttp.ClientResponse) -> tuple[str, Any]:
    kind = (await answer.content.readline()).decode().strip().removeprefix("event: ")
    data = (await answer.content.readline()).decode().removeprefix("data: ").strip()
    await answer.content.readline()
    return kind, json.loads(data or "null")


@pytest.mark.rows("P-901", "P-902")
@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/", "Overview"),
        ("/stores", "Store 0: orders"),
        ("/stores/0", "quotes &lt;b&gt;&amp;"),
        ("/stores/0?q=silence&sort=topic", "1003 (0)"),
        ("/stores/0?sort=nonsense", "1003 (0)"),
        ("/stores/0/1002", "1002: Source ["),
        ("/stores/0/2003", "2003: Receiver ["),
    ],
)
async def test_every_page_is_answered(path: str, says: str) -> None:
    """Index, stores, store, source, receiver."""
    async with showing(busy()) as shown:
        assert says in await shown.text(path)


@pytest.mark.parametrize(
    "path", ["/stores/1", "/stores/0/77", "/nothing", "/stores/x", "/static/site.py", "/static/..%2fsite.py"]
)
async def test_what_is_not_there_is_said_to_be_missing(path: str) -> None:
    """No path leads to a file of the host."""
    async with showing(busy()) as shown:
        text = await shown.text(path, status=404)
        assert "<!doctype html>" in text
        async with shown.client.get(path) as answer:
            assert (answer.status, answer.content_type) == (404, "text/plain")


async def test_who_is_early_waits_for_the_first_sweep() -> None:
    async with showing(busy()) as shown:
        shown.board.stores, shown.board.sweeps = [], 0
        asking = asyncio.create_task(shown.text("/stores/0"))
        await asyncio.sleep(0.05)
        assert not asking.done()
        await shown.board.sweep()
        assert "quotes" in await asking


async def test_who_is_early_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tested, "EARLY_SECONDS", 0)
    async with showing(busy()) as shown:
        shown.board.stores, shown.board.sweeps = [], 0
        await shown.text("/stores/0", status=404)


async def test_a_page_that_is_no_number_is_refused() -> None:
    async with showing(busy()) as shown:
        await shown.text("/stores/0?page=-1", status=400)
        await shown.text("/stores/0?page=99999999999", status=400)


@pytest.mark.parametrize(
    ("name", "kind"), [("monitor.css", "text/css"), ("monitor.js", "text/javascript"), ("icon.svg", "image/svg+xml")]
)
async def test_its_own_files_are_served(name: str, kind: str) -> None:
    async with showing(busy()) as shown, shown.client.get(f"/static/{name}") as answer:
        assert answer.status == 200
        assert answer.content_type == kind
        assert answer.headers["Cache-Control"] == "max-age=3600"


async def test_pages_take_nothing_from_elsewhere() -> None:
    async with showing(busy()) as shown, shown.client.get("/") as answer:
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Cache-Control"] == "no-store"
        assert "//" not in (await answer.text()).replace("<!doctype", "")


async def test_a_page_is_rendered_once_for_all_who_look() -> None:
    staged = busy()
    async with showing(staged) as shown:
        first = await shown.text("/stores/0/1001")
        staged.data(1001 << 32 | 17, 500, 100)
        assert await shown.text("/stores/0/1001") == first
        await shown.board.sweep()
        assert "[0, 0, 257]" in await shown.text("/stores/0/1001")


async def test_the_feed_sends_what_changed() -> None:
    staged = busy()
    async with showing(staged) as shown, shown.client.get("/live", params={"page": "/stores/0?q=orders"}) as answer:
        assert answer.content_type == "text/event-stream"
        kind, blocks = await events(answer)
        assert kind == "blocks"
        assert {"banner", "totals", "search", "sources", "service", "facts"} == set(blocks)
        assert "1002" not in blocks["sources"]
        staged.data(1001 << 32 | 17, 500, 100)
        await shown.board.sweep()
        kind, blocks = await events(answer)
        assert kind == "blocks"
        assert {"totals", "sources"} <= set(blocks)
        assert "search" not in blocks
        assert "257" in blocks["sources"]


async def test_the_feed_ends_when_what_is_looked_at_goes() -> None:
    staged = busy()
    async with showing(staged) as shown, shown.client.get("/live?page=/stores/0/2001") as answer:
        assert (await events(answer))[0] == "blocks"
        staged.machine.registry.delete(staged.clients.records[2001], 0, staged.machine.outbox, Farewell.EXPIRED)
        await shown.board.sweep()
        assert (await events(answer))[0] == "gone"
        assert await answer.content.read() == b""


async def test_the_feed_ends_with_the_monitor() -> None:
    async with showing(busy()) as shown, shown.client.get("/live") as answer:
        await events(answer)
        shown.board.end()
        assert await answer.content.read() == b""


async def test_who_leaves_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tested, "MAX_VIEWERS", 1)
    async with showing(busy()) as shown:
        async with shown.client.get("/live") as answer:
            await events(answer)
            await shown.text("/live", status=503)
        while True:
            await shown.board.sweep()  # The write fails, and so shows that the peer has gone.
            async with shown.client.get("/live") as answer:
                if answer.status == 200:
                    break
            await asyncio.sleep(0)


async def test_a_feed_of_nothing_is_refused() -> None:
    async with showing(busy()) as shown:
        await shown.text("/live?page=/stores/9", status=404)
        await shown.text("/live?page=/etc/passwd", status=404)


async def test_the_token_is_asked_for_and_taken() -> None:
    async with showing(busy(), token="open-sesame") as shown:
        assert "Token" in await shown.text("/login")
        for token, status in (("wrong", 403), ("open-sesame", 200)):
            async with shown.client.post("/login", data={"token": token}) as answer:
                assert answer.status == status


async def test_json_says_the_same() -> None:
    async with showing(busy()) as shown:
        daemon: Any = await shown.json("/api/daemon")
        assert (daemon["level"], daemon["stores"][0]["name"]) == ("WARNING", "orders")
        store: Any = await shown.json("/api/stores/0")
        assert (store["sources"], store["receivers"], store["findings"]) == (3, 3, [])
        page: Any = await shown.json("/api/stores/0/sources?offset=1&limit=1&sort=topic")
        assert (page["found"], [one["topic"] for one in page["sources"]]) == (3, ["quotes <b>&"])
        source: Any = await shown.json("/api/stores/0/1002")
        assert source["source"]["spans"]["holes"] == [[1000, 1039], [3040, 3044]]
        assert source["source"]["receivers"][1]["findings"][0]["code"] == "receiver-late"
        receiver: Any = await shown.json("/api/stores/0/2002")
        assert receiver["receiver"]["acknowledged"] == 3990
        async with shown.client.get("/api/stores/0/77") as answer:
            assert answer.status == 404


async def test_one_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "LIMIT", 2)
    monkeypatch.setattr(tested, "CHUNK", 1)
    async with showing(busy()) as shown:
        page: Any = await shown.json("/api/stores/0/sources?limit=1000&sort=topic")
        assert (page["found"], [one["reg_id"] for one in page["sources"]]) == (3, [1001, 1002])
        page = await shown.json("/api/stores/0/sources?offset=2&sort=topic")
        assert [one["reg_id"] for one in page["sources"]] == [1003]


async def test_health_is_told_by_the_status() -> None:
    staged = busy()
    async with showing(staged) as shown:
        assert await shown.json("/health") == {"level": "WARNING", "fresh": True, "failed": []}
        staged.failed.set_result(OSError("the disk failed"))
        await shown.board.sweep()
        assert await shown.json("/health", 503) == {"level": "CRITICAL", "fresh": True, "failed": [0]}


async def probed(shown: Shown, path: str) -> tuple[int, str]:
    async with shown.client.get(path) as answer:
        return answer.status, await answer.text()


async def test_probes_need_no_token() -> None:
    staged = busy()
    async with showing(staged, token="0123456789abcdef") as shown:
        assert await probed(shown, "/livez") == (200, "yes\n")
        assert await probed(shown, "/readyz") == (200, "yes\n")
        staged.failed.set_result(OSError("the disk failed"))
        await shown.board.sweep()
        assert await probed(shown, "/livez") == (200, "yes\n")
        assert await probed(shown, "/readyz") == (503, "no\n")


async def test_a_store_that_grants_nothing_is_not_ready() -> None:
    staged = busy()
    async with showing(staged) as shown:
        staged.registry.mute_until = time.monotonic_ns() + 60 * SECOND
        await shown.board.sweep()
        assert await probed(shown, "/readyz") == (503, "no\n")


async def test_metrics_are_told() -> None:
    async with showing(busy()) as shown, shown.client.get("/metrics") as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert 'stablecast_source_missing_messages{store="orders",topic="quotes <b>&",source="1002"} 45\n' in (
            await answer.text()
        )


@pytest.mark.rows("P-906")
async def test_rates_are_reset_by_a_form_that_says_so() -> None:
    """A confirmation with the way back."""
    staged = busy()
    staged.serving.received, staged.serving.dropped_since_start = 50, 9
    async with showing(staged, permission=Permission.READ_WRITE) as shown:
        async with shown.client.post("/stores/0/reset", headers=HTML) as answer:
            text = await answer.text()
        assert "Rate statistics have been reset" in text
        assert 'href="/stores/0">Back' in text
        assert (staged.serving.received, staged.serving.dropped_since_start) == (0, 9)


async def test_programs_change_things_too() -> None:
    staged = busy()
    async with showing(staged, permission=Permission.READ_WRITE) as shown:
        assert "have been reset" in await shown.post("/api/stores/0/reset")
        for on, says in ((True, "refused from now on"), (0, "accepted again")):
            assert says in await shown.post("/api/stores/0/drain", {"on": on})
            assert staged.draining == on
        assert "1002 was removed" in await shown.post("/api/stores/0/evict", {"reg_id": 1002})
        assert sorted(one.client.reg_id for one in staged.clients.records.values()) == [1001, 1003, 2001]
        assert all(one.client.role is not Role.STORE for one in staged.clients.records.values())


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/api/stores/1/reset", None, 404),
        ("/api/stores/0/evict", {"reg_id": 5}, 404),
        ("/api/stores/0/evict", {"reg_id": "x"}, 400),
        ("/api/stores/0/evict", [1], 400),
        ("/api/stores/0/nonsense", None, 404),
    ],
)
async def test_a_change_that_makes_no_sense_is_refused(path: str, body: object, status: int) -> None:
    async with showing(busy(), permission=Permission.READ_WRITE) as shown:
        await shown.post(path, body, status)


async def test_what_is_no_json_is_refused() -> None:
    async with (
        showing(busy(), permission=Permission.READ_WRITE) as shown,
        shown.client.post("/api/stores/0/drain", data=b"{") as answer,
    ):
        assert answer.status == 400


async def test_requests_are_bounded() -> None:
    async with (
        showing(busy(), permission=Permission.READ_WRITE) as shown,
        shown.client.post("/api/stores/0/drain", data=b" " * (MAX_BODY_BYTES + 1)) as answer,
    ):
        assert answer.status == 413


async def test_an_errand_is_run_on_the_stores_directory(tmp_path: Any) -> None:
    directory = str(await kept(tmp_path))
    store = Staged(directory=directory)
    async with showing(store, permission=Permission.READ_WRITE) as shown:
        report = json.loads(await shown.post("/api/stores/0/scrub"))
        assert (report["clean"], report["directory"]) == (True, directory)
        assert store.scrubs == 1  # The store verifies its records itself, too, and heals what is bad.
