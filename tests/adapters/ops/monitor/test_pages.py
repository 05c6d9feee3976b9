"""The pages: every item of the documented monitor, with the same meaning."""

import re
import time

import attrs
import pytest

from stablecast.ops.monitor import pages
from stablecast.ops.monitor.board import Board, Spans
from stablecast.ops.monitor.pages import Page, Query
from stablecast.store import observatory
from stablecast.store.observatory import SourceView, Traffic
from tests.adapters.ops.monitor.samples import RECEIVER, SOURCE
from tests.adapters.ops.monitor.staged_store import Staged, busy

TAG = re.compile(r"<[^>]*>")


@pytest.fixture(autouse=True)
def _always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observatory, "FRESH_NS", 0)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


async def board_of(*stores: Staged) -> Board:
    board = Board([store.watched(index) for index, store in enumerate(stores)])
    await board.sweep()
    return board


def words(html: str) -> str:
    """Return the text that a person reads."""
    return " ".join(TAG.sub(" ", html).split())


def items(page: Page, block: str) -> dict[str, str]:
    """The names and values of a list of facts."""
    pairs = re.findall(r"<dt[^>]*>(.*?)</dt>\s*<dd[^>]*>(.*?)</dd>", page.blocks[block], re.DOTALL)
    return {words(name): words(value) for name, value in pairs}


async def shown(view: SourceView, writable: bool = False) -> Page:
    spans = Spans(99, 100, 60, (), ())
    return pages.source((await board_of(busy())).stores[0], view, spans, writable)


@pytest.mark.rows("P-901")
async def test_the_overview_says_what_runs() -> None:
    """Version, build, library line, time, the way to the stores."""
    page = pages.index(await board_of(busy(), Staged("quotes")))
    about = items(page, "about")
    assert about["Version"].startswith("stablecast ")
    assert set(about) == {"Version", "Build", "Library", "Time", "Process", "For machines"}
    assert 'href="/stores/1"' in page.blocks["stores"]
    assert "45 messages are missing here and requested under-replicated" in words(page.blocks["banner"])
    assert "sources 3" in words(page.blocks["totals"])


@pytest.mark.rows("P-902")
async def test_stores_are_numbered_from_nought() -> None:
    page = pages.stores(await board_of(*(Staged(f"s{index}") for index in range(5))))
    assert re.findall(r'href="/stores/(\d)">Store (\d): s(\d)<', page.blocks["stores"]) == [
        (str(index),) * 3 for index in range(5)
    ]


@pytest.mark.rows("P-903", "P-904", "P-905", "P-907")
async def test_a_store_has_all_its_items() -> None:
    staged = busy()
    staged.serving.received = staged.serving.served = 1000
    staged.serving.dropped_since_start = 7
    staged.started_at -= 10 * 10**9
    page = pages.store(await board_of(staged), 0, Query(), writable=False)
    facts, service = items(page, "facts"), items(page, "service")
    assert facts["Interface"] == "127.0.0.1:14567"
    assert (facts["Cache dir"], facts["State dir"]) == ("cache", "state")
    assert service["Configured request processing rate"] == "262,144/s"
    assert service["Seconds used for rate calculations"] == "10"
    assert {"Request received rate", "Request service rate", "Request drop rate"} < set(service)
    assert service["Requests dropped in total"] == "7"
    assert "&lt;b&gt;cut" in page.blocks["facts"]
    assert "late-ack 2" in words(page.blocks["facts"])
    assert re.findall(r'href="/stores/0/(\d+)">(\d+ \(\d+\))<', page.blocks["sources"]) == [
        ("1002", "1002 (0)"),
        ("1001", "1001 (0)"),
        ("1003", "1003 (0)"),
    ]


@pytest.mark.rows("P-409")
async def test_slow_rates_have_decimals() -> None:
    """Four requested messages in ten seconds."""
    staged = busy()
    staged.serving.received = 4
    staged.started_at -= 10 * 10**9
    board = await board_of(staged)
    assert 0 < board.stores[0].view.requests[1] <= 0.4
    service = items(pages.store(board, 0, Query(), writable=False), "service")
    assert re.fullmatch(r"0\.\d/s", service["Request received rate"])


