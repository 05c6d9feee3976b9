"""A store with damaged records: it names what it lost, keeps the rest, and delivers nothing wrong."""

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from stablecast.client import Context
from stablecast.core.protocol.messages import StoreMemory
from stablecast.runtime import machine
from stablecast.store.journal import record_format
from stablecast.store.journal.disk import Disk
from stablecast.store.journal.record_format import Entry, RecordKind
from stablecast.store.log_lines import Severity
from stablecast.store.store import Store
from stablecast.transports.codec.lbttcp import span
from tests.adapters.store.journal.support import read, segments
from tests.adapters.store.test_store import TOPIC, started, until
from tests.support.machine import replace
from tests.support.network import LOCAL

LARGE = 20_000
"""Messages of the larger journal, of whose records one in a hundred is damaged."""
BURST = 10
"""Messages in a record of the larger journal."""
PADDING = b"." * 200
SMALL_FILES = Disk(segment_bytes=1 << 20)
"""The larger journal has several of them."""

RUNS = 6
PER_RUN = 3


@attrs.frozen
class Filled:
    """A directory of a store that ended, the RegID of its source, and the block of each run."""

    directory: Path
    reg_id: int
    blocks: dict[int, bytes]

    @property
    def numbers(self) -> set[int]:
        return set(range(RUNS * PER_RUN))


def made(directory: Path) -> Path:
    directory.mkdir()
    return directory


async def filled(directory: Path) -> Filled:
    store = await started(directory)
    async with Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=[store.address])
        for run in range(RUNS):
            await source.send_many(b"%d in run %d" % (number, run) for number in range(PER_RUN))
            await source.wait_stable_through((run + 1) * PER_RUN - 1)
    (reg_id,) = store.machine.status.repositories
    blocks = {}
    for first, _, _ in store._journal.extents(reg_id):
        blocks[first] = read(store._journal, reg_id, first)[3]  # type: ignore[index] # the extent has it
    await store.stop()
    return Filled(directory, reg_id, blocks)


def records(directory: Path) -> Iterator[tuple[Entry, tuple[int, int]]]:
    """The records of the only segment, and the numbers [first, stop) of those with messages."""
    (path,) = segments(directory)
    data = path.read_bytes()
    salt = record_format.file_salt(data, 1)
    assert salt is not None
    for entry in record_format.scan(data, salt, newest=True):
        assert isinstance(entry, Entry)
        numbers = (0, 0)
        if entry.kind is RecordKind.MESSAGES:
            _, first, count, *_ = record_format.MESSAGES_HEAD.unpack_from(data, entry.body.start)
            numbers = first, first + count
        yield entry, numbers


def flipped(original: Path, copy: Path, at: int) -> Path:
    """A copy of a directory with one wrong bit."""
    shutil.copytree(original, copy)
    (path,) = segments(copy)
    data = bytearray(path.read_bytes())
    data[at] ^= 8
    path.write_bytes(data)
    return copy


@attrs.define
class Restarted:
    """A store that was started on a directory, and the lines of its log."""

    store: Store
    lines: list[tuple[Severity, str, str, str]]

    def held(self, reg_id: int) -> set[int]:
        known = self.store.machine.status.repositories.get(reg_id)
        return set() if known is None else {n for low, high in known.held for n in range(low, high)}

    def named(self) -> list[str]:
        return [text for _, _, code, text in self.lines if code == "damaged"]


async def restarted(directory: Path) -> Restarted:
    lines: list[tuple[Severity, str, str, str]] = []
    store = await started(directory, f"{LOCAL}:0", new=False, log=lambda *line: lines.append(line))
    return Restarted(store, lines)


@pytest.mark.parametrize("part", ["header", "head", "block"])
async def test_every_record_that_is_damaged_in_a_stopped_store_is_named(tmp_path: Path, part: str) -> None:
    """Also the newest one, and whatever byte is wrong. The store serves at once, and the rest is as it was."""
    whole = await filled(made(tmp_path / "whole"))
    kinds = set()
    for entry, (first, stop) in records(whole.directory):
        kinds.add(entry.kind)
        body = entry.body.start
        at = {"header": entry.offset + 9, "head": body + 3, "block": entry.stop - 1}[part]
        restart = await restarted(flipped(whole.directory, tmp_path / f"{entry.offset}", at))
        store = restart.store
        held = restart.held(whole.reg_id)
        for number in held & whole.blocks.keys():
            assert read(store._journal, whole.reg_id, number)[3] == whole.blocks[number]  # type: ignore[index]
        if entry.kind is RecordKind.MESSAGES:
            assert held == whole.numbers - set(range(first, stop))
            (text,) = restart.named()
            assert f"source {whole.reg_id}: {first}..{stop - 1} are not kept any more" in text
            assert store.waiting_ns == 0
            assert store.machine.status.memory is not StoreMemory.LOST
            known = store.machine.status.clients[whole.reg_id].client.known
            assert known == (max(whole.numbers) if stop > max(whole.numbers) else -1)
        else:  # A registration may be lost, so the store waits and has no vote.
            assert held in (whole.numbers, set())
            assert store.waiting_ns > 0
        await store.stop()
    assert kinds >= {RecordKind.MESSAGES, RecordKind.STATE, RecordKind.CHECKPOINT}


