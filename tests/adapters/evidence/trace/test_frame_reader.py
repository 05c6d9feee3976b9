"""A growing trace is read as it is written: no line twice, none left out, and damage is one sentence."""

from collections.abc import Callable
from pathlib import Path

import pytest

from stablecast.evidence.trace import container
from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.frames import FramePortion, FrameReader
from tests.adapters.evidence.trace.traced import first_trace


def lines_of(portions: list[FramePortion]) -> bytes:
    return b"".join(one.body for one in portions)


def records_in(path: Path) -> bytes:
    """Return the lines of all records, by the reader of finished files."""
    texts = [one.lines for one in container.TextReader(path).read(ended=True)]
    return b"".join(line + b"\n" for text in texts for line in text.splitlines() if line.startswith(b'{"n":'))


@pytest.mark.parametrize("step", [97, 1000, 10_000])
def test_each_line_comes_once_however_the_file_grows(traces: Path, tmp_path: Path, step: int) -> None:
    original = first_trace(traces, "source")
    octets, copy = original.read_bytes(), tmp_path / original.name
    growing, found = FrameReader.at(copy), list[FramePortion]()
    for end in range(step, len(octets) + step, step):
        copy.write_bytes(octets[:end])
        found += growing.read()
    assert lines_of(found) == records_in(original)
    assert sum(one.begins for one in found) == sum(one.foot is not None for one in found) > 2
    assert growing.between_frames
    assert growing.offset == len(octets)


def test_a_frame_is_read_before_its_head_is_written(traces: Path, tmp_path: Path) -> None:
    """The head comes last and does not make the file longer."""
    original = first_trace(traces, "source")
    octets = original.read_bytes()
    last = container.offsets(original)[-2]
    copy = tmp_path / original.name
    copy.write_bytes(octets[:last] + bytes(container.HEAD.size) + octets[last + container.HEAD.size :])
    growing = FrameReader.at(copy)
    found = [*growing.read()]
    assert lines_of(found) == records_in(original)
    assert not growing.between_frames
    copy.write_bytes(octets)
    (end,) = growing.read()
    assert (end.body, end.begins, end.foot is None) == (b"", False, False)
    assert list(growing.read()) == []


def changed(octets: bytes) -> bytes:
    return octets[:-3] + bytes([octets[-3] ^ 1]) + octets[-2:]


def foreign(octets: bytes) -> bytes:
    return b"no trace at all, and long enough for a head" + octets


def lengthened(octets: bytes) -> bytes:
    return octets + b"\xff" * container.HEAD.size


@pytest.mark.parametrize("spoil", [changed, foreign, lengthened])
def test_damage_is_one_sentence(traces: Path, tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    copy = tmp_path / "source-x-1-0.sct"
    copy.write_bytes(spoil(first_trace(traces, "source").read_bytes()))
    with pytest.raises(TraceError, match="source-x-1-0"):
        list(FrameReader.at(copy).read())


def test_a_file_without_a_byte_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "source-x-1-0.sct").touch()
    growing = FrameReader.at(tmp_path / "source-x-1-0.sct")
    assert list(growing.read()) == []
    assert growing.between_frames


def test_the_checksum_of_a_frame_is_compared_when_its_head_comes(traces: Path, tmp_path: Path) -> None:
    octets = first_trace(traces, "source").read_bytes()
    copy = tmp_path / "source-x-1-0.sct"
    copy.write_bytes(bytes(container.HEAD.size) + octets[container.HEAD.size :])
    growing = FrameReader.at(copy)
    assert [*growing.read()]
    copy.write_bytes(octets[: container.HEAD.size - 1] + b"\xff" + octets[container.HEAD.size :])
    with pytest.raises(TraceError, match="checksum"):
        list(growing.read())
