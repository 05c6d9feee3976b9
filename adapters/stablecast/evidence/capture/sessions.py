"""Names of transport sessions, as logs write them: they tell the source of a packet."""

from collections.abc import Sequence

from stablecast.evidence.capture.ip import Endpoint
from stablecast.evidence.capture.layers import Layer
from stablecast.evidence.capture.ports import PortPlan, TrafficKind, TransportKey
from stablecast.transports.wire import lbtrm, lbtru

_NAMES = {TrafficKind.LBTRU: "LBTRU", TrafficKind.LBTTCP: "TCP", TrafficKind.STORE: "TCP", TrafficKind.SRS: "SRS"}
_TO_SOURCE = (lbtru.Nak, lbtru.Ack, lbtru.Request)


def transport_of(
    plan: PortPlan, kind: TrafficKind | None, source: Endpoint, target: Endpoint, layers: Sequence[Layer]
) -> TransportKey | None:
    """Return the source's transport that a packet belongs to; None if there is none, or it is unknown."""
    match kind, layers[0].record if layers else None:
        case TrafficKind.LBTRM, lbtrm.Nak() as nak:
            return target[0], nak.nak_port, nak.session_id
        case TrafficKind.LBTRM, lbtrm.Data() | lbtrm.SessionMessage() | lbtrm.Ncf() as packet:
            return source[0], packet.nak_port, packet.session_id
        case TrafficKind.LBTRU, record if isinstance(record, lbtru.Packet):
            end = target if isinstance(record, _TO_SOURCE) else source
            return *end, lbtru.session_of(record)
        case ((TrafficKind.LBTTCP | TrafficKind.STORE | TrafficKind.SRS), _):
            return *plan.listener(kind, source, target), None
        case _:
            return None


def session_name(plan: PortPlan, kind: TrafficKind | None, transport: TransportKey | None) -> str:
    """Return the name of a transport: kind, address, port, session, group and port as far as they are known."""
    if transport is None or kind is None:
        return ""
    address, port, session = transport
    if kind is not TrafficKind.LBTRM:
        return f"{_NAMES[kind]}:{address}:{port}" + ("" if session is None else f":{session:08x}")
    group = plan.groups.get(transport)
    return f"LBTRM:{address}:{port}:{session:08x}" + (f":{group[0]}:{group[1]}" if group else "")