async def test_a_killed_store_does_not_vote_where_it_cannot_name_its_loss(tmp_path: Path) -> None:
    """Its newest segment has no summary. Lost numbers between others show as holes, those at the end do not."""
    whole = await filled(made(tmp_path / "whole"))
    for path in whole.directory.glob("*.sum"):
        path.unlink()
    found = [(entry, numbers) for entry, numbers in records(whole.directory) if entry.kind is RecordKind.MESSAGES]
    (*_, (last, _)) = records(whole.directory)
    for entry, (first, stop) in found:
        restart = await restarted(flipped(whole.directory, tmp_path / f"{entry.offset}", entry.stop - 1))
        client = restart.store.machine.status.clients[whole.reg_id].client
        if entry.stop > last.synced:
            # It belongs to the last batch, so it looks like an unfinished write (spec/guarantees.md).
            assert client.memory is StoreMemory.KEPT
        else:
            assert restart.held(whole.reg_id) == whole.numbers - set(range(first, stop))
            assert client.memory is StoreMemory.LOST
            assert restart.store.waiting_ns == 0  # All registrations are there.
        await restart.store.stop()
        again = await restarted(tmp_path / f"{entry.offset}")
        assert not [text for text in again.store.reports if "damaged" in text]  # It is said once.
        assert again.store.machine.status.clients[whole.reg_id].client.memory is client.memory
        await again.store.stop()


async def test_the_scrubber_of_a_running_store_names_every_damaged_record(tmp_path: Path) -> None:
    """Nobody has to read it first, and what was wrong once is not wrong again."""
    whole = await filled(made(tmp_path / "whole"))
    lines: list[tuple[Severity, str, str, str]] = []
    store = await started(whole.directory, new=False, log=lambda *line: lines.append(line))
    await until(lambda: not store.journal_view().queued_bytes)
    store.scrub()
    await until(lambda: store.journal_view().scrubbed_ns)
    (path,) = segments(whole.directory)
    assert store.journal_view().scrubbed_bytes == path.stat().st_size - record_format.FILE_HEADER_BYTES
    held, reports = store.machine.status.repositories[whole.reg_id], 0
    for entry, (first, stop) in list(records(whole.directory)):
        if reports == len(whole.blocks):
            break  # Nothing lives in the file any more, so the store removes it.
        data = path.read_bytes()
        path.write_bytes(data[: entry.stop - 1] + bytes([data[entry.stop - 1] ^ 1]) + data[entry.stop :])
        ended = store.journal_view().scrubbed_ns
        store.scrub()
        await until(lambda ended=ended: store.journal_view().scrubbed_ns > ended)  # type: ignore[misc] # ty of lambda
        await until(lambda: not store._journal._fetcher.busy)
        if entry.kind is RecordKind.MESSAGES:
            reports += 1
            await until(lambda first=first: first not in held.held)  # type: ignore[misc]
            assert not held.held.within(first, stop)
        assert store.oddities["damaged"] == reports
    await store.stop()
    assert reports == len(whole.blocks)
    again = await restarted(whole.directory)
    assert (again.held(whole.reg_id), again.named(), again.store.waiting_ns) == (set(), [], 0)
    assert again.store.machine.status.clients[whole.reg_id].client.known == max(whole.numbers)
    await again.store.stop()


@attrs.frozen
class Trio:
    """Three stores with the messages of a life that ended, and the directory of the first store."""

    stores: list[Store]
    directory: Path
    count: int

    @property
    def where(self) -> list[str]:
        return [store.address for store in self.stores]

    def synced(self) -> list[tuple[int, int]]:
        """Return the numbers that the first store has on disk."""
        (known,) = self.stores[0].machine.status.repositories.values()
        return list(known.synced)

    def held(self) -> set[int]:
        return {number for low, high in self.synced() for number in range(low, high)}

    def payloads(self) -> dict[int, bytes]:
        """Return the payloads that a receiver would get from the first store."""
        journal = self.stores[0]._journal
        (reg_id,) = self.stores[0].machine.status.repositories
        found = {}
        for number in self.held():
            first, _, _, block = read(journal, reg_id, number) or (0, 0, 0, b"")
            start, stop = span(block, number - first, 1)
            found[number] = block[start:stop].rpartition(b"payload ")[2]
        return found

    async def stop(self) -> None:
        for store in self.stores:
            await store.stop()


