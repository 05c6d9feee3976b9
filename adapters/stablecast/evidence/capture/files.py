"""Capture files: pcap and pcapng, from the start or from a mark in the middle.

The reader is our own: both formats are small, and parallel judging needs to begin at a byte. Libraries with types and a
free license had their last release years ago, and give no offsets.
"""

import bz2
import gzip
import lzma
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from io import SEEK_CUR, BufferedReader
from pathlib import Path
from typing import IO, Final, Protocol, TypeVar

import attrs
import zstandard

from stablecast.core.errors import StablecastError
from stablecast.core.machine.records import record
from stablecast.core.machine.units import SECOND
from stablecast.evidence.trace.file_names import search
from stablecast.text import plural, unread


class CaptureError(StablecastError):
    """The file is no capture, or is damaged."""


class CutError(CaptureError):
    """The file is cut off; all whole frames were read."""


MAX_FRAME = 1 << 24
"""Bytes of a frame or block, at most; a larger one means a damaged file."""
WATCHED: Final = 1 << 12
"""Frames between two reports of progress."""

_PCAP_MAGICS = {0xA1B2C3D4: 1_000, 0xA1B23C4D: 1, 0xA1B2CD34: 1_000}
"""The magic numbers of pcap, and the nanoseconds of a unit in the second half of a time."""
_MODIFIED = 0xA1B2CD34
"""Magic of the pcap whose frames name their interface and protocol, too."""
_PCAPNG_MAGIC = 0x0A0D0D0A
_BYTE_ORDER_MAGIC = 0x1A2B3C4D
_LINK_MASK = 0xFFFF
_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 1, 2, 3, 6
_TSRESOL, _TSOFFSET = 9, 14
_MICROSECONDS = 6
_ZEROS: Final = "the rest is zeros, because its writer was stopped; the frames before are read"
_WHOLE: Final = "if it was copied, copy it again"
_COMPRESSED: Final[dict[bytes, Callable[[IO[bytes]], object]]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"\x28\xb5\x2f\xfd": lambda file: zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True),
    b"BZh": bz2.BZ2File,
    b"\xfd7z": lzma.LZMAFile,
}
"""First bytes of compressed files, and their readers."""
_OTHERS: Final = (b"snoop\0\0\0", b"btsnoop\0", b"GMBU", b"RTSS", b"TRSNIFF data", b"XCP\0", b"\xaa\xaa\xaa\xaa")
"""First bytes of captures of formats that are not read."""
_LZ4: Final = b"\x04\x22\x4d\x18"
_PCAP_HEAD = 24
"""Bytes before the first record of a file of pcap."""
_BLOCK = 12
"""Bytes of a block without its body: type, length, and the length again at the end."""


@record
class CaptureFrame:
    """A captured frame with its place.

    Attributes:
        number: Its place in the file, from 1.
        offset: Offset of its record, in bytes.
        time_ns: Time of capture, nanoseconds since 1970.
        link: Its link type, as in the registry of link types.
        octets: The captured bytes.
        length: Its bytes on the wire; more than `octets` if the capture cut it.
    """

    number: int
    offset: int
    time_ns: int
    link: int
    octets: bytes
    length: int


@attrs.frozen
class FrameMark:
    """The first frame of a part: the offset of its record, and its number."""

    offset: int
    number: int = 1


class Placed(Protocol):
    """An item with a place in a file."""

    @property
    def offset(self) -> int:
        """Return the bytes before it."""


PlacedT = TypeVar("PlacedT", bound=Placed)


def watched(items: Iterable[PlacedT], watch: Callable[[int], None] | None) -> Iterator[PlacedT]:
    """Yield the same frames or packets; report their offset to `watch` now and then."""
    for count, item in enumerate(items):
        if watch is not None and not count % WATCHED:
            watch(item.offset)
        yield item


def frames(path: Path, start: FrameMark | None = None, stop: int | None = None) -> Iterator[CaptureFrame]:
    """Yield the frames of a capture.

    Args:
        path: The file.
        start: The first frame; default: the first one of the file.
        stop: Frames that begin at this offset or later are left out; default: none.

    Raises:
        CutError: If it ends in the middle of a frame, after all whole ones.
        CaptureError: If the file cannot be read, is no capture, or is damaged.
    """
    try:
        if path.is_fifo():
            raise CaptureError(f"{path} is a pipe, and captures are read twice; write what comes to a file first")
        with path.open("rb") as outer:
            file = _unpacked(outer)
            sectioned = int.from_bytes(file.peek(4)[:4]) == _PCAPNG_MAGIC
            for frame in PcapngReader(path, file).frames(start) if sectioned else pcap_frames(path, file, start):
                if stop is not None and frame.offset >= stop:
                    return
                yield frame
    except EOFError as error:
        raise CutError(f"{path} ends in the middle of what is compressed; {_WHOLE}") from error
    except (zlib.error, lzma.LZMAError, zstandard.ZstdError, gzip.BadGzipFile) as error:
        raise CaptureError(f"{path} is damaged: {error}; {_WHOLE}") from error
    except OSError as error:
        raise CaptureError(unread(path, error)) from error