@pytest.mark.rows("P-807")
async def test_controls_are_for_those_who_may() -> None:
    board = await board_of(busy())
    for writable in (False, True):
        page = pages.store(board, 0, Query(), writable)
        assert ("<form" in page.blocks["service"], "<form" in page.blocks["facts"]) == (writable, writable)
        source = pages.source(board.stores[0], SOURCE, None, writable)
        assert bool(source.blocks["control"]) == writable


async def test_a_draining_store_can_be_told_to_stop_that() -> None:
    staged = busy()
    staged.draining = True
    page = pages.store(await board_of(staged), 0, Query(), writable=True)
    assert "Accept new clients again" in page.blocks["facts"]


async def test_a_store_shows_a_hundred_sources_at_a_time() -> None:
    staged = Staged()
    for number in range(250):
        staged.source(5000 + number, f"md/{number:03}")
    board = await board_of(staged)

    def listed(query: Query) -> tuple[int, str]:
        html = pages.store(board, 0, query, writable=False).blocks["sources"]
        return html.count('<td class="topic">'), words(html).rpartition(" ok ")[2]

    assert listed(Query()) == (100, "page 1 of 3 on →")
    assert listed(Query(page=1)) == (100, "← back page 2 of 3 on →")
    assert listed(Query(page=77)) == (50, "← back page 3 of 3")
    assert listed(Query("md/01", "topic"))[0] == 10
    assert listed(Query("5249"))[0] == 1
    nothing = pages.store(board, 0, Query("none"), writable=False).blocks["sources"]
    assert "no source" in nothing
    assert Query("a&b", "lag", 3).link(2) == "?q=a%26b&sort=lag&page=2"


@pytest.mark.rows(
    "P-908",
    "P-909",
    "P-910",
    "P-911",
    "P-912",
    "P-913",
    "P-914",
    "P-915",
    "P-916",
    "P-917",
    "P-918",
    "P-919",
    "P-920",
    "P-921",
)
async def test_a_source_has_all_its_items() -> None:
    """P-908..P-921, in the documented form: numbers of the window in hexadecimal."""
    view = attrs.evolve(SOURCE, window=(0, 0x9D5, 0xC2F), sync=(0xC2F, 0xC30, 0xC2E), bursts=(0, 0x1F, 2), lost=5)
    view = attrs.evolve(view, burst_lost=3)
    page = await shown(attrs.evolve(view, in_progress=(3, 4), drops=(1, 6), messages=3120))
    assert page.title == "1001: Source [10.1.0.1.14391 3.4]"
    facts = items(page, "facts")
    assert facts["Topic"] == "“orders”"
    assert facts["Session ID"] == "7"
    assert facts["Last activity"].startswith("22:13:20.123456")
    assert facts["Repository"] == "disk"
    assert facts["Receiver-paced persistence"] == "0"
    assert facts["Message map"] == "3,120"
    assert facts["Window"] == "[0, 9d5, c2f]"
    assert facts["Memory"] == "1,000 / 2,000 / 4,000"
    assert facts["Age threshold"] == "0 s"
    assert facts["Sync"] == "[c2f, c30, c2e]"
    assert facts["In progress"] == "3 / 4"
    assert facts["Offsets"] == "0 / 5,000 / 10,000"
    assert facts["Active ULBs"] == "0 high 1f"
    assert facts["Loss"] == "2 ULBs 3"
    assert facts["Drops"] == "1 / 6"
    assert facts["Transport"].startswith("LBT-TCP 10.1.0.1:14371: received 100 messages")
    assert facts["Stores of the source"] == "3"
    assert 'href="/stores/0/2001">2001 (8)</a>' in page.blocks["receivers"]


@pytest.mark.rows("P-920")
async def test_a_source_over_datagrams_shows_its_naks() -> None:
    """NAKs are an early warning; over TCP there are none."""
    place = "LBTRM:10.1.0.1:14390:12e246c8:239.212.1.45:14400"
    view = attrs.evolve(SOURCE, transport=place, traffic=Traffic(100, 20_000, 4, 1, naks=1234, duplicates=2))
    transport = items(await shown(view), "facts")["Transport"]
    assert transport.startswith(f"{place}: received 100 messages")
    assert transport.endswith("lost 1; its session: NAKs 1,234, duplicates 2")
    assert "NAKs" not in items(await shown(SOURCE), "facts")["Transport"]


