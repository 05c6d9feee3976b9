"""Statistics as bytes: each structure as a C compiler lays it out, written down once more from the public header."""

import asyncio
import ctypes
from ctypes import LittleEndianStructure, c_int64, c_uint8, c_uint16, c_uint32, c_uint64
from typing import Any, ClassVar

import attrs
import pytest

from stablecast.config.disk_options import DiskConfig
from stablecast.config.plan import TopicPlan
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.settings import PatternType, RepositoryConfig, TopicPattern
from stablecast.store import statistics
from stablecast.store.statistics import StatKind
from stablecast.store.store_views import SourceView, StoreView
from tests.adapters.ops.monitor.staged_store import busy

NOW = 1_700_000_000_123_456_789


def words(text: str, kind: Any = c_uint32) -> list[tuple[str, Any]]:
    return [(name, kind) for name in text.split()]


def struct_of(*fields: tuple[str, Any]) -> Any:
    """With natural alignment, after the header."""

    class Message(LittleEndianStructure):
        _fields_: ClassVar[list[Any]] = [
            *words("magic type version length", c_uint16),
            *words("seconds microseconds"),
            *fields,
        ]

    return Message


STRUCTS: dict[StatKind, Any] = {
    StatKind.MEMORY: struct_of(
        *words("size count", c_int64), *words("block page"), *words("major minor update", c_uint16)
    ),
    StatKind.STORE: struct_of(*words("received served dropped since total"), ("store", c_uint16)),
    StatKind.SOURCE: struct_of(
        *words("topic reg_id map memory rpp_memory lead sync sync_complete trail mem_trail contig high_ulb drops"),
        *words("uls ulbs limit_drops"),
        ("store", c_uint16),
        ("flags", c_uint8),
    ),
    StatKind.DISK: struct_of(
        *words("most writes reads offset start", c_int64), *words("topic reg_id"), ("store", c_uint16)
    ),
    StatKind.RECEIVER: struct_of(*words("topic reg_id acknowledged"), *words("store flags", c_uint16)),
    StatKind.STORE_CONFIG: struct_of(*words("iface rate"), *words("store port name cache state", c_uint16)),
    StatKind.PATTERN_CONFIG: struct_of(*words("store kind", c_uint16)),
    StatKind.TOPIC_CONFIG: struct_of(("topic", c_uint32), ("store", c_uint16)),
    StatKind.SOURCE_CONFIG: struct_of(
        *words("session disk flight", c_uint64),
        *words("topic reg_id threshold limit age writes reads buffer delay"),
        ("store", c_uint16),
        *words("kind ack_on_reception", c_uint8),
    ),
    StatKind.RECEIVER_CONFIG: struct_of(
        ("session", c_uint64),
        *words("topic reg_id transport topic_index domain address"),
        *words("store port", c_uint16),
    ),
}
PLAN = TopicPlan(
    TopicPattern("^orders", RepositoryConfig(write_delay_ns=7 * MILLISECOND, flight_bytes_maximum=9), PatternType.PCRE),
    DiskConfig(),
    {},
)


def read(kind: StatKind, body: bytes) -> tuple[Any, bytes]:
    """The structure and what follows it; the header is that of this type and length."""
    data = statistics.framed(kind, body, NOW)
    name, _ = STRUCTS[kind]._fields_[-1]
    last = getattr(STRUCTS[kind], name)
    found = STRUCTS[kind].from_buffer_copy(data.ljust(ctypes.sizeof(STRUCTS[kind]), b"\0"))
    assert (found.magic, found.type, found.version, found.length) == (0x4542, kind, 0, len(data))
    assert (found.seconds, found.microseconds) == (1_700_000_000, 123_456)
    return found, data[last.offset + last.size :]


Views = tuple[StoreView, dict[int, SourceView]]


@pytest.fixture(scope="module")
def views() -> Views:
    """A store and its sources by RegID."""

    async def look() -> tuple[StoreView, tuple[SourceView, ...]]:
        watched = busy().watched()
        return await watched.view(), await watched.sources()

    store, sources = asyncio.run(look())
    return store, {one.reg_id: one for one in sources}


def test_the_process() -> None:
    found, text = read(StatKind.MEMORY, statistics.memory(5 << 30, "1.2.3"))
    assert (found.size, found.major, text) == (5 << 30, 0, b"1.2.3\0")


@pytest.mark.rows("P-904", "P-905")
def test_a_store_counts_requests() -> None:
    """Totals, not rates; what is more than a field holds is the most it holds."""
    found, rest = read(StatKind.STORE, statistics.store(2, (10, 7, 3, 60, 1 << 40)))
    assert (found.received, found.served, found.dropped, found.since, found.total) == (10, 7, 3, 60, 0xFFFF_FFFF)
    assert (found.store, rest) == (2, b"")


