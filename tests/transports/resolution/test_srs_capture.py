"""Public dissectors read every byte of a played exchange with a service."""

from pathlib import Path

import pytest

from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.udp.inputs import (
    AddPattern,
    RemovePattern,
    RemoveReceiver,
    RemoveSource,
    Unresolved,
)
from tests.support.pcap import Capture
from tests.support.tshark import dissect, summary
from tests.transports.resolution.srs_domain import SRS, SrsDomain, source

PORTS = {"tcp.port==27000": "lbmsrs"}


@pytest.mark.rows("T-402", "T-403", "T-405", "T-406", "T-410")
def test_an_exchange_is_decoded_without_a_fault(tmp_path: Path) -> None:
    """Registration, exchange, changes, withdrawals, keepalives."""
    played = SrsDomain()
    played.service()
    played.context("many")
    played.feed("many", *(source(f"topic/{index}", index) for index in range(200)))
    played.pair()
    played.feed("receiver", AddPattern("^topic/1"), Unresolved("orders"), RemovePattern("^topic/1"))
    played.feed("receiver", RemoveReceiver("orders"))
    played.feed("many", RemoveSource(7, 1))
    played.feed("source", RemoveSource(7, 1))
    played.run(12 * SECOND)
    assert played.notes[-1].endswith("is registered")
    capture, path = Capture(), tmp_path / "srs.pcap"
    ports = {name: 41_000 + number for number, name in enumerate(played.contexts)}
    for sender, receiver, data in played.wire:
        ends = [(("10.0.0.9", 27_000) if name == SRS else ("10.0.0.1", ports[name])) for name in (sender, receiver)]
        for start in range(0, len(data), 1400):
            capture.tcp(ends[0], ends[1], data[start : start + 1400])
    capture.write(path)
    packets = dissect(path, PORTS)
    assert [packet.problems for packet in packets if packet.problems] == []
    assert summary(path, PORTS) == []
    messages = [value for packet in packets for value in packet.fields.get("lbmsrs.message_id", [])]
    assert set(messages) == {"1", "2", "3", "4", "5", "6", "7", "9", "10", "12"}
