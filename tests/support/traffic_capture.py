"""A capture with every kind of our traffic, built by our own encoders."""

from stablecast.core.protocol import messages as core
from stablecast.transports import codec
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc, lbmr, lbtrm, lbtru, rsocket, srs
from stablecast.transports.wire.lbmc import Message, MessageKind
from tests.support.pcap import Address, Capture

SOURCE: Address = ("10.0.0.1", 35_000)
RECEIVER: Address = ("10.0.0.2", 45_000)
STORE: Address = ("10.0.0.3", 14_567)
RESOLUTION: Address = ("224.9.10.11", 12_965)
GROUP: Address = ("224.10.10.10", 14_400)
NAK_PORT: Address = ("10.0.0.1", 14_390)
STREAM: Address = ("10.0.0.1", 14_371)
UNICAST: Address = ("10.0.0.1", 14_380)
SERVICE: Address = ("10.0.0.9", 27_000)
SESSION = 0x77


def data(sqn: int, payload: bytes = b"payload", *headers: h.Header) -> bytes:
    return lbmc.encode(Message(MessageKind.DATA, 1, sqn, headers, payload))


def all_kinds() -> Capture:
    """Return a capture with at least one packet of each protocol."""
    capture = Capture()
    tir = lbmr.Advertisement("orders", lbmr.LbtrmTransport(SOURCE[0], GROUP[0], SESSION, GROUP[1], NAK_PORT[1]), 60, 1)
    options = lbmr.standard_options(b"INSTANCE")
    query = lbmr.Packet(lbmr.PacketKind.NORMAL, (lbmr.TopicQuery("orders"),), (tir,), options)
    capture.udp(SOURCE, RESOLUTION, lbmr.encode(query))
    port = NAK_PORT[1]
    for sqn in range(2):
        packet = lbtrm.Data(nak_port=port, session_id=SESSION, sqn=sqn, trail=0, payload=data(sqn) + data(sqn))
        capture.udp(SOURCE, GROUP, lbtrm.encode(packet))
    alive = lbtrm.SessionMessage(nak_port=port, session_id=SESSION, sm_sqn=0, lead=1, trail=0)
    capture.udp(SOURCE, GROUP, lbtrm.encode(alive))
    capture.udp(RECEIVER, NAK_PORT, lbtrm.encode(lbtrm.Nak(nak_port=port, session_id=SESSION, sqns=(1,))))
    sid = (lbtru.SessionId(session_id=SESSION),)
    capture.udp(RECEIVER, UNICAST, lbtru.encode(lbtru.Request(options=sid)))
    capture.udp(UNICAST, RECEIVER, lbtru.encode(lbtru.Data(sqn=0, trail=0, options=sid, payload=data(0))))
    greeting = lbmc.encode(Message(MessageKind.CONTROL, headers=(h.TcpSid(sid=SESSION),)))
    octets = greeting + data(0) + data(1, bytes(2000))
    for at in range(0, len(octets), 700):
        capture.tcp(STREAM, RECEIVER, octets[at : at + 700])
    capture.tcp(RECEIVER, STORE, codec.encode(core.SourceInfoRequest(5)))
    setup = rsocket.encode(rsocket.setup_frame(rsocket.RsocketSetup(1000, 2000)))
    interest = srs.encode(srs.ReceiverInfo(name="orders", instance=b"INSTANCE"))
    capture.tcp(RECEIVER, SERVICE, setup)
    capture.tcp(
        RECEIVER, SERVICE, rsocket.encode(rsocket.Frame(rsocket.FrameKind.REQUEST_FNF, 1, payload=interest * 2))
    )
    return capture


FRAMES = 13