def _unpacked(file: BufferedReader) -> BufferedReader:
    """Return a reader of the contents of a file that may be compressed."""
    head = file.peek(4)
    reader = next((reader for magic, reader in _COMPRESSED.items() if head.startswith(magic)), None)
    return file if reader is None else BufferedReader(reader(file))  # type: ignore[arg-type] # a raw stream


def _skip(file: BufferedReader, count: int) -> None:
    if file.seekable():
        file.seek(count, SEEK_CUR)
        return
    while count and (octets := file.read(min(count, MAX_FRAME))):
        count -= len(octets)


def marks(path: Path, spacing: int) -> list[FrameMark]:
    """Return the first frame of each `spacing` bytes, so that parts of about that size can be read in parallel."""
    found: list[FrameMark] = []
    for frame in frames(path):
        if not found or frame.offset - found[-1].offset >= spacing:
            found.append(FrameMark(frame.offset, frame.number))
    return found


def pcap_frames(path: Path, file: BufferedReader, start: FrameMark | None) -> Iterator[CaptureFrame]:
    """Yield the frames of a file of pcap, from the first one or from `start`. Raise as `frames`."""
    head = file.read(_PCAP_HEAD)
    order = next((order for order in "<>" if _magic(head, order) in _PCAP_MAGICS), None)
    if order is None:
        raise CaptureError(f"{path} {_looks_like(path, head)}")
    if len(head) < _PCAP_HEAD:
        raise CutError(f"{path} ends in the middle of its header; {_WHOLE}")
    link = struct.unpack_from(f"{order}I", head, 20)[0] & _LINK_MASK
    unit = _PCAP_MAGICS[_magic(head, order)]
    layout = struct.Struct(f"{order}IIII" + ("8x" if _magic(head, order) == _MODIFIED else ""))
    if start is not None:
        _skip(file, start.offset - _PCAP_HEAD)
    number, offset = (start.number, start.offset) if start else (1, _PCAP_HEAD)
    while head := file.read(layout.size):
        if len(head) < layout.size:
            raise CutError(f"{path} ends in the middle of frame {number}; {_WHOLE}")
        if not any(head):
            raise CutError(f"{path} ends after {plural(number - 1, 'frame')}, {_ZEROS}")
        seconds, fraction, captured, length = layout.unpack(head)
        if captured > MAX_FRAME:
            raise CaptureError(f"{path} is damaged: frame {number} would have {captured} bytes; {_WHOLE}")
        octets = file.read(captured)
        if len(octets) < captured:
            raise CutError(f"{path} ends in the middle of frame {number}; {_WHOLE}")
        yield CaptureFrame(number, offset, seconds * SECOND + fraction * unit, link, octets, length)
        number += 1
        offset += layout.size + captured


def is_capture(path: Path) -> bool:
    """Return whether a file starts like a capture of any format; a pipe is not opened."""
    if path.is_fifo():
        return True
    head = b""
    with suppress(OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError), path.open("rb") as file:
        head = _unpacked(file).read(12)
    known = int.from_bytes(head[:4]) == _PCAPNG_MAGIC or any(_magic(head, order) in _PCAP_MAGICS for order in "<>")
    return known or head.startswith((*_OTHERS, _LZ4))


def _magic(head: bytes, order: str) -> int:
    return int.from_bytes(head[:4], "little" if order == "<" else "big")


def _looks_like(path: Path, head: bytes) -> str:
    """Return the reason why a file is no capture, and the remedy."""
    if head.startswith(_OTHERS):
        new = path.with_suffix(".pcapng").name
        return f"is a capture of another format; `editcap {path.name} {new}` makes one that is read"
    if head.startswith(_LZ4):
        return "is compressed by lz4, which is not read; unpack it first"
    why = "it starts like neither pcap nor pcapng" if head else "it is empty"
    return f"is not a capture: {why}; name a pcap or pcapng file"


MAX_INTERFACES = 4096
"""Interfaces of a section. A megabyte of gzip could hold millions of them, and each takes memory."""


