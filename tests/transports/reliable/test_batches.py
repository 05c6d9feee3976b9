"""Batches: the floor, the ceiling, the wait, and explicit ones."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.errors import MisuseError
from stablecast.core.machine.units import MILLISECOND
from stablecast.transports.reliable.batches import Batcher, BatchMark
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.lbmc import DATA_HEADER

MS = MILLISECOND


def message(size: int) -> bytes:
    """Return a message of `size` bytes in total."""
    return lbmc.encode(lbmc.Message(lbmc.MessageKind.DATA, 1, 2, (), bytes(size - DATA_HEADER.size)))


def batcher(room: int = 8000, floor: int = 2048) -> Batcher:
    return Batcher(room, floor, 200 * MS)


def sizes(datagrams: Sequence[bytes | memoryview]) -> list[int]:
    return [len(datagram) for datagram in datagrams]


@pytest.mark.rows("P-959")
def test_the_minimum_length_is_a_floor_not_a_ceiling() -> None:
    """A runner-up of the traps: 2000 + 500 bytes leave as one datagram of 2500. P-959."""
    batch = batcher()
    assert batch.add(message(2000), 0) == []
    assert sizes(batch.add(message(500), 1)) == [2500]
    assert batch.due() is None


def test_pending_messages_leave_before_one_that_would_exceed_the_datagram() -> None:
    batch = batcher(room=3000, floor=2900)
    assert batch.add(message(2000), 0) == []
    assert sizes(batch.add(message(1500), 5)) == [2000]
    assert batch.due() == 5 + 200 * MS, "the interval of the one that stayed"


def test_the_oldest_message_decides_when_the_batch_is_due() -> None:
    batch = batcher()
    assert batch.due() is None
    batch.add(message(20), 10)
    batch.add(message(20), 90)
    assert batch.due() == 10 + 200 * MS
    assert sizes(batch.flush()) == [40]
    assert batch.flush() == []


def test_a_floor_of_1_sends_each_message_alone() -> None:
    assert sizes(batcher(floor=1).add(message(20) * 3, 0)) == [20, 20, 20]


def test_an_explicit_batch_waits_for_its_end_and_no_timer_sends_it() -> None:
    batch = batcher(room=5000)
    assert batch.add(message(3000), 0, BatchMark.BEGIN) == []
    assert batch.due() is None
    assert sizes(batch.add(message(3000), 0)) == [3000], "a datagram that is full leaves all the same"
    assert sizes(batch.add(message(20), 0, BatchMark.END)) == [3020]
    assert batch.add(message(20), 0, BatchMark.END) != []


def test_flushing_an_explicit_batch_leaves_it_open() -> None:
    batch = batcher()
    batch.add(message(20), 0, BatchMark.BEGIN)
    assert sizes(batch.flush()) == [20]
    assert batch.explicit


@pytest.mark.parametrize(
    "block", [message(3001), message(20)[:-1], message(20) + b"\0", bytes(4), b"\0\0\0\x08" + bytes(4)]
)
def test_malformed_and_oversized_messages_are_refused(block: bytes) -> None:
    batch = batcher(room=3000)
    with pytest.raises(MisuseError, match="does not fit"):
        batch.add(message(20) + block, 0)
    assert batch.pending == []


def test_an_end_needs_no_message() -> None:
    batch = batcher()
    batch.add(message(20), 0, BatchMark.BEGIN)
    assert sizes(batch.add(b"", 0, BatchMark.END)) == [20]


def test_the_start_of_the_last_message_is_known() -> None:
    batch = batcher()
    batch.add(message(20) + message(30) + message(40), 0)
    assert batch.last_at == 50


MIXED = st.lists(st.integers(12, 300), min_size=1, max_size=6)
ALIKE = st.tuples(st.integers(12, 300), st.integers(1, 30)).map(lambda pair: [pair[0]] * pair[1])


@given(st.lists(MIXED | ALIKE, max_size=12), st.integers(1, 400))
def test_datagrams_are_what_a_message_at_a_time_would_give(blocks: list[list[int]], floor: int) -> None:
    batch, twin = batcher(300, floor), list[int]()
    pending = 0
    found: list[int] = []
    for block in blocks:
        for size in block:
            if pending and pending + size > 300:
                twin.append(pending)
                pending = 0
            pending += size
            if pending >= floor:
                twin.append(pending)
                pending = 0
        found += sizes(batch.add(b"".join(map(message, block)), 0))
        assert (found, batch.size) == (twin, pending)
