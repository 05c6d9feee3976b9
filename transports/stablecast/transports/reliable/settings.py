"""Settings of sessions with the documented defaults, and bounds of our own. Times are in nanoseconds."""

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND

MIN_DATAGRAM = 500
MAX_DATAGRAM = 65_535
"""Bytes that the datagram maximum may be set to."""

UDP_BYTES = 65_507
"""Bytes of a datagram that UDP carries: a larger one is not sent, whatever the maximum is set to."""

MAX_NUMBERS = 340
"""Numbers in one NAK or NCF, which then fits an Ethernet frame. 113 were observed in one."""

MAX_MISSING = 65_536
"""Missing datagrams of one session that a receiver waits for; beyond that the oldest are given up."""

MAX_QUEUED_REPAIRS = 1_000
"""Retransmissions of a context that wait for the next interval; further ones are shed."""

MAX_SUBMITTED = 16 * 1024 * 1024
"""Bytes that may be submitted at once. They, and one batch for each session, can wait for the rate limit."""

MAX_TOPICS = 65_536
"""Topics on one session."""

MAX_TOPIC_GAPS = 200_000
"""Gaps of all topics of a session; beyond that the oldest are lost (delivery_control_maximum_total_map_entries)."""


@attrs.frozen
class RateSettings:
    """Limits of one context for one kind of transport, in bits per second, over intervals that divide a second.

    Attributes:
        repairs_count: True if retransmissions count towards the limit of data as well (LBT-RM).
    """

    interval_ns: int
    data_bits: int = 10_000_000
    repair_bits: int = 5_000_000
    repairs_count: bool = False


LBTRM_RATES = RateSettings(10 * MILLISECOND, repairs_count=True)
LBTRU_RATES = RateSettings(100 * MILLISECOND)


@attrs.frozen
class SourceSettings:
    """A source session. The first source of a session sets them.

    Attributes:
        datagram_max: Bytes of a datagram, transport header included.
        window_bytes: Bytes of payload kept for retransmission.
        window_limit: The same with overhead; 0: no limit.
        window_age_ns: Age of the oldest datagram kept; 0: any (ours).
        ignore_ns: NAKs for a datagram are ignored this long after its retransmission.
        sm_min_ns: Time without data before the first session message; each further wait is twice as long.
        sm_max_ns: The longest wait between session messages.
        batch_bytes: Size at which a batch leaves: a floor, not a ceiling.
        batch_ns: Longest wait of a message in a batch.
        tsni_ns: Time without data before a topic's newest number is announced, and between announcements; 0: never.
        tsni_active_ns: Time that an idle topic is announced; 0: forever.
        linger_ns: Time that a closed session still answers NAKs.
        client_ns: Silence after which a client (LBT-RU) is dropped.
    """

    datagram_max: int = 8192
    window_bytes: int = 25_165_824
    window_limit: int = 0
    window_age_ns: int = 0
    ignore_ns: int = 500 * MILLISECOND
    sm_min_ns: int = 200 * MILLISECOND
    sm_max_ns: int = 10 * SECOND
    batch_bytes: int = 2048
    batch_ns: int = 200 * MILLISECOND
    tsni_ns: int = 5 * SECOND
    tsni_active_ns: int = 60 * SECOND
    linger_ns: int = 10 * SECOND
    client_ns: int = 10 * SECOND


@attrs.frozen
class ReceiverSettings:
    """A receiver session. The first receiver that joins sets them.

    Attributes:
        initial_backoff_ns: Before the first NAK, times 0.5 to 1.5 at random; 0: at once.
        backoff_ns: Before each further NAK, times 0.5 to 1.5 at random.
        suppress_ns: Silence for a datagram after an NCF.
        generation_ns: From detection until a datagram is given up, and until a topic's gap is lost.
        send_naks: True to request missing datagrams.
        activity_ns: Silence of the source that ends the session.
        preactivity_ns: The same before the first datagram; 0: the same value.
        loss_check_ns: Between checks for old gaps of topics; 0: check only when a datagram arrives.
        connect_ns: Between requests for a connection (LBT-RU).
        connect_attempts: The most requests for a connection.
        alive_ns: Between acknowledgements that serve as signs of life (LBT-RU).
        drop_permille: Datagrams that are dropped on arrival, for tests.
    """

    initial_backoff_ns: int = 50 * MILLISECOND
    backoff_ns: int = 200 * MILLISECOND
    suppress_ns: int = SECOND
    generation_ns: int = 10 * SECOND
    send_naks: bool = True
    activity_ns: int = 60 * SECOND
    preactivity_ns: int = 0
    loss_check_ns: int = SECOND
    connect_ns: int = 100 * MILLISECOND
    connect_attempts: int = 600
    alive_ns: int = 500 * MILLISECOND
    drop_permille: int = 0


LBTRM_RECEIVER = ReceiverSettings()
LBTRU_RECEIVER = ReceiverSettings(initial_backoff_ns=0)
"""LBT-RU requests at once, because no other receiver can have lost the same datagram."""

MAX_SESSIONS = 1_024
"""Source sessions of one context and kind."""

MAX_CLIENTS = 4_096
"""Clients of one LBT-RU session; a further one is reset."""
