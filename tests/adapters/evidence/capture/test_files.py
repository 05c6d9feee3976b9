"""Capture files of both formats, read to the end, from a mark on, and never past damage."""

import bz2
import gzip
import lzma
import os
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stablecast.evidence.capture.files import (
    MAX_INTERFACES,
    CaptureError,
    CaptureFrame,
    CutError,
    FrameMark,
    frames,
    is_capture,
    marks,
)
from tests.support import captures
from tests.support.captures import block, enhanced, interface, section
from tests.support.layouts import mutations
from tests.support.pcap import SECOND

FRAMES = [b"one", b"", b"three", b"fourth"]
NS = 1_000_000_000


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nanoseconds", [False, True])
def test_pcap_in_each_byte_order_and_unit(tmp_path: Path, order: str, nanoseconds: bool) -> None:
    path = captures.pcap(tmp_path / "a.pcap", FRAMES, 1, order, nanoseconds)
    found = list(frames(path))
    assert [frame.octets for frame in found] == FRAMES
    assert [(frame.number, frame.link, frame.length) for frame in found][2] == (3, 1, 5)
    assert found[1].time_ns == (SECOND + 1) * NS + (5 if nanoseconds else 5000)


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_in_each_byte_order(tmp_path: Path, order: str) -> None:
    path = captures.pcapng(tmp_path / "a.pcapng", FRAMES, 113, order)
    found = list(frames(path))
    assert [frame.octets for frame in found] == FRAMES
    assert [(frame.number, frame.link) for frame in found][3] == (4, 113)
    assert found[1].time_ns == (SECOND + 1) * NS + 5000


