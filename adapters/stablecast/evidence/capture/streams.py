"""Messages of one direction of a connection, from ordered bytes, wherever the capture begins or has gaps.

A reader is *aligned* while it knows where the next message begins. It loses that with bytes that were not captured and
with a message of impossible length. Then it looks for a place from which everything reads as messages. A capture that
begins in the middle of a stream begins like that, too.
"""

import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable

import attrs

from stablecast.core.machine.records import record
from stablecast.evidence.capture import layers, names
from stablecast.evidence.capture.ip import FrameVerdict
from stablecast.evidence.capture.layers import Decoded, undecoded
from stablecast.transports.wire import lbmc, rsocket
from stablecast.transports.wire.errors import WireError

MAX_STREAMS = 64
"""RSocket streams of a connection that wait for pieces of a payload."""
MAX_PIECES = 1 << 20
"""Bytes of such a payload, at most."""
MAX_STRAYS = 1024
"""Unaligned frames that wait for the beginning of a message; older ones are settled."""
LENGTH = 3
"""Bytes of the length before a frame."""
HEAD = 6
"""Bytes of the shortest frame."""
FOLLOWS = 0x80
"""Flag of a frame whose payload continues in the next one of its stream."""
_CARRIERS = frozenset(
    {
        rsocket.FrameKind.REQUEST_RESPONSE,
        rsocket.FrameKind.REQUEST_FNF,
        rsocket.FrameKind.REQUEST_STREAM,
        rsocket.FrameKind.REQUEST_CHANNEL,
        rsocket.FrameKind.PAYLOAD,
    }
)
_KINDS = frozenset(map(int, rsocket.FrameKind))
_FIRST = names.HEADERS.keys() | {lbmc.PAYLOAD_FOLLOWS, lbmc.NOTHING_FOLLOWS}
_KIND, _CODE = (
    b"[" + b"".join(re.escape(bytes((one,))) for one in sorted(some)) + b"]"
    for some in (set(map(int, lbmc.MessageKind)), _FIRST)
)
_PLACES = re.compile(b"(?=" + _KIND + _CODE + rb"(?!\x00[\x00-\x03]))", re.DOTALL)
"""The first bytes of any message: kind, code, and a length that is not shorter than these."""
TLS = b"\x16\x03"
"""First bytes of an encrypted stream: a handshake of any version."""
_SURE = 2
"""Whole messages that make a place credible in the middle of a frame."""


@record
class Item:
    """A decoded message, or a problem.

    Attributes:
        decoded: Its layers and problems.
        frames: The frames with its bytes.
    """

    decoded: Decoded
    frames: tuple[int, ...]


@attrs.frozen
class Scan:
    """A run of whole messages: their count, their end, and whether something else stands there."""

    count: int
    end: int
    broken: bool


class CapturedStreamReader(ABC):
    def __init__(self, whole: bool, roundtrip: bool) -> None:
        self._roundtrip = roundtrip
        self._aligned = whole
        self._pending = b""
        self._frames: deque[tuple[int, int]] = deque()  # frames of the pending bytes, and how many each brought
        self._strays: list[int] = []
        self._ever = whole
        self._fresh, self._encrypted = True, False

    @abstractmethod
    def size(self, octets: bytes, at: int) -> int | None:
        """Return the bytes of the message at `at`, None if unknown yet. Raise WireError if there is none."""

    @abstractmethod
    def believe(self, octets: bytes, at: int) -> int | None:
        """Return the size if the bytes look like a message, at a place that nothing confirms."""

    @abstractmethod
    def decode(self, octets: bytes) -> Decoded:
        """Decode the layers of one whole message."""

    def places(self, octets: bytes) -> Iterable[int]:
        """Return places after the start at which a message may begin; `scan` checks them."""
        return range(1, len(octets))

    def one(self, octets: bytes, at: int) -> tuple[Decoded, int] | None:
        """Decode the message at `at`, and return its end; None if it is cut. Raise WireError if there is none."""
        size = self.size(octets, at)
        return None if size is None or at + size > len(octets) else (self.decode(octets[at : at + size]), at + size)

    @property
    def frames(self) -> set[int]:
        """Return the frames whose verdict depends on later bytes."""
        return {frame for frame, _ in self._frames}.union(self._strays)

    @property
    def idle(self) -> bool:
        """Return whether no frame waits for later bytes."""
        return not self._frames and not self._strays

    def feed(self, octets: bytes, frame: int) -> list[Item]:
        """Add bytes in order; return the messages that they complete."""
        if self._fresh:
            self._fresh = False
            self._encrypted = octets.startswith(TLS)
        if self._encrypted:
            return [_problem((frame,), FrameVerdict.UNKNOWN, "encrypted by TLS")]
        if not self._aligned:
            start = self._find(octets)
            if start is None:
                return self._stray(frame)
            found = self._settle(
                FrameVerdict.INCOMPLETE, "the message that it continues was not captured from its start"
            )
            self._aligned = self._ever = True
            if start:
                found.append(
                    _problem((frame,), FrameVerdict.INCOMPLETE, f"{start} bytes of a message that began before")
                )
            return found + self._read(octets[start:], frame)
        return self._read(octets, frame)

    def lose(self, count: int) -> list[Item]:
        text = f"{count} bytes of the stream were not captured"
        found = [_problem(self._drop(), FrameVerdict.INCOMPLETE, text)] if self._frames else []
        self._aligned = False
        return found

    def close(self) -> list[Item]:
        """Settle the rest at the end of the stream or of the capture."""
        if self._frames:
            size = len(self._pending)
            return [_problem(self._drop(), FrameVerdict.INCOMPLETE, f"{size} bytes of a message that does not end")]
        if self._ever:
            return self._settle(FrameVerdict.INCOMPLETE, "no message begins in what follows")
        return self._settle(FrameVerdict.MALFORMED, "no message begins anywhere in this stream")

    def _read(self, octets: bytes, frame: int) -> list[Item]:
        self._pending += octets
        self._frames.append((frame, len(octets)))
        found: list[Item] = []
        at = 0
        while at < len(self._pending):
            try:
                one = self.one(self._pending, at)
            except WireError as error:
                self._pending = self._pending[at:]
                self._aligned = False
                return [*found, Item(layers.malformed(error), self._drop())]
            if one is None:
                break
            decoded, end = one
            found.append(Item(decoded, self._take(end - at)))
            at = end
        self._pending = self._pending[at:]
        return found

    def _take(self, size: int) -> tuple[int, ...]:
        """Return the frames of the next `size` pending bytes."""
        frame, there = self._frames[0]
        if size < there:  # as a rule: a frame has many messages
            self._frames[0] = frame, there - size
            return (frame,)
        taken = []
        while size:
            frame, there = self._frames.popleft()
            taken.append(frame)
            if there > size:
                self._frames.appendleft((frame, there - size))
            size -= min(size, there)
        return tuple(taken)

    def _drop(self) -> tuple[int, ...]:
        frames = tuple(frame for frame, _ in self._frames)
        self._frames.clear()
        self._pending = b""
        return frames

    def _stray(self, frame: int) -> list[Item]:
        self._strays.append(frame)
        if len(self._strays) <= MAX_STRAYS:
            return []
        self._ever = True  # too much to be called malformed: most likely a capture that begins in the middle
        return self._settle(FrameVerdict.INCOMPLETE, "no message begins in any of many frames")

    def _settle(self, verdict: FrameVerdict, text: str) -> list[Item]:
        strays, self._strays = tuple(self._strays), []
        return [_problem(strays, verdict, text)] if strays else []

    def scan(self, octets: bytes, at: int = 0) -> Scan:
        """Read whole messages from `at` on, if one begins there."""
        count = 0
        while at < len(octets):
            try:
                size = self.believe(octets, at)
            except WireError:
                return Scan(count, at, broken=True)
            if size is None or at + size > len(octets):
                break
            count += 1
            at += size
        return Scan(count, at, broken=False)

    def _find(self, octets: bytes) -> int | None:
        """Return the beginning of the first message: the start, or a place that only messages follow."""
        first = self.scan(octets)
        if first.count or not first.broken:
            return 0
        for start in self.places(octets):
            inner = self.scan(octets, start)
            if inner.count >= _SURE and not inner.broken:
                return start
        return None


