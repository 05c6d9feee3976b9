"""Write the figures of the monitor as metrics, in the text format of Prometheus or in OpenMetrics.

A daemon with many sources would otherwise make a series for each figure of each of them. At most `MAX_SOURCES` sources
and `MAX_RECEIVERS` receivers of a store have series of their own, those with the lowest RegIDs, because a series that
comes and goes costs a database more than one that stays. All others share one row, `topic="*other*"`.
"""

import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import version
from itertools import islice
from typing import Any, Final

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.events import OlderCopy
from stablecast.core.protocol.quorum import quorum_of
from stablecast.ops.monitor.board import Reader, Snapshot
from stablecast.runtime import machine
from stablecast.runtime.policy import Right
from stablecast.text.open_metrics import END, OPEN_METRICS, TEXT, buckets, head, kind_of, label

CHUNK: Final = 512
"""Samples in one piece of the answer."""
MAX_SOURCES: Final = 1000
"""Sources of a store that have series of their own, unless the request asks for another number."""
MAX_RECEIVERS: Final = 1000
"""Receivers of a store that have series of their own, unless the request asks for another number."""
OTHER: Final = "*other*"
"""Topic of the row of all other sources. A topic may have this name; its source then has another number."""


@attrs.frozen
class Metric:
    """Name a metric with its help text, and read its value from a store, a source or a receiver.

    Attributes:
        together: Joins the values of the subjects that share a row.
    """

    name: str
    help: str
    value: Callable[[Any], Any]
    together: Callable[[Iterable[float]], float] = sum


def _metrics(subject: str, *declared: tuple[Any, ...]) -> tuple[Metric, ...]:
    return tuple(Metric(f"stablecast_{subject}_{name}", *rest) for name, *rest in declared)


STORE_METRICS = _metrics(
    "store",
    ("health", "Most urgent finding: 0 none, 1 notice, 2 warning, 3 critical.", lambda s: s.level.value),
    ("sources", "Registered sources.", lambda s: s.view.sources),
    ("receivers", "Registered receivers.", lambda s: s.view.receivers),
    ("connections", "Open connections.", lambda s: s.view.connections),
    ("requests_received_total", "Messages requested.", lambda s: s.view.asked[0]),
    ("requests_served_total", "Requested messages sent again.", lambda s: s.view.asked[1]),
    ("requests_dropped_total", "Requested messages dropped since the start.", lambda s: s.view.requests[5]),
    ("journal_bytes", "Bytes of the journal's files.", lambda s: s.view.journal.disk_bytes),
    ("journal_unsynced_bytes", "Bytes that wait for the disk.", lambda s: s.view.journal.queued_bytes),
    ("journal_syncs_total", "Batches made durable.", lambda s: s.view.journal.syncs),
    ("journal_longest_sync_seconds", "The slowest batch.", lambda s: s.view.journal.longest_sync_ns / SECOND),
    (
        "journal_pressure",
        "1 while streams are not read, because too much waits for the disk.",
        lambda s: int(s.view.journal.pressure),
    ),
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
    (
        "tls_failures_total",
        "Failed TLS handshakes of the process of the store, at its ports and at those that it connected to.",
        lambda s: s.view.oddities.get("tls-failed", 0),
    ),
    *(
        (
            f"barred_{role}_total",
            f"What the policy of the certificates refused to peers that acted as a {role}.",
            lambda s, key=f"barred-{role}": s.view.oddities.get(key, 0),
        )
        for role in Right
    ),
    (
        "older_copies_total",
        "Starts since the process began on a directory that turned out to be an older copy.",
        lambda s: s.view.events.get(OlderCopy.__name__, 0),
    ),
    ("draining", "1 while new clients are refused.", lambda s: int(s.view.draining)),
    ("failed", "1 when the disk failed and the store stopped serving.", lambda s: int(bool(s.view.failure))),
    (
        "muted_seconds",
        "Time for which it grants nothing, because an earlier journal may be lost.",
        lambda s: s.view.muted_for_ns / SECOND,
    ),
    ("room_bytes", "Bytes free on the file system of the journal; -1: unknown.", lambda s: s.view.room[0]),
    ("room_least_bytes", "Bytes that must stay free there.", lambda s: s.view.room[1]),
    ("clients", "Sources and receivers with state, also absent ones.", lambda s: s.view.clients[0]),
    ("clients_limit", "Most clients with state; 0: no limit.", lambda s: s.view.clients[1]),
    ("expired_sources_total", "Sources forgotten when their state lifetime ended.", lambda s: s.view.expired[0]),
    ("expired_messages_total", "Messages deleted with those sources.", lambda s: s.view.expired[1]),
    ("started_timestamp_seconds", "Start time.", lambda s: s.view.started_ns / SECOND),
    (
        "taken_timestamp_seconds",
        "When these figures were read from the store's loop.",
        lambda s: s.view.taken_ns / SECOND,
    ),
)

