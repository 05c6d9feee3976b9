"""Reading a directory without changing it."""

import asyncio
from pathlib import Path

import pytest

from stablecast.ops.operations import directory_contents as tested
from stablecast.ops.operations.directory_contents import read
from stablecast.store.client_records import client_record
from stablecast.store.journal import Journal
from stablecast.store.journal.record_format import FILE_HEADER_BYTES
from stablecast.store.journal.segments import list_segments
from tests.adapters.ops.operations.store_directory import OTHER, SOURCE, block, fill, kept


def picture(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


async def test_what_a_journal_holds_is_found(tmp_path: Path) -> None:
    directory = await kept(tmp_path)
    before = picture(directory)
    found = read(directory, thorough=True)
    assert picture(directory) == before
    assert sorted(found.clients) == [1001, 1002, 2001, 2002]
    assert [client.reg_id for client in found.sources()] == [1001, 1002]
    assert [(start, stop) for start, stop, _ in found.index.pieces(1001)] == [(0, 6), (8, 12)]
    assert list(found.index.pieces(5)) == []
    assert (found.messages, found.damages, found.torn) == (13, [], 0)
    assert found.records == {"CHECKPOINT": 1, "STATE": 4, "MESSAGES": 3}
    assert found.checked == sum(segment.end - FILE_HEADER_BYTES for segment in found.segments.values())


async def test_what_was_let_go_is_not_there(tmp_path: Path) -> None:
    def fewer(journal: Journal) -> None:
        journal.append_messages(1001, 0, 6, 55, block(0, 6), 2)
        journal.trim(1001, 3, 3)
        journal.cut(1001, 5, 4)

    found = read(await fill(tmp_path, SOURCE, then=fewer))
    assert [(start, stop) for start, stop, _ in found.index.pieces(1001)] == [(3, 5)]
    assert found.index.trails[1001].stop == 3


async def test_a_running_store_is_not_disturbed(tmp_path: Path) -> None:
    """The lock is the store's; reading needs none."""
    journal = Journal.open(tmp_path)
    journal.set_checkpoint(lambda: [client_record(SOURCE)])
    journal.start(asyncio.get_running_loop())
    synced = asyncio.Event()
    journal.on_synced = lambda _: synced.set()
    journal.append_messages(1001, 0, 6, 55, block(0, 6), 1)
    await synced.wait()
    assert read(tmp_path).messages == 6
    await journal.close()


async def test_a_segment_that_goes_meanwhile_is_missed_by_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = await kept(tmp_path)
    listed = list_segments(directory)
    listed[0][7] = directory / "00000007.seg"
    monkeypatch.setattr(tested, "list_segments", lambda _: listed)
    assert read(directory).messages == 13


async def test_a_torn_end_is_no_damage(tmp_path: Path) -> None:
    directory = await kept(tmp_path)
    [path] = directory.glob("*.seg")
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    found = read(directory)
    assert (found.damages, found.messages) == ([], 10)
    assert found.torn > 0
    path.write_bytes(whole + bytes(5000))
    assert read(directory).torn == 0


async def test_a_file_that_was_just_created_is_no_damage(tmp_path: Path) -> None:
    directory = await kept(tmp_path)
    (directory / "00000009.seg").write_bytes(b"scj")
    assert (read(directory).damages, read(directory).torn) == ([], 3)


async def test_a_flipped_bit_is_damage(tmp_path: Path) -> None:
    directory = await kept(tmp_path)
    [path] = directory.glob("*.seg")
    octets = bytearray(path.read_bytes())
    octets[octets.index(b"message 2")] ^= 1
    path.write_bytes(octets)
    (directory / "00000009.seg").write_bytes((directory / path.name).read_bytes())
    [first, second] = read(directory).damages
    assert (first.file, first.text) == (path.name, "no record here passes its checksum")
    assert (second.file, second.start) == ("00000009.seg", 0)


async def test_a_block_that_is_not_what_it_says_is_damage(tmp_path: Path) -> None:
    def wrong(journal: Journal) -> None:
        journal.append_messages(1001, 0, 7, 55, block(0, 6), 2)
        journal.append_messages(1002, 0, 2, 55, block(0, 2)[:-1], 3)

    directory = await fill(tmp_path, SOURCE, OTHER, then=wrong)
    assert read(directory).damages == []
    assert [damage.text for damage in read(directory, thorough=True).damages] == [
        "the block of source 1001 does not hold its 7 messages from 0 on",
        "the block of source 1002 does not hold its 2 messages from 0 on",
    ]


def test_what_was_set_aside_is_named(tmp_path: Path) -> None:
    (tmp_path / "00000001.seg.damaged").touch()
    assert read(tmp_path).set_aside == ["00000001.seg.damaged"]
