"""Messages between processes: in any pieces, remembered or not, they equal those of the codec."""

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.protocol.messages import Keepalive, Role
from stablecast.lab.sim import process
from stablecast.lab.sim.process import Greeting, Item, ItemReader, encode
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmc import DATA_HEADER
from tests.support.retransmissions import encode_recovered

ALIVE = Keepalive(Role.SOURCE, 7, 50, True, 0)
RECOVERED = codec.Recovered(7, 8, 3, b"again")
DATA = DATA_HEADER.pack(0, 0, DATA_HEADER.size + 1, 5, 9) + b"x"
STREAM = codec.greeting(77) + codec.encode(ALIVE) + DATA + encode_recovered(RECOVERED)


def told(items: Iterable[Item]) -> list[object]:
    return [(item.topic_index, item.first, bytes(item.block)) if isinstance(item, Run) else item for item in items]


EXPECTED = [Greeting(77), ALIVE, (5, 9, DATA), RECOVERED]


def test_what_is_said_is_heard() -> None:
    assert told(ItemReader().feed(STREAM)) == EXPECTED
    assert encode(ALIVE) == codec.encode(ALIVE)


@given(st.lists(st.integers(0, len(STREAM)), max_size=5))
def test_pieces_do_not_matter(cuts: list[int]) -> None:
    reader, ends = ItemReader(), [0, *sorted(cuts), len(STREAM)]
    items = [item for low, high in pairwise(ends) for item in reader.feed(STREAM[low:high])]
    assert told(items) == EXPECTED


def test_whole_pieces_are_taken_apart_once() -> None:
    process._whole.cache_clear()
    for reader in (ItemReader(), ItemReader(), ItemReader()):
        reader.feed(STREAM)
    assert process._whole.cache_info().misses == 1


def test_what_nobody_says_is_refused() -> None:
    with pytest.raises(WireError):
        ItemReader().feed(b"\xff" * 8)
