"""Messages across domains: wrapped and unwrapped without loss, hops that are counted, streams that repeat."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports import codec
from stablecast.transports.codec.routed import (
    MAX_HOPS,
    ROUTED_BYTES,
    STREAM_WINDOW,
    Endpoint,
    StreamWindow,
    delivered,
    destination_of,
    hopped,
    routed,
    single_messages,
)
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.headers import RxReq, Stream
from tests.support.layouts import sample
from tests.support.retransmissions import encode_recovered
from tests.support.vocabulary import MESSAGES, U32, addresses

HERE, THERE = Endpoint(1, "10.0.0.1", 14391), Endpoint(2, "10.0.0.2", 14567)
STREAM = Stream(stream_id=3, sqn=4, ctxinst=b"INSTANCE")
ENDPOINTS = st.builds(
    lambda domain, address: Endpoint.of(f"{domain}:{address}"), st.integers(1, (1 << 32) - 1), addresses()
)
CONTROL = MESSAGES.map(codec.encode)
REPAIRS = st.builds(codec.Recovered, st.just(5), st.just(6), U32, st.binary(max_size=300), st.booleans())


@given(CONTROL | REPAIRS.map(encode_recovered), ENDPOINTS, ENDPOINTS, U32, U32)
def test_a_message_comes_out_as_it_went_in(
    data: bytes, to: Endpoint, origin: Endpoint, stream: int, number: int
) -> None:
    position = Stream(stream_id=stream, sqn=number, ctxinst=b"INSTANCE")
    wrapped = routed(data, to, origin, position)
    assert len(wrapped) == len(data) + ROUTED_BYTES
    message, end = lbmc.decode(wrapped)
    way = destination_of(message)
    assert end == len(wrapped)
    assert way is not None
    assert (way.destination, way.origin, way.hops, way.stream) == (to, origin, 0, position)
    assert lbmc.encode(delivered(message)) == data
    further = hopped(hopped(wrapped))
    again = destination_of(lbmc.decode(further)[0])
    assert again == attrs.evolve(way, hops=2)
    assert len(further) == len(wrapped)


@pytest.mark.rows("R-090")
def test_a_message_that_runs_in_a_circle_ends() -> None:
    data = routed(lbmc.encode(lbmc.Message(lbmc.MessageKind.CONTROL, headers=(sample(RxReq),))), THERE, HERE, STREAM)
    for _ in range(MAX_HOPS):
        data = hopped(data)
    with pytest.raises(WireError, match="circle"):
        hopped(data)


def test_a_hop_is_counted_wherever_the_destination_stands() -> None:
    data = routed(lbmc.encode(lbmc.Message(lbmc.MessageKind.CONTROL, headers=(sample(RxReq),))), THERE, HERE, STREAM)
    message, _ = lbmc.decode(data)
    turned = lbmc.encode(attrs.evolve(message, headers=message.headers[::-1]))
    way = destination_of(lbmc.decode(hopped(turned))[0])
    assert way is not None
    assert way.hops == 1


@given(CONTROL, st.data())
def test_flipped_bits_raise_only_the_one_error(message: bytes, data: st.DataObject) -> None:
    raw = bytearray(routed(message, THERE, HERE, STREAM))
    for place in data.draw(st.lists(st.integers(0, 8 * len(raw) - 1), min_size=1, max_size=4)):
        raw[place // 8] ^= 1 << place % 8
    octets = bytes(raw)
    for read in (hopped, lambda one: destination_of(lbmc.decode(one)[0]), lambda one: list(single_messages(one))):
        try:
            read(octets)
        except WireError:
            continue


def test_a_message_without_a_destination_takes_no_hop() -> None:
    with pytest.raises(WireError, match="without a destination"):
        hopped(lbmc.encode(lbmc.Message(lbmc.MessageKind.CONTROL, headers=(sample(RxReq),))))


def test_a_message_that_becomes_too_large_is_refused() -> None:
    large = encode_recovered(codec.Recovered(5, 6, 1, bytes(lbmc.MAX_MESSAGE - 60)))
    with pytest.raises(WireError, match="exceeds"):
        routed(large, THERE, HERE, STREAM)


@pytest.mark.parametrize("text", ["", "x", "1:10.0.0.1:", f"{1 << 32}:10.0.0.1:1"])
def test_what_is_no_end_point_is_refused(text: str) -> None:
    with pytest.raises(WireError):
        Endpoint.of(text)


@given(st.lists(CONTROL, min_size=1, max_size=5))
def test_messages_are_separated(several: list[bytes]) -> None:
    assert list(single_messages(b"".join(several))) == several
    with pytest.raises(WireError):
        list(single_messages(b"".join(several)[:-1]))


@given(U32, st.lists(st.integers(-STREAM_WINDOW + 1, STREAM_WINDOW), max_size=60))
def test_a_number_is_taken_once(start: int, steps: list[int]) -> None:
    """The numbers stay near each other; each is taken at its first arrival, also where they wrap."""
    window, seen = StreamWindow(), set[int]()
    top = start
    for step in (0, *steps):
        number = max(start, top + step) if step <= 0 else top + step
        if top - number >= STREAM_WINDOW:
            continue
        assert window.first_time(number % (1 << 32)) is (number not in seen)
        seen.add(number)
        top = max(top, number)


def test_a_number_before_the_window_counts_as_seen() -> None:
    window = StreamWindow()
    assert window.first_time(STREAM_WINDOW)
    assert not window.first_time(0)
    assert window.first_time(1)
    assert not window.first_time(1)
