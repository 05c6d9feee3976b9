"""The bytes of a trace file: a sequence of independent zstd frames that `zstdcat` prints as lines of JSON.

Before each zstd frame stands a *skippable* zstd frame of 16 bytes, its head: magic, 8, length and crc32 of the zstd
frame that follows. A reader of one frame in a large file walks over the heads.

**Growing.** A frame is one zstd stream that is written in pieces. Each piece ends a block, so a reader can decode all
pieces in the file before the frame is finished.

**Killed processes.** SIGKILL may cut a write of several pages short. So the body is written first, after 16 bytes that
stay zero, and its head last. A head of zeros means that the frame was never finished. It is the last frame of its file,
and its pieces count up to the last whole line. Half a head, or too few bytes after a head, means that a finished frame
was cut or damaged later. Traces are not synced, so nothing is promised about a power cut.
"""

import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final

import attrs
import zstandard

from stablecast.evidence.trace.errors import TraceError, TruncatedError
from stablecast.runtime import machine
from stablecast.text import unread

MAGIC: Final = 0x184D2A5C
"""Magic number of a skippable zstd frame, one of sixteen."""

HEAD: Final = struct.Struct("<IIII")
"""Magic, bytes that follow in the skippable frame, length in bytes and crc32 of the zstd frame."""

MAX_BODY_BYTES: Final = 64 << 20
"""Bytes of one compressed frame."""

MAX_TEXT_BYTES: Final = 512 << 20
"""Bytes of one frame's lines."""

FREE_TEXT_BYTES: Final = 16 << 20
"""Bytes of lines that a frame of any length may hold."""

MAX_EXPANSION: Final = 256
"""Further bytes of lines for each compressed byte. What machines did compresses to a tenth, and the same line over and
over to a 60th; a bomb, to a ten thousandth."""

WINDOW_LOG: Final = 16
"""Size of zstd's window as a power of two, in bytes. Each recorded trace holds a window and its tables all the time:
165 KiB. In pieces, higher levels and larger windows take up to 870 KiB and compress no better.
"""

_MAGIC: Final = HEAD.pack(MAGIC, 0, 0, 0)[:4]
_FOLLOWING: Final = HEAD.size - 8
_LEVEL: Final = 1
SLICE: Final = 1 << 18
"""Compressed bytes of a frame without a head that are decoded at a time."""

STEP: Final = 1 << 12
"""Compressed bytes that are decoded before the length of the text is looked at: at most 128 MiB come of them."""

_SLICE: Final = 1 << 20
_REMEDY: Final = "copy it again from where it was recorded"


