"""The bytes of a trace file: a sequence of independent zstd frames that `zstdcat` prints as lines of JSON.

Before each zstd frame stands a *skippable* zstd frame of 16 bytes, its head: magic, 8, length and crc32 of the zstd
frame that follows. Whoever wants one frame of a large file walks over the heads.

**What a killed process leaves.** A write of several pages may be cut short by SIGKILL. So the body is written first,
behind 16 bytes that stay zero, and its head last. A head of zeros therefore says: this was never finished; it is the
last thing in its file and everything before it counts. A head with too few bytes behind it, or half a head, says that a
finished frame was cut or damaged afterwards. (No promise is made about a power cut: traces are not synced.)
"""

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import zstandard

from stablecast.sentences import unread
from stablecast.trace.errors import TraceError, TruncatedError

MAGIC: Final = 0x184D2A5C
"""One of the sixteen magic numbers of skippable zstd frames."""

HEAD: Final = struct.Struct("<IIII")
"""Magic, bytes that follow in the skippable frame, length in bytes and crc32 of the zstd frame."""

MAX_BODY_BYTES: Final = 64 << 20
"""Bytes of one compressed frame."""

MAX_TEXT_BYTES: Final = 512 << 20
"""Bytes of one frame's lines."""

_MAGIC: Final = HEAD.pack(MAGIC, 0, 0, 0)[:4]
_FOLLOWING: Final = HEAD.size - 8
_LEVEL: Final = 3
_REMEDY: Final = "copy it again from where it was recorded"


def append(descriptor: int, offset: int, text: bytes) -> int:
    """Writes one frame at `offset`, the end of the file, and returns the new end.

    Raises:
        OSError: If it could not be written; then the file ends at `offset` again.
        TraceError: If it is longer than a reader would take; nothing is written.
    """
    body = zstandard.ZstdCompressor(level=_LEVEL).compress(text)
    if len(body) > MAX_BODY_BYTES or len(text) > MAX_TEXT_BYTES:
        raise TraceError(f"a frame of {len(text)} bytes is too long for a trace")
    try:
        _write(descriptor, body, offset + HEAD.size)
        _write(descriptor, HEAD.pack(MAGIC, _FOLLOWING, len(body), zlib.crc32(body)), offset)
    except OSError:
        os.ftruncate(descriptor, offset)
        raise
    return offset + HEAD.size + len(body)


def _write(descriptor: int, data: bytes, offset: int) -> None:
    rest = memoryview(data)
    while rest:
        written = os.pwrite(descriptor, rest, offset)
        rest, offset = rest[written:], offset + written


def texts(path: Path) -> Iterator[bytes]:
    """Yields the lines of each frame, frame by frame; a frame that was never finished ends the file.

    Raises:
        TruncatedError: If the file ends in a frame that was finished.
        TraceError: If it cannot be read, is no trace, or is damaged.
    """
    for _, text in texts_from(path):
        yield text


def texts_from(path: Path, offset: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yields where each frame begins and its lines, from the frame at `offset` on.

    Raises:
        TruncatedError: If the file ends in a frame that was finished.
        TraceError: If it cannot be read, is no trace, or is damaged; or if no frame begins at `offset`.
    """
    try:
        with path.open("rb") as file:
            file.seek(offset)
            while (length := _length(file, path, offset)) is not None:
                body = _body(file, path, offset, *length)
                yield offset, _text(body, path, offset)
                offset += HEAD.size + len(body)
    except OSError as error:
        raise TraceError(unread(path, error)) from error


def offsets(path: Path, start: int = 0) -> list[int]:
    """Where frames begin, from the one at `start` on, and behind them the end of what was finished.

    This is the index of a trace: it costs a read of 16 bytes for each frame.

    Raises:
        TruncatedError: If the file ends in a frame that was finished.
        TraceError: If it cannot be read or is no trace.
    """
    try:
        with path.open("rb") as file:
            size, found = os.fstat(file.fileno()).st_size, [start]
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


def _length(file: BinaryIO, path: Path, offset: int) -> tuple[int, int] | None:
    """Length and checksum of the frame whose head stands here; None at the end of what was finished."""
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
    """The compressed frame whose head was read."""
    body = file.read(length)
    if len(body) < length:
        raise _truncated(path, offset + HEAD.size + len(body), f"a frame of {length} bytes")
    if zlib.crc32(body) != checksum:
        raise _damaged(path, offset, "the checksum of the frame is wrong")
    return body


def _text(body: bytes, path: Path, offset: int) -> bytes:
    try:
        size = zstandard.frame_content_size(body)
        if not 0 <= size <= MAX_TEXT_BYTES:
            raise _damaged(path, offset, "the frame does not say its size, or is too long")
        return zstandard.ZstdDecompressor().decompress(body)
    except zstandard.ZstdError as error:
        raise _damaged(path, offset, str(error)) from error


def _truncated(path: Path, end: int, where: str) -> TruncatedError:
    return TruncatedError(f"{path} is truncated at byte {end}, in {where}; {_REMEDY}")


def _damaged(path: Path, offset: int, why: str) -> TraceError:
    return TraceError(f"{path} is damaged at byte {offset}: {why}; {_REMEDY}")
