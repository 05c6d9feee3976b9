"""Stored messages that are read from the disk: so many at a time, the rest in their turn, none by the loop."""

from collections import Counter
from pathlib import Path

import pytest

from stablecast.core.protocol.effects import PersistMessages, SendStored, Uncache
from stablecast.runtime.kept_runs import Tokens
from stablecast.store import retransmission
from stablecast.store.journal import Journal, JournalError
from stablecast.store.journal.fetcher import Fetched
from stablecast.store.journal.segments import RecordPlace
from stablecast.store.message_storage import MessagePiece, MessageStorage
from stablecast.store.retransmission import Retrieval
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run, StreamDecoder
from tests.adapters.runtime.peers import data
from tests.adapters.store.journal.support import Owner, start

LIFE, SOURCE = codec.join(5, 7), 3


class Bench:
    """A service over a real journal, whose disk answers when the test says so."""

    def __init__(self, directory: Path, limits: tuple[int, int]) -> None:
        self.owner: Owner = start(directory)
        self.tokens = Tokens()
        self.shelf = MessageStorage(self.owner.journal, self.tokens)
        self.asked: list[tuple[list[RecordPlace], Fetched]] = []
        self.sent: list[bytes] = []
        self.damaged: list[tuple[int, int, int, JournalError]] = []
        self.oddities: Counter[str] = Counter()
        journal = self.owner.journal
        self.retrieval = Retrieval(
            self.shelf, journal, limits, lambda _, stored: self.sent.append(stored), self._on_damaged, self.oddities
        )
        journal.fetch = lambda records, done: self.asked.append((records, done))  # type: ignore[method-assign]

    def _on_damaged(self, source: int, piece: MessagePiece, error: JournalError) -> None:
        self.damaged.append((source, piece.number, piece.stop, error))

    async def write(self, runs: int, count: int = 2) -> None:
        """Write runs that are on the disk and no longer in memory."""
        for at in range(runs):
            first = at * count
            block = b"".join(data(number, b"%d" % number) for number in range(first, first + count))
            token = self.tokens.keep(Run(7, first, count, len(block) - 12 * count, block), LIFE)
            self.shelf.persist(PersistMessages(at + 1, SOURCE, LIFE, token, 0, count, first, True))
        await self.owner.until(runs)
        self.shelf.change(Uncache(SOURCE, runs * count))

    def answer(self) -> None:
        """The disk reads what it was asked for first."""
        records, done = self.asked.pop(0)
        done([self.owner.journal._reader.block(record) for record in records])

    def payloads(self) -> list[bytes]:
        """The sent messages, in order."""
        items = [item for stored in self.sent for item in StreamDecoder().feed(stored)]
        return [codec.decode_recovered(item).payload for item in items if not isinstance(item, Run)]

    async def close(self) -> None:
        await self.owner.journal.close()


def texts(*numbers: int) -> list[bytes]:
    return [b"%d" % number for number in numbers]


@pytest.mark.rows("P-826")
async def test_the_records_read_at_one_time_are_limited(tmp_path: Path) -> None:
    """Outstanding reads of a source stay at the limit, and all are sent in the end."""
    bench = Bench(tmp_path, (2, 1 << 20))
    await bench.write(5)
    bench.retrieval.serve(SendStored("a:1", 9, SOURCE, 0, 9))
    assert [len(records) for records, _ in bench.asked] == [2]
    assert (bench.retrieval.reading(SOURCE), bench.retrieval.waiting) == (2, 10)
    while bench.asked:
        assert bench.retrieval.reading(SOURCE) <= 2
        bench.answer()
    assert bench.payloads() == texts(*range(10))
    assert (bench.retrieval.reading(SOURCE), bench.retrieval.waiting) == (0, 0)
    await bench.close()


@pytest.mark.rows("P-829")
async def test_the_bytes_of_one_read_are_limited_and_a_larger_record_is_read_alone(tmp_path: Path) -> None:
    bench = Bench(tmp_path, (100, 200))
    await bench.write(4)
    bench.retrieval.serve(SendStored("a:1", 9, SOURCE, 0, 7))
    assert [len(records) for records, _ in bench.asked] == [2, 2]
    bench.asked.clear()
    bench.retrieval._limits = (bench.retrieval._limits[0], 1)
    bench.retrieval.serve(SendStored("a:1", 9, SOURCE, 0, 3))
    assert [len(records) for records, _ in bench.asked] == [1, 1]
    await bench.close()


@pytest.mark.rows("P-119", "P-406")
async def test_messages_in_memory_are_sent_at_once_and_do_not_wait_for_the_disk(tmp_path: Path) -> None:
    """The disk is asked on a cache miss only."""
    bench = Bench(tmp_path, (10, 1 << 20))
    await bench.write(1)
    block = data(2, b"2")
    bench.shelf.persist(
        PersistMessages(2, SOURCE, LIFE, bench.tokens.keep(Run(7, 2, 1, 1, block), LIFE), 0, 1, 2, True)
    )
    bench.retrieval.serve(SendStored("a:1", 9, SOURCE, 2, 5))
    assert (bench.payloads(), bench.asked) == (texts(2), [])
    bench.retrieval.serve(SendStored("a:1", 9, SOURCE, 0, 2))
    bench.answer()
    assert bench.payloads() == texts(2, 0, 1, 2)
    await bench.close()


