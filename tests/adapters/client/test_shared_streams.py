"""Streams that the shares of one member receive together."""

import asyncio
from unittest import mock

import pytest

from stablecast.client.shared_streams import SharedStream, StreamShare
from stablecast.runtime.stream import Item
from stablecast.transports import codec
from stablecast.transports.codec.identity import TOPIC_BITS
from stablecast.transports.wire.lbmc import decode
from tests.core.samples import info

SESSION = 9


def announced(index: int) -> Item:
    """The announcement of a source, whose topic has this index in its context."""
    return decode(codec.encode(info(incarnation=SESSION << TOPIC_BITS | index, request="10.0.0.1:14391")))[0]


@pytest.mark.parametrize(("claims", "told"), [([], [1, 2]), ([1], [1]), ([2, 2], [2]), ([3], []), ([2, 1], [2, 1])])
async def test_a_later_share_is_told_of_the_sources_that_it_found(claims: list[int], told: list[int]) -> None:
    """Another one may have ended, and its context sends on. A share that names none is told of all."""
    stream = SharedStream(lambda: None)
    stream.joiner = mock.Mock()
    stream.add(StreamShare(stream, lambda *_: None, lambda _: None, lambda _: None))
    stream.on_items(SESSION, [announced(index) for index in (1, 2)])
    got: list[Item] = []
    share = StreamShare(stream, lambda _, items: got.extend(items), lambda _: None, lambda _: None)
    stream.add(share)
    for topic in claims:
        share.claim(topic)
    await asyncio.sleep(0)
    assert got == [announced(index) for index in told]
    assert stream.joiner.claim.mock_calls == [mock.call(topic) for topic in claims]


async def test_a_source_that_is_found_later_is_announced_then() -> None:
    stream = SharedStream(lambda: None)
    stream.joiner = mock.Mock()
    got: list[Item] = []
    share = StreamShare(stream, lambda _, items: got.extend(items), lambda _: None, lambda _: None)
    stream.add(share)
    share.claim(1)
    stream.on_items(SESSION, [announced(2)])
    got.clear()
    share.claim(2)
    await asyncio.sleep(0)
    assert got == [announced(2)]
