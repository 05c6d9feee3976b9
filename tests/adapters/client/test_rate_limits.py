"""Sources under a data rate limit, on real sockets: each of them goes on until everything is stable and delivered."""

import asyncio

import pytest

from stablecast.client import Context, Source
from stablecast.config.option_kinds import Value
from tests.support.network import Network

GROUP = "239.192.7.6"
TOPICS = 3
MESSAGES = 60


def options(kind: str, rate: int, **others: Value) -> dict[str, Value]:
    found: dict[str, Value] = {"transport": kind, **others}
    if rate:
        found[f"transport_{kind}_data_rate_limit"] = rate
    if kind == "lbtrm":
        found["transport_lbtrm_multicast_address"] = GROUP
    return found


async def send(source: Source, count: int, size: int) -> None:
    last = None
    for number in range(count):
        last = await source.send(number.to_bytes(4) + bytes(size - 4))
    assert last is not None
    await last.stable()


async def take(context: Context, source: Source, count: int) -> list[int]:
    receiver = context.receiver(source.topic, source=source.place, session_id=90)
    found = list[int]()
    async for message in receiver:
        found.append(int.from_bytes(message.payload[:4]))
        if len(found) == count:
            break
    return found


@pytest.mark.parametrize(
    ("kind", "rate", "size", "count"),
    [
        ("lbtrm", 1_000_000, 500, MESSAGES),
        ("lbtrm", 200_000, 500, MESSAGES),
        ("lbtrm", 100_000, 500, MESSAGES),
        ("lbtrm", 0, 60_000, 12),
        ("lbtru", 1_000_000, 500, MESSAGES),
        ("lbtru", 400_000, 500, MESSAGES),
        ("lbtru", 0, 60_000, 12),
    ],
)
async def test_three_topics_of_one_context_go_on_under_a_rate_limit(
    net: Network, kind: str, rate: int, size: int, count: int
) -> None:
    """They share a session, or have one each; their announcements and what they send use up the same interval."""
    store = await net.store()
    context, hearing = await net.context(), await net.context()
    chosen = options(kind, rate)
    sources = [
        await context.source(f"topic-{place}", stores=[store], session_id=place + 1, options=chosen)
        for place in range(TOPICS)
    ]
    taking = [asyncio.ensure_future(take(hearing, source, count)) for source in sources]
    await asyncio.gather(*(send(source, count, size) for source in sources))
    assert await asyncio.gather(*taking) == [list(range(count))] * TOPICS
    assert [source.stable_through >= count - 1 for source in sources] == [True] * TOPICS
    for source in sources:
        await source.close()


@pytest.mark.parametrize("kind", ["lbtrm", "lbtru"])
async def test_retransmissions_that_may_take_more_than_data_do_not_wedge_it(net: Network, kind: str) -> None:
    """One datagram in five is lost; what is sent again may use more than the limit of data, which is low."""
    store = await net.store()
    context, hearing = await net.context(), await net.context()
    chosen = options(kind, 400_000, **{f"transport_{kind}_retransmit_rate_limit": 5_000_000})
    sources = [
        await context.source(f"topic-{at}", stores=[store], session_id=at + 1, options=chosen) for at in range(3)
    ]
    heard: dict[str, Value] = {
        "transport_lbtrm_nak_initial_backoff_interval": 5,
        f"transport_{kind}_nak_backoff_interval": 20,
        f"transport_{kind}_nak_suppress_interval": 30,
        f"transport_{kind}_loss_rate": 20,
    }
    receivers = [
        hearing.receiver(source.topic, source=source.place, session_id=90, options=heard) for source in sources
    ]
    await asyncio.gather(*(send(source, 40, 500) for source in sources))
    for receiver in receivers:
        found = [int.from_bytes((await anext(receiver)).payload[:4]) for _ in range(40)]
        assert found == list(range(40))
    for source in sources:
        await source.close()
