"""The bytes of trace files: whatever happens to them is noticed, except what a killed process leaves."""

import os
import random
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from stablecast.evidence.trace import container
from stablecast.evidence.trace.container import (
    FREE_TEXT_BYTES,
    HEAD,
    MAGIC,
    MAX_EXPANSION,
    FrameText,
    Growing,
    TextReader,
    append,
    offsets,
)
from stablecast.evidence.trace.errors import TraceError, TruncatedError
from tests.adapters.evidence.trace.traced import texts
from tests.support.left_out import needs
from tests.support.machine import replace


def ended(path: Path, offset: int) -> list[FrameText]:
    return list(TextReader(path, offset).read(ended=True))


TEXTS = (b"one\n", b"two\n" * 5000, b"three\n")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a trace file of three frames."""
    path = tmp_path / "three.sct"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    end = 0
    for text in TEXTS:
        end = append(descriptor, end, text)
    os.close(descriptor)
    assert path.stat().st_size == end
    return path


def ends(path: Path) -> list[int]:
    """Return the offset of each frame's end."""
    data, found = path.read_bytes(), [0]
    while found[-1] < len(data):
        found.append(found[-1] + HEAD.size + HEAD.unpack_from(data, found[-1])[2])
    return found


def test_written_texts_are_read_back(path: Path) -> None:
    assert tuple(texts(path)) == TEXTS


@needs("zstdcat")
def test_the_usual_tool_prints_it(path: Path) -> None:
    # It wants a name that it knows; `zstd -dcf` would not.
    printed = subprocess.run(["zstdcat", path.rename(path.with_suffix(".zst"))], capture_output=True, check=True)
    assert printed.stdout == b"".join(TEXTS)


def test_a_file_may_end_after_any_frame(path: Path) -> None:
    data = path.read_bytes()
    for count, end in enumerate(ends(path)[1:], 1):
        path.write_bytes(data[:end])
        assert tuple(texts(path)) == TEXTS[:count]


def test_every_other_end_is_a_truncation(path: Path) -> None:
    data = path.read_bytes()
    whole = ends(path)
    for length in range(1, len(data)):
        if length in whole:
            continue
        path.write_bytes(data[:length])
        with pytest.raises(TruncatedError, match=f"truncated at byte {length}, in "):
            list(texts(path))


def test_every_flipped_bit_is_noticed(path: Path) -> None:
    data = path.read_bytes()
    positions = [*range(HEAD.size), *random.Random(4).sample(range(len(data)), 60)]
    for position in positions:
        for bit in (0, 3, 7):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            path.write_bytes(damaged)
            with pytest.raises(TraceError) as caught:
                list(texts(path))
            assert str(path) in str(caught.value)
            assert str(caught.value).count(". ") == 0, "one sentence"


@pytest.mark.parametrize("junk", [b"", b"half of a fra"])
def test_a_frame_that_was_never_finished_ends_the_file(path: Path, junk: bytes) -> None:
    path.write_bytes(path.read_bytes() + bytes(HEAD.size) + junk)
    assert tuple(texts(path)) == TEXTS


def test_the_head_is_written_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a process may be killed between any two writes, and in any of them."""
    path = tmp_path / "killed.sct"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    states: list[list[bytes]] = []
    write = os.pwrite

    def slow(descriptor: int, data: memoryview, offset: int) -> int:
        written = write(descriptor, data[:16], offset)
        states.append(list(texts(path)))
        return written

    replace(monkeypatch, "files", pwrite=slow)
    end = append(descriptor, 0, TEXTS[1])
    append(descriptor, end, TEXTS[0])
    os.close(descriptor)
    assert states[0] == []
    assert states[-2:] == [[TEXTS[1]], [TEXTS[1], TEXTS[0]]]
    assert [len(state) for state in states] == sorted(len(state) for state in states)


def test_a_failed_write_leaves_whole_frames(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = path.stat().st_size
    write = os.pwrite

    def full(descriptor: int, data: memoryview, offset: int) -> int:
        if offset > size + HEAD.size:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[:4], offset)

    replace(monkeypatch, "files", pwrite=full)
    descriptor = os.open(path, os.O_WRONLY)
    with pytest.raises(OSError, match="No space"):
        append(descriptor, size, b"four\n")
    os.close(descriptor)
    assert path.stat().st_size == size
    assert tuple(texts(path)) == TEXTS


PIECES = [b"".join(b"%d is a line\n" % (1000 * piece + line) for line in range(500)) for piece in range(4)]


def grown(path: Path, finished: bool) -> None:
    """Add a frame to a file that was written in pieces."""
    descriptor = os.open(path, os.O_WRONLY)
    frame = Growing(descriptor, path.stat().st_size)
    for piece in PIECES[:-1]:
        frame.add(piece)
    if finished:
        assert frame.finish(PIECES[-1]) == path.stat().st_size
    os.close(descriptor)


def test_a_frame_that_was_written_in_pieces_is_one(path: Path) -> None:
    grown(path, finished=True)
    assert tuple(texts(path)) == (*TEXTS, b"".join(PIECES))
    assert offsets(path) == ends(path)


@needs("zstdcat")
def test_the_usual_tool_prints_what_was_written_in_pieces(path: Path) -> None:
    grown(path, finished=True)
    printed = subprocess.run(["zstdcat", path.rename(path.with_suffix(".zst"))], capture_output=True, check=True)
    assert printed.stdout == b"".join((*TEXTS, *PIECES))


def test_an_unfinished_frame_has_the_whole_lines_of_its_whole_blocks(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the last write was cut short, and in one text, however many reads it takes."""
    monkeypatch.setattr(container, "SLICE", 7)
    begin = path.stat().st_size
    grown(path, finished=False)
    data, whole = path.read_bytes(), b"".join(PIECES[:-1])
    assert ended(path, begin) == [FrameText(begin, whole, first=True, finished=False)]
    assert tuple(texts(path)) == TEXTS, "what counts as finished is finished"
    read = set()
    for length in range(begin, len(data)):
        path.write_bytes(data[:length])
        found = [one.lines for one in ended(path, begin)]
        assert found in ([], PIECES[:1], [b"".join(PIECES[:2])]), length
        assert offsets(path)[-1] == begin
        read.add(len(found))
    assert read == {0, 1}