HISTOGRAMS = _metrics(
    "store",
    ("sync_seconds", "Time of a sync of the journal.", lambda s: s.view.journal.sync_times),
    (
        "stable_seconds",
        "Time from the arrival of the oldest message of a batch until the batch is stable here.",
        lambda s: s.view.journal.stable_times,
    ),
    (
        "loop_lag_seconds",
        "Time that a call waited for a turn of the store's loop, sampled once a sweep.",
        lambda s: s.history.times.loop_lag.view(),
    ),
    (
        "delivery_seconds",
        "Time for which a message was here before a receiver acknowledged it; up to a sweep too long.",
        lambda s: s.history.times.delivery.view(),
    ),
    (
        "recovery_seconds",
        "Time for which a source had messages missing here; up to a sweep too long.",
        lambda s: s.history.times.recovery.view(),
    ),
)
"""Metrics whose values are histograms of durations."""

SOURCE_METRICS = _metrics(
    "source",
    ("health", "Most urgent finding of the source and its receivers, as above.", lambda s: s.level.value, max),
    ("active", "1 unless it ended or was silent for longer than its activity timeout.", lambda s: int(s.active)),
    ("messages", "Messages held.", lambda s: s.messages),
    ("lead", "Newest sequence number held.", lambda s: s.lead, max),
    ("memory_bytes", "Bytes in memory.", lambda s: s.memory_bytes),
    ("disk_bytes", "Bytes on disk.", lambda s: s.disk_bytes),
    ("missing_messages", "Messages known to exist, not here, requested.", lambda s: s.holes),
    ("lacking_away_messages", "Messages below their replication: the store was away.", lambda s: s.lacking[0]),
    ("lacking_empty_messages", "Messages below their replication: the store lost its disk.", lambda s: s.lacking[1]),
    ("lacking_damaged_messages", "Messages below their replication: the disk cannot read.", lambda s: s.lacking[2]),
    ("lacking_no_room_messages", "Messages below their replication: they found no room.", lambda s: s.lacking[3]),
    ("lacking_oldest_seconds", "Age of the oldest lack of messages.", lambda s: s.lacking_ns / SECOND),
    ("refilled_messages_total", "Messages that came back from other stores.", lambda s: s.refilled),
    ("given_up_messages", "Messages given up that no other store has sent since.", lambda s: s.given_up),
    ("lost_messages_total", "Messages given up since the start.", lambda s: s.lost),
    ("lost_bursts_total", "Bursts given up since the start.", lambda s: s.bursts),
    ("dropped_messages_total", "Messages dropped at a size limit.", lambda s: s.drops),
    ("received_messages_total", "Messages received from the source.", lambda s: s.received),
    ("naks_total", "Datagrams that its LBT-RM or LBT-RU session requested again.", lambda s: s.naks),
    ("duplicates_total", "Datagrams that arrived twice in that session.", lambda s: s.duplicates),
)

COPY_METRICS = _metrics(
    "copy",
    (
        "serving",
        "1 while this store takes messages of this life of a source.",
        lambda c: int(c[1].active and not c[0].failure),
    ),
    (
        "quorum_stores",
        "Stores of its group that make a message stable there.",
        lambda c: quorum_of(c[1].groups[c[1].group]),
    ),
    ("group_stores", "Stores of its group.", lambda c: c[1].groups[c[1].group]),
)
"""Figures to compare between stores. RegIDs differ between stores, but the life of a source does not."""

RECEIVER_METRICS = _metrics(
    "receiver",
    ("lag_messages", "Messages held that it has not acknowledged.", lambda r: r[1], max),
    ("active", "1 unless it ended or was silent for longer than its activity timeout.", lambda r: int(r[2])),
)