class Growing:
    """A frame that is written piece by piece; `end` is the offset where its file ends now."""

    def __init__(self, descriptor: int, offset: int) -> None:
        """Begin at `offset`, the end of the file, without writing."""
        settings = zstandard.ZstdCompressionParameters.from_level(_LEVEL, window_log=WINDOW_LOG)
        self._stream = zstandard.ZstdCompressor(compression_params=settings).compressobj()
        self._descriptor = descriptor
        self._offset = offset
        self._text = 0
        self._checksum = 0
        self.end = offset + HEAD.size

    def add(self, text: bytes) -> None:
        """Write more of the frame, so that a reader finds it. Raise as `finish` does."""
        self._put(text, zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def finish(self, text: bytes) -> int:
        """Write the last of the frame and its head, and return the new end of the file.

        Raises:
            OSError: If the write failed; then the file ends with the piece before.
            TraceError: If the frame is longer than readers accept; nothing of this piece is written.
        """
        self._put(text, zstandard.COMPRESSOBJ_FLUSH_FINISH)
        length = self.end - self._offset - HEAD.size
        _write(self._descriptor, HEAD.pack(MAGIC, _FOLLOWING, length, self._checksum), self._offset)
        return self.end

    def _put(self, text: bytes, mode: int) -> None:
        self._text += len(text)
        data = self._stream.compress(text) + self._stream.flush(mode)
        if self._text > MAX_TEXT_BYTES or self.end + len(data) - self._offset - HEAD.size > MAX_BODY_BYTES:
            raise TraceError(f"a frame of {self._text} bytes is too long for a trace")
        try:
            _write(self._descriptor, data, self.end)
        except OSError:
            machine.files.truncate(self._descriptor, self.end if self.end > self._offset + HEAD.size else self._offset)
            raise
        self.end += len(data)
        self._checksum = zlib.crc32(data, self._checksum)


def append(descriptor: int, offset: int, text: bytes) -> int:
    """Write one frame at `offset`, the end of the file, and return the new end.

    Raises:
        OSError: If it could not be written; then the file ends at `offset` again.
        TraceError: If it is longer than a reader would take; nothing is written.
    """
    try:
        return Growing(descriptor, offset).finish(text)
    except OSError:
        machine.files.truncate(descriptor, offset)
        raise


def _write(descriptor: int, data: bytes, offset: int) -> None:
    rest = memoryview(data)
    while rest:
        written = machine.files.pwrite(descriptor, rest, offset)
        rest, offset = rest[written:], offset + written


@attrs.frozen
class FrameText:
    """Whole lines of the frame at `offset`: they may be its `first` ones, and it may be `finished` with them."""

    offset: int
    lines: bytes
    first: bool
    finished: bool


@attrs.define
class _OpenFrame:
    """A frame without a head that is being read: its compressed bytes, and the text of an unfinished line."""

    stream: Any = attrs.field(factory=lambda: zstandard.ZstdDecompressor().decompressobj(read_across_frames=False))
    read: int = 0
    checksum: int = 0
    decoded: int = 0
    rest: bytearray = attrs.field(factory=bytearray)
    begun: bool = False
    stuck: bool = False


@attrs.define
class TextReader:
    """The texts of the frames of a file; `offset` is where the frame begins that is read next, or is being read.

    A frame with a head is one text. A frame without one is decoded as far as it goes, and its checksum is compared once
    the head is there.
    """

    path: Path
    offset: int = 0
    _frame: _OpenFrame = attrs.field(factory=_OpenFrame)
    _size: int = -1

    @property
    def between_frames(self) -> bool:
        return self._frame.read == 0

    def read(self, *, ended: bool) -> Iterator[FrameText]:
        """Yield what is new. The last frame of a file that has `ended` is one text, too, and may be unfinished.

        Bytes that are missing in a file that grows are no error: it is being written, or copied.

        Raises:
            TruncatedError: If a file that has ended does so in a frame that was finished.
            TraceError: If it cannot be read, is no trace, or is damaged; or if no frame begins at `offset`.
        """
        try:
            size = machine.files.stat(self.path).st_size
            # The head of a frame comes last and does not make the file longer.
            if not ended and (not size or (size == self._size and self.between_frames)):
                return
            with machine.files.file(self.path, "rb") as file:
                yield from self._frames(file, size, ended)
                self._size = size
        except OSError as error:
            raise TraceError(unread(self.path, error)) from error

    def _frames(self, file: BinaryIO, size: int, ended: bool) -> Iterator[FrameText]:
        while ended or self.offset < size:
            file.seek(self.offset)
            head = _length(file, self.path, self.offset) if ended else finished_at(file, self.path, self.offset)
            begin = self.offset + HEAD.size
            if head is None or self._frame.read or not (ended or begin + head[0] <= size):
                yield from self._portions(file, head, ended)
                if head is None or self._frame.read < head[0]:
                    return
                self._frame = _OpenFrame()
            else:
                file.seek(begin)
                text = _text(_body(file, self.path, self.offset, *head), self.path, self.offset)
                yield FrameText(self.offset, text, first=True, finished=True)
            self.offset = begin + head[0]

    def _portions(self, file: BinaryIO, head: tuple[int, int] | None, ended: bool) -> Iterator[FrameText]:
        """Yield what is new of a frame that was begun, or has no head yet."""
        frame = self._frame
        file.seek(self.offset + HEAD.size + frame.read)
        left = None if head is None else head[0] - frame.read
        while left != 0 and (octets := file.read(SLICE if left is None else min(SLICE, left))):
            used = self._decode(octets)
            left = None if left is None else left - used
            if not ended:
                yield from self._whole_lines(finished=False)
            if used < len(octets) or frame.stuck:
                break
        if head is None or left:
            if (frame.stuck or frame.stream.eof) and head is not None:
                raise _damaged(self.path, self.offset, "a frame cannot be decoded")
            yield from self._whole_lines(finished=False)
            return
        if frame.checksum != head[1]:
            raise _damaged(self.path, self.offset, "the checksum of the frame is wrong")
        yield from self._whole_lines(finished=True)

    def _decode(self, octets: bytes) -> int:
        """Decode more of the frame; return the number of bytes that belong to it."""
        frame, before = self._frame, self._frame.read
        for at in range(0, len(octets), STEP):
            piece = octets[at : at + STEP]
            if frame.stream.eof:  # The head is still missing, and the next frame has begun.
                break
            try:
                text = frame.stream.decompress(piece)
            except zstandard.ZstdError:  # Half of a write looks like this, too; the checksum decides.
                frame.stuck = True
                break
            used = len(piece) - len(frame.stream.unused_data)
            frame.read += used
            frame.checksum = zlib.crc32(piece[:used], frame.checksum)
            frame.decoded += len(text)
            if frame.decoded > text_limit(frame.read):
                raise _damaged(self.path, self.offset, "the frame is too long")
            frame.rest += text
        return frame.read - before

    def _whole_lines(self, *, finished: bool) -> Iterator[FrameText]:
        frame = self._frame
        end = frame.rest.rfind(b"\n") + 1
        if end or finished:
            lines = bytes(frame.rest[:end])
            del frame.rest[:end]
            yield FrameText(self.offset, lines, not frame.begun, finished)
            frame.begun = True


def offsets(path: Path, start: int = 0) -> list[int]:
    """Return the offsets of frames from the one at `start` on, and the end of the last finished frame.

    This is the index of a trace: it costs a read of 16 bytes for each frame.

    Raises:
        TruncatedError: If the file ends in a frame that was finished.
        TraceError: If it cannot be read or is no trace.
    """
    try:
        with machine.files.file(path, "rb") as file:
            size, found = machine.files.status(file.fileno()).st_size, [start]
            file.seek(start)
            while (head := _length(file, path, found[-1])) is not None:
                end = found[-1] + HEAD.size + head[0]
                if end > size:
                    raise _truncated(path, size, f"a frame of {head[0]} bytes")
                found.append(end)
                file.seek(end)
            return found
    except OSError as error:
        raise TraceError(unread(path, error)) from error


def last_offset(path: Path) -> int:
    """Return where the last frame of a growing file begins that has some bytes, 0 in an empty file.

    Raises:
        TraceError: If the file cannot be read or is no trace.
    """
    try:
        with machine.files.file(path, "rb") as file:
            size, last, end = machine.files.status(file.fileno()).st_size, 0, 0
            while end + HEAD.size < size:
                last = end
                if (head := finished_at(file, path, last)) is None:
                    break
                end = last + HEAD.size + head[0]
            return last
    except OSError as error:
        raise TraceError(unread(path, error)) from error


def finished_at(file: BinaryIO, path: Path, offset: int) -> tuple[int, int] | None:
    """Return length and checksum of the frame at `offset`; None if its head is not written yet.

    Raises:
        TraceError: If no frame begins there.
    """
    file.seek(offset)
    with suppress(TruncatedError):  # The rest of the head may come.
        return _length(file, path, offset) if file.peek(1) else None  # type: ignore[attr-defined] # a buffered reader
    return None


def _length(file: BinaryIO, path: Path, offset: int) -> tuple[int, int] | None:
    """Read a head; return length and checksum of its frame, or None at the end of the finished frames."""
    head = file.read(HEAD.size)
    if not head and offset == 0:
        raise TraceError(f"{path} is empty, it holds no trace: leave it out")
    if not any(head):  # The end of the file, or a frame that was never finished.
        return None
    if head[:4] != _MAGIC[: len(head)]:
        if not offset:
            raise TraceError(f"{path} is not a trace file: name what was recorded, *.sct")
        raise _damaged(path, offset, "no frame begins there")
    if len(head) < HEAD.size:
        raise _truncated(path, offset + len(head), "the head of a frame")
    _, following, length, checksum = HEAD.unpack(head)
    if following != _FOLLOWING or not 0 < length <= MAX_BODY_BYTES:
        raise _damaged(path, offset, "the head of a frame makes no sense")
    return length, checksum


def _body(file: BinaryIO, path: Path, offset: int, length: int, checksum: int) -> bytes:
    body = file.read(length)
    if len(body) < length:
        raise _truncated(path, offset + HEAD.size + len(body), f"a frame of {length} bytes")
    if zlib.crc32(body) != checksum:
        raise _damaged(path, offset, "the checksum of the frame is wrong")
    return body


def text_limit(compressed: int) -> int:
    """Return the most bytes of lines that so many compressed bytes may hold."""
    return min(MAX_TEXT_BYTES, FREE_TEXT_BYTES + MAX_EXPANSION * compressed)


def _text(body: bytes, path: Path, offset: int) -> bytes:
    try:
        size, limit = zstandard.frame_content_size(body), text_limit(len(body))
        if size < 0:  # A frame that grew has no size in its header.
            text = b"".join(_slices(BytesIO(body), limit))
        elif size <= limit:
            text = zstandard.ZstdDecompressor().decompress(body)
        else:
            text = b""
        if max(size, len(text)) > limit:
            raise _damaged(path, offset, "the frame is too long")
        return text
    except zstandard.ZstdError as error:
        raise _damaged(path, offset, str(error)) from error


def _slices(source: BinaryIO, limit: int) -> Iterator[bytes]:
    """Decode one zstd frame, little more than `limit` bytes of it, because its length is unknown."""
    reader, left = zstandard.ZstdDecompressor().stream_reader(source), limit
    while left >= 0 and (text := reader.read(_SLICE)):
        left -= len(text)
        yield text


def _truncated(path: Path, end: int, where: str) -> TruncatedError:
    return TruncatedError(f"{path} is truncated at byte {end}, in {where}; {_REMEDY}")


def _damaged(path: Path, offset: int, why: str) -> TraceError:
    return TraceError(f"{path} is damaged at byte {offset}: {why}; {_REMEDY}")
