"""The documented statistics of a store daemon as bytes (`daemon-monitor`; the layouts are those of `umedmonmsgs.h`).

Every message begins with the same header: a magic number that shows the byte order (here little-endian), the type, the
version, the length, and the time of sending. Structures have no padding. Strings end with a zero byte and have no other
filler. A value that is too large for its field becomes the largest that fits. Sequence numbers are folded to 32 bits.
"""

import socket
import struct
from enum import IntEnum

from stablecast.config.plan import TopicPlan
from stablecast.core.machine.serial import wire
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.settings import PatternType
from stablecast.runtime import address
from stablecast.store.store_views import ReceiverView, SourceView, StoreView
from stablecast.transports.codec.domains import split_domain

MAGIC = 0x4542
VERSION = 0
HEADER = struct.Struct("<4H2I")
"""Magic, type, version, length; seconds and microseconds of the wall clock."""
MAX_TEXT = 255
"""Bytes of a string at most, without the zero that ends it."""
NO_NUMBER = 0xFFFF_FFFF
"""The sequence number where there is none yet."""


class StatKind(IntEnum):
    MEMORY = 1
    STORE = 2
    SOURCE = 3
    DISK = 4
    RECEIVER = 5
    STORE_CONFIG = 101
    PATTERN_CONFIG = 102
    TOPIC_CONFIG = 103
    SOURCE_CONFIG = 104
    RECEIVER_CONFIG = 105


REPOSITORIES = {"no-cache": 0, "memory": 1, "disk": 2, "reduced-fd": 3}
PATTERNS = {PatternType.DIRECT: 0, PatternType.PCRE: 1, PatternType.REGEXP: 2}

NUMBERED, CHECKSUM, PACED, DELAYED = 0x02, 0x04, 0x10, 0x20
"""Flags of a source: has a first number, has checksums on disk, is receiver-paced, has delayed writes."""
QUORUM, RECEIVER_PACED, NON_BLOCKING = 0x04, 0x20, 0x40
"""Flags of a receiver: acknowledges to a quorum, is receiver-paced, does not block the source."""


def framed(kind: StatKind, body: bytes, now_ns: int) -> bytes:
    """Return a message with its header; `now_ns` is the wall clock."""
    seconds, rest = divmod(now_ns, SECOND)
    return HEADER.pack(MAGIC, kind, VERSION, HEADER.size + len(body), seconds & 0xFFFF_FFFF, rest // 1000) + body


def memory(resident_bytes: int, release: str) -> bytes:
    """Return the body for the process. The fields of the documented allocator are 0, because it is not used here."""
    return struct.pack("<2q2I3H", resident_bytes, 0, 0, 0, 0, 0, 0) + _text(release)


def store(index: int, counts: tuple[int, int, int, int, int]) -> bytes:
    """Return the body for a store.

    `counts` are requests received, served and dropped since the reset, seconds since then, and all dropped requests.
    """
    return struct.pack("<5IH", *map(_u32, counts), index)


def source(view: SourceView, index: int, topic: int, plan: TopicPlan | None) -> bytes:
    """Return the body for a source's repository."""
    trail, mem_trail, lead = view.window
    complete, initiated, contiguous = view.sync
    written = view.repository in ("disk", "reduced-fd")
    delayed = plan is not None and view.paced and plan.rule.repository.write_delay_ns > 0
    flags = NUMBERED * (lead >= 0) | CHECKSUM * written | PACED * view.paced | DELAYED * delayed
    used = view.memory[0]
    return struct.pack(
        "<16IHB",
        topic,
        view.reg_id,
        _u32(view.messages),
        0 if view.paced else _u32(used),
        _u32(used) if view.paced else 0,
        *(_number(number) for number in (lead, initiated, complete, trail, mem_trail, contiguous)),
        _number(view.bursts[1]),
        _u32(view.drops[0]),
        _u32(view.lost - view.burst_lost),
        _u32(view.burst_lost),
        _u32(view.drops[1]),
        index,
        flags,
    )


def disk(view: SourceView, index: int, topic: int) -> bytes:
    """Return the body for a source's messages on the disk."""
    start, following, most = view.offsets
    return struct.pack("<5q2IH", most, *view.in_progress, following, start, topic, view.reg_id, index)


def receiver(view: ReceiverView, index: int, topic: int) -> bytes:
    """Return the body for a receiver's progress."""
    paced = view.pace != "source"
    flags = QUORUM | RECEIVER_PACED * paced | NON_BLOCKING * (view.pace == "non_blocking")
    return struct.pack("<3I2H", topic, view.reg_id, _number(view.acknowledged), index, flags)


def store_config(view: StoreView, index: int) -> bytes:
    """Return the body for a store's address and directories."""
    host, port = address.parse(view.address)
    texts = [_text(text) for text in (view.name, view.cache_directory, view.state_directory)]
    at = [HEADER.size + 18 + sum(map(len, texts[:count])) for count in range(3)]
    return _ip(host) + struct.pack("<I5H", _u32(view.requests[0]), index, port, *at) + b"".join(texts)


def pattern_config(plan: TopicPlan, index: int) -> bytes:
    """Return the body for a topic pattern of a store."""
    return struct.pack("<2H", index, PATTERNS[plan.rule.kind]) + _text(plan.rule.pattern)


def topic_config(name: str, index: int, topic: int) -> bytes:
    """Return the body for a topic with a source; other messages refer to it by the index `topic`."""
    return struct.pack("<IH", topic, index) + _text(name)


def source_config(view: SourceView, index: int, topic: int, plan: TopicPlan) -> bytes:
    """Return the body for the configuration of a source's repository."""
    kept = plan.rule.repository
    return struct.pack(
        "<3Q9IH2B",
        view.session_id,
        view.offsets[2],
        kept.flight_bytes_maximum,
        topic,
        view.reg_id,
        _u32(view.memory[1]),
        _u32(view.memory[2]),
        _u32(view.age_threshold_s),
        1,  # One write at a time.
        _u32(plan.disk.reads),
        _u32(plan.disk.buffer_bytes),
        _u32(kept.write_delay_ns // MILLISECOND),
        index,
        REPOSITORIES[view.repository],
        kept.allow_ack_on_reception,
    )


def receiver_config(view: ReceiverView, index: int, topic: int) -> bytes:
    """Return the body for a receiver's identity and address. The domain is 0 for a receiver in that of the store."""
    domain, place = split_domain(view.address)
    host, port = address.parse(place)
    indices = struct.pack("<Q5I", view.session_id, topic, view.reg_id, view.session_index, view.topic_index, domain)
    return indices + _ip(host) + struct.pack("<2H", index, port)


def _u32(value: int) -> int:
    return min(value, 0xFFFF_FFFF)


def _number(number: int) -> int:
    return NO_NUMBER if number < 0 else wire(number)


def _text(text: str) -> bytes:
    return text.encode()[:MAX_TEXT] + b"\0"


def _ip(host: str) -> bytes:
    """Return an address in network byte order, as documented for both byte orders."""
    return socket.inet_aton(host)