def _process() -> Iterator[tuple[str, str, str, float]]:
    """Yield name, help, labels and value of the figures of the process, under the names that all exporters use."""
    process = machine.process
    build = f'{{version="{label(version("stablecast"))}",python="{label(platform.python_version())}"}}'
    yield "stablecast_build_info", "The release, always 1.", build, 1
    yield "process_cpu_seconds_total", "Processor time.", "", machine.clock.process_seconds()
    yield "process_resident_memory_bytes", "Resident memory.", "", process.resident_bytes()
    yield "process_start_time_seconds", "Start time.", "", process.started_ns() / SECOND
    yield (
        "stablecast_free_descriptors",
        "Files and connections that may still be opened.",
        "",
        process.free_descriptors(),
    )


def of_process(*, openly: bool) -> Iterator[str]:
    """Yield the text of the metrics of this process, whatever it serves; `openly`: in OpenMetrics."""
    for name, text, labels, number in _process():
        yield f"{head(name, text, kind_of(name), openly)}{name}{labels} {number}\n"


def content_type(accepted: str) -> str:
    """Return the type of the answer for a client that accepts these types."""
    return OPEN_METRICS if OPEN_METRICS.partition(";")[0] in accepted else TEXT


Row = tuple[str, Sequence[Any]]
"""Labels, and the subjects that share the row."""


def exposition(
    stores: list[Snapshot], *, sources: int = MAX_SOURCES, receivers: int = MAX_RECEIVERS, openly: bool = False
) -> Iterator[str]:
    """Yield the text of all stores in pieces of bounded length.

    Args:
        stores: The snapshots.
        sources: Sources of a store with series of their own.
        receivers: Receivers of a store with series of their own.
        openly: Write OpenMetrics, with an example for each bucket of a histogram that has one.
    """
    yield from of_process(openly=openly)
    rows = [_source_rows(one, sources) for one in stores]
    for metrics, subjects in (
        (STORE_METRICS, [(_name(one), [one]) for one in stores]),
        (SOURCE_METRICS, [row for some in rows for row in some]),
        (COPY_METRICS, [row for one in stores for row in _copy_rows(one, sources)]),
        (RECEIVER_METRICS, [row for some in rows for row in _receiver_rows(some, receivers)]),
    ):
        for metric in metrics:
            yield head(metric.name, metric.help, kind_of(metric.name), openly)
            yield from _samples(metric, subjects)
    for histogram in HISTOGRAMS:
        yield head(histogram.name, histogram.help, "histogram", openly)
        for one in stores:
            yield buckets(histogram.name, _name(one), histogram.value(one), openly)
    if openly:
        yield END


def _samples(metric: Metric, subjects: Iterable[Row]) -> Iterator[str]:
    name, value, together = metric.name, metric.value, metric.together
    lines = (
        f"{name}{{{labels}}} {value(those[0]) if len(those) == 1 else together(map(value, those))}\n"
        for labels, those in subjects
    )
    while piece := "".join(islice(lines, CHUNK)):
        yield piece


def _name(store: Snapshot) -> str:
    return f'store="{label(store.view.name or store.view.index)}"'


def _source_rows(store: Snapshot, most: int) -> list[Row]:
    name, rows = _name(store), list(store.rows.values())
    own: list[Row] = [(f'{name},topic="{label(one.topic)}",source="{one.reg_id}"', [one]) for one in rows[:most]]
    return [*own, (f'{name},topic="{OTHER}",source="0"', rows[most:])] if len(rows) > most else own


def _copy_rows(store: Snapshot, most: int) -> Iterator[Row]:
    name = _name(store)
    for one in islice(store.rows.values(), most):
        if one.group >= 0:
            yield f'{name},topic="{label(one.topic)}",life="{one.life}",group="{one.group}"', [(store.view, one)]


def _receiver_rows(rows: Sequence[Row], most: int) -> Iterator[Row]:
    left = most
    others: list[Reader] = []
    labels = ""
    for labels, sources in rows:
        readers = [reader for source in sources for reader in source.readers]
        own = readers[:left] if len(sources) == 1 else []
        left -= len(own)
        others += readers[len(own) :]
        for reader in own:
            yield f'{labels},receiver="{reader[0]}"', [reader]
    if others:
        store = labels.partition(",topic=")[0]
        yield f'{store},topic="{OTHER}",source="0",receiver="0"', others
