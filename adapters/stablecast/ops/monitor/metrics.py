"""Format the figures of the monitor for Prometheus."""

from collections.abc import Iterator

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.ops.monitor.board import Snapshot
from stablecast.ops.monitor.source_rows import SourceRow

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
CHUNK = 64
"""Sources in one piece of the answer."""

COUNTER, GAUGE = "counter", "gauge"


@attrs.frozen
class Metric:
    """Name a metric with its type and help text."""

    name: str
    kind: str
    help: str


STORE_METRICS = (
    Metric("stablecast_store_health", GAUGE, "Most urgent finding: 0 none, 1 notice, 2 warning, 3 critical."),
    Metric("stablecast_store_sources", GAUGE, "Registered sources."),
    Metric("stablecast_store_receivers", GAUGE, "Registered receivers."),
    Metric("stablecast_store_connections", GAUGE, "Open connections."),
    Metric("stablecast_store_requests_received_rate", GAUGE, "Messages requested per second since the reset."),
    Metric("stablecast_store_requests_served_rate", GAUGE, "Messages sent again per second since the reset."),
    Metric("stablecast_store_requests_dropped_rate", GAUGE, "Requested messages dropped per second since the reset."),
    Metric("stablecast_store_requests_dropped_total", COUNTER, "Requested messages dropped since the start."),
    Metric("stablecast_store_journal_bytes", GAUGE, "Bytes of the journal's files."),
    Metric("stablecast_store_journal_unsynced_bytes", GAUGE, "Bytes that wait for the disk."),
    Metric("stablecast_store_journal_syncs_total", COUNTER, "Batches made durable."),
    Metric("stablecast_store_journal_longest_sync_seconds", GAUGE, "The slowest batch."),
    Metric("stablecast_store_draining", GAUGE, "1 while new clients are refused."),
    Metric("stablecast_store_failed", GAUGE, "1 when the disk failed and the store stopped serving."),
    Metric("stablecast_store_room_bytes", GAUGE, "Bytes free on the file system of the journal; -1: unknown."),
    Metric("stablecast_store_expired_sources_total", COUNTER, "Sources forgotten when their state lifetime ended."),
    Metric("stablecast_store_expired_messages_total", COUNTER, "Messages deleted with those sources."),
    Metric("stablecast_store_started_timestamp_seconds", GAUGE, "Start time."),
)
SOURCE_METRICS = (
    Metric(
        "stablecast_source_health",
        GAUGE,
        "Most urgent finding of the source and its receivers, as above.",
    ),
    Metric("stablecast_source_active", GAUGE, "1 unless it ended or was silent for longer than its activity timeout."),
    Metric("stablecast_source_messages", GAUGE, "Messages held."),
    Metric("stablecast_source_lead", GAUGE, "Newest sequence number held."),
    Metric("stablecast_source_memory_bytes", GAUGE, "Bytes in memory."),
    Metric("stablecast_source_disk_bytes", GAUGE, "Bytes on disk."),
    Metric("stablecast_source_missing_messages", GAUGE, "Messages known to exist, not here, requested."),
    Metric("stablecast_source_lost_messages_total", COUNTER, "Messages given up since the start."),
    Metric("stablecast_source_lost_bursts_total", COUNTER, "Bursts given up since the start."),
    Metric("stablecast_source_dropped_messages_total", COUNTER, "Messages dropped at a size limit."),
    Metric("stablecast_source_received_messages_total", COUNTER, "Messages received from the source."),
)
RECEIVER_METRICS = (
    Metric("stablecast_receiver_lag_messages", GAUGE, "Messages held that it has not acknowledged."),
    Metric(
        "stablecast_receiver_active", GAUGE, "1 unless it ended or was silent for longer than its activity timeout."
    ),
)


def label(value: object) -> str:
    r"""Escape a label's value.

    >>> label('a"b\\c')
    'a\\"b\\\\c'
    """
    return str(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def exposition(stores: list[Snapshot]) -> Iterator[str]:
    """Yield the whole answer in pieces."""
    yield from _store_lines(STORE_METRICS, [(_store_labels(one), _store_values(one)) for one in stores])
    sources = [(store, one) for store in stores for one in store.rows.values()]
    for place, metric in enumerate(SOURCE_METRICS):
        yield _head(metric)
        for at in range(0, len(sources), CHUNK):
            lines = (
                f"{metric.name}{{{_source_labels(store, one)}}} {_source_values(one)[place]}\n"
                for store, one in sources[at : at + CHUNK]
            )
            yield "".join(lines)
    readers = [(store, one) for store, one in sources if one.readers]
    for place, metric in enumerate(RECEIVER_METRICS):
        yield _head(metric)
        for at in range(0, len(readers), CHUNK):
            yield "".join(_receiver_lines(store, one, metric, place) for store, one in readers[at : at + CHUNK])


def _store_lines(metrics: tuple[Metric, ...], rows: list[tuple[str, tuple[float, ...]]]) -> Iterator[str]:
    for place, metric in enumerate(metrics):
        yield _head(metric) + "".join(f"{metric.name}{{{labels}}} {values[place]}\n" for labels, values in rows)


def _head(metric: Metric) -> str:
    return f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.kind}\n"


def _store_labels(store: Snapshot) -> str:
    return f'store="{label(store.view.name or store.view.index)}"'


def _source_labels(store: Snapshot, source: SourceRow) -> str:
    return f'{_store_labels(store)},topic="{label(source.topic)}",source="{source.reg_id}"'


def _store_values(store: Snapshot) -> tuple[float, ...]:
    view = store.view
    _, received, served, dropped, _, ever_dropped = view.requests
    return (
        store.level.value,
        view.sources,
        view.receivers,
        view.connections,
        received,
        served,
        dropped,
        ever_dropped,
        view.journal.disk_bytes,
        view.journal.queued_bytes,
        view.journal.syncs,
        view.journal.longest_sync_ns / SECOND,
        int(view.draining),
        int(bool(view.failure)),
        view.room[0],
        *view.expired,
        view.started_ns / SECOND,
    )


def _source_values(source: SourceRow) -> tuple[float, ...]:
    return (
        source.level.value,
        int(source.active),
        source.messages,
        source.lead,
        source.memory_bytes,
        source.disk_bytes,
        source.holes,
        source.lost,
        source.bursts,
        source.drops,
        source.received,
    )


def _receiver_lines(store: Snapshot, source: SourceRow, metric: Metric, place: int) -> str:
    labels = f"{metric.name}{{{_source_labels(store, source)}"
    rows = ((reg_id, (lag, int(active))[place]) for reg_id, lag, active in source.readers)
    return "".join(f'{labels},receiver="{reg_id}"}} {value}\n' for reg_id, value in rows)