def test_an_unfinished_bomb_does_not_go_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(bytes(HEAD.size) + without_size(b"line\n" * 1_000_000))
    monkeypatch.setattr(container, "MAX_TEXT_BYTES", 99_999)
    for one in (True, False):
        with pytest.raises(TraceError, match="too long"):
            list(TextReader(path).read(ended=one))


def test_a_full_disk_leaves_the_pieces_that_were_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin, write = path.stat().st_size, os.pwrite
    descriptor = os.open(path, os.O_WRONLY)
    frame = Growing(descriptor, begin)
    frame.add(PIECES[0])

    def full(descriptor: int, data: memoryview, offset: int) -> int:
        if offset > frame.end:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[:4], offset)

    replace(monkeypatch, "files", pwrite=full)
    with pytest.raises(OSError, match="No space"):
        frame.add(PIECES[1])
    os.close(descriptor)
    assert ended(path, begin) == [FrameText(begin, PIECES[0], first=True, finished=False)]


def test_too_long_a_frame_is_not_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "MAX_TEXT_BYTES", 10)
    descriptor = os.open(path, os.O_WRONLY)
    with pytest.raises(TraceError, match="too long"):
        append(descriptor, path.stat().st_size, b"x" * 11)
    os.close(descriptor)


def seal(body: bytes) -> bytes:
    return HEAD.pack(MAGIC, 8, len(body), zlib.crc32(body)) + body


def without_size(text: bytes) -> bytes:
    compressor = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    return compressor.compress(text) + compressor.flush()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: b"", "is empty, it holds no trace"),
        (lambda: b"# a configuration\n", "is not a trace file"),
        (lambda: b"x", "is not a trace file"),
        (lambda: seal(b"no zstd"), "is damaged at byte 0: "),
        (lambda: seal(without_size(b"text")[:6] + b"\xff\xff\xff"), "is damaged at byte 0: "),
        (lambda: seal(zstandard.compress(b"text")) + b"\nmore text follows", "no frame begins there"),
        (lambda: HEAD.pack(MAGIC, 9, 1, 1), "makes no sense"),
        (lambda: HEAD.pack(MAGIC, 8, 2**31, 1), "makes no sense"),
    ],
)
def test_other_files_are_told_from_traces(tmp_path: Path, make: Callable[[], bytes], sentence: str) -> None:
    path = tmp_path / "other"
    path.write_bytes(make())
    with pytest.raises(TraceError, match=sentence):
        list(texts(path))


@pytest.mark.parametrize("pack", [zstandard.compress, without_size])
def test_a_bomb_does_not_go_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(seal(pack(bytes(100_000))))
    monkeypatch.setattr(container, "MAX_TEXT_BYTES", 99_999)
    with pytest.raises(TraceError, match="too long"):
        list(texts(path))


@pytest.mark.parametrize("pack", [zstandard.compress, without_size])
def test_the_text_is_in_proportion_to_the_file(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """40 KB would else become 512 MiB."""
    path = tmp_path / "bomb"
    body = pack(bytes(FREE_TEXT_BYTES + MAX_EXPANSION * 10_000))
    path.write_bytes(seal(body))
    with pytest.raises(TraceError, match="too long"):
        list(texts(path))
    path.write_bytes(bytes(HEAD.size) + body)
    with pytest.raises(TraceError, match="too long"):
        list(TextReader(path).read(ended=False))
    path.write_bytes(seal(pack(bytes(FREE_TEXT_BYTES))))
    assert len(next(iter(texts(path)))) == FREE_TEXT_BYTES


@pytest.mark.parametrize("name", ["missing.sct", "."])
def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(TraceError, match="cannot be read: "):
        list(texts(tmp_path / name))


def test_the_index_is_where_frames_begin(path: Path) -> None:
    assert offsets(path) == ends(path)
    middle = ends(path)[1]
    assert offsets(path, middle) == ends(path)[1:]
    assert [one.offset for one in ended(path, middle)] == ends(path)[1:-1]
    path.write_bytes(path.read_bytes() + bytes(HEAD.size))
    assert offsets(path) == ends(path)[:4], "what was never finished is not in it"


def test_the_index_of_what_is_no_trace(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    with pytest.raises(TruncatedError, match=f"truncated at byte {len(data) - 1}, in a frame of"):
        offsets(path)
    with pytest.raises(TraceError, match="no frame begins there"):
        offsets(path, 5)
    with pytest.raises(TraceError, match="cannot be read"):
        offsets(tmp_path / "missing.sct")
