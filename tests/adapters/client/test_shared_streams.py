"""Streams that the shares of one member receive together."""

import asyncio
from unittest import mock

import pytest

from stablecast.client import shared_streams
from stablecast.client.shared_streams import SharedStream, SharedStreams, StreamShare
from stablecast.config.transport_options import TransportConfig
from stablecast.core.protocol.inputs import Lost
from stablecast.core.protocol.messages import SourceInfo
from stablecast.runtime.stream import Item
from stablecast.transports import codec
from stablecast.transports.codec.identity import TOPIC_BITS
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmc import Message, MessageKind, decode
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


async def test_every_share_gets_what_cannot_be_decoded_losses_and_the_end() -> None:
    """Each counts what is malformed. A peer that sends it ends nobody's stream."""
    forgotten: list[bool] = []
    stream = SharedStream(lambda: forgotten.append(True))
    stream.joiner = mock.Mock()
    told = mock.Mock()
    shares = [StreamShare(stream, told.items, told.lost, told.end) for _ in range(2)]
    for share in shares:
        stream.add(share)
    malformed, lost = Message(MessageKind.CONTROL), Lost(SESSION, 5, 3)
    with pytest.raises(WireError):
        codec.decode(malformed)
    stream.on_items(SESSION, [malformed])
    stream.on_lost(lost)
    shares[0].pause()
    shares[1].resume()
    assert stream.joiner.mock_calls == [mock.call.pause(), mock.call.resume()]
    shares[1].abandon()
    stream.on_end(False)
    stream.on_end(True)
    calls = [mock.call.items(SESSION, [malformed])] * 2 + [mock.call.lost(lost)] * 2
    assert told.mock_calls == [*calls, mock.call.end(False), mock.call.end(True)]
    assert forgotten == [True]


def test_a_stream_that_every_share_left_is_joined_anew() -> None:
    transports = mock.Mock()
    streams = SharedStreams(transports)

    def join() -> StreamShare:
        return streams.joiner("10.0.0.1:1", SESSION, TransportConfig(), "orders", mock.Mock(), mock.Mock(), mock.Mock())

    shares = [join(), join()]
    shares[0].abandon()
    assert not transports.joiner().abandon.called
    shares[1].abandon()
    shares[1].abandon()
    transports.joiner().abandon.assert_called_once_with()
    transports.joiner.reset_mock()
    join()
    transports.joiner.assert_called_once()


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


async def test_the_newest_announcements_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A context may have had many sources. One that announces itself again is a new one."""
    monkeypatch.setattr(shared_streams, "MAX_ANNOUNCEMENTS", 2)
    stream = SharedStream(lambda: None)
    stream.joiner = mock.Mock()
    stream.on_items(SESSION, [announced(index) for index in (1, 2, 1, 3)])
    got: list[Item] = []
    stream.add(StreamShare(stream, lambda _, items: got.extend(items), lambda _: None, lambda _: None))
    await asyncio.sleep(0)
    assert got == [announced(1), announced(3)]


async def test_a_later_share_is_told_the_newest_number_that_arrived() -> None:
    """With the number of the announcement, what passed since would be missing to it."""
    stream = SharedStream(lambda: None)
    stream.joiner = mock.Mock()
    stream.on_items(SESSION, [announced(1), announced(2), Run(1, 40, 2, 2, b""), Run(1, 10, 2, 2, b"")])
    got: list[Item] = []
    stream.add(StreamShare(stream, lambda _, items: got.extend(items), lambda _: None, lambda _: None))
    await asyncio.sleep(0)
    highs = [told.high for told in map(codec.decode, got) if isinstance(told, SourceInfo)]  # type: ignore[arg-type]
    assert highs == [41, info().high]
    stream.on_items(SESSION, [announced(1)])
    stream.on_items(SESSION + 1, [Run(1, 90, 1, 1, b"")])
    got.clear()
    stream.add(StreamShare(stream, lambda _, items: got.extend(items), lambda _: None, lambda _: None))
    await asyncio.sleep(0)
    assert got == [announced(2), announced(1)]
