r"""The bytes of a journal segment. All integers are big-endian.

A journal is a directory of segment files `NNNNNNNN.seg`, numbered upwards in decimal, and a file `lock`. A segment is
a file header followed by records without padding.

    file header, 24 bytes           record header, 32 bytes
     0  8s  magic "scjrnl\r\n"          0  u16  magic 0x5CA5
     8  u16 version                   2  u8   kind
    10  u16 zero                      3  u8   flags, zero
    12  u32 segment number            4  u32  length of the body
    16  u32 salt                      8  u64  ticket, 0 = nobody waits for it
    20  u32 CRC-32 of bytes 0-19     16  u64  offset in this segment that was synced before this record was written
                                     24  u32  CRC-32 of the body
                                     28  u32  CRC-32 of bytes 0-27, started from the salt

    kind           body
    1 MESSAGES     u64 stream, i64 first, u32 count, u64 tag, u64 when it came (ns of the epoch; not before version 3),
                   then the block as it was received
    2 STATE        one JSON object, UTF-8
    3 CHECKPOINT   JSON array of such objects: stands for every STATE before it
    4 ERASE        u64 stream, i64 start, i64 stop, u32 segment, u64 offset: the stream's numbers start <= n < stop are
                   dead in every MESSAGES record that lies before (segment, offset)

A segment begins with the ERASE records that still matter and one CHECKPOINT. Rules of the reader:

* The reader applies records in order of (segment, offset). Where numbers overlap, the later MESSAGES record wins.
* An ERASE names the place it looks back from. It may be repeated later without effect on records written in between.
  Therefore the segment with the original can be deleted while an older segment is still in use.
* A record is bad if a checksum fails or the file ends within it. In an older segment that is damage, because a segment
  is synced before the next one gets records. In the newest segment it is damage if a later good record was written
  after a sync beyond it. Otherwise it is the torn end of a batch that was never reported, and the file is cut there.
* The salt is random for each segment. Bytes inside a block come from the network and may be a copy of a journal.
  Without the salt they could pass for a record when the reader looks for the next good one.
* A segment may have been allocated to its full size. Zeros up to the end of the newest one were never written.
* A version, flag or kind that is not listed here means that a newer release wrote the file.
"""

import json
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import TypeVar

import attrs

from stablecast.core.errors import MisuseError, StablecastError
from stablecast.runtime.machine import Mapped

VERSION = 4
"""The version that is written. Older ones are read: 3 has no generations, 2 no times, 1 fewer fields of clients."""

TIMED = 3
"""The first version whose MESSAGES records hold a time."""

FILE_MAGIC = b"scjrnl\r\n"
RECORD_MAGIC = 0x5CA5
MAX_BLOCK_BYTES = 1 << 30
"""Bytes of the largest block, state or checkpoint in one record."""

LOWEST = -(1 << 63)
"""Start of an ERASE without a lower end."""
HIGHEST = (1 << 63) - 1
"""Stop of an ERASE without an upper end; no message has this number."""

_FILE = struct.Struct(">8sHHII")
_RECORD = struct.Struct(">HBBIQQI")
_CRC = struct.Struct(">I")
_JSON = json.JSONDecoder()
_MAGIC_BYTES = RECORD_MAGIC.to_bytes(2, "big")
# Not `find`: before Python 3.11.4 that of a mapping reads the byte after it. A full disk leaves a file of whole pages,
# and such a read then ends the process, at each start of the store (gh-105235 of CPython).
_MAGIC = re.compile(re.escape(_MAGIC_BYTES))
_BODY_CRC_AT = _RECORD.size - _CRC.size
FILE_HEADER_BYTES = _FILE.size + _CRC.size
RECORD_HEADER_BYTES = _RECORD.size + _CRC.size

MESSAGES_HEAD = struct.Struct(">QqIQQ")
"""Stream, first, count, tag and time, which precede the block in a MESSAGES body."""
UNTIMED_HEAD = struct.Struct(">QqIQ")
"""The fields before version 3, without the time."""
ERASE_BODY = struct.Struct(">QqqIQ")
"""Stream, start, stop, segment, offset."""

Block = bytes | memoryview
"""Opaque bytes. A memoryview is contiguous, of format "B", and its memory does not change any more."""


_Body = TypeVar("_Body", bytes, Block)


class JournalError(StablecastError):
    """The journal cannot be opened, written, synced or read. The text names the remedy."""


