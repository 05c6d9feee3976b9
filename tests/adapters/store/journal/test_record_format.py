"""The bytes: known vectors, round trips, and what a damaged segment shows."""

import mmap
import subprocess
import sys
from io import BufferedReader
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.errors import MisuseError
from stablecast.store.journal import JournalError
from stablecast.store.journal import record_format as layout
from stablecast.store.journal.record_format import (
    Entry,
    RecordKind,
    SegmentGap,
    entry_at,
    file_header,
    file_salt,
    intact,
    scan,
    seal,
)

SALT = 0xDEADBEEF
HEADER = file_header(1, SALT)


def record(body: bytes, *, kind: int = RecordKind.STATE, synced: int = 24, salt: int = SALT) -> bytes:
    return seal(kind, 9, synced, (body[:2], memoryview(body)[2:]), salt) + body


def test_file_header_vector() -> None:
    assert HEADER.hex() == "73636a726e6c0d0a0004000000000001deadbeef" + HEADER[20:].hex()
    assert len(HEADER) == layout.FILE_HEADER_BYTES == 24
    assert file_salt(HEADER, 1) == SALT


def test_record_header_vector() -> None:
    head = seal(RecordKind.STATE, 9, 24, (b"{}",), SALT)
    assert len(head) == layout.RECORD_HEADER_BYTES == 32
    assert head[:24].hex() == "5ca502000000000200000000000000090000000000000018"


@pytest.mark.parametrize("bad", [b"", HEADER[:-1], b"x" + HEADER[1:], HEADER[:-1] + b"\0", HEADER[:16] + bytes(8)])
def test_bad_file_header(bad: bytes) -> None:
    assert file_salt(bad, 1) is None


@pytest.mark.parametrize(
    ("kind", "blocks", "good"),
    [(RecordKind.MESSAGES, False, True), (RecordKind.MESSAGES, True, False), (RecordKind.STATE, False, False)],
)
def test_only_the_bodies_of_messages_may_go_unverified(kind: RecordKind, blocks: bool, good: bool) -> None:
    whole = record(b"body of a record", kind=kind)
    entry = entry_at(whole, 0, SALT, blocks=blocks)
    assert entry is not None
    assert (entry_at(whole[:-1] + b"x", 0, SALT, blocks=blocks) == entry) is good


def test_file_header_of_another_segment() -> None:
    assert file_salt(HEADER, 2) is None


def test_file_of_a_newer_release() -> None:
    with pytest.raises(JournalError, match=r"format 5 .* use the newer release"):
        file_salt(HEADER[:9] + b"\5" + HEADER[10:], 1)


def test_record_of_a_newer_release() -> None:
    with pytest.raises(JournalError, match="kind 77"):
        entry_at(record(b"{}", kind=77), 0, SALT)


@given(bodies=st.lists(st.binary(max_size=40), max_size=5), newest=st.booleans())
def test_scan_finds_what_was_sealed(bodies: list[bytes], newest: bool) -> None:
    data = HEADER + b"".join(map(record, bodies))
    found = list(scan(data, SALT, newest=newest))
    assert [data[item.body] for item in found if isinstance(item, Entry)] == bodies
    assert not any(isinstance(item, SegmentGap) for item in found)


