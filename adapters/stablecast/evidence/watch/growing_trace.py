"""A trace file that another process writes: its lines as soon as they are on the disk.

`evidence.trace.container` describes the bytes. The head of a frame is written last, so a frame without a head is
decoded as far as it goes, and its checksum is compared once the head is there. Bytes that are missing are no error,
because they may come: the file is being written, or copied.
"""

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import attrs
import zstandard

from stablecast.evidence.trace import container
from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.frames import Foot, Head, is_foot, parse_foot, parse_frame
from stablecast.text import unread

SLICE: Final = 1 << 18
"""Compressed bytes that are decoded at a time."""


@attrs.frozen
class FrameStart:
    """The first line of a frame that begins at this `offset`."""

    head: Head
    offset: int


@attrs.frozen
class RecordLines:
    """Whole lines of records, each with its end of line."""

    text: bytes


@attrs.frozen
class FrameEnd:
    """The last line of a frame."""

    foot: Foot


TracePart = FrameStart | RecordLines | FrameEnd


@attrs.define
class _OpenFrame:
    """A frame that is being read: its compressed bytes so far, their checksum, and the text of an unfinished line."""

    stream: Any = attrs.field(factory=lambda: zstandard.ZstdDecompressor().decompressobj(read_across_frames=False))
    read: int = 0
    checksum: int = 0
    decoded: int = 0
    rest: bytes = b""
    head: Head | None = None
    stuck: bool = False


@attrs.define
class GrowingTrace:
    """A file, read as far as it goes; `offset` is where the frame begins that is read next, or is being read."""

    path: Path
    offset: int = 0
    _frame: _OpenFrame = attrs.field(factory=_OpenFrame)
    _size: int = -1

    @property
    def between_frames(self) -> bool:
        """Return whether no part of a frame was read."""
        return self._frame.read == 0

    def read(self) -> Iterator[TracePart]:
        """Yield what is new.

        Raises:
            TraceError: If the file cannot be read, is no trace, or is damaged.
        """
        try:
            size = self.path.stat().st_size
            # The head of a frame comes last and does not make the file longer.
            if size == self._size and self.between_frames:
                return
            with self.path.open("rb") as file:
                before = -1
                while before < self.offset < os.fstat(file.fileno()).st_size:
                    before = self.offset
                    yield from self._read_frame(file)
            self._size = size
        except OSError as error:
            raise TraceError(unread(self.path, error)) from error

    def _read_frame(self, file: BinaryIO) -> Iterator[TracePart]:
        """Yield what is new of this frame; go to the next one if it is whole."""
        frame = self._frame
        finished = container.finished_at(file, self.path, self.offset)
        file.seek(self.offset + container.HEAD.size + frame.read)
        left = None if finished is None else finished[0] - frame.read
        while left != 0 and (octets := file.read(SLICE if left is None else min(SLICE, left))):
            used = self._decode(octets)
            left = None if left is None else left - used
            yield from self._lines()
            if used < len(octets) or frame.stuck:
                break
        if finished is None or left:
            if (frame.stuck or frame.stream.eof) and finished is not None:
                raise self._damaged("a frame cannot be decoded")
            return
        if frame.checksum != finished[1]:
            raise self._damaged("the checksum of the frame is wrong")
        yield from self._foot()
        self.offset += container.HEAD.size + finished[0]
        self._frame = _OpenFrame()

    def _decode(self, octets: bytes) -> int:
        """Decode more of the frame; return the number of bytes that belong to it."""
        frame = self._frame
        if frame.stream.eof:  # The head is still missing, and the next frame has begun.
            return 0
        try:
            text = frame.stream.decompress(octets)
        except zstandard.ZstdError:  # Half of a write looks like this, too; the checksum decides.
            frame.stuck = True
            return 0
        used = len(octets) - len(frame.stream.unused_data)
        frame.read += used
        frame.checksum = zlib.crc32(octets[:used], frame.checksum)
        frame.decoded += len(text)
        if frame.decoded > container.MAX_TEXT_BYTES:
            raise self._damaged("the frame is too long")
        frame.rest += text
        return used

    def _lines(self) -> Iterator[TracePart]:
        """Yield the whole lines; the last line of the frame stays until the frame is whole."""
        frame = self._frame
        end = frame.rest.rfind(b"\n") + 1
        if not end:
            return
        begin = 0
        if frame.head is None:
            begin = frame.rest.find(b"\n") + 1
            frame.head = self._head_of(frame.rest[:begin])
            yield FrameStart(frame.head, self.offset)
        last = frame.rest.rfind(b"\n", begin, end - 1) + 1 if end > begin else end
        last = max(last, begin)
        if is_foot(frame.rest[last : last + 8]):
            end = last
        if end > begin:
            yield RecordLines(frame.rest[begin:end])
        frame.rest = frame.rest[end:]

    def _foot(self) -> Iterator[TracePart]:
        frame = self._frame
        if frame.head is None or not is_foot(frame.rest):
            raise TraceError(
                f"{self._place()}: the frame has no first line or no last line; copy the file again from its host"
            )
        try:
            yield FrameEnd(parse_foot(frame.rest, frame.head.frame))
        except TraceError as error:
            raise TraceError(f"{self._place()}: {error}") from error

    def _head_of(self, line: bytes) -> Head:
        try:
            return parse_frame(line, self._place(), finished=False).head
        except TraceError as error:
            raise TraceError(f"{self._place()}: {error}") from error

    def _place(self) -> str:
        return f"{self.path}, the frame at byte {self.offset}"

    def _damaged(self, why: str) -> TraceError:
        return TraceError(f"{self.path} is damaged at byte {self.offset}: {why}; copy it again from its host")
