"""Protocols of endpoints: from the caller, announced, guessed, or by default, in this order."""

import attrs
import pytest

from stablecast.evidence.capture.files import CaptureError
from stablecast.evidence.capture.ip import TCP, UDP
from stablecast.evidence.capture.ports import MAX_LEARNED, PortPlan, TrafficKind, parse_told
from stablecast.transports.wire import lbmr

A, B = ("10.0.0.1", 40_000), ("10.0.0.2", 50_000)
GROUP = ("224.10.10.10", 20_000)
RM = lbmr.LbtrmTransport("10.0.0.1", "224.10.10.10", 7, 20_000, 30_000)


def advertised(transport: lbmr.Transport, *options: lbmr.TirOption) -> lbmr.Packet:
    tir = lbmr.Advertisement("orders", transport, 60, 1, options)
    return lbmr.Packet(lbmr.PacketKind.NORMAL, (), (tir,))


@pytest.mark.parametrize(
    ("protocol", "port", "kind"),
    [
        (UDP, 12_965, TrafficKind.LBMR),
        (UDP, 15_380, TrafficKind.LBMR),
        (UDP, 14_406, TrafficKind.LBMR),
        (UDP, 14_390, TrafficKind.LBTRM),
        (UDP, 14_401, TrafficKind.LBTRM),
        (UDP, 14_360, TrafficKind.LBTRU),
        (UDP, 14_389, TrafficKind.LBTRU),
        (TCP, 14_371, TrafficKind.LBTTCP),
        (TCP, 14_395, TrafficKind.LBTTCP),
        (TCP, 14_567, TrafficKind.STORE),
        (TCP, 27_000, TrafficKind.SRS),
        (UDP, 27_000, None),
        (TCP, 14_396, None),
    ],
)
def test_default_ports_of_either_end(protocol: int, port: int, kind: TrafficKind | None) -> None:
    assert PortPlan().kind(protocol, A, (B[0], port)) is kind
    assert PortPlan().kind(protocol, (B[0], port), A) is kind


def test_ports_of_the_caller_come_first() -> None:
    plan = PortPlan(told=parse_told(["LBTRM=50000", "srs=1-3", "lbttcp=50000"]))
    plan.learn_endpoint(TrafficKind.LBTRU, B)
    assert plan.kind(UDP, A, B) is TrafficKind.LBTRM
    assert plan.kind(UDP, B, A) is TrafficKind.LBTRM
    assert plan.kind(TCP, B, A) is TrafficKind.LBTTCP
    assert plan.kind(TCP, A, ("10.0.0.9", 3)) is TrafficKind.SRS


@pytest.mark.parametrize(
    "text", ["", "lbmr", "lbmr=", "lbmr=x", "tibrv=1", "lbmr=0", "lbmr=70000", "lbmr=5-4", "lbmr=1-", "lbmr=999999"]
)
def test_a_malformed_port_is_reported(text: str) -> None:
    with pytest.raises(CaptureError, match="is not kind=port or kind=low-high with one of the kinds lbmr, lbtrm"):
        parse_told([text])


def test_advertisements_tell_where_sources_are() -> None:
    plan = PortPlan()
    plan.learn(advertised(RM))
    assert plan.kind(UDP, A, GROUP) is TrafficKind.LBTRM
    assert plan.kind(UDP, B, ("10.0.0.1", 30_000)) is TrafficKind.LBTRM
    assert plan.groups == {("10.0.0.1", 30_000, 7): GROUP}
    assert plan.topic(("10.0.0.1", 30_000, 7), 1) == "orders"
    assert plan.topic(("10.0.0.1", 30_000, 8), 1) is None
    plan.learn(advertised(lbmr.LbtruTransport(*A[:1], 9, A[1])))
    assert plan.kind(UDP, B, A) is TrafficKind.LBTRU
    plan.learn(advertised(lbmr.TcpTransport(*A[:1], 9, A[1])))
    assert plan.kind(TCP, B, A) is TrafficKind.LBTTCP
    assert plan.topic((*A, 9), 1) == "orders"


