"""Unicast through a router: where it goes, and why it does not. Rows R-090, R-167, R-203."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.protocol.messages import SourceInfoRequest
from stablecast.transports import codec
from stablecast.transports.codec.routed import MAX_HOPS, Endpoint, delivered, destination_of, hopped, routed
from stablecast.transports.routing import forwarding
from stablecast.transports.routing.forwarding import MAX_STREAMS, Forwarding, Onward, UnicastDrop, way_of
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.headers import Destination, Stream, UnknownHeader

PLAIN = codec.encode(SourceInfoRequest(codec.join(1, 2)))
HERE, THERE = Endpoint(1, "10.0.1.1", 14_391), Endpoint(2, "10.0.2.1", 14_392)


def sent(number: int = 1, to: Endpoint = THERE, stream: int = 7) -> bytes:
    return routed(PLAIN, to, HERE, Stream(stream_id=stream, sqn=number, ctxinst=b"context0"))


def passed(forwarding: Forwarding, octets: bytes) -> Onward | UnicastDrop:
    """What becomes of a message that came from domain 1."""
    way = way_of(octets)
    return way if isinstance(way, UnicastDrop) else forwarding.route(1, octets, way)


def test_an_origin_in_another_domain_is_not_believed() -> None:
    octets = routed(PLAIN, HERE, THERE, Stream(stream_id=7, sqn=1, ctxinst=b"context0"))
    assert passed(Forwarding({1: 0, 2: 1}), octets) is UnicastDrop.FOREIGN


@pytest.mark.rows("R-201")
def test_a_message_leaves_in_the_domain_of_its_destination_with_one_hop_more() -> None:
    onward = passed(Forwarding({1: 0, 2: 1}), sent())
    assert isinstance(onward, Onward)
    assert (onward.portal, onward.address, len(onward.octets)) == (1, "10.0.2.1:14392", len(sent()))
    message, _ = lbmc.decode(onward.octets)
    way = destination_of(message)
    assert way is not None
    assert (way.hops, way.origin) == (1, HERE)
    assert lbmc.encode(delivered(message)) == PLAIN


@pytest.mark.rows("R-090", "R-167", "R-203")
def test_why_a_message_goes_no_further() -> None:
    forwarding = Forwarding({1: 0, 2: 1})
    assert passed(forwarding, b"\x08") is UnicastDrop.MALFORMED
    assert passed(forwarding, PLAIN) is UnicastDrop.NO_DESTINATION
    assert passed(forwarding, sent(to=Endpoint(3, "10.0.3.1", 1))) is UnicastDrop.NO_ROUTE
    message, _ = lbmc.decode(sent())
    old = tuple(header for header in message.headers if isinstance(header, Destination))
    rest = tuple(header for header in message.headers if not isinstance(header, Destination | Stream))
    headers = (*old, *rest)
    assert passed(forwarding, lbmc.encode(lbmc.Message(message.kind, headers=headers))) is UnicastDrop.NO_STREAM
    tired = sent()
    for _ in range(MAX_HOPS):
        tired = hopped(tired)
    assert passed(forwarding, tired) is UnicastDrop.HOPS
    assert isinstance(passed(forwarding, sent()), Onward)
    assert passed(forwarding, sent()) is UnicastDrop.DUPLICATE


def test_the_longest_silent_stream_is_forgotten() -> None:
    forwarding = Forwarding({2: 1})
    for stream in range(MAX_STREAMS + 1):
        passed(forwarding, sent(stream=stream))
    assert len(forwarding.streams) == MAX_STREAMS
    assert isinstance(passed(forwarding, sent(stream=0)), Onward)


def test_a_stream_that_goes_on_is_not_the_longest_silent_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "MAX_STREAMS", 2)
    here = Forwarding({2: 1})
    for number, stream in ((1, 0), (1, 1), (2, 0), (1, 2)):
        passed(here, sent(number, stream=stream))
    assert passed(here, sent(2, stream=0)) is UnicastDrop.DUPLICATE
    assert isinstance(passed(here, sent(1, stream=1)), Onward)


@given(st.binary(max_size=120) | st.binary(max_size=8).map(lambda tail: sent()[:-3] + tail))
def test_hostile_bytes_are_dropped(octets: bytes) -> None:
    assert isinstance(passed(Forwarding({1: 0, 2: 1}), octets), UnicastDrop | Onward)


@pytest.mark.rows("R-177")
@pytest.mark.parametrize("size", [0, 1, 1_400, 8_192, 65_000, 65_265])
def test_messages_of_every_size_pass_whole(size: int) -> None:
    """R-177."""
    plain = lbmc.encode(lbmc.Message(lbmc.MessageKind.DATA, payload=bytes(size)))
    onward = passed(
        Forwarding({1: 0, 2: 1}), routed(plain, THERE, HERE, Stream(stream_id=7, sqn=1, ctxinst=b"context0"))
    )
    assert isinstance(onward, Onward)
    assert lbmc.encode(delivered(lbmc.decode(onward.octets)[0])) == plain


@pytest.mark.rows("R-238")
def test_headers_of_later_releases_pass() -> None:
    """R-238."""
    strange = UnknownHeader(code=120, body=bytes(4))
    message, _ = lbmc.decode(PLAIN)
    plain = lbmc.encode(attrs.evolve(message, headers=(*message.headers, strange)))
    onward = passed(
        Forwarding({1: 0, 2: 1}), routed(plain, THERE, HERE, Stream(stream_id=7, sqn=1, ctxinst=b"context0"))
    )
    assert isinstance(onward, Onward)
    assert strange in delivered(lbmc.decode(onward.octets)[0]).headers