@lru_cache
def _layout(order: str, form: str) -> struct.Struct:
    return struct.Struct(order + form)


@attrs.frozen
class _Interface:
    """An interface of a section: link, snap length, time units a second, offset in seconds."""

    link: int
    snap: int
    units: int
    offset: int


class PcapngReader:
    """A reader of blocks; a section resets byte order and interfaces."""

    def __init__(self, path: Path, file: BufferedReader) -> None:
        self._path = path
        self._file = file
        self._order = "<"
        self._interfaces: list[_Interface] = []
        self._number = 1
        self._time_ns = 0
        self._offset = 0

    def more(self, file: BufferedReader) -> Iterator[CaptureFrame]:
        """Yield the frames of the whole blocks that the same capture has got since. Raise as `frames`."""
        self._file = file
        file.seek(self._offset)
        return self.frames(None)

    def frames(self, start: FrameMark | None) -> Iterator[CaptureFrame]:
        """Yield the frames from `start` on; earlier blocks are skipped, except those that explain later ones."""
        first = 0 if start is None else start.offset
        if start is not None:
            self._number = start.number
        while head := self._file.read(8):
            kind, length, head = self._open(head)
            if kind in {_PACKET, _OLD_PACKET, _SIMPLE_PACKET} and self._offset < first:
                _skip(self._file, length - len(head))
            else:
                body = self._body(length, head)
                if kind == _INTERFACE:
                    if len(self._interfaces) == MAX_INTERFACES:
                        raise CaptureError(self._damaged(f"a section has more than {MAX_INTERFACES:,} interfaces"))
                    self._interfaces.append(self._interface(body))
                elif kind in {_PACKET, _OLD_PACKET, _SIMPLE_PACKET}:
                    yield self._frame(kind, body, self._offset)
                    self._number += 1
            self._offset += length

    def _open(self, head: bytes) -> tuple[int, int, bytes]:
        """Return type and length of the next block, and its first bytes; a section states its byte order first."""
        if head[:4] == _PCAPNG_MAGIC.to_bytes(4):
            magic = self._file.read(4)
            if len(magic) < 4:
                raise CutError(self._ends())
            if magic not in {_BYTE_ORDER_MAGIC.to_bytes(4, "little"), _BYTE_ORDER_MAGIC.to_bytes(4)}:
                raise CaptureError(self._damaged("a section has no byte order"))
            self._order = "<" if magic == _BYTE_ORDER_MAGIC.to_bytes(4, "little") else ">"
            self._interfaces = []
            head += magic
        if len(head) < 8:
            raise CutError(self._ends())
        kind, length = _layout(self._order, "II").unpack_from(head)
        if not any(head):
            raise CutError(f"{self._path} ends after {plural(self._number - 1, 'frame')}, {_ZEROS}")
        if length < _BLOCK or length % 4 or length > MAX_FRAME:
            raise CaptureError(self._damaged(f"a block would have {length} bytes"))
        return kind, length, head

    def _body(self, length: int, head: bytes) -> bytes:
        rest = self._file.read(length - len(head))
        if len(rest) < length - len(head):
            raise CutError(self._ends())
        if rest[-4:] != head[4:8]:
            raise CaptureError(self._damaged("a block does not end with its length"))
        return rest[:-4]

    def _interface(self, body: bytes) -> _Interface:
        link, _, snap = self._unpack("HHI", body)
        exponent, offset = _MICROSECONDS, 0
        at = 8
        while len(body) - at >= 4:
            code, length = struct.unpack_from(f"{self._order}HH", body, at)
            value = body[at + 4 : at + 4 + length]
            if code == _TSRESOL and len(value) == 1:
                exponent = value[0]
            elif code == _TSOFFSET and len(value) == 8:
                offset = struct.unpack(f"{self._order}q", value)[0]
            at += 4 + (length + 3) // 4 * 4
        units = 1 << (exponent & 0x7F) if exponent & 0x80 else 10**exponent
        return _Interface(link, snap, units, offset)

    def _frame(self, kind: int, body: bytes, offset: int) -> CaptureFrame:
        if kind == _SIMPLE_PACKET:
            (length,) = self._unpack("I", body)
            interface, high, low, start = 0, 0, 0, 4
            captured = min(length, self._find(interface).snap or length)
        elif kind == _PACKET:
            interface, high, low, captured, length = self._unpack("IIIII", body)
            start = 20
        else:
            interface, _, high, low, captured, length = self._unpack("HHIIII", body)
            start = 20
        source = self._find(interface)
        octets = body[start : start + captured]
        if len(octets) < captured:
            raise CaptureError(self._damaged(f"frame {self._number} would have {captured} bytes"))
        ticks = high << 32 | low
        if kind != _SIMPLE_PACKET:  # which has no time: it came behind the one before
            self._time_ns = ticks * SECOND // source.units + source.offset * SECOND
        return CaptureFrame(self._number, offset, self._time_ns, source.link, octets, length)

    def _find(self, interface: int) -> _Interface:
        if interface >= len(self._interfaces):
            raise CaptureError(self._damaged(f"frame {self._number} is of an interface that is not declared"))
        return self._interfaces[interface]

    def _unpack(self, form: str, body: bytes) -> tuple[int, ...]:
        layout = _layout(self._order, form)
        if len(body) < layout.size:
            raise CaptureError(self._damaged("a block is too short"))
        return layout.unpack_from(body)

    def _ends(self) -> str:
        return f"{self._path} ends in the middle of a block, after {plural(self._number - 1, 'frame')}; {_WHOLE}"

    def _damaged(self, why: str) -> str:
        return f"{self._path} is damaged: {why}; {_WHOLE}"


