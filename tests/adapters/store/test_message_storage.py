"""The messages that a store keeps in memory, writes, and forgets."""

from pathlib import Path

import attrs
import pytest

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import Role
from stablecast.runtime.kept_runs import Tokens
from stablecast.store.journal import Journal
from stablecast.store.message_storage import MessagePiece, MessageStorage, encoded, pieces_of
from stablecast.store.recovered_state import recovered
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run, StreamDecoder
from tests.adapters.runtime.peers import data
from tests.adapters.store.journal.support import Owner, read, start

LIFE, SOURCE = codec.join(5, 7), 3


class Bench:
    """A shelf over a journal."""

    def __init__(self, directory: Path) -> None:
        self.owner: Owner = start(directory)
        self.tokens = Tokens()
        self.shelf = MessageStorage(self.owner.journal, self.tokens)

    def arrive(self, first: int, count: int) -> int:
        block = b"".join(data(number, b"%d" % number) for number in range(first, first + count))
        return self.tokens.keep(Run(7, first, count, len(block) - 12 * count, block), LIFE)

    def persist(self, ticket: int, first: int, count: int) -> None:
        self.shelf.persist(fx.PersistMessages(ticket, SOURCE, LIFE, self.arrive(first, count), 0, count, first, True))

    def cache(self, first: int, count: int, skip: int = 0) -> None:
        token = self.arrive(first - skip, count + skip)
        self.shelf.change(fx.CacheMessages(SOURCE, LIFE, token, skip, count, first, True))

    def served(self, first: int, last: int) -> list[bytes]:
        stored = encoded(99, pieces_of(fx.SendStored("a:1", 99, SOURCE, first, last), self.piece))
        found = [codec.decode_recovered(item) for item in StreamDecoder().feed(stored) if not isinstance(item, Run)]
        assert all((one.session, one.incarnation, one.proactive) == (99, LIFE, False) for one in found)
        assert [one.payload for one in found] == [b"%d" % one.wire_number for one in found]
        return [one.payload for one in found]

    def piece(self, source: int, number: int) -> MessagePiece | None:
        found = self.shelf.cached(source, number) or read(self.owner.journal, source, number)
        return None if found is None else MessagePiece(number, found[0] + found[1], found[0], found[2], found[3])

    def extents(self) -> list[tuple[int, int]]:
        return [(first, count) for first, count, _ in self.owner.journal.extents(SOURCE)]


@pytest.fixture
async def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.rows("P-116", "P-119")
async def test_written_messages_are_served_from_memory_and_then_from_the_disk(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.persist(1, 0, 5)
    bench.persist(2, 5, 5)
    await bench.owner.until(2)
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "find", lambda *_: pytest.fail("it is in memory"))
        assert bench.served(3, 6) == [b"3", b"4", b"5", b"6"]
    bench.shelf.change(fx.Uncache(SOURCE, 7))
    assert bench.served(3, 8) == [b"3", b"4", b"5", b"6", b"7", b"8"]
    assert bench.served(8, 12) == [b"8", b"9"]
    assert len(bench.tokens) == 0
    await bench.owner.journal.close()


@pytest.mark.rows("P-102")
async def test_messages_for_the_memory_only_are_never_written(bench: Bench) -> None:
    bench.cache(0, 5)
    assert bench.served(0, 9) == [b"0", b"1", b"2", b"3", b"4"]
    bench.shelf.change(fx.Reclaim(1, SOURCE, 2))
    assert bench.served(0, 9) == [b"2", b"3", b"4"]
    bench.shelf.change(fx.Uncache(SOURCE, 4))
    assert bench.served(0, 9) == [b"4"]
    assert bench.extents() == []
    await bench.owner.journal.close()


@pytest.mark.rows("P-578")
async def test_messages_in_memory_may_be_written_later(bench: Bench) -> None:
    """A part of one run, a whole one, and a part of the last."""
    for first in (0, 10, 20):
        bench.cache(first, 10, skip=2 if first else 0)
    bench.shelf.change(fx.PersistCached(1, SOURCE, 3, 24))
    await bench.owner.until(1)
    assert bench.extents() == [(3, 7), (10, 10), (20, 5)]
    bench.shelf.change(fx.Uncache(SOURCE, 30))
    assert bench.served(0, 29) == [b"%d" % number for number in range(3, 25)]
    await bench.owner.journal.close()


@pytest.mark.rows("P-118")
async def test_forgotten_messages_go_everywhere_and_stay_gone(bench: Bench, tmp_path: Path) -> None:
    """With the bytes that are left, and where the source begins."""
    bench.persist(1, 0, 10)
    bench.persist(2, 10, 10)
    bench.shelf.change(fx.Cut(3, SOURCE, 15))
    bench.shelf.change(fx.Reclaim(4, SOURCE, 5))
    assert bench.served(0, 19) == [b"%d" % number for number in range(5, 15)]
    await bench.owner.journal.close()
    bench = Bench(tmp_path)
    assert bench.served(0, 19) == [b"%d" % number for number in range(5, 15)]
    source = Client(Role.SOURCE, SOURCE, 0, "t", 1, LIFE, 0, "a:1", "a:2", 1, 1, 0, ())
    receiver = Client(Role.RECEIVER, 4, 0, "t", 1, LIFE, SOURCE, "a:1", "", 1, 1, 0, ())
    assert recovered(bench.owner.journal, {SOURCE: source, 4: receiver}) == (
        [(SOURCE, 5, 10, 15)],
        {SOURCE: 5},
    )
    bench.persist(1, 15, 1)
    bench.shelf.forget(SOURCE, 1)
    assert bench.shelf.cached(SOURCE, 15) is None
    elsewhere = attrs.evolve(source, reg_id=9, lives=((LIFE, 7), (LIFE + 1, 30)))
    assert recovered(bench.owner.journal, {9: elsewhere}) == ([], {9: 7})
    assert bench.served(0, 19) == []
    assert recovered(bench.owner.journal, {SOURCE: source}) == ([], {})
    await bench.owner.journal.close()


async def test_only_what_is_in_memory_can_be_written(bench: Bench) -> None:
    with pytest.raises(AssertionError, match="number 0 of source 3 is not in memory"):
        bench.shelf.change(fx.PersistCached(1, SOURCE, 0, 0))
    await bench.owner.journal.close()