def test_a_section_starts_anew(tmp_path: Path) -> None:
    """Interfaces with units, offsets and options of their own; blocks of other kinds are passed over."""
    path = tmp_path / "a.pcapng"
    nano = struct.pack("<HHB3xHHqHHI", 9, 1, 9, 14, 8, 100, 2, 4, 7) + bytes(4)
    binary = struct.pack(">HHB3xHH3sx", 9, 1, 0x80 | 10, 9, 3, b"odd")
    parts = [
        section(),
        interface(1, options=nano),
        enhanced(0, b"first", ticks=5),
        block(5, b"statistics"),
        section(">"),
        interface(101, ">", snap=3, options=binary),
        enhanced(0, b"second", ">", ticks=3 << 9),
        block(3, struct.pack(">I", 9) + b"sim", ">"),
        block(2, struct.pack(">HHIIII", 0, 1, 0, 1 << 10, 3, 60) + b"old", ">"),
    ]
    path.write_bytes(b"".join(parts))
    first, second, simple, old = frames(path)
    assert (first.octets, first.link, first.time_ns) == (b"first", 1, 100 * NS + 5)
    assert (second.octets, second.link, second.time_ns) == (b"second", 101, 3 * NS // 2)
    assert (simple.octets, simple.length, simple.time_ns) == (b"sim", 9, second.time_ns)  # it has no time of its own
    assert (old.octets, old.length, old.time_ns) == (b"old", 60, NS)


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_modified_pcap(tmp_path: Path, order: str) -> None:
    """A frame of this format names its interface and protocol too."""
    path = tmp_path / "a.pcap"
    head = struct.pack(f"{order}IHHiIII", 0xA1B2CD34, 2, 4, 0, 0, 262_144, 1)
    lines = [struct.pack(f"{order}IIIIIHBB", SECOND, 5, len(one), len(one), 2, 0x0800, 0, 0) + one for one in FRAMES]
    path.write_bytes(head + b"".join(lines))
    found = list(frames(path))
    assert is_capture(path)
    assert [frame.octets for frame in found] == FRAMES
    assert found[3].time_ns == SECOND * NS + 5_000
    assert list(frames(path, marks(path, 50)[1])) == found[marks(path, 50)[1].number - 1 :]


@pytest.mark.parametrize(
    ("octets", "sentence"),
    [
        (b"snoop\0\0\0" + bytes(99), "is a capture of another format; `editcap a.cap a.pcapng` makes one that is read"),
        (b"GMBU" + bytes(99), "is a capture of another format; `editcap a.cap a.pcapng` makes one that is read"),
        (b"\x04\x22\x4d\x18" + bytes(99), "is compressed by lz4, which is not read; unpack it first"),
    ],
)
def test_formats_that_are_not_read_are_recognized_and_named(tmp_path: Path, octets: bytes, sentence: str) -> None:
    path = tmp_path / "a.cap"
    path.write_bytes(octets)
    assert is_capture(path)
    with pytest.raises(CaptureError) as caught:
        list(frames(path))
    assert str(caught.value) == f"{path} {sentence}"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert is_capture(path)
    with pytest.raises(CaptureError, match="is a pipe, and captures are read twice; write what comes to a file first"):
        list(frames(path))


def test_a_simple_packet_without_a_snap_length_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    path.write_bytes(section() + interface(1) + block(3, struct.pack("<I", 4) + b"four"))
    assert [frame.octets for frame in frames(path)] == [b"four"]


@pytest.mark.parametrize("write", [captures.pcap, captures.pcapng])
def test_parts_between_marks_are_the_whole(tmp_path: Path, write: object) -> None:
    path = tmp_path / "a"
    assert callable(write)
    write(path, [bytes([number] * number) for number in range(50)])
    whole = list(frames(path))
    found = marks(path, 200)
    assert len(found) > 3
    stops = [mark.offset for mark in found[1:]] + [None]
    parts = [list(frames(path, mark, stop)) for mark, stop in zip(found, stops, strict=True)]
    assert [frame for part in parts for frame in part] == whole
    assert found[0] == FrameMark(whole[0].offset, 1)


@pytest.mark.parametrize(
    ("octets", "sentence"),
    [
        (b"", "is not a capture: it is empty"),
        (b"\x1f\x8b\x08\x00rest", "ends in the middle of what is compressed"),
        (b"hello, this is text", "is not a capture: it starts like neither"),
        (b"\xd4\xc3\xb2\xa1\x02\x00", "ends in the middle of its header"),
        (section()[:6], "ends in the middle of a block, after 0 frames"),
        (section()[:20], "ends in the middle of a block, after 0 frames"),
        (section()[:8] + b"\0\0\0\0", "is damaged: a section has no byte order"),
        (section() + block(1, b"\0\0"), "is damaged: a block is too short"),
        (section() + enhanced(0, b"x"), "is damaged: frame 1 is of an interface that is not declared"),
        (section() + interface(1) * (MAX_INTERFACES + 1), "is damaged: a section has more than 4,096 interfaces"),
        (section() + struct.pack("<II", 6, 13), "is damaged: a block would have 13 bytes"),
        (section() + struct.pack("<II", 6, 1 << 28), "is damaged: a block would have 268435456 bytes"),
        (section() + interface(1)[:-4] + b"\0\0\0\0", "is damaged: a block does not end with its length"),
        (
            section() + interface(1) + block(6, struct.pack("<IIIII", 0, 0, 0, 9, 9) + b"four"),
            "is damaged: frame 1 would have 9 bytes",
        ),
    ],
)
def test_a_file_that_is_no_capture_gets_one_sentence(tmp_path: Path, octets: bytes, sentence: str) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(octets)
    with pytest.raises(CaptureError) as caught:
        list(frames(path))
    assert sentence in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("cut", [3, 17])
def test_a_cut_off_pcap_is_told(tmp_path: Path, cut: int) -> None:
    path = captures.pcap(tmp_path / "a.pcap", [b"whole", b"cut"])
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(CaptureError, match="ends in the middle of frame 2"):
        list(frames(path))


@pytest.mark.parametrize("write", [captures.pcap, captures.pcapng])
def test_a_file_that_its_writer_never_filled_is_read_as_far_as_it_is(
    tmp_path: Path, write: Callable[..., Path]
) -> None:
    """A host that fails may leave zeros behind what it wrote."""
    path = write(tmp_path / "a", FRAMES)
    path.write_bytes(path.read_bytes() + bytes(4096))
    found: list[CaptureFrame] = []
    with pytest.raises(CutError, match="ends after 4 frames, the rest is zeros"):
        found.extend(frames(path))
    assert [frame.octets for frame in found] == FRAMES


def test_a_frame_of_impossible_size_is_damage(tmp_path: Path) -> None:
    path = captures.pcap(tmp_path / "a.pcap", [])
    path.write_bytes(path.read_bytes() + struct.pack("<IIII", 0, 0, 1 << 30, 1 << 30))
    with pytest.raises(CaptureError, match="is damaged"):
        list(frames(path))


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_damaged_files_give_frames_or_a_sentence(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "a"
    write = data.draw(st.sampled_from([captures.pcap, captures.pcapng]))
    octets = write(path, FRAMES).read_bytes()
    path.write_bytes(data.draw(mutations(octets)))
    with suppress(CaptureError):
        assert len(list(frames(path))) <= len(octets)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
@pytest.mark.parametrize("write", [captures.pcap, captures.pcapng])
def test_compressed_captures_are_captures(
    tmp_path: Path, compress: Callable[[bytes], bytes], write: Callable[..., Path]
) -> None:
    """They can be read from the start, from a mark, and cut off."""
    path = write(tmp_path / "a.pcap", [b"E" * size for size in range(20, 200)])
    plain, found = list(frames(path)), marks(path, 4_000)
    octets = compress(path.read_bytes())
    path.write_bytes(octets)
    assert is_capture(path)
    assert list(frames(path)) == plain
    assert marks(path, 4_000) == found
    assert list(frames(path, found[1])) == plain[found[1].number - 1 :]
    path.write_bytes(octets[: len(octets) // 2])
    read: list[CaptureFrame] = []
    with pytest.raises(CaptureError if compress is zstandard.compress else CutError):
        read.extend(frames(path))
    assert read == plain[: len(read)]


def test_compressed_nonsense_is_no_capture(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    for octets in (
        gzip.compress(b"nonsense"),
        b"\x1f\x8b\x09\x00" + bytes(20),
        b"\x28\xb5\x2f\xfdnonsense",
        b"\xfd7znone",
    ):
        path.write_bytes(octets)
        assert not is_capture(path)
        with pytest.raises(CaptureError):
            list(frames(path))
