"""Streams that the shares of one member receive together: each source's stream is joined once, and given to all.

A share that is claimed later gets the source's newest announcement at once, because the source repeats it only when
something changes. It has the newest number that has arrived, so the share is in the place of a receiver that joined
late. A source that ended while others of its context send on the stream is announced to no share any more: a share
names the sources that it found.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from stablecast.client.transport_sessions import Transports
from stablecast.config.transport_options import TransportConfig
from stablecast.core.errors import StablecastError
from stablecast.core.machine import serial
from stablecast.core.protocol.inputs import Lost
from stablecast.core.protocol.messages import SourceInfo
from stablecast.runtime.stream import Item, StreamJoiner
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.codec.renamed import with_high
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmc import Message

if TYPE_CHECKING:
    from stablecast.runtime.reliable_stream import ReliableJoiner

MAX_ANNOUNCEMENTS = 1024
"""Announcements that are kept of one stream: one of each source that sends on it."""


@attrs.define(eq=False)
class StreamShare:
    """One share's part in a stream; it does for the share what a joiner does for a receiver."""

    stream: "SharedStream"
    on_items: Callable[[int, list[Item]], None]
    on_lost: Callable[[Lost], None]
    on_end: Callable[[bool], None]
    claimed: set[int] = attrs.field(factory=set)

    def claim(self, topic: int) -> None:
        """Receive the items of one topic of the stream."""
        self.stream.joiner.claim(topic)
        if topic not in self.claimed:
            self.claimed.add(topic)
            self.stream.announce_soon(self, topic)

    def pause(self) -> None:
        """Stop reading the stream, for all shares: they have one inbox."""
        self.stream.joiner.pause()

    def resume(self) -> None:
        self.stream.joiner.resume()

    def abandon(self) -> None:
        """Leave; the last share leaves the stream."""
        self.stream.leave(self)

    async def close(self) -> None:
        """Leave, and wait until no task is left."""
        self.abandon()
        if not self.stream.shares:
            await self.stream.joiner.close()


class SharedStream:
    """One joined stream, and the shares that receive it."""

    def __init__(self, forget: Callable[[], None]) -> None:
        """Begin without a share; `forget` is called when the last one has left, or the stream has ended."""
        self.joiner: StreamJoiner | ReliableJoiner
        self.shares: dict[StreamShare, None] = {}
        self._forget = forget
        self._announcements: dict[int, tuple[int, Message]] = {}
        self._newest: dict[int, int] = {}

    def add(self, share: StreamShare) -> None:
        """Give the stream to one more share, the announcements first."""
        self.shares[share] = None
        self.announce_soon(share)

    def announce_soon(self, share: StreamShare, topic: int | None = None) -> None:
        """Give a share the kept announcements of a topic, or all of them if it claims none until then."""
        if self._announcements:
            asyncio.get_running_loop().call_soon(self._announce, share, topic)

    def leave(self, share: StreamShare) -> None:
        if self.shares.pop(share, share) is None and not self.shares:
            self._forget()
            self.joiner.abandon()

    def on_items(self, session_id: int, items: list[Item]) -> None:
        for item in items:
            self._keep(session_id, item)
        for share in tuple(self.shares):
            share.on_items(session_id, items)

    def on_lost(self, lost: Lost) -> None:
        for share in tuple(self.shares):
            share.on_lost(lost)

    def on_end(self, gone: bool) -> None:
        shares = tuple(self.shares)
        if gone:
            self.shares.clear()
            self._forget()
        for share in shares:
            share.on_end(gone)

    def _keep(self, session_id: int, item: Item) -> None:
        if isinstance(item, Run):
            life, newest = codec.join(session_id, item.topic_index), serial.wire(item.first + item.count - 1)
            if life in self._newest and serial.before(self._newest[life], newest):
                self._newest[life] = newest
            return
        try:
            message = codec.decode(item)
        except WireError:
            return  # Each share counts it.
        if isinstance(message, SourceInfo):
            self._announcements.pop(message.incarnation, None)
            self._announcements[message.incarnation] = (session_id, item)
            self._newest[message.incarnation] = serial.wire(message.high)
            if len(self._announcements) > MAX_ANNOUNCEMENTS:
                oldest = next(iter(self._announcements))
                del self._announcements[oldest], self._newest[oldest]

    def _announce(self, share: StreamShare, topic: int | None) -> None:
        if topic is None and share.claimed:
            return
        for life, (session_id, item) in tuple(self._announcements.items()):
            if share in self.shares and topic in (None, codec.split(life)[1]):
                share.on_items(session_id, [with_high(item, self._newest[life])])


class SharedStreams:
    """The streams that the shares of one member have joined, by place."""

    def __init__(self, transports: Transports) -> None:
        self._transports = transports
        self._streams: dict[str, SharedStream] = {}

    def joiner(
        self,
        transport: str,
        session_id: int | None,
        config: TransportConfig,
        topic: str,
        on_items: Callable[[int, list[Item]], None],
        on_lost: Callable[[Lost], None],
        on_end: Callable[[bool], None],
    ) -> StreamShare:
        """Join a stream for one share, as `Transports.joiner`. Raises like it."""
        stream = self._streams.get(transport)
        if stream is None:
            stream = SharedStream(lambda: self._forget(transport))
            calls = (stream.on_items, stream.on_lost, stream.on_end)
            stream.joiner = self._transports.joiner(transport, session_id, config, topic, *calls)
            self._streams[transport] = stream
        share = StreamShare(stream, on_items, on_lost, on_end)
        stream.add(share)
        return share

    def pass_over(self, place: str, error: StablecastError) -> None:
        """Count and log a source that cannot be joined from here."""
        self._transports.pass_over(place, error)

    def _forget(self, transport: str) -> None:
        self._streams.pop(transport, None)
