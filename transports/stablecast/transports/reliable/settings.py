"""What can be set at a session, with the documented defaults; bounds that are ours. Spans in nanoseconds."""

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND

MIN_DATAGRAM = 500
MAX_DATAGRAM = 65_535
"""Bytes that the datagram maximum may be set to."""

MAX_NUMBERS = 340
"""Numbers in one NAK or NCF: it fits an Ethernet frame. 113 were seen in one."""

MAX_MISSING = 65_536
"""Datagrams of one session that a receiver waits for; of more the oldest are given up."""

MAX_QUEUED_REPAIRS = 1_000
"""Retransmissions of a context that wait for the next interval; more are shed."""

MAX_SUBMITTED = 16 * 1024 * 1024
"""Bytes that may be submitted at once: so much, beside one batch per session, can wait for the rate limit."""

MAX_TOPICS = 65_536
"""Topics on one session."""

MAX_TOPIC_GAPS = 200_000
"""Gaps of all topics of a session; of more the oldest are lost (delivery_control_maximum_total_map_entries)."""


@attrs.frozen
class RateSettings:
    """Limits of one context for one kind of transport, in bits per second, over intervals that divide a second.

    Attributes:
        repairs_count: Whether retransmissions count towards the limit of data as well (LBT-RM).
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
        window_bytes: Payload kept for retransmission.
        window_limit: The same with overhead; 0: no limit.
        window_age_ns: Age of the oldest datagram kept; 0: any (ours).
        ignore_ns: NAKs for a datagram are ignored this long after it was sent again.
        sm_min_ns: Without data for so long, a session message is sent; each next one waits twice as long,
        sm_max_ns: up to this.
        batch_bytes: A batch that has grown to this leaves: a floor, not a ceiling.
        batch_ns: So long a message may wait in a batch.
        tsni_ns: A topic without data for so long is told with its newest number, and again after as long; 0: never.
        tsni_active_ns: So long an idle topic is told; 0: for ever.
        linger_ns: A session that was closed goes on answering NAKs for so long.
        client_ns: A client (LBT-RU) that is silent for so long is dropped.
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
        send_naks: Ask for what is missing.
        activity_ns: The session is over when its source was silent for so long.
        preactivity_ns: The same while nothing was heard yet; 0: the same value.
        loss_check_ns: Between looks for gaps of topics that are too old; 0: only when something arrives.
        connect_ns: Between requests for a connection (LBT-RU),
        connect_attempts: so many at most.
        alive_ns: Between acknowledgements that say that the client is there (LBT-RU).
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
"""LBT-RU asks at once: nobody else may have lost the same."""

MAX_SESSIONS = 1_024
"""Source sessions of one context and kind."""

MAX_CLIENTS = 4_096
"""Clients of one LBT-RU session; one more is reset."""
