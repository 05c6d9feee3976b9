"""The messages of a store: in memory, on the disk, or both.

Messages in memory are served from there. Others are read from the disk, if they were written. A store may keep messages
in memory only, or write them later.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, assert_never

import attrs

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.messages import Incarnation
from stablecast.runtime.kept_runs import Tokens
from stablecast.store.journal.record_format import Block
from stablecast.store.journal.segments import RecordPlace
from stablecast.store.message_cache import CachedRun, MessageCache
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import span


class MessageLog(Protocol):
    """The journal as the storage uses it; see `stablecast.store.journal.Journal`."""

    def append_messages(self, stream: int, first: int, count: int, tag: int, block: Block, ticket: int) -> None: ...

    def cut(self, stream: int, at: int, ticket: int) -> None:
        """Forget the numbers from `at` on."""

    def trim(self, stream: int, number: int, ticket: int) -> None:
        """Forget the numbers below `number`."""

    def forget(self, stream: int, ticket: int) -> None: ...


@attrs.frozen
class MessagePiece:
    """Messages [number, stop) of a block that begins with `first`, sent by life `tag`.

    If there is a `record`, the block must be read from there.
    """

    number: int
    stop: int
    first: int
    tag: Incarnation
    block: Block
    record: RecordPlace | None = None


def encoded(session: Incarnation, pieces: Iterable[MessagePiece]) -> bytes:
    """Return the messages of pieces with blocks, encoded as retransmissions that answer a request of `session`."""
    return b"".join(
        codec.encode_again(session, piece.tag, piece.block, piece.number - piece.first, piece.stop - piece.number)
        for piece in pieces
    )


def pieces_of(effect: fx.SendStored, piece: Callable[[int, int], MessagePiece | None]) -> Iterator[MessagePiece]:
    """Yield the pieces of the requested messages that `piece` finds; other messages are left out."""
    number = effect.first
    while number <= effect.last:
        found = piece(effect.source_reg_id, number)
        if found is None:
            number += 1
            continue
        found = attrs.evolve(found, stop=min(found.stop, effect.last + 1))
        yield found
        number = found.stop


class MessageStorage:
    """The messages of one store. All methods raise what the journal raises."""

    def __init__(self, log: MessageLog, tokens: Tokens) -> None:
        """Store messages whose bytes `tokens` keeps until they are stored or dropped."""
        self._log = log
        self._tokens = tokens
        self._cache = MessageCache()

    def persist(self, effect: fx.PersistMessages) -> None:
        block = self._keep(effect)
        self._log.append_messages(
            effect.source_reg_id, effect.first, effect.count, effect.incarnation, block, effect.ticket
        )

    def change(self, effect: fx.CacheMessages | fx.PersistCached | fx.Uncache | fx.Reclaim | fx.Cut) -> None:
        source = effect.source_reg_id
        match effect:
            case fx.CacheMessages():
                self._keep(effect)
            case fx.PersistCached():
                self._write(effect)
            case fx.Uncache():
                self._cache.drop_before(source, effect.number)
            case fx.Reclaim():
                self._cache.drop_before(source, effect.number)
                self._log.trim(source, effect.number, effect.ticket)
            case fx.Cut():
                self._cache.cut(source, effect.number)
                self._log.cut(source, effect.number, effect.ticket)
            case _:
                assert_never(effect)

    def forget(self, source_reg_id: int, ticket: int) -> None:
        self._cache.forget(source_reg_id)
        self._log.forget(source_reg_id, ticket)

    def cached(self, source_reg_id: int, number: int) -> CachedRun | None:
        """Return the run in memory that holds a number, None if no run does."""
        return self._cache.find(source_reg_id, number)

    def _keep(self, effect: fx.PersistMessages | fx.CacheMessages) -> Block:
        block = self._tokens.block(effect.token, effect.skip, effect.count, effect.done)
        self._cache.keep(effect.source_reg_id, effect.first, effect.count, effect.incarnation, block)
        return block

    def _write(self, effect: fx.PersistCached) -> None:
        source, number = effect.source_reg_id, effect.first
        while number <= effect.last:
            found = self._cache.find(source, number)
            assert found is not None, f"number {number} of source {source} is not in memory"
            first, count, incarnation, block = found
            stop = min(first + count, effect.last + 1)
            if (number, stop) != (first, first + count):
                start, end = span(block, number - first, stop - number)
                block = memoryview(block)[start:end]
            self._log.append_messages(source, number, stop - number, incarnation, block, effect.ticket)
            number = stop