@pytest.mark.rows("P-911", "P-914", "P-915", "P-916")
async def test_a_repository_in_memory_has_a_window_of_two() -> None:
    """Trail and lead; P-914..P-916 are of disk types only."""
    facts = items(await shown(attrs.evolve(SOURCE, repository="memory", paced=True, replicas=0)), "facts")
    assert facts["Window"] == "[0, 63]"
    assert facts["Receiver-paced persistence"] == "1"
    assert not {"Sync", "In progress", "Offsets", "Stores of the source"} & set(facts)


async def test_a_source_without_receivers_says_so() -> None:
    assert "no receiver is registered" in (await shown(attrs.evolve(SOURCE, receivers=()))).blocks["receivers"]


async def test_holes_and_losses_are_named_where_they_are() -> None:
    snapshot = (await board_of(busy())).stores[0]
    page = pages.source(snapshot, SOURCE, Spans(3999, 1000, 3955, ((1000, 1039),), ((5, 6),)), writable=False)
    facts = items(page, "window")
    assert (facts["Acknowledged up to"], facts["Missing"], facts["Lost"]) == ("3e7", "3e8–40f", "5–6")
    assert "<h2>Window" not in pages.source(snapshot, SOURCE, None, writable=False).blocks["window"]


async def test_a_source_that_no_sweep_has_seen_has_a_page() -> None:
    page = pages.source((await board_of(Staged())).stores[0], SOURCE, None, writable=False)
    assert items(page, "facts")["Topic"] == "“orders”"


@pytest.mark.rows("P-922", "P-923")
async def test_a_receiver_has_all_its_items() -> None:
    fresh = pages.receiver(0, attrs.evolve(RECEIVER, acknowledged=-1, lag=3, active=False), SOURCE, writable=True)
    assert items(fresh, "facts")["ACK"] == "none yet"
    page = pages.receiver(0, attrs.evolve(RECEIVER, acknowledged=0xC93, lag=3, active=False), SOURCE, writable=True)
    assert page.title == "2001: Receiver [10.2.0.1.14391 5.6]"
    assert page.crumbs[-1] == ("/stores/0/1001", "Source 1001")
    facts = items(page, "facts")
    assert facts["Topic"] == "“orders”"
    assert facts["Last activity"].startswith("22:13:20.123456")
    assert (facts["Source RegID"], facts["Source session ID"], facts["ACK"]) == ("1001", "7", "c93")
    assert 'href="/stores/0/1001"' in page.blocks["facts"]
    assert facts["Lag"] == "3 of 100"
    assert "receiver-silent" in page.blocks["banner"]
    assert "Evict" in page.blocks["control"]


async def test_the_most_urgent_comes_first_and_once_for_each_source() -> None:
    staged = busy()
    life = 1003 << 32 | 17
    staged.data(life, 0, 5)
    repository = staged.repositories[1003]
    repository.filling.losses = 4
    repository.filling.lost.add(repository.newest, repository.newest + 1)
    staged.draining = True
    banner = words(pages.index(await board_of(staged)).blocks["banner"])
    assert banner.index(" lost ") < banner.index(" under-replicated") < banner.index(" draining")
    assert "receiver-late" not in banner


async def test_more_findings_than_fit_are_counted() -> None:
    staged = Staged()
    for number in range(103):
        life = staged.source(5000 + number)
        staged.data(life, 0, 1)
        staged.data(life, 2 + number, 1)
    assert "and 3 more" in words(pages.index(await board_of(staged)).blocks["banner"])


async def test_what_is_findings_of_many_is_said_once() -> None:
    staged = Staged()
    for number in range(103):
        life = staged.source(5000 + number)
        staged.data(life, 0, 1)
        staged.data(life, 2, 1)
    banner = words(pages.index(await board_of(staged)).blocks["banner"])
    assert banner.count("message is missing here") == 1
    assert "and 102 more : 1 message is missing here and requested" in banner


def test_names_are_escaped() -> None:
    page = pages.notice("<script>", "<b>", "/stores/0")
    text = pages.document(page, live=False)
    assert "&lt;script&gt;" in text
    assert "<b>" not in text
    assert "monitor.js" not in text
    assert "This token is wrong" in pages.document(pages.login(wrong=True), live=False)
    assert "monitor.js" in pages.document(page, live=True)
