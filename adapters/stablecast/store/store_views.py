"""Views of a store: the items of the documented monitor as plain records (P-901..P-923).

Numbers are extended. Instants are nanoseconds of the Unix epoch.
"""

import attrs

from stablecast.core.machine.durations import DurationView

SHOWN_LACKS = 64
"""Ranges of lacking messages that a view has at most."""


@attrs.frozen
class ReceiverView:
    """A receiver (P-922, P-923).

    Attributes:
        acknowledged: The highest acknowledged number, -1 for none.
        lag: Messages in the store that it has not acknowledged.
        ended: It is not active, and nobody listens at its address: it ended, and did not fall silent.
    """

    reg_id: int
    address: str
    session_index: int
    topic_index: int
    topic: str
    session_id: int
    source_reg_id: int
    source_session_id: int
    acknowledged: int
    lag: int
    active: bool
    pace: str
    last_activity_ns: int
    ended: bool = False


@attrs.define
class Traffic:
    """Messages, payload bytes, reads and lost messages of a source's stream since the store joined it (P-920).

    `naks` and `duplicates` are those of its session over LBT-RM or LBT-RU, which other sources may share. `groups` has
    the sizes of the groups of its stores, and `members` the index of each of its stores with the index of its group, as
    its newest SRI names them.
    """

    received: int = 0
    payload_bytes: int = 0
    reads: int = 0
    lost: int = 0
    naks: int = 0
    duplicates: int = 0
    groups: tuple[int, ...] = ()
    members: tuple[tuple[int, int], ...] = ()


@attrs.frozen
class SourceView:
    """A source and its repository (P-908..P-921).

    Attributes:
        messages: Numbers in memory and on disk (the message map).
        window: Trail, memory trail, lead.
        memory: Bytes used, threshold, limit.
        sync: Complete, initiated, contiguous.
        in_progress: Messages under way to the disk, and disk reads under way.
        offsets: Start, next and maximum: bytes on disk, as if the journal had one file for each source (P-916).
        bursts: Bursts under way, highest number of any, all bursts.
        drops: Drops under way, all drops.
        holes: Numbers that are missing and not given up.
        lost: Numbers given up since the store started.
        burst_lost: Numbers of `lost` that were given up in bursts.
        given_up: Numbers of `lost` that no other store has sent since, and that no rule would have released.
        lacking: Messages below their replication: the store was away, it lost its disk, the disk cannot read them,
            they found no room.
        lacks: Their ranges, first and last number, ascending; no more than `SHOWN_LACKS`.
        lacking_ns: The age of the oldest of these lacks.
        refilled: Messages that came back from other stores since the store started.
        replicas: Stores that the source names, with this one; 0 if not known.
        groups: Sizes of the groups of its stores; empty if not known.
        group: Index of the group that this store belongs to; -1 if not known.
        stores: Addresses of its stores, as far as they are known here.
        ended: As of a receiver.
    """

    reg_id: int
    address: str
    transport: str
    session_index: int
    topic_index: int
    topic: str
    session_id: int
    active: bool
    last_activity_ns: int
    repository: str
    paced: bool
    messages: int
    window: tuple[int, int, int]
    memory: tuple[int, int, int]
    age_threshold_s: int
    sync: tuple[int, int, int]
    in_progress: tuple[int, int]
    offsets: tuple[int, int, int]
    bursts: tuple[int, int, int]
    drops: tuple[int, int]
    holes: int
    lost: int
    burst_lost: int
    given_up: int
    lacking: tuple[int, ...]
    lacking_ns: int
    refilled: int
    replicas: int
    proxied: bool
    traffic: Traffic
    receivers: tuple[ReceiverView, ...]
    groups: tuple[int, ...] = ()
    group: int = -1
    stores: tuple[str, ...] = ()
    ended: bool = False
    lacks: tuple[tuple[int, int], ...] = ()


@attrs.frozen
class JournalView:
    """A store's disk: bytes and segments in use, bytes that wait for a sync, and the count and times (ns) of syncs.

    Attributes:
        sync_times: The time of each sync.
        stable_times: For each batch, the time from the arrival of its oldest message until it is stable here.
        scrubbed_bytes: Bytes that were verified since the start.
        scrubbed_ns: End of the last whole pass, in ns of the epoch; 0: none.
    """

    disk_bytes: int
    segments: int
    queued_bytes: int
    pressure: bool
    syncs: int
    last_sync_ns: int
    longest_sync_ns: int
    reads_waiting: int
    sync_times: DurationView = DurationView()
    stable_times: DurationView = DurationView()
    scrubbed_bytes: int = 0
    scrubbed_ns: int = 0


@attrs.frozen
class StoreView:
    """A store (P-902..P-907).

    Attributes:
        asked: Messages that were requested, and those that were sent again, since the reset of the rates.
        requests: Configured rate; received, served and dropped per second since the reset; seconds since the reset;
            all dropped since the start.
        patterns: Pattern, its type, and the repository type of the topics that match.
        topics: Topic, RegID and session id of each source.
        failure: The error that ended the service; empty while it serves.
        muted_for_ns: Time (ns) in which it grants nothing, because it may have lost its memory.
        expired: Sources whose state lifetime ended since the start, and the count of their messages.
        room: Free bytes on the file system of the journal, -1 if not known, and the least that is enough.
        clients: Sources and receivers with state, also absent ones, and the limit on them.
    """

    index: int
    name: str
    address: str
    cache_directory: str
    state_directory: str
    taken_ns: int
    started_ns: int
    requests: tuple[int, float, float, float, int, int]
    patterns: tuple[tuple[str, str, str], ...]
    topics: tuple[tuple[str, int, int], ...]
    sources: int
    receivers: int
    connections: int
    proxies: int
    draining: bool
    failure: str
    muted_for_ns: int
    journal: JournalView
    oddities: dict[str, int]
    sessions: dict[str, dict[str, int]]
    events: dict[str, int]
    reports: tuple[str, ...]
    expired: tuple[int, int] = (0, 0)
    clients: tuple[int, int] = (0, 0)
    room: tuple[int, int] = (-1, 0)
    asked: tuple[int, int] = (0, 0)
