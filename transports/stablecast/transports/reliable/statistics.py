"""The counters of a session, with the documented names. Messages are counted as `lbmc_msgs_rcved`."""

import attrs

from stablecast.core.machine.units import milliseconds
from stablecast.transports.wire.reliable_packets import Reason

SHORTEST = 4
"""Bytes of the shortest packet."""

KINDS = (0, 2, 3, 4, 5, 6, 7)
"""The kinds of packets: data, session message, NAK, NCF, and those of LBT-RU alone."""


@attrs.define
class Spread:
    """Smallest, largest and mean of the added values."""

    count: int = 0
    total: int = 0
    least: int = 0
    most: int = 0

    def add(self, value: int) -> None:
        self.least = min(self.least, value) if self.count else value
        self.most = max(self.most, value)
        self.count += 1
        self.total += value

    @property
    def mean(self) -> int:
        """The mean, rounded down; 0 without values."""
        return self.total // self.count if self.count else 0


@attrs.define
class SourceStatistics:
    """Counters of a source session. Bytes are those of datagrams, transport header included."""

    msgs_sent: int = 0
    bytes_sent: int = 0
    nak_pckts_rcved: int = 0
    naks_rcved: int = 0
    naks_ignored: int = 0
    naks_shed: int = 0
    naks_rx_delay_ignored: int = 0
    rxs_sent: int = 0
    rx_bytes_sent: int = 0
    sms_sent: int = 0
    ncfs_sent: int = 0
    dgrams_dropped: int = 0

    def as_dict(self, window: tuple[int, int], waiting: tuple[int, int]) -> dict[str, int]:
        """Return the counters, with datagrams and bytes in the window, and waiting data and repairs."""
        states = {
            "txw_msgs": window[0],
            "txw_bytes": window[1],
            "rctlr_data_msgs": waiting[0],
            "rctlr_rx_msgs": waiting[1],
        }
        return {**attrs.asdict(self), **states}


@attrs.define
class ReceiverStatistics:
    """Counters of a receiver session. Times are in milliseconds."""

    msgs_rcved: int = 0
    bytes_rcved: int = 0
    nak_pckts_sent: int = 0
    naks_sent: int = 0
    lost: int = 0
    out_of_order: int = 0
    duplicate_data: int = 0
    unrecovered_txw: int = 0
    unrecovered_tmo: int = 0
    ncfs_unknown: int = 0
    ncfs_ignored: int = 0
    ncfs_rx_delay: int = 0
    ncfs_shed: int = 0
    nak_stm: Spread = attrs.field(factory=Spread)
    nak_tx: Spread = attrs.field(factory=Spread)
    lbmc_msgs_rcved: int = 0
    dgrams_dropped_size: int = 0
    dgrams_dropped_version: int = 0
    dgrams_dropped_type: int = 0
    dgrams_dropped_hdr: int = 0
    dgrams_dropped_sid: int = 0
    dgrams_dropped_other: int = 0
    dgrams_dropped_test: int = 0

    def malformed(self, octets: bytes) -> None:
        """Count a datagram that is no packet, by the fault: size, version, kind, or content."""
        if len(octets) < SHORTEST:
            self.dgrams_dropped_size += 1
        elif octets[0] >> 4:
            self.dgrams_dropped_version += 1
        elif octets[0] not in KINDS:
            self.dgrams_dropped_type += 1
        else:
            self.dgrams_dropped_hdr += 1

    def refused(self, reason: int, count: int) -> None:
        """Count refused datagrams of an NCF."""
        name = _NCFS.get(reason, "ncfs_unknown")
        setattr(self, name, getattr(self, name) + count)

    def repaired(self, waited_ns: int, asked: int) -> None:
        """Count the arrival of a requested datagram."""
        self.nak_stm.add(milliseconds(waited_ns))
        self.nak_tx.add(asked)

    def as_dict(self) -> dict[str, int]:
        """Return the counters, with minimum, mean and maximum of each spread."""
        flat: dict[str, int] = {}
        for name, value in attrs.asdict(self, recurse=False).items():
            if isinstance(value, Spread):
                flat |= {f"{name}_min": value.least, f"{name}_mean": value.mean, f"{name}_max": value.most}
            else:
                flat[name] = value
        return flat


_NCFS: dict[int, str] = {Reason.IGNORED: "ncfs_ignored", Reason.DELAYED: "ncfs_rx_delay", Reason.SHED: "ncfs_shed"}