def test_advertisements_of_other_transports_tell_nothing() -> None:
    plan = PortPlan()
    plan.learn(advertised(lbmr.UnknownTransport(0x40, bytes(10))))
    assert plan == PortPlan()


def test_options_tell_where_stores_and_request_ports_are() -> None:
    plan = PortPlan()
    tcp = lbmr.TcpTransport("10.0.0.1", 9, 1)
    ume = lbmr.Ume(
        store_port=2,
        source_port=3,
        store_address="10.0.0.3",
        source_address="10.0.0.1",
        source_reg_id=1,
        transport_index=1,
        high_sqn=1,
        low_sqn=1,
    )
    store = lbmr.UmeStore(group_index=0, store_port=4, store_index=0, store_address="10.0.0.4", source_reg_id=1)
    request = lbmr.ExtendedFunctionality(source_port=5, source_address="10.0.0.1", functionality=0)
    plan.learn(advertised(tcp, ume, store, request, lbmr.Cost(hop_count=1, cost=1)))
    kinds = {endpoint[1]: kind for (_, endpoint), kind in plan.endpoints.items()}
    assert kinds == {1: TrafficKind.LBTTCP, 2: TrafficKind.STORE, 4: TrafficKind.STORE, 5: TrafficKind.LBTTCP}


def test_context_information_tells_where_a_store_is() -> None:
    plan = PortPlan()
    info = lbmr.ContextInfo(flags=lbmr.ContextInfo.ADDRESS, address="10.0.0.3", port=9, name="store")
    plan.learn(attrs.evolve(info, flags=lbmr.ContextInfo.QUERY))
    plan.learn(attrs.evolve(info, name=None))
    assert plan == PortPlan()
    plan.learn(info)
    assert plan.kind(TCP, A, ("10.0.0.3", 9)) is TrafficKind.STORE


def test_a_flow_has_no_direction() -> None:
    plan = PortPlan()
    plan.learn_flow(TrafficKind.SRS, A, B)
    assert plan.kind(TCP, B, A) is plan.kind(TCP, A, B) is TrafficKind.SRS
    assert plan.kind(UDP, A, B) is None


def test_a_session_is_learned_once() -> None:
    plan = PortPlan()
    plan.learn_session("10.0.0.1", 30_000, 7, GROUP)
    plan.learn_session("10.0.0.1", 30_000, 7, B)
    assert plan.groups == {("10.0.0.1", 30_000, 7): GROUP}
    assert plan.kind(UDP, B, ("10.0.0.1", 30_000)) is TrafficKind.LBTRM


def test_the_end_that_listens() -> None:
    plan = PortPlan(told=parse_told(["store=41000"]))
    plan.learn_endpoint(TrafficKind.LBTTCP, A)
    assert plan.listener(TrafficKind.LBTTCP, B, A) == plan.listener(TrafficKind.LBTTCP, A, B) == A
    assert plan.listener(TrafficKind.STORE, ("10.0.0.3", 41_000), B) == ("10.0.0.3", 41_000)
    assert plan.listener(TrafficKind.LBTTCP, B, ("10.0.0.3", 14_371)) == ("10.0.0.3", 14_371)
    assert plan.listener(TrafficKind.LBTTCP, B, ("10.0.0.3", 49_000)) == ("10.0.0.3", 49_000)


def test_learned_ports_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_LEARNED > 1000
    monkeypatch.setattr("stablecast.evidence.capture.ports.MAX_LEARNED", 0)
    plan = PortPlan()
    plan.learn(advertised(RM))
    plan.learn_session("10.0.0.1", 30_000, 7, GROUP)
    plan.learn_flow(TrafficKind.SRS, A, B)
    assert plan == PortPlan()
