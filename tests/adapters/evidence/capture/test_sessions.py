"""The transports that packets belong to, and their names."""

import pytest

from stablecast.evidence.capture.connections import session_name, transport_of
from stablecast.evidence.capture.layers import Layer
from stablecast.evidence.capture.ports import PortPlan, TrafficKind, TransportKey
from stablecast.transports.wire import lbtrm, lbtru

SOURCE, RECEIVER, GROUP = ("10.0.0.1", 35_000), ("10.0.0.2", 45_000), ("224.10.10.10", 14_400)
SM = lbtrm.SessionMessage(nak_port=14390, session_id=0x77, sm_sqn=0, lead=1, trail=0)
NAK = lbtrm.Nak(nak_port=14390, session_id=0x77, sqns=(1,))
SID = lbtru.SessionId(session_id=0x77)
KEY: TransportKey = ("10.0.0.1", 14_390, 0x77)


def test_multicast() -> None:
    plan = PortPlan()
    assert transport_of(plan, TrafficKind.LBTRM, SOURCE, GROUP, [Layer("LBT-RM", "SM", SM)]) == KEY
    assert transport_of(plan, TrafficKind.LBTRM, RECEIVER, ("10.0.0.1", 14_390), [Layer("LBT-RM", "NAK", NAK)]) == KEY
    assert session_name(plan, TrafficKind.LBTRM, KEY) == "LBTRM:10.0.0.1:14390:00000077"
    plan.learn_session(*KEY[:2], 0x77, GROUP)
    assert session_name(plan, TrafficKind.LBTRM, KEY) == "LBTRM:10.0.0.1:14390:00000077:224.10.10.10:14400"


@pytest.mark.parametrize(
    ("packet", "source", "target", "session"),
    [
        (lbtru.Request(options=(SID,)), RECEIVER, SOURCE, 0x77),
        (lbtru.Ack(sqn=1), RECEIVER, SOURCE, None),
        (lbtru.Data(sqn=1, trail=0, options=(SID,), payload=b""), SOURCE, RECEIVER, 0x77),
        (lbtru.Reset(), SOURCE, RECEIVER, None),
    ],
)
def test_unicast(packet: lbtru.Packet, source: tuple[str, int], target: tuple[str, int], session: int | None) -> None:
    transport = transport_of(PortPlan(), TrafficKind.LBTRU, source, target, [Layer("LBT-RU", "", packet)])
    assert transport == (*SOURCE, session)
    expected = "LBTRU:10.0.0.1:35000" + (":00000077" if session else "")
    assert session_name(PortPlan(), TrafficKind.LBTRU, transport) == expected


@pytest.mark.parametrize(
    ("kind", "name"), [(TrafficKind.LBTTCP, "TCP"), (TrafficKind.STORE, "TCP"), (TrafficKind.SRS, "SRS")]
)
def test_streams(kind: TrafficKind, name: str) -> None:
    transport = transport_of(PortPlan(), kind, RECEIVER, SOURCE, [])
    assert session_name(PortPlan(), kind, transport) == f"{name}:10.0.0.1:35000"


@pytest.mark.parametrize("kind", [None, TrafficKind.LBMR, TrafficKind.LBTRM, TrafficKind.LBTRU])
def test_packets_without_a_known_transport_have_none(kind: TrafficKind | None) -> None:
    assert transport_of(PortPlan(), kind, SOURCE, RECEIVER, []) is None
    assert session_name(PortPlan(), kind, None) == ""