class RecordKind(IntEnum):
    """The kinds of records, with the values of the record header."""

    MESSAGES = 1
    STATE = 2
    CHECKPOINT = 3
    ERASE = 4


_KINDS = frozenset(RecordKind)


@attrs.frozen
class Entry:
    """A good record in a segment: its place, and the fields of its header."""

    kind: RecordKind
    offset: int
    stop: int
    ticket: int
    synced: int

    @property
    def body(self) -> slice:
        """Return the place of the body in the segment."""
        return slice(self.offset + RECORD_HEADER_BYTES, self.stop)


@attrs.frozen
class SegmentGap:
    """A part of a segment without a good record; `torn` if it is the unsynced end of the newest segment."""

    offset: int
    stop: int
    torn: bool


def file_header(number: int, salt: int) -> bytes:
    head = _FILE.pack(FILE_MAGIC, VERSION, 0, number, salt)
    return head + _CRC.pack(zlib.crc32(head))


def file_salt(header: bytes, number: int) -> int | None:
    """Return the salt in a file header, or None if it is not the intact header of segment `number`.

    Raises:
        JournalError: A newer release wrote the file.
    """
    if len(header) < FILE_HEADER_BYTES or not header.startswith(FILE_MAGIC):
        return None
    _, version, _, named, salt = _FILE.unpack_from(header)
    # The version is judged before the checksum, because a newer release may lay out the header differently.
    if version > VERSION:
        raise JournalError(
            f"the journal was written in format {version} and this release reads up to {VERSION}; use the newer release"
        )
    intact = _CRC.unpack_from(header, _FILE.size)[0] == zlib.crc32(header[: _FILE.size])
    return int(salt) if intact and named == number else None


def file_version(header: bytes) -> int:
    """Return the version of a file whose header is intact."""
    return int(_FILE.unpack_from(header)[1])


def messages_head(version: int) -> struct.Struct:
    """Return the fields before the block in a MESSAGES body of this version; the first four are always the same."""
    return MESSAGES_HEAD if version >= TIMED else UNTIMED_HEAD


def seal(kind: int, ticket: int, synced: int, parts: Sequence[Block], salt: int) -> bytes:
    """Return the record header for a body given in parts."""
    length = crc = 0
    for part in parts:
        length += len(part)
        crc = zlib.crc32(part, crc)
    head = _RECORD.pack(RECORD_MAGIC, kind, 0, length, ticket, synced, crc)
    return head + _CRC.pack(zlib.crc32(head, salt))


def entry_at(data: Mapped, offset: int, salt: int, *, blocks: bool = True) -> Entry | None:
    """Return the record at `offset`, or None if there is no good one.

    Args:
        data: A segment, or a piece of one.
        offset: The offset of the record in `data`.
        salt: The salt of the segment's header.
        blocks: True to verify the bodies of MESSAGES too, not only their headers.

    Raises:
        JournalError: The header is intact and names a kind or flag of a newer release.
    """
    entry = header_at(data, offset, salt)
    if entry is None or entry.stop > len(data):
        return None
    if (blocks or entry.kind != RecordKind.MESSAGES) and zlib.crc32(data[entry.body]) != body_crc(data, offset):
        return None
    return entry


def body_crc(data: Mapped, offset: int = 0) -> int:
    """Return the checksum of the body that the record header at `offset` names."""
    return int(_CRC.unpack_from(data, offset + _BODY_CRC_AT)[0])


def header_at(data: Mapped, offset: int, salt: int) -> Entry | None:
    """Return the record at `offset` by its header alone, or None if the header is not good. Raises like `entry_at`."""
    head = data[offset : offset + RECORD_HEADER_BYTES]
    if len(head) < RECORD_HEADER_BYTES or not head.startswith(_MAGIC_BYTES):
        return None
    if _CRC.unpack_from(head, _RECORD.size)[0] != zlib.crc32(head[: _RECORD.size], salt):
        return None
    _, kind, flags, length, ticket, synced, _ = _RECORD.unpack_from(head)
    if flags or kind not in _KINDS:
        raise JournalError(
            f"the journal holds a record of kind {kind} with flags {flags} that this release does not know; "
            "use the newer release that wrote it"
        )
    return Entry(RecordKind(kind), offset, offset + RECORD_HEADER_BYTES + length, ticket, synced)


