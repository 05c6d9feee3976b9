"""What is shown of a store: the items of the documented monitor as plain records (P-901..P-923).

Numbers are extended; instants are nanoseconds of the Unix epoch.
"""

import attrs


@attrs.frozen
class ReceiverView:
    """A receiver (P-922, P-923). `acknowledged` -1: nothing yet; `lag`: messages here that it has not acknowledged."""

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


@attrs.define
class Traffic:
    """What came on a source's stream since the store joined it (P-920): messages, bytes, reads, lost messages."""

    received: int = 0
    payload_bytes: int = 0
    reads: int = 0
    lost: int = 0


@attrs.frozen
class SourceView:
    """A source and its repository (P-908..P-921).

    Attributes:
        messages: Numbers kept, in memory and on disk (the message map).
        window: Trail, memory trail, lead.
        memory: Bytes used, threshold, limit.
        sync: Complete, initiated, contiguous.
        in_progress: Messages on their way to the disk, disk reads under way.
        offsets: Start, next, maximum: bytes on disk in the sense of a shared journal (P-916).
        bursts: Bursts in work, highest number of any, bursts in all.
        drops: Drops in work, drops in all.
        holes: Numbers that are missing and not given up.
        lost: Numbers given up since the store started.
        burst_lost: Those of them that were given up in bursts.
        replicas: Stores that the source names, this one included; 0: not known.
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
    replicas: int
    proxied: bool
    traffic: Traffic
    receivers: tuple[ReceiverView, ...]


@attrs.frozen
class JournalView:
    """A store's disk: bytes and segments in use, bytes that wait for a sync, syncs, the last and longest sync in ns."""

    disk_bytes: int
    segments: int
    queued_bytes: int
    pressure: bool
    syncs: int
    last_sync_ns: int
    longest_sync_ns: int
    reads_waiting: int


@attrs.frozen
class StoreView:
    """A store (P-902..P-907).

    Attributes:
        requests: Configured rate; received, served and dropped per second since the reset; seconds since the reset;
            dropped in all since the start.
        patterns: Pattern, its type, and the repository type of the topics that match.
        topics: Topic, RegID and session id of each source.
        failure: Why it serves no more; empty while it does.
        muted_for_ns: For how long it will grant nothing, because it may have lost its memory.
        expired: Sources whose state lifetime ended since the start, and the messages that went with them.
        room: Bytes free on the file system of the journal, -1: not known; below how many there is too little.
        clients: Sources and receivers that have state here, those that are away included; the limit of them.
    """

    index: int
    name: str
    address: str
    cache_directory: str
    state_directory: str
    taken_ns: int
    started_ns: int
    requests: tuple[int, int, int, int, int, int]
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