async def test_an_answer_has_so_many_bytes_at_most_or_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue for a peer that does not read is bounded. The peer asks again for the rest."""
    bench = Bench(tmp_path, (100, 1 << 20))
    await bench.write(4)
    monkeypatch.setattr(retransmission, "MAX_ANSWER_BYTES", 100)
    bench.retrieval.serve(SendStored("a:1", 9, SOURCE, 0, 7))
    assert [len(records) for records, _ in bench.asked] == [2]
    for number in (8, 9):
        block = data(number, bytes(100))
        token = bench.tokens.keep(Run(7, number, 1, 100, block), LIFE)
        bench.shelf.persist(PersistMessages(number, SOURCE, LIFE, token, 0, 1, number, True))
    bench.retrieval.serve(SendStored("a:1", 9, SOURCE, 8, 9))
    assert bench.payloads() == [bytes(100)]
    await bench.close()


async def test_messages_that_are_not_synced_are_read_from_memory(tmp_path: Path) -> None:
    bench = Bench(tmp_path, (10, 1 << 20))
    block = data(0, b"0")
    bench.shelf.persist(
        PersistMessages(1, SOURCE, LIFE, bench.tokens.keep(Run(7, 0, 1, 1, block), LIFE), 0, 1, 0, True)
    )
    bench.shelf.change(Uncache(SOURCE, 1))
    bench.retrieval.serve(SendStored("a:1", 9, SOURCE, 0, 0))
    assert (bench.payloads(), bench.asked) == (texts(0), [])
    await bench.close()


async def test_waiting_reads_are_bounded_and_others_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retransmission, "MAX_WAITING", 5)
    bench = Bench(tmp_path, (1, 1 << 20))
    await bench.write(3)
    bench.retrieval.serve(SendStored("a:1", 9, SOURCE, 0, 5))
    assert (bench.retrieval.waiting, bench.oddities) == (4, {"reads-dropped": 2})
    await bench.close()


async def test_damage_is_reported_and_the_rest_is_sent(tmp_path: Path) -> None:
    bench = Bench(tmp_path, (4, 1 << 20))
    await bench.write(3)
    bench.retrieval.serve(SendStored("a:1", 9, SOURCE, 1, 4))
    (records, done) = bench.asked.pop()
    first, second, third = map(bench.owner.journal._reader.block, records)
    assert second
    error = JournalError("unreadable")
    done([first, error, third])
    assert bench.damaged == [(SOURCE, 2, 4, error)]
    assert bench.payloads() == texts(1, 4)
    assert bench.retrieval.waiting == 0
    await bench.close()


async def test_nothing_is_sent_where_all_is_damaged(tmp_path: Path) -> None:
    bench = Bench(tmp_path, (1, 1 << 20))
    await bench.write(2)
    bench.retrieval.serve(SendStored("a:1", 9, SOURCE, 0, 3))
    _, done = bench.asked.pop()
    done([JournalError("unreadable")])
    assert bench.sent == []
    bench.answer()
    assert bench.payloads() == texts(2, 3)
    await bench.close()


async def test_a_segment_that_goes_is_read_first(tmp_path: Path) -> None:
    """The thread that reads is the one that deletes, in that order."""
    owner = start(tmp_path, segment_bytes=1)
    journal: Journal = owner.journal
    for number in range(3):
        journal.append_messages(SOURCE, number, 1, LIFE, b"%d" % number, number + 1)
    await owner.until(3)
    found = journal.find(SOURCE, 0)
    assert found is not None
    assert found.block is None
    blocks: list[list[bytes | JournalError]] = []
    journal.fetch([found.record], blocks.append)
    journal.trim(SOURCE, 2, 4)
    await journal.close()
    assert blocks == [[b"0"]]
    assert not found.record.segment.path.exists()


async def test_answers_wait_for_room_at_a_peer_once_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read for it counts already; another peer does not wait, and a broken connection drops them."""
    bench = Bench(tmp_path, (100, 1 << 20))
    retrieval = bench.retrieval
    await bench.write(3)
    retrieval._room = lambda to, more: to != "a:1" or not more
    for _ in range(2):
        for first in (0, 2, 4):
            retrieval.serve(SendStored("a:1", 9, SOURCE, first, first + 1))
    retrieval.serve(SendStored("b:1", 9, SOURCE, 0, 1))
    assert (len(bench.asked), retrieval.waiting) == (2, 2 + 6 + 2)
    monkeypatch.setattr(retransmission, "MAX_WAITING", 11)
    retrieval.serve(SendStored("a:1", 9, SOURCE, 1, 2))
    assert bench.oddities == {"reads-dropped": 2}
    while bench.asked:
        bench.answer()
    assert bench.payloads() == texts(0, 1, 0, 1, 2, 3, 4, 5, 0, 1)
    assert (retrieval.waiting, retrieval._held, retrieval._due) == (0, {}, {})
    retrieval._room = lambda *_: False
    retrieval.serve(SendStored("a:1", 9, SOURCE, 0, 1))
    retrieval.forget("a:1")
    retrieval.resume("a:1")
    assert (bench.asked, retrieval.waiting) == ([], 0)
    await bench.close()
