"""Checks of the options of LBT-RM and LBT-RU: documented relations and recommended ones (T29)."""

from collections.abc import Iterator

from stablecast.config.transport_options import KindConfig, Transport, TransportConfig
from stablecast.core.machine.units import MILLISECOND, SECOND

BACKOFFS = 3
"""NAK intervals after the first for which the window should keep messages."""
GENERATIONS_PER_BACKOFF = 2
SESSION_MESSAGES_PER_TIMEOUT = 3
SIGNS_PER_TIMEOUT = 3
MARKS_PER_THRESHOLD = 4

Finding = tuple[str, bool, str]
"""Code, whether it is an error, text."""


def transport_relations(config: TransportConfig) -> Iterator[Finding]:
    """Yield the findings about the transport that is used; none for TCP."""
    if config.kind is Transport.TCP:
        return
    name, kind = config.kind.name.lower(), config.chosen
    yield from _rates(name, kind)
    yield from _naks(name, kind)
    yield from _silence(name, kind)
    if config.kind is Transport.LBTRM and not config.group and not config.pool:
        text = "transport_lbtrm_multicast_address_low is above _high, so there is no group to send to"
        yield ("no-groups", True, text)
    if config.kind is Transport.LBTRU and kind.source.client_ns < SIGNS_PER_TIMEOUT * kind.receiver.alive_ns:
        text = f"transport_lbtru_client_activity_timeout is less than {SIGNS_PER_TIMEOUT} acknowledgement intervals"
        yield ("client-timeout-short", False, f"{text}: a lost datagram ends a connection")
    least = (MARKS_PER_THRESHOLD * config.tsni_ns + kind.receiver.generation_ns) // SECOND
    if config.tsni_active_ns and config.tsni_active_ns < least * SECOND:
        text = "transport_topic_sequence_number_info_active_threshold is below four intervals and the NAK generation"
        yield ("marks-end-early", False, f"{text} ({least} s): the loss of a last message may stay undetected")


def _rates(name: str, kind: KindConfig) -> Iterator[Finding]:
    rates, source = kind.rates, kind.source
    if SECOND % rates.interval_ns:
        text = f"transport_{name}_rate_interval {rates.interval_ns // MILLISECOND} ms does not divide a second"
        yield ("rate-interval", False, f"{text}: the limits hold only approximately")
    if rates.repair_bits > rates.data_bits:
        text = f"transport_{name}_retransmit_rate_limit is above transport_{name}_data_rate_limit"
        yield ("repairs-above-data", False, f"{text}: retransmissions may block new data")
    allowance = rates.data_bits * rates.interval_ns // (8 * SECOND)
    if source.datagram_max > allowance:
        text = f"a datagram of transport_{name}_datagram_max_size exceeds the {allowance} bytes of a rate interval"
        yield ("datagram-above-allowance", False, f"{text}: each needs an interval of its own")
    receiver = kind.receiver
    outlast = receiver.initial_backoff_ns + BACKOFFS * receiver.backoff_ns
    needed = rates.data_bits * outlast // (8 * SECOND)
    if min(source.window_bytes, source.window_limit or source.window_bytes) < needed:
        text = f"transport_{name}_transmission_window_size holds less data than is sent while a NAK is repeated"
        yield ("window-small", False, f"{text} ({needed} bytes at the rate limit): lost data cannot be sent again")


def _naks(name: str, kind: KindConfig) -> Iterator[Finding]:
    receiver = kind.receiver
    if kind.source.ignore_ns > receiver.backoff_ns:
        text = f"transport_{name}_ignore_interval is longer than transport_{name}_nak_backoff_interval"
        yield ("ignore-above-backoff", False, f"{text}: a lost retransmission delays the message by another second")
    if receiver.generation_ns < GENERATIONS_PER_BACKOFF * receiver.backoff_ns:
        text = f"transport_{name}_nak_generation_interval is less than two backoff intervals"
        yield ("generation-short", False, f"{text}: lost data is given up before its second NAK")


def _silence(name: str, kind: KindConfig) -> Iterator[Finding]:
    source, receiver = kind.source, kind.receiver
    if source.sm_min_ns > source.sm_max_ns:
        text = f"transport_{name}_sm_minimum_interval is above transport_{name}_sm_maximum_interval"
        yield ("session-messages", True, f"{text}: write the smaller one first")
    if receiver.activity_ns < SESSION_MESSAGES_PER_TIMEOUT * source.sm_max_ns:
        text = f"transport_{name}_activity_timeout is less than three times transport_{name}_sm_maximum_interval"
        yield ("activity-below-session-messages", False, f"{text}: lost session messages end a session")
    if receiver.activity_ns < receiver.loss_check_ns + receiver.generation_ns:
        text = f"transport_{name}_activity_timeout is less than transport_{name}_nak_generation_interval and a check"
        yield ("activity-below-generation", False, f"{text}: a session ends before it reports its losses")