@pytest.mark.rows("P-910", "P-911", "P-912", "P-914", "P-918")
def test_a_source_and_its_window(views: Views) -> None:
    """The numbers that the monitor shows."""
    view = views[1][1001]
    found, rest = read(StatKind.SOURCE, statistics.source(view, 1, 4, PLAN))
    assert (found.topic, found.reg_id, found.map, found.store) == (4, 1001, 500, 1)
    assert (found.trail, found.mem_trail, found.lead) == view.window
    assert (found.sync_complete, found.sync, found.contig) == view.sync
    assert (found.memory, found.rpp_memory) == (view.memory[0], 0)
    assert (found.uls, found.flags, rest) == (0, 0x02 | 0x04, b"")


def test_a_source_that_has_sent_nothing_or_is_paced_says_so(views: Views) -> None:
    empty = read(StatKind.SOURCE, statistics.source(views[1][1003], 0, 0, None))[0]
    assert (empty.lead, empty.flags & 0x02) == (statistics.NO_NUMBER, 0)
    paced = attrs.evolve(views[1][1001], paced=True, repository="memory")
    found = read(StatKind.SOURCE, statistics.source(paced, 0, 0, PLAN))[0]
    assert (found.memory, found.rpp_memory) == (0, paced.memory[0])
    assert found.flags == 0x02 | 0x10 | 0x20


@pytest.mark.rows("P-915", "P-916")
def test_a_source_on_the_disk(views: Views) -> None:
    view = views[1][1001]
    found, rest = read(StatKind.DISK, statistics.disk(view, 1, 4))
    assert (found.start, found.offset, found.most) == view.offsets
    assert (found.writes, found.reads) == view.in_progress
    assert (found.topic, found.reg_id, found.store, rest) == (4, 1001, 1, b"")


@pytest.mark.rows("P-923")
@pytest.mark.parametrize(("pace", "flags"), [("source", 0x04), ("receivers", 0x24), ("non_blocking", 0x64)])
def test_a_receiver(views: Views, pace: str, flags: int) -> None:
    [view] = views[1][1001].receivers
    found, rest = read(StatKind.RECEIVER, statistics.receiver(attrs.evolve(view, pace=pace), 1, 4))
    assert (found.reg_id, found.acknowledged, found.flags, rest) == (2001, 480, flags, b"")


@pytest.mark.rows("P-903")
def test_the_configuration_of_a_store_is_encoded(views: Views) -> None:
    """The address is in network order, and strings are found by their offsets."""
    data = statistics.framed(StatKind.STORE_CONFIG, statistics.store_config(views[0], 3), NOW)
    found, _ = read(StatKind.STORE_CONFIG, data[16:])
    texts = [data[at:].split(b"\0")[0] for at in (found.name, found.cache, found.state)]
    assert texts == [b"orders", b"cache", b"state"]
    assert data[16:20] == bytes((127, 0, 0, 1))
    assert (found.port, found.rate, found.store) == (14567, 262_144, 3)


@pytest.mark.rows("P-907")
def test_patterns_and_topics_end_with_a_zero() -> None:
    """And take no more room than they need, nor more than there is."""
    found, text = read(StatKind.PATTERN_CONFIG, statistics.pattern_config(PLAN, 1))
    assert (found.store, found.kind, text) == (1, 1, b"^orders\0")
    found, text = read(StatKind.TOPIC_CONFIG, statistics.topic_config("t" * 300, 1, 9))
    assert (found.topic, found.store, text) == (9, 1, b"t" * 255 + b"\0")


@pytest.mark.rows("P-909", "P-913")
def test_the_configuration_of_a_source_is_encoded(views: Views) -> None:
    found, rest = read(StatKind.SOURCE_CONFIG, statistics.source_config(views[1][1001], 1, 4, PLAN))
    assert (found.flight, found.delay, found.writes, found.reads) == (9, 7, 1, DiskConfig().reads)
    assert (found.threshold, found.limit) == views[1][1001].memory[1:]
    assert (found.kind, found.ack_on_reception, rest) == (2, 0, b"")


@pytest.mark.rows("P-922")
def test_the_configuration_of_a_receiver_is_encoded(views: Views) -> None:
    [view] = views[1][1001].receivers
    body = statistics.receiver_config(view, 1, 4)
    found, rest = read(StatKind.RECEIVER_CONFIG, body)
    assert (found.reg_id, found.transport, found.topic_index) == (2001, view.session_index, view.topic_index)
    assert (found.port, found.domain, rest) == (2001, 0, b"")
    assert bytes((10, 2, 0, 1)) in body


@pytest.mark.rows("R-227")
def test_a_receiver_in_another_domain_is_stated_with_it(views: Views) -> None:
    [view] = views[1][1001].receivers
    near, far = (
        statistics.receiver_config(attrs.evolve(view, address=at), 1, 4) for at in ("10.0.0.2:5", "7:10.0.0.2:5")
    )
    assert (near[24:28], far[24:28]) == (bytes(4), (7).to_bytes(4, "little"))
    assert near[:24] + near[28:] == far[:24] + far[28:]
