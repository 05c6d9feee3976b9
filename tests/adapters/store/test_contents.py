"""What a store answers to readers: all of its sources by pages, and all ranges of a source by answers."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from stablecast.client.range_inquiry import RangeRoutes, ask_all
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import Role
from stablecast.core.protocol.stored_contents import StoredAnswer, StoredQuestion
from stablecast.store import contents as module
from stablecast.store.contents import StoreContents
from stablecast.transports import codec
from stablecast.transports.wire import lbmc

STORE = "127.0.0.1:14567"


def holding(sources: dict[int, list[tuple[int, int]]], topics: dict[int, str]) -> RangeRoutes:
    """Return the way to a store that holds these ranges of sources, and messages of them in memory only."""
    clients, repositories = {}, {}
    for reg_id, ranges in sources.items():
        client = Client(Role.SOURCE, reg_id, 0, topics.get(reg_id, "orders"), reg_id, reg_id, 0, "", "", 0, 0, 0, ())
        clients[reg_id] = SimpleNamespace(client=client)
        repositories[reg_id] = SimpleNamespace(
            synced=RangeSet(ranges),
            trail=0,
            resume_point=0,
            incarnation=reg_id,
            lives=((reg_id, 0),),
            lives_term=1,
            terms=SimpleNamespace(written=False),
            disk_bytes=0,
            memory=(0, 0, 9),
        )
    machine: Any = SimpleNamespace(status=SimpleNamespace(clients=clients, repositories=repositories))
    routes, nothing = RangeRoutes(), Counter[str]()
    journal: Any = None

    def message(octets: bytes) -> object:
        return codec.decode(lbmc.decode(octets)[0])

    def answered(_: str, octets: bytes) -> None:
        answer = message(octets)
        assert isinstance(answer, StoredAnswer)
        routes.on_answer(answer)

    store = StoreContents(machine, journal, STORE, answered, nothing)

    def asked(_: str, octets: bytes) -> None:
        question = message(octets)
        assert isinstance(question, StoredQuestion)
        store.answer(question)

    pool: Any = SimpleNamespace(send=asked)
    routes.open(pool, "127.0.0.1:9")
    return routes


@pytest.mark.parametrize("page", range(1, 7))
async def test_a_reader_gets_every_source_however_many_fill_a_page(monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    """Five sources of two topics: pages that are full, nearly full, or hold everything."""
    monkeypatch.setattr(module, "PAGE", page)
    routes = holding({reg_id: [(0, 3)] for reg_id in (9, 2, 7, 4, 5)}, {7: "bills", 2: "bills"})
    for topic, expected in ("", [2, 4, 5, 7, 9]), ("orders", [4, 5, 9]), ("bills", [2, 7]), ("unknown", []):
        assert [one.reg_id for one in await routes.ask(STORE, topic=topic)] == expected
    assert [one.reg_id for one in await routes.ask(STORE, topic="orders", reg_id=5)] == [5]


@pytest.mark.parametrize("most", range(1, 7))
async def test_a_reader_gets_every_range_however_many_fill_an_answer(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(module, "MAX_RANGES", most)
    ranges = [(0, 3), (5, 6), (9, 20), (30, 31), (40, 50)]
    routes = holding({7: ranges}, {})
    for first in range(52):
        (answer,) = (await ask_all(routes, [STORE], 1.0, topic="orders", first=first))[STORE]
        assert list(answer.ranges) == RangeSet(ranges).within(first, 50)
        assert answer.reach == 50
