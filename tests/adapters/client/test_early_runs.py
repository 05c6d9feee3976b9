"""Runs that overtook the announcement of their source."""

from stablecast.client.subscriber import MAX_EARLY, MAX_EARLY_BYTES, EarlyRuns
from stablecast.core.protocol.messages import SourceInfo
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run
from tests.adapters.runtime.peers import data, hello, listener
from tests.support.network import Network

HOP, OTHER = codec.join(5, 7), codec.join(6, 7)


def run(topic: int, first: int, block: bytes | memoryview = b"") -> Run:
    return Run(topic, first, 1, 1, block)


def test_the_runs_of_a_life_are_given_once_and_in_order() -> None:
    early = EarlyRuns()
    for session_id, topic, first in ((5, 7, 0), (6, 7, 0), (5, 7, 1), (5, 8, 0)):
        early.keep(codec.join(session_id, topic), run(topic, first))
    assert early.remove(codec.join(9, 9)) == []
    assert early.remove(HOP) == [run(7, 0), run(7, 1)]
    assert early.remove(HOP) == []
    assert list(early.runs) == [(OTHER, run(7, 0)), (codec.join(5, 8), run(8, 0))]


def test_early_runs_are_bounded_in_number() -> None:
    early = EarlyRuns()
    for first in range(MAX_EARLY + 2):
        early.keep(HOP, run(7, first))
    taken = early.remove(HOP)
    assert (len(taken), taken[0].first) == (MAX_EARLY, 2)


def test_they_are_bounded_in_bytes_too_and_keep_no_more_than_themselves() -> None:
    """A run is a part of what a read brought, which may be megabytes."""
    early, read = EarlyRuns(), bytes(2 * MAX_EARLY_BYTES)
    half = MAX_EARLY_BYTES // 2
    for first in range(4):
        early.keep(HOP, run(7, first, memoryview(read)[:half]))
    assert early.size == MAX_EARLY_BYTES
    early.keep(OTHER, run(7, 9, memoryview(read)[:1]))
    assert early.size == half + 1
    (taken,) = early.remove(HOP)
    assert (taken.first, type(taken.block), early.size) == (3, bytes, 1)
    early.keep(HOP, run(7, 0, read))
    assert (early.size, list(early.runs)) == (0, []), "one that is larger than all may be"


async def test_a_receiver_delivers_what_overtook_the_announcement(net: Network) -> None:
    life = codec.join(5, 7)
    async with listener() as source:
        info = SourceInfo(life, "orders", 1, 1, 0, source.address, (), False, (), 1, ((life, 0),), late_join=False)
        source.greeting = hello(5) + data(1, b"first") + codec.encode(info) + data(2, b"second")
        receiver = (await net.context()).receiver("orders", source=source.address)
        assert [(await anext(receiver)).payload for _ in range(2)] == [b"first", b"second"]