async def trio(tmp_path: Path, count: int, burst: int = 1) -> Trio:
    places = (made(tmp_path / name) for name in ("first", "second", "third"))
    stores = [await started(place, disk=SMALL_FILES) for place in places]
    found = Trio(stores, tmp_path / "first", count)
    async with Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=found.where)
        for first in range(0, count, burst):
            await source.send_many([PADDING + b"payload %d" % number for number in range(first, first + burst)])
            await source.wait_stable_through(first + burst - 1)
        await until(lambda: found.synced() == [(0, count)])
    return found


def spoil(directory: Path, chosen: int) -> list[tuple[int, int]]:
    """Spoils one in `chosen` records with messages, at bytes that differ; the numbers of each."""
    paths, numbers = segments(directory), []
    for path in paths:
        data = bytearray(path.read_bytes())
        salt = record_format.file_salt(bytes(data[:24]), int(path.stem))
        assert salt is not None
        entries = [entry for entry in record_format.scan(bytes(data), salt, newest=True) if isinstance(entry, Entry)]
        for at, entry in enumerate(entry for entry in entries if entry.kind is RecordKind.MESSAGES):
            if at % chosen == chosen - 1:
                _, first, count, *_ = record_format.MESSAGES_HEAD.unpack_from(data, entry.body.start)
                numbers.append((first, first + count))
                data[entry.offset + at * 7 % (entry.stop - entry.offset)] ^= 1 << at % 8
        path.write_bytes(data)
    return numbers


async def test_every_damaged_record_of_a_running_store_is_fetched_again(tmp_path: Path) -> None:
    """One after the other, found by the scrubber; nothing wrong is offered meanwhile."""
    some = await trio(tmp_path, 8)
    store = some.stores[0]
    async with Context(session_id=1) as context:
        await context.source(TOPIC, stores=some.where)  # A life that retains nothing of these messages.
        (reg_id,) = store.machine.status.repositories
        for number in range(some.count):
            found = store._journal.find(reg_id, number)
            assert found is not None
            path, at = found.record.segment.path, found.record.offset + found.record.size - 1
            data = path.read_bytes()
            path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            refilled = store.events["Refilled"]
            store.scrub()
            await until(lambda refilled=refilled: store.events["Refilled"] > refilled)  # type: ignore[misc]
            assert some.payloads() == {number: b"%d" % number for number in range(some.count)}
        assert store.oddities["damaged"] == some.count
    await some.stop()


async def test_one_in_a_hundred_records_of_a_stopped_store_are_fetched_again(tmp_path: Path) -> None:
    some = await trio(tmp_path, LARGE, BURST)
    where = some.where
    await some.stores[0].stop()
    assert len(segments(some.directory)) > 1
    lost = spoil(some.directory, 100)
    assert len(lost) >= LARGE // BURST // 200
    some.stores[0] = store = await started(some.directory, where[0], new=False, disk=SMALL_FILES)
    missing = {number for first, stop in lost for number in range(first, stop)}
    assert some.held() == set(range(LARGE)) - missing
    async with Context(session_id=1) as context:
        await context.source(TOPIC, stores=where)
        await until(lambda: store.events["Refilled"])
    assert some.payloads() == {number: b"%d" % number for number in range(LARGE)}
    await some.stop()
    again = await restarted(some.directory)
    assert (again.named(), again.store.reports) == ([], [])
    await again.store.stop()


async def test_a_store_without_descriptors_forgets_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its disk is good: a receiver asks again, and gets all of it."""
    there = await filled(made(tmp_path / "store"))
    again = await restarted(there.directory)
    real, tries = machine.files.open, [0]

    def scarce(path: Path, *asked: int) -> int:
        if path.suffix == ".seg" and asked[0] == os.O_RDONLY and tries[0] < 3:
            tries[0] += 1
            raise OSError(errno.EMFILE, "Too many open files")
        return real(path, *asked)

    replace(monkeypatch, "files", open=scarce)
    async with Context(session_id=1) as context, Context(session_id=2) as reader:
        source = await context.source(TOPIC, stores=[again.store.address])
        receiver = reader.receiver(TOPIC, source=source.place)
        got = [(await anext(receiver)).number for _ in there.numbers]
    assert got == sorted(there.numbers)
    assert (tries, again.named()) == ([3], [])
    assert again.store.oddities["reads-without-resources"]
    await again.store.stop()