ENDINGS: Final = tuple(
    f"*.{kind}{packed}" for kind in ("pcap", "pcapng", "cap") for packed in ("", ".gz", ".zst", ".bz2", ".xz")
)
"""Patterns of the names of captures in a directory."""


def captures_in(directory: Path) -> list[Path]:
    """Return the captures of a directory by their names, perhaps none. Raise OSError."""
    return sorted(one for one in directory.iterdir() if any(map(one.match, ENDINGS)))


def files_of(paths: Iterable[Path]) -> list[Path]:
    """Return the files, and the captures of directories and patterns. Raise CaptureError where there is none."""
    return search(paths, captures_in, "captures", "name files of pcap or pcapng", CaptureError)


@attrs.define
class GrowingCapture:
    """A capture that another process writes: its frames as soon as they are whole. `mark` is behind the last one."""

    path: Path
    mark: FrameMark | None = None
    _blocks: PcapngReader | None = None

    def read(self) -> Iterator[CaptureFrame]:
        """Yield the new frames.

        Raises:
            CaptureError: If the file cannot be read, is no capture, or is damaged.
        """
        try:
            with self.path.open("rb") as file, suppress(CutError):  # The rest may come.
                head = file.peek(_PCAP_HEAD)[:_PCAP_HEAD]
                if len(head) < _PCAP_HEAD:
                    return
                if int.from_bytes(head[:4]) == _PCAPNG_MAGIC:
                    self._blocks = self._blocks or PcapngReader(self.path, file)
                    yield from self._blocks.more(file)
                elif not any(_magic(head, order) in _PCAP_MAGICS for order in "<>"):
                    what = "is no pcap or pcapng that can be followed: name one that is not packed"
                    raise CaptureError(f"{self.path} {what}")
                else:
                    for frame in pcap_frames(self.path, file, self.mark):
                        self.mark = FrameMark(file.tell(), frame.number + 1)
                        yield frame
        except OSError as error:
            raise CaptureError(unread(self.path, error)) from error


@attrs.define
class CaptureRing:
    """A file that grows, or the files of a directory or pattern in the order of their names, the oldest deleted.

    `dumpcap -b filesize:65536 -b files:4 -w ring.pcapng` writes such a ring.

    `lost` counts files that were deleted before they were read; frames of the first file below `known` were judged by
    an earlier watch.
    """

    path: Path
    file: GrowingCapture | None = None
    lost: int = 0
    known: int = 0

    def resume(self, file: Path, number: int) -> None:
        """Go on with this frame of this file; it is read from its beginning, where its interfaces are declared."""
        self.file, self.known = GrowingCapture(file), number

    def read(self) -> Iterator[tuple[Path, CaptureFrame]]:
        """Yield the new frames with their files. Raise CaptureError."""
        files = self._files()
        if self.file is not None and self.file.path not in files:
            self.lost += 1
            self.file, self.known = None, 0
        if self.file is None and files:
            self.file = GrowingCapture(files[0])
        while self.file is not None:
            path = self.file.path
            for frame in self.file.read():
                if frame.number >= self.known:
                    yield path, frame
            later = [one for one in files if one > path]
            if not later:
                return
            self.file, self.known = GrowingCapture(later[0]), 0

    def _files(self) -> list[Path]:
        try:
            if self.path.is_dir():
                return captures_in(self.path)
            if self.path.exists():
                return [self.path]
            return sorted(self.path.parent.glob(self.path.name))
        except OSError as error:
            raise CaptureError(unread(self.path, error)) from error
