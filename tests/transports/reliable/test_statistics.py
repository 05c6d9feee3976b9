"""Counters, with the documented names."""

import pytest

from stablecast.core.machine.units import MILLISECOND
from stablecast.transports.reliable.statistics import ReceiverStatistics, SourceStatistics, Spread

SOURCE = {
    "msgs_sent", "bytes_sent", "txw_msgs", "txw_bytes", "nak_pckts_rcved", "naks_rcved", "naks_ignored", "naks_shed",
    "naks_rx_delay_ignored", "rxs_sent", "rx_bytes_sent", "rctlr_data_msgs", "rctlr_rx_msgs",
}  # fmt: skip
RECEIVER = {
    "msgs_rcved", "bytes_rcved", "nak_pckts_sent", "naks_sent", "lost", "ncfs_ignored", "ncfs_shed", "ncfs_rx_delay",
    "ncfs_unknown", "nak_stm_min", "nak_stm_mean", "nak_stm_max", "nak_tx_min", "nak_tx_mean", "nak_tx_max",
    "duplicate_data", "unrecovered_txw", "unrecovered_tmo", "lbmc_msgs_rcved", "dgrams_dropped_type",
    "dgrams_dropped_size", "dgrams_dropped_version", "dgrams_dropped_hdr",
    "dgrams_dropped_sid", "dgrams_dropped_other", "out_of_order",
}  # fmt: skip


def test_a_spread_knows_least_mean_and_most() -> None:
    spread = Spread()
    assert spread.mean == 0
    for value in (7, 3, 5):
        spread.add(value)
    assert (spread.least, spread.mean, spread.most) == (3, 5, 7)


@pytest.mark.rows("P-920")
def test_the_documented_counters_are_there() -> None:
    """NAKs, losses, duplicates, unrecoverable datagrams, at both ends."""
    found = SourceStatistics(msgs_sent=4).as_dict((1, 2), (3, 4))
    assert set(found) >= SOURCE
    assert (found["msgs_sent"], found["txw_bytes"], found["rctlr_rx_msgs"]) == (4, 2, 4)
    assert set(ReceiverStatistics().as_dict()) >= RECEIVER


def test_refusals_are_counted_by_reason_and_repairs_in_milliseconds() -> None:
    statistics = ReceiverStatistics()
    for reason in (0, 1, 2, 3, 9):
        statistics.refused(reason, reason + 1)
    statistics.repaired(5 * MILLISECOND, 2)
    found = statistics.as_dict()
    names = ("unknown", "ignored", "rx_delay", "shed")
    assert [found[f"ncfs_{name}"] for name in names] == [11, 2, 3, 4]
    assert (found["nak_stm_max"], found["nak_tx_min"]) == (5, 2)


def test_a_broken_datagram_is_counted_by_what_is_wrong_first() -> None:
    statistics = ReceiverStatistics()
    for octets in (b"\0", b"\x10\0\0\0", b"\x01\0\0\0", b"\x0f\0\0\0", b"\0\0\0\0"):
        statistics.malformed(octets)
    found = statistics.as_dict()
    assert [found[f"dgrams_dropped_{name}"] for name in ("size", "version", "type", "hdr")] == [1, 1, 2, 1]
