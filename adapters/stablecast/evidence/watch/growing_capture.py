"""A capture that another process writes: its frames as soon as they are whole, from a file or a ring of files.

`dumpcap -b filesize:65536 -b files:4 -w ring.pcapng` writes such a ring: files whose names rise, the oldest deleted.
"""

import struct
from collections.abc import Iterator
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.evidence.capture.files import (
    MAX_FRAME,
    CaptureError,
    CaptureFrame,
    FrameMark,
    PcapngReader,
    captures_in,
    pcap_frames,
)
from stablecast.text import unread

SLICE: Final = 4 << 20
"""Bytes that are read at a time."""

_PCAPNG: Final = b"\x0a\x0d\x0d\x0a"
_LITTLE: Final = b"\x4d\x3c\x2b\x1a"
_BLOCK_HEAD: Final = 12
_PCAP_HEAD: Final = 24
_PCAP: Final = {b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">", b"\xa1\xb2\x3c\x4d": ">"}
"""First bytes of files of pcap, and their byte order."""


@attrs.define
class GrowingCapture:
    """One file; `offset` is the end of the frames that were read, `number` the next frame."""

    path: Path
    offset: int = 0
    number: int = 1
    _head: bytes = b""
    _order: str = "<"
    _pcapng: PcapngReader | None = None

    def read(self) -> Iterator[CaptureFrame]:
        """Yield the new whole frames.

        Raises:
            CaptureError: If the file cannot be read, is no capture, or is damaged.
        """
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                rest = b""
                while octets := file.read(SLICE):
                    rest += octets
                    while end := self._end(rest):
                        yield from self._frames(rest[:end])
                        self.offset += end
                        rest = rest[end:]
        except OSError as error:
            raise CaptureError(unread(self.path, error)) from error

    def _end(self, octets: bytes) -> int:
        """Return the end of the whole blocks, or records, of these bytes."""
        if not self._head and not self._pcapng:
            if len(octets) < _PCAP_HEAD:
                return 0
            if octets[:4] == _PCAPNG:
                self._pcapng = PcapngReader(self.path, BufferedReader(BytesIO()))
            elif octets[:4] in _PCAP:
                self._head, self._order = octets[:_PCAP_HEAD], _PCAP[octets[:4]]
                return _PCAP_HEAD
            else:
                raise CaptureError(
                    f"{self.path} is no pcap or pcapng that can be followed: name one that is not packed"
                )
        return self._end_of_blocks(octets) if self._pcapng else self._end_of_records(octets)

    def _end_of_blocks(self, octets: bytes) -> int:
        at = 0
        while at + _BLOCK_HEAD <= len(octets):
            if octets[at : at + 4] == _PCAPNG:
                self._order = "<" if octets[at + 8 : at + 12] == _LITTLE else ">"
            length = struct.unpack_from(f"{self._order}I", octets, at + 4)[0]
            if not _BLOCK_HEAD <= length <= MAX_FRAME:
                raise CaptureError(f"{self.path} is damaged: a block would have {length} bytes; capture again")
            if at + length > len(octets):
                break
            at += length
        return at

    def _end_of_records(self, octets: bytes) -> int:
        at = 0
        while at + 16 <= len(octets):
            length = struct.unpack_from(f"{self._order}I", octets, at + 8)[0]
            if length > MAX_FRAME:
                raise CaptureError(f"{self.path} is damaged: a frame would have {length} bytes; capture again")
            if at + 16 + length > len(octets):
                break
            at += 16 + length
        return at

    def _frames(self, octets: bytes) -> Iterator[CaptureFrame]:
        if self._pcapng is not None:
            found = self._pcapng.more(BufferedReader(BytesIO(octets)))
        elif octets == self._head:
            return
        else:
            file: Any = BufferedReader(BytesIO(self._head + octets))
            found = pcap_frames(self.path, file, FrameMark(_PCAP_HEAD, self.number))
        for frame in found:
            self.number = frame.number + 1
            yield frame


@attrs.define
class CaptureRing:
    """A file, or the files of a directory or pattern in the order of their names.

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
