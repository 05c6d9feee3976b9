r"""The summary of a full segment, with which an open need not scan the segment's records.

Beside segment `NNNNNNNN.seg` lies `NNNNNNNN.sum`. It is derived from the segment. An open uses it only if its checksum
is good and it names the salt and the length of the segment. Otherwise the open scans the segment and writes the summary
anew. The newest segment has none, because its end may be torn. An open that verifies all blocks (P-830) uses the
summary to find the records. All integers are big-endian.

    header, 40 bytes                         body
     0  8s  magic "scsum\r\n\0"              u32 n, then n u64: offsets of the records that are no MESSAGES, in order;
     8  u16 version                          then for each stream and tag, in the order of their first records:
    10  u16 zero                             u64 stream, u64 tag, u32 n, and of n MESSAGES, in order
    12  u32 segment number                   n i64  first number
    16  u32 salt of the segment              n u32  count
    20  u64 bytes of the segment             n u32  offset
    28  u64 length of the body               n u32  size of the record
    36  u32 CRC-32 of bytes 0-35 and body
"""

import struct
import sys
import zlib
from array import array
from collections.abc import Iterator
from itertools import chain, groupby, repeat
from operator import attrgetter
from pathlib import Path

import attrs

SUMMARY_SUFFIX = ".sum"
VERSION = 1

_MAGIC = b"scsum\r\n\0"
_HEAD = struct.Struct(">8sHHIIQQ")
_CRC = struct.Struct(">I")
_COUNT = struct.Struct(">I")
_KEY = struct.Struct(">QQI")


@attrs.define(eq=False)
class Runs:
    """The MESSAGES records of one stream and tag, as columns in the order written."""

    stream: int
    tag: int
    firsts: "array[int]" = attrs.field(factory=lambda: array("q"))
    counts: "array[int]" = attrs.field(factory=lambda: array("I"))
    offsets: "array[int]" = attrs.field(factory=lambda: array("I"))
    sizes: "array[int]" = attrs.field(factory=lambda: array("I"))

    @property
    def columns(self) -> tuple["array[int]", ...]:
        """Return the columns in the order of the file."""
        return self.firsts, self.counts, self.offsets, self.sizes

    def records(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Return offset, size, first number, tag and count of each record."""
        return zip(self.offsets, self.sizes, self.firsts, repeat(self.tag), self.counts)


@attrs.define(eq=False)
class SegmentSummary:
    """The records of a segment so far: MESSAGES by stream and tag, and the offsets of all others."""

    others: "array[int]" = attrs.field(factory=lambda: array("Q"))
    runs: dict[tuple[int, int], Runs] = attrs.field(factory=dict)

    def note(self, offset: int) -> None:
        """Note a record of another kind than MESSAGES."""
        self.others.append(offset)

    def add(self, stream: int, first: int, count: int, tag: int, offset: int, size: int) -> None:
        runs = self.runs.get((stream, tag))
        if runs is None:
            runs = self.runs[stream, tag] = Runs(stream, tag)
        runs.firsts.append(first)
        runs.counts.append(count)
        runs.offsets.append(offset)
        runs.sizes.append(size)

    def by_stream(self) -> Iterator[tuple[int, list[Runs]]]:
        ordered = sorted(self.runs.values(), key=attrgetter("stream"))
        for stream, runs in groupby(ordered, key=attrgetter("stream")):
            yield stream, list(runs)

    def offsets(self) -> list[int]:
        return sorted(chain(self.others, *(runs.offsets for runs in self.runs.values())))

    def encoded(self, number: int, salt: int, end: int) -> bytes:
        """Return the summary file of a segment with this number, salt and length."""
        parts = [_COUNT.pack(len(self.others)), _swapped(self.others)]
        for runs in self.runs.values():
            parts.append(_KEY.pack(runs.stream, runs.tag, len(runs.firsts)))
            parts += map(_swapped, runs.columns)
        body = b"".join(parts)
        head = _HEAD.pack(_MAGIC, VERSION, 0, number, salt, end, len(body))
        return head + _CRC.pack(zlib.crc32(body, zlib.crc32(head))) + body


def decoded(data: bytes, number: int, salt: int, end: int) -> SegmentSummary | None:
    """Return the summary in a file, None if it is not a good one of the segment with this number, salt and length."""
    at = _HEAD.size + _CRC.size
    if len(data) < at:
        return None
    head = data[: _HEAD.size]
    if head != _HEAD.pack(_MAGIC, VERSION, 0, number, salt, end, len(data) - at):
        return None
    if _CRC.unpack_from(data, _HEAD.size)[0] != zlib.crc32(memoryview(data)[at:], zlib.crc32(head)):
        return None
    summary = SegmentSummary()
    (count,) = _COUNT.unpack_from(data, at)
    at = _fill(summary.others, data, at + _COUNT.size, count)
    while at < len(data):
        stream, tag, count = _KEY.unpack_from(data, at)
        at += _KEY.size
        runs = summary.runs[stream, tag] = Runs(stream, tag)
        for column in runs.columns:
            at = _fill(column, data, at, count)
    return summary


def summary_path(segment: Path) -> Path:
    """Return the path of a segment's summary.

    >>> summary_path(Path("00000007.seg")).name
    '00000007.sum'
    """
    return segment.with_suffix(SUMMARY_SUFFIX)


def _swapped(column: "array[int]") -> bytes:
    turned = array(column.typecode, column)
    if sys.byteorder == "little":
        turned.byteswap()
    return turned.tobytes()


def _fill(column: "array[int]", data: bytes, at: int, count: int) -> int:
    """Read a column; return the offset of the next one."""
    stop = at + count * column.itemsize
    column.frombytes(memoryview(data)[at:stop])
    if sys.byteorder == "little":
        column.byteswap()
    return stop