@given(data=st.data())
def test_one_flipped_bit_loses_one_record(data: st.DataObject) -> None:
    bodies = data.draw(st.lists(st.binary(max_size=40), min_size=1, max_size=5))
    records = list(map(record, bodies))
    victim = data.draw(st.integers(0, len(bodies) - 1))
    broken = bytearray(records[victim])
    bit = data.draw(st.integers(0, 8 * len(broken) - 1))
    broken[bit // 8] ^= 1 << bit % 8
    segment = HEADER + b"".join([*records[:victim], bytes(broken), *records[victim + 1 :]])
    found = list(scan(segment, SALT, newest=False))
    offset = 24 + sum(map(len, records[:victim]))
    assert [item for item in found if isinstance(item, SegmentGap)] == [
        SegmentGap(offset, offset + len(broken), torn=False)
    ]
    good = [segment[item.body] for item in found if isinstance(item, Entry)]
    assert good == bodies[:victim] + bodies[victim + 1 :]


@given(data=st.data())
def test_torn_end(data: st.DataObject) -> None:
    whole = HEADER + record(b"{1}") + record(b"{22}")
    cut = data.draw(st.integers(24, len(whole)))
    left = whole[:cut] + data.draw(st.binary(max_size=20))
    found = list(scan(left, SALT, newest=True))
    gaps = [item for item in found if isinstance(item, SegmentGap)]
    assert len(gaps) <= 1
    assert all(gap.torn for gap in gaps)
    assert len(found) - len(gaps) == left.startswith(whole[:59]) + left.startswith(whole)


def test_hole_in_an_unfinished_batch_is_torn() -> None:
    first, second, third = record(b"{1}"), record(b"{2}", synced=59), record(b"{3}", synced=59)
    data = HEADER + first + bytes(len(second)) + third
    assert list(scan(data, SALT, newest=True))[1:] == [SegmentGap(59, len(data), torn=True)]


def test_hole_before_a_later_batch_is_damage() -> None:
    first, second, third = record(b"{1}"), record(b"{2}", synced=59), record(b"{3}", synced=94)
    data = HEADER + first + bytes(len(second)) + third
    found = list(scan(data, SALT, newest=True))
    assert found[1] == SegmentGap(59, 94, torn=False)
    assert isinstance(found[2], Entry)


def test_record_inside_a_block_is_not_taken_for_one() -> None:
    foreign = record(b"{}", salt=SALT + 1)
    broken = b"x" + record(b"--" + foreign)[1:]
    data = HEADER + broken + record(b"{1}")
    assert next(scan(data, SALT, newest=False)) == SegmentGap(24, 24 + len(broken), torn=False)


def test_end_of_an_older_segment_is_damage() -> None:
    assert list(scan(HEADER + b"xx", SALT, newest=False)) == [SegmentGap(24, 26, torn=False)]


STATES = st.lists(st.sampled_from([b"{}", b'{"a": [1, 2]}', '{"é": "},{"}'.encode(), b'{ "b" :\n1}']), max_size=4)


@given(STATES)
def test_states_come_back_byte_for_byte(states: list[bytes]) -> None:
    assert layout.split_states(layout.join_states(states)) == states


@pytest.mark.parametrize("body", [b"", b"\xff", b"[{]", b" [{}]", b"[{} {}]", b'{"a": 1}'])
def test_checkpoint_that_is_no_array(body: bytes) -> None:
    with pytest.raises(JournalError, match="not a JSON array"):
        layout.split_states(body)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"7"])
def test_state_that_is_no_object(body: bytes) -> None:
    with pytest.raises(MisuseError, match="must be a JSON object"):
        layout.checked_state(body)


def test_body_beyond_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "MAX_BLOCK_BYTES", 4)
    assert layout.bounded(b"1234") == b"1234"
    with pytest.raises(MisuseError, match="5 bytes do not fit"):
        layout.bounded(b"12345")


@given(st.lists(st.binary(max_size=20), max_size=5), st.data())
def test_a_segment_is_intact_if_a_scan_finds_nothing_but_records_where_they_are_said_to_be(
    bodies: list[bytes], drawn: st.DataObject
) -> None:
    segment = HEADER + b"".join(record(body, kind=RecordKind.MESSAGES) for body in bodies)
    entries = [item for item in scan(segment, SALT, newest=False) if isinstance(item, Entry)]
    offsets = [entry.offset for entry in entries]
    assert len(entries) == len(bodies)
    assert intact(segment, SALT, offsets)
    assert not intact(segment, SALT + 1, offsets) or not offsets
    assert not intact(segment + b"\0", SALT, offsets)
    assert not intact(segment, SALT, [*offsets, len(segment)])
    if offsets:
        assert not intact(segment, SALT, offsets[:-1])
        assert not intact(segment[:-1], SALT, offsets)
        at = drawn.draw(st.integers(layout.FILE_HEADER_BYTES, len(segment) - 1))
        assert not intact(segment[:at] + bytes([segment[at] ^ 1]) + segment[at + 1 :], SALT, offsets)


MAPPINGS = 16


def mapped(file: BufferedReader) -> mmap.mmap:
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def scan_whole_pages(path: Path) -> None:
    """Scan files of whole pages whose last record is torn, mapped below memory that may not be read.

    Each mapping is put below the one before, so the page above a file is free once its neighbour is gone.
    """
    size = 2 * mmap.PAGESIZE
    for length in range(2, 5):  # A search goes on by three bytes, and may pass over the last one.
        path.write_bytes((HEADER + record(bytes(length)) + record(bytes(size)))[:size])
        with path.open("rb") as file:
            pairs = [(mmap.mmap(-1, mmap.PAGESIZE), mapped(file)) for _ in range(MAPPINGS)]
        for neighbour, _ in pairs:
            neighbour.close()
        for _, data in pairs:
            entry, gap = scan(data, SALT, newest=True)
            assert isinstance(entry, Entry)
            assert gap == SegmentGap(entry.stop, size, torn=True)


def test_a_torn_file_of_whole_pages_is_read_to_its_end_and_no_further(tmp_path: Path) -> None:
    """In a process of its own: a read beyond the mapping ends it. A full disk leaves such a file."""
    program = f"from {__name__} import *; scan_whole_pages(Path({str(tmp_path / 'segment')!r}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
