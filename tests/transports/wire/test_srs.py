"""The messages of SRS: round trips, refusal of malformed ones, and public dissectors."""

from pathlib import Path
from typing import Any, get_args

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.wire import rsocket, srs
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.rsocket import Frame, FrameFlag, FrameKind
from tests.support.layouts import NAMES, annotation, mutations, values
from tests.support.pcap import Capture
from tests.support.tshark import dissect, summary

CLASSES: list[Any] = list(get_args(srs.Message))
ALONE = [srs.RegistrationRequest, srs.RegistrationResponse, srs.StreamRequest]
BATCHED = [record for record in CLASSES if record not in ALONE]
INSTANCE = b"CTXINST1"
WORDS = st.lists(st.integers(0, 0xFFFF_FFFF), max_size=3).map(tuple)


def records(record: Any) -> st.SearchStrategy[Any]:
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(record)
    return st.builds(record, **{field.name: _values(annotation(field)) for field in fields})


def _values(kind: object) -> st.SearchStrategy[Any]:
    if kind is srs.COUNTED_TEXT:
        return NAMES
    return WORDS if kind is srs.COUNTED_WORDS else values(kind)


MESSAGES = st.one_of(*map(records, CLASSES))
BATCHES = st.lists(st.one_of(*map(records, BATCHED)), max_size=4)


@given(MESSAGES)
def test_a_message_there_and_back(message: srs.Message) -> None:
    assert srs.decode(srs.encode(message)) == [message]


@given(BATCHES)
def test_messages_back_to_back(messages: list[srs.Message]) -> None:
    assert srs.decode(b"".join(map(srs.encode, messages))) == messages


@given(st.binary(max_size=80) | MESSAGES.flatmap(lambda message: mutations(srs.encode(message))))
def test_nonsense_is_refused_or_means_the_same_when_written_again(octets: bytes) -> None:
    try:
        messages = srs.decode(octets)
    except WireError:
        return
    assert b"".join(map(srs.encode, messages)) == octets


def test_sizes_are_the_documented_ones() -> None:
    request = srs.RegistrationRequest(address="10.0.0.1", port=1, session_id=2, host_id=3)
    sizes = [len(srs.encode(m)) - 2 for m in (request, srs.RegistrationResponse(client_id=1), srs.StreamRequest())]
    assert sizes == [21, 13, 1]


def test_routes_and_names_stand_as_documented() -> None:
    """wire/srs.md, the newer messages."""
    route = srs.RouteInfo(domains=(1, 2), address="10.0.0.1", port=27001, instance=INSTANCE, route_index=9)
    layout = "000d 0002 00000001 00000002 0a000001 6979 4354 5849 4e53 5431 01 060e0000 00000000 0009 0000"
    assert srs.encode(route) == bytes.fromhex(layout)
    name = srs.NameInfo(name="s", domain=3, address="10.0.0.3", port=14567, origin=INSTANCE, instance=INSTANCE)
    head = bytes.fromhex("0011 02 7300 00000003 0a000003 38e7")
    assert srs.encode(name) == head + INSTANCE + INSTANCE + bytes.fromhex("02 060e0000 00000000 00000000")


def test_a_message_that_stands_alone_must_be_alone() -> None:
    octets = srs.encode(srs.StreamRequest())
    for payload in (octets + octets, octets + srs.encode(srs.ReceiverInfo(name="a", instance=INSTANCE))):
        with pytest.raises(WireError, match="alone"):
            srs.decode(payload)


@pytest.mark.parametrize("octets", [b"\0", b"\0\0", b"\0\x63\0", b"\4", b"\0\3", b"\0\x0d\0", b"\0\x0d\0\1\0"])
def test_malformed_messages_are_refused(octets: bytes) -> None:
    with pytest.raises(WireError):
        srs.decode(octets)


@pytest.mark.parametrize("text", [b"\0", b"", b"\1a", b"\3a\0\0", b"\5ab\0"])
def test_texts_end_with_the_one_nul_that_their_length_counts(text: bytes) -> None:
    with pytest.raises(WireError, match="NUL"):
        srs.decode(b"\0\5" + bytes(32) + text)


def test_values_that_do_not_fit_are_refused() -> None:
    for message in (
        srs.ReceiverInfo(name="x" * 255, instance=INSTANCE),
        srs.ReceiverInfo(name="a\0b", instance=INSTANCE),
        srs.ReceiverInfo(name="a", instance=b"short"),
        srs.RegistrationResponse(client_id=-1),
        srs.RouteEnd(domains=(-1,), address="10.0.0.1", port=1, instance=INSTANCE),
    ):
        with pytest.raises(WireError):
            srs.encode(message)


@given(records(srs.SourceInfo))
def test_the_end_of_a_source_is_its_record_with_another_cost(info: srs.SourceInfo) -> None:
    assert srs.decode(srs.ended(srs.encode(info))) == [attrs.evolve(info, cost=srs.ENDED)]


