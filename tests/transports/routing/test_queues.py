"""Queues of a portal: fair, bounded, in order, counted. Rows R-164, R-169 to R-171; D-6."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.routing.queues import PortalQueues, QueuedBlock

A, B = b"a" * 32, b"b" * 32


def filled(most: int, *sizes: tuple[bytes, int]) -> PortalQueues:
    queues = PortalQueues(most)
    for number, (source, size) in enumerate(sizes):
        queues.shut(source)
        queues.put(source, QueuedBlock(bytes(size), number, 1))
    return queues


def test_nothing_waits_while_nothing_holds_it() -> None:
    queues = PortalQueues()
    assert queues.passes(A)
    queues.shut(A)
    assert not queues.passes(A)
    assert queues.passes(B)


@pytest.mark.rows("R-164")
def test_the_newest_of_the_largest_source_is_dropped() -> None:
    queues = filled(100, (A, 60), (B, 20), (A, 30))
    assert queues.dropped == 1
    assert queues.size == 80
    assert list(queues.queues[A].lost) == [(2, 3)]
    assert [block.first for block in queues.open(B)] == [1]


@pytest.mark.rows("R-170")
def test_what_waited_leaves_in_order_and_then_all_passes() -> None:
    queues = PortalQueues()
    queues.shut(A)
    blocks = [QueuedBlock(b"data", 7, 1), QueuedBlock(b"mark"), QueuedBlock(b"data", 8, 1)]
    for block in blocks:
        queues.put(A, block)
    assert queues.open(A) == blocks
    assert queues.passes(A)
    assert (queues.size, queues.peak) == (0, 12)


@pytest.mark.rows("R-169")
def test_a_closed_proxy_leaves_nothing() -> None:
    """R-169: the queue stayed full for ever."""
    queues = filled(100, (A, 60), (B, 20))
    queues.forget(A)
    assert queues.size == 20


@given(st.lists(st.tuples(st.sampled_from([A, B]), st.integers(1, 50)), max_size=60))
def test_the_bound_holds_and_every_number_is_kept_or_counted(puts: list[tuple[bytes, int]]) -> None:
    queues = filled(100, *puts)
    assert queues.size == sum(queue.size for queue in queues.queues.values()) <= 100
    kept = sum(len(queue.blocks) for queue in queues.queues.values())
    assert kept + queues.dropped == len(puts)
    assert sum(queue.lost.total() for queue in queues.queues.values()) == queues.dropped


def test_nothing_passes_what_waits() -> None:
    """R-171."""
    queues = PortalQueues()
    queues.put(A, QueuedBlock(b"data", 7, 1))
    assert not queues.passes(A)
    assert queues.open(A)
    assert queues.passes(A)
