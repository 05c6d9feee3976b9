"""Format the figures of the monitor for Prometheus."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.ops.monitor.board import Reader, Snapshot, SourceRow

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
CHUNK = 64
"""Samples in one piece of the answer."""


@attrs.frozen
class Metric:
    """Name a metric with its help text, and read its value from a store, a source or a receiver."""

    name: str
    help: str
    value: Callable[[Any], float]

    @property
    def kind(self) -> str:
        """Return the type that Prometheus is told; the names of counters, and of nothing else, end in `_total`."""
        return "counter" if self.name.endswith("_total") else "gauge"


def _metrics(subject: str, *declared: tuple[str, str, Callable[[Any], float]]) -> tuple[Metric, ...]:
    return tuple(Metric(f"stablecast_{subject}_{name}", text, value) for name, text, value in declared)


STORE_METRICS = _metrics(
    "store",
    ("health", "Most urgent finding: 0 none, 1 notice, 2 warning, 3 critical.", lambda s: s.level.value),
    ("sources", "Registered sources.", lambda s: s.view.sources),
    ("receivers", "Registered receivers.", lambda s: s.view.receivers),
    ("connections", "Open connections.", lambda s: s.view.connections),
    ("requests_received_rate", "Messages requested per second since the reset.", lambda s: s.view.requests[1]),
    ("requests_served_rate", "Messages sent again per second since the reset.", lambda s: s.view.requests[2]),
    ("requests_dropped_rate", "Requested messages dropped per second since the reset.", lambda s: s.view.requests[3]),
    ("requests_dropped_total", "Requested messages dropped since the start.", lambda s: s.view.requests[5]),
    ("journal_bytes", "Bytes of the journal's files.", lambda s: s.view.journal.disk_bytes),
    ("journal_unsynced_bytes", "Bytes that wait for the disk.", lambda s: s.view.journal.queued_bytes),
    ("journal_syncs_total", "Batches made durable.", lambda s: s.view.journal.syncs),
    ("journal_longest_sync_seconds", "The slowest batch.", lambda s: s.view.journal.longest_sync_ns / SECOND),
    ("scrubbed_bytes_total", "Bytes of the journal verified since the start.", lambda s: s.view.journal.scrubbed_bytes),
    (
        "last_scrub_timestamp_seconds",
        "End of the last whole pass; 0: none.",
        lambda s: s.view.journal.scrubbed_ns / SECOND,
    ),
    (
        "bad_records_total",
        "Records with messages that failed their checksum.",
        lambda s: s.view.oddities.get("damaged", 0),
    ),
    ("draining", "1 while new clients are refused.", lambda s: int(s.view.draining)),
    ("failed", "1 when the disk failed and the store stopped serving.", lambda s: int(bool(s.view.failure))),
    ("room_bytes", "Bytes free on the file system of the journal; -1: unknown.", lambda s: s.view.room[0]),
    ("expired_sources_total", "Sources forgotten when their state lifetime ended.", lambda s: s.view.expired[0]),
    ("expired_messages_total", "Messages deleted with those sources.", lambda s: s.view.expired[1]),
    ("started_timestamp_seconds", "Start time.", lambda s: s.view.started_ns / SECOND),
)

SOURCE_METRICS = _metrics(
    "source",
    ("health", "Most urgent finding of the source and its receivers, as above.", lambda s: s.level.value),
    ("active", "1 unless it ended or was silent for longer than its activity timeout.", lambda s: int(s.active)),
    ("messages", "Messages held.", lambda s: s.messages),
    ("lead", "Newest sequence number held.", lambda s: s.lead),
    ("memory_bytes", "Bytes in memory.", lambda s: s.memory_bytes),
    ("disk_bytes", "Bytes on disk.", lambda s: s.disk_bytes),
    ("missing_messages", "Messages known to exist, not here, requested.", lambda s: s.holes),
    ("lacking_away_messages", "Messages below their replication: the store was away.", lambda s: s.lacking[0]),
    ("lacking_empty_messages", "Messages below their replication: the store lost its disk.", lambda s: s.lacking[1]),
    ("lacking_damaged_messages", "Messages below their replication: the disk cannot read.", lambda s: s.lacking[2]),
    ("lacking_oldest_seconds", "Age of the oldest lack of messages.", lambda s: s.lacking_ns / SECOND),
    ("refilled_messages_total", "Messages that came back from other stores.", lambda s: s.refilled),
    ("lost_messages_total", "Messages given up since the start.", lambda s: s.lost),
    ("lost_bursts_total", "Bursts given up since the start.", lambda s: s.bursts),
    ("dropped_messages_total", "Messages dropped at a size limit.", lambda s: s.drops),
    ("received_messages_total", "Messages received from the source.", lambda s: s.received),
    ("naks_total", "Datagrams that its LBT-RM or LBT-RU session requested again.", lambda s: s.naks),
    ("duplicates_total", "Datagrams that arrived twice in that session.", lambda s: s.duplicates),
)

RECEIVER_METRICS = _metrics(
    "receiver",
    ("lag_messages", "Messages held that it has not acknowledged.", lambda r: r[1]),
    ("active", "1 unless it ended or was silent for longer than its activity timeout.", lambda r: int(r[2])),
)


def label(value: object) -> str:
    r"""Escape a label's value.

    >>> label('a"b\\c')
    'a\\"b\\\\c'
    """
    return str(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def exposition(stores: list[Snapshot]) -> Iterator[str]:
    """Yield the exposition text of all stores in pieces of bounded length."""
    for metrics, subjects in ((STORE_METRICS, _stores), (SOURCE_METRICS, _sources), (RECEIVER_METRICS, _receivers)):
        for metric in metrics:
            yield f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.kind}\n"
            yield from _samples(metric, subjects(stores))


def _samples(metric: Metric, subjects: Iterable[tuple[str, Any]]) -> Iterator[str]:
    lines = (f"{metric.name}{{{labels}}} {metric.value(subject)}\n" for labels, subject in subjects)
    while piece := "".join(islice(lines, CHUNK)):
        yield piece


def _stores(stores: list[Snapshot]) -> Iterator[tuple[str, Snapshot]]:
    for store in stores:
        yield f'store="{label(store.view.name or store.view.index)}"', store


def _sources(stores: list[Snapshot]) -> Iterator[tuple[str, SourceRow]]:
    for labels, store in _stores(stores):
        for source in store.rows.values():
            yield f'{labels},topic="{label(source.topic)}",source="{source.reg_id}"', source


def _receivers(stores: list[Snapshot]) -> Iterator[tuple[str, Reader]]:
    for labels, source in _sources(stores):
        for reader in source.readers:
            yield f'{labels},receiver="{reader[0]}"', reader