def _problem(frames: tuple[int, ...], verdict: FrameVerdict, text: str) -> Item:
    return Item(undecoded(verdict, text), frames)


class MessageReader(CapturedStreamReader):
    def size(self, octets: bytes, at: int) -> int | None:
        """Return the length in the message's prefix."""
        return lbmc.frame(octets, at)[1] if len(octets) - at >= lbmc.PREFIX.size else None

    def believe(self, octets: bytes, at: int) -> int | None:
        """Return the size if the first header is a listed one."""
        size = self.size(octets, at)
        if size is not None and octets[at + 1] not in _FIRST:
            raise WireError(f"there is no header of code {octets[at + 1]}")
        return size

    def decode(self, octets: bytes) -> Decoded:
        return layers.message(octets, self._roundtrip)

    def places(self, octets: bytes) -> Iterable[int]:
        """Return places of a kind, a first code and a length: few of some ten thousand bytes."""
        return (found.start() for found in _PLACES.finditer(octets, 1))


class FrameReader(CapturedStreamReader):
    """Reader of SRS: RSocket frames, whose payload may come in pieces."""

    def __init__(self, whole: bool, roundtrip: bool) -> None:
        super().__init__(whole, roundtrip)
        self._pieces: dict[int, bytes] = {}

    def size(self, octets: bytes, at: int) -> int | None:
        """Return the length before the frame, with its own bytes."""
        if len(octets) - at < LENGTH:
            return None
        size = int.from_bytes(octets[at : at + LENGTH])
        if size > rsocket.MAX_FRAME:
            raise WireError(f"a frame of {size} bytes exceeds {rsocket.MAX_FRAME}")
        return LENGTH + size

    def believe(self, octets: bytes, at: int) -> int | None:
        """Return the size if the kind is known and fits its stream."""
        size = self.size(octets, at)
        if size is None or len(octets) - at < LENGTH + HEAD:
            return None
        stream = int.from_bytes(octets[at + LENGTH : at + LENGTH + 4])
        kind = octets[at + LENGTH + 4] >> 2
        if size < LENGTH + HEAD or stream > rsocket.FOREVER or kind not in _KINDS or (not stream and kind in _CARRIERS):
            raise WireError(f"there is no frame of kind {kind} on the stream {stream}")
        return size

    def decode(self, octets: bytes) -> Decoded:
        try:
            frame = rsocket.decode(octets[LENGTH:])
            payload = self._payload(frame) if frame.kind in _CARRIERS else b""
        except WireError as error:
            return layers.malformed(error)
        return layers.resolution_frame(octets, frame, payload, self._roundtrip)

    def _payload(self, frame: rsocket.Frame) -> bytes:
        """Return the contents of a frame and of those that it continues; nothing if it is continued itself."""
        payload = self._pieces.pop(frame.stream, b"") + frame.payload
        if not frame.flags & FOLLOWS:
            return payload
        if len(self._pieces) >= MAX_STREAMS or len(payload) > MAX_PIECES:
            raise WireError("too much is continued")
        self._pieces[frame.stream] = payload
        return b""