@pytest.mark.parametrize(
    ("metadata", "number"),
    [
        (srs.hello(1), 1),
        (srs.hello(10**17), 10**17),
        (None, 0),
        (b"", 0),
        (b"12", 0),
        (b"stablecast connection ", 0),
        (b"stablecast connection x", 0),
        (b"stablecast connection " + b"9" * 19, 0),
    ],
)
def test_hello(metadata: bytes | None, number: int) -> None:
    """The connection counter of formal design, 7.10."""
    assert srs.parse_hello(metadata) == number


SIR = srs.SourceInfo(
    otid=bytes(range(32)),
    topic="orders/1",
    source="TCP:10.0.0.1:14371:00000055[77]",
    topic_index=77,
    functionality=3,
    request_address="10.0.0.1",
    request_port=14391,
    instance=INSTANCE,
)
CLIENT, SERVICE = ("10.0.0.1", 41000), ("10.0.0.9", 27000)
NEXT, BOTH = FrameFlag.NEXT, FrameFlag.NEXT | FrameFlag.COMPLETE
REQUEST = srs.RegistrationRequest(address="10.0.0.1", port=41000, session_id=5, host_id=6)
EXCHANGE: list[tuple[bool, Frame, dict[str, list[str]]]] = [
    (
        True,
        rsocket.setup_frame(rsocket.RsocketSetup(5000, 15_000)),
        {"rsocket.keepalive.interval": ["5000"], "rsocket.max_lifetime": ["15000"]},
    ),
    (
        True,
        Frame(FrameKind.REQUEST_RESPONSE, 1, metadata=srs.hello(1), payload=srs.encode(REQUEST)),
        {
            "message_id": ["1"],
            "registration_request.client_port": ["41000"],
            "registration_request.host_id": ["6"],
            "rsocket.metadata": ["stablecast connection 1"],
        },
    ),
    (
        False,
        Frame(FrameKind.PAYLOAD, 1, BOTH, 0, srs.hello(1), srs.encode(srs.RegistrationResponse(client_id=99))),
        {"message_id": ["2"], "registration_response.client_id": ["99"]},
    ),
    (
        True,
        Frame(
            FrameKind.REQUEST_FNF,
            3,
            payload=b"".join(
                srs.encode(message)
                for message in (
                    SIR,
                    srs.ReceiverInfo(name="orders/2", instance=INSTANCE),
                    srs.PatternInfo(name="^o.*", instance=INSTANCE),
                    srs.LeaveInfo(otid=SIR.otid, topic=SIR.topic, source=SIR.source, instance=INSTANCE),
                )
            ),
        ),
        {
            "message_id": ["4", "6", "9", "12"],
            "sir.topic": ["orders/1"],
            "sir.source": [SIR.source],
            "sir.cost": ["0"],
            "sir.ttl": ["60"],
            "rir.topic": ["orders/2"],
            "wir.pattern": ["^o.*"],
            "sli.topic": ["orders/1"],
        },
    ),
    (
        True,
        Frame(FrameKind.REQUEST_STREAM, 5, 0, rsocket.FOREVER, payload=srs.encode(srs.StreamRequest())),
        {"message_id": ["3"], "rsocket.request_n": ["2147483647"]},
    ),
    (
        False,
        Frame(
            FrameKind.PAYLOAD,
            5,
            NEXT,
            payload=srs.ended(srs.encode(SIR)) + srs.encode(srs.SourceDelete(otid=SIR.otid, topic=SIR.topic)),
        ),
        {"message_id": ["4", "5"], "sir.cost": ["-1"], "sdr.topic": ["orders/1"]},
    ),
    (
        False,
        Frame(FrameKind.PAYLOAD, 5, NEXT, payload=srs.encode(srs.ReceiverDelete(name="orders/2", instance=INSTANCE))),
        {"message_id": ["7"], "rdr.topic": ["orders/2"]},
    ),
    (
        False,
        Frame(FrameKind.PAYLOAD, 5, NEXT, payload=srs.encode(srs.PatternDelete(name="^o.*", instance=INSTANCE))),
        {"message_id": ["10"], "wdr.pattern": ["^o.*"]},
    ),
    (False, Frame(FrameKind.PAYLOAD, 5, NEXT, payload=srs.encode(srs.StreamRequest())), {"message_id": ["3"]}),
    (True, Frame(FrameKind.KEEPALIVE, 0, FrameFlag.RESPOND), {"rsocket.flags.respond": ["1"]}),
    (False, Frame(FrameKind.KEEPALIVE), {"rsocket.flags.respond": ["0"]}),
]


@pytest.mark.rows("T-410")
def test_public_dissectors_read_every_frame_that_we_send(tmp_path: Path) -> None:
    """And find no fault."""
    capture, path = Capture(), tmp_path / "srs.pcap"
    for from_client, frame, _ in EXCHANGE:
        ends = (CLIENT, SERVICE) if from_client else (SERVICE, CLIENT)
        capture.tcp(*ends, rsocket.encode(frame))
    capture.write(path)
    ports = {"tcp.port==27000": "lbmsrs"}
    packets = dissect(path, ports)
    assert summary(path, ports) == []
    for packet, (_, frame, expected) in zip(packets, EXCHANGE, strict=True):
        assert "lbmsrs" in packet.protocols, frame
        assert packet.problems == [], frame
        assert {name: packet.fields.get(f"lbmsrs.{name}") for name in expected} == expected