def scan(data: Mapped, salt: int, *, newest: bool, blocks: bool = True) -> Iterator[Entry | SegmentGap]:
    """Yield the records and gaps of a segment in order.

    Args:
        data: The whole file.
        salt: The salt of its header.
        newest: True if no later segment holds a record. Then the end may be torn, and all bodies are verified.
        blocks: True to verify the bodies of MESSAGES in other segments too.
    """
    offset = FILE_HEADER_BYTES
    while offset < len(data):
        entry = entry_at(data, offset, salt, blocks=blocks or newest)
        if entry is not None:
            yield entry
            offset = entry.stop
            continue
        # A later record tells how far the disk was synced before it was written. If that is beyond this offset, the
        # bad record was once good: it is damage, and messages that were reported stable may be lost.
        if newest and not any(later.synced > offset for later in _entries_after(data, offset, salt)):
            yield SegmentGap(offset, len(data), torn=True)
            return
        following = next(_entries_after(data, offset, salt), None)
        stop = len(data) if following is None else following.offset
        yield SegmentGap(offset, stop, torn=False)
        offset = stop


def intact(data: Mapped, salt: int, offsets: Iterable[int]) -> bool:
    """Return True if good records at these ascending offsets make up the whole segment.

    `scan` finds the same at three times the cost, because it copies bodies and makes an entry for each record.
    """
    at, stop = FILE_HEADER_BYTES, len(data)
    unpack, crc_of, crc32 = _RECORD.unpack_from, _CRC.unpack_from, zlib.crc32
    with memoryview(data) as view:
        for offset in offsets:
            start = offset + RECORD_HEADER_BYTES
            if offset != at or start > stop:
                return False
            _, _, _, length, _, _, crc = unpack(view, offset)
            at = start + length
            sealed = offset + _RECORD.size
            if at > stop or crc32(view[offset:sealed], salt) != crc_of(view, sealed)[0] or crc32(view[start:at]) != crc:
                return False
    return at == stop


def _entries_after(data: Mapped, offset: int, salt: int) -> Iterator[Entry]:
    """Yield the good records after a bad one.

    The time is linear in the bytes, whatever a peer put into a block: only a header with a good salted checksum makes
    the reader compute the checksum of a body.
    """
    found = _MAGIC.search(data, offset + 1)
    while found is not None:
        entry = entry_at(data, found.start(), salt)
        if entry is not None:
            yield entry
        found = _MAGIC.search(data, found.end() if entry is None else entry.stop)


def bounded(body: _Body) -> _Body:
    """Return the body if it fits a record.

    Raises:
        MisuseError: The body is too large.
    """
    if len(body) > MAX_BLOCK_BYTES:
        raise MisuseError(f"{len(body)} bytes do not fit one record; the bound is {MAX_BLOCK_BYTES}")
    return body


def checked_state(body: bytes) -> bytes:
    """Return the body of a STATE.

    Raises:
        MisuseError: The body is visibly not a JSON object, or too large.
    """
    # A full parse would cost more than the record. This check finds arguments that were mixed up.
    if not (body.startswith(b"{") and body.endswith(b"}")):
        raise MisuseError(f"a state must be a JSON object, not {body[:20]!r}")
    return bounded(body)


def join_states(states: Sequence[bytes]) -> bytes:
    """Return the body of a CHECKPOINT.

    Raises:
        MisuseError: A state is visibly not a JSON object, or the states are too large together.

    >>> join_states([b'{"a": 1}', b"{}"])
    b'[{"a": 1},{}]'
    """
    return bounded(b"[" + b",".join(map(checked_state, states)) + b"]")


def split_states(body: bytes) -> list[bytes]:
    """Return the states in the body of a CHECKPOINT, byte for byte.

    Raises:
        JournalError: `join_states` did not write this body.

    >>> split_states(b'[{"a": 1},{}]')
    [b'{"a": 1}', b'{}']
    """
    states: list[bytes] = []
    try:
        text = body.decode()
        json.loads(text)  # The loop below finds the ends of objects, but does not check what stands between them.
        at = text.index("[", 0, 1) + 1
        while at < len(text) - 1:
            _, stop = _JSON.raw_decode(text, at)
            states.append(text[at:stop].encode())
            at = stop + 1
    except ValueError as error:
        raise JournalError(
            f"a checkpoint of the journal is not a JSON array ({error}); a defect wrote it: restore the directory"
        ) from error
    return states
