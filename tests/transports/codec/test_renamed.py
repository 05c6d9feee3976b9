"""Items of a stream under other names: the same bytes otherwise, and the same length."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.protocol.messages import SourceInfo, StoreEntry
from stablecast.transports import codec
from stablecast.transports.codec.fragments import encode_pieces
from stablecast.transports.codec.lbttcp import Run, StreamDecoder, build, payloads
from stablecast.transports.codec.renamed import renamed, with_domain
from stablecast.transports.wire.lbmc import Message

U32 = st.integers(0, (1 << 32) - 1)
PAYLOADS = st.lists(st.binary(max_size=40), min_size=1, max_size=30) | st.binary(max_size=9).flatmap(
    lambda one: st.integers(1, 300).map(lambda count: [one] * count)
)


def read(octets: bytes) -> list[object]:
    return list(StreamDecoder().feed(octets))


@pytest.mark.rows("R-055", "R-057")
@given(U32, U32, U32, PAYLOADS)
def test_a_run_has_another_index_and_is_the_same_otherwise(
    before: int, after: int, number: int, contents: Sequence[bytes]
) -> None:
    block = build(before, number, contents)
    run = Run(before, number, len(contents), sum(map(len, contents)), memoryview(block))
    octets = renamed(run, 5, after)
    assert octets == build(after, number, contents)
    (again,) = read(octets)
    assert isinstance(again, Run)
    assert (again.topic_index, again.first, payloads(again.block, 0, again.count)) == (after, number, list(contents))


def test_pieces_keep_their_numbers_and_headers() -> None:
    block = b"".join(encode_pieces(7, 41, b"x" * 5_000, 1_400, 0, None))
    (run,) = read(block)
    assert isinstance(run, Run)
    octets = renamed(run, 5, 9)
    assert octets == b"".join(encode_pieces(9, 41, b"x" * 5_000, 1_400, 0, None))


@given(U32, U32)
def test_an_announcement_names_the_hop(session: int, index: int) -> None:
    info = SourceInfo(codec.join(1, 2), "orders", 3, 4, 5, "10.0.0.1:14391", (), False, ())
    before = codec.encode(info)
    (item,) = read(before)
    after = renamed(item, session, index)  # type: ignore[arg-type]  # a run or a message
    assert len(after) == len(before)
    (found,) = read(after)
    life = codec.decode(found).incarnation  # type: ignore[arg-type]
    assert codec.split(life) == (session, index)


def test_an_announcement_gets_the_domain_that_it_leaves_out() -> None:
    stores = (StoreEntry(0, 0, "10.0.0.2:14567", 9, 1), StoreEntry(1, 0, "3:10.0.0.3:14567", 9, 1))
    info = SourceInfo(codec.join(1, 2), "orders", 3, 4, 5, "10.0.0.1:14391", (2,), False, stores)
    (item,) = read(codec.encode(info))
    assert isinstance(item, Message)
    (found,) = read(renamed(with_domain(item, 7), 1, 2))
    again = codec.decode(found)  # type: ignore[arg-type]  # it is a message
    assert isinstance(again, SourceInfo)
    assert again.request == "7:10.0.0.1:14391"
    assert [entry.address for entry in again.stores] == ["7:10.0.0.2:14567", "3:10.0.0.3:14567"]
    assert with_domain(with_domain(item, 7), 8) == with_domain(item, 7)
