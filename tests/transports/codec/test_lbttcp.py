"""The framing of a stream: any chunking gives the same messages as decoding one by one, in bounded memory."""

import tracemalloc
from collections.abc import Iterator
from itertools import chain, pairwise
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.codec import lbttcp
from stablecast.transports.codec.lbttcp import (
    MAX_ANNOUNCEMENT_BYTES,
    MAX_PENDING,
    Run,
    StreamDecoder,
    build,
    payloads,
    span,
)
from stablecast.transports.wire import headers as h
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.lbmc import DATA_HEADER, MAX_MESSAGE, Message, MessageKind, decode, encode
from tests.support.layouts import mutations
from tests.support.messages import MESSAGES

LAST = 0xFFFF_FFFF
GROWTH = 64
"""Bytes that decoding may allocate for each byte of input, whatever the input; one object per 8 bytes is the worst."""

PLAIN = st.builds(
    lambda topic, first, sizes: [
        Message(MessageKind.DATA, topic, (first + n) & LAST, (), bytes([n]) * size) for n, size in enumerate(sizes)
    ],
    st.integers(0, 2),
    st.sampled_from([0, 1, LAST - 1, LAST]),
    st.lists(st.integers(0, 20), min_size=1, max_size=6),
)
STREAMS = st.lists(PLAIN | st.lists(MESSAGES, max_size=2), max_size=6).map(
    lambda parts: list(chain.from_iterable(parts))
)


def chunks(octets: bytes, cuts: list[int]) -> Iterator[bytes]:
    places = sorted({cut % (len(octets) + 1) for cut in cuts} | {0, len(octets)})
    yield from (octets[start:stop] for start, stop in pairwise(places))


def flat(found: list[Run | Message]) -> list[Message]:
    messages = []
    for item in found:
        match item:
            case Run() if item.chained:
                messages += naive(bytes(item.block))
            case Run():
                messages += [
                    Message(MessageKind.DATA, item.topic_index, (item.first + n) & LAST, (), bytes(payload))
                    for n, payload in enumerate(payloads(item.block, 0, item.count))
                ]
            case Message():
                messages.append(item)
    return messages


def naive(octets: bytes) -> list[Message]:
    found, position = [], 0
    while position < len(octets):
        message, position = decode(octets, position)
        found.append(message)
    return found


@given(STREAMS, st.lists(st.integers(0, 1 << 16), max_size=8))
def test_any_chunking_gives_the_same(messages: list[Message], cuts: list[int]) -> None:
    stream = b"".join(map(encode, messages))
    decoder = StreamDecoder()
    found = [item for chunk in chunks(stream, cuts) for item in decoder.feed(chunk)]
    assert flat(found) == messages
    assert decoder.pending == 0


@given(STREAMS)
def test_byte_by_byte_gives_the_same(messages: list[Message]) -> None:
    stream = b"".join(map(encode, messages))
    decoder = StreamDecoder()
    assert flat([item for octet in stream for item in decoder.feed(bytes((octet,)))]) == messages


@given(STREAMS)
def test_runs_describe_their_block(messages: list[Message]) -> None:
    stream = b"".join(map(encode, messages))
    for item in StreamDecoder().feed(stream):
        if isinstance(item, Run):
            assert item.kind == MessageKind.DATA
            if item.chained:
                contents = naive(bytes(item.block))
                assert len(contents) == item.count > 0
                assert sum(len(message.payload) for message in contents) == item.payload_bytes
                continue
            assert len(payloads(item.block, 0, item.count)) == item.count > 0
            assert sum(map(len, payloads(item.block, 0, item.count))) == item.payload_bytes
            assert len(item.block) == item.payload_bytes + item.count * DATA_HEADER.size


@given(STREAMS)
def test_runs_are_as_long_as_they_can_be(messages: list[Message]) -> None:
    found = StreamDecoder().feed(b"".join(map(encode, messages)))
    for before, behind in pairwise(found):
        if isinstance(before, Run) and isinstance(behind, Run):
            follows = (before.first + before.count) & LAST
            names = (before.topic_index, follows, before.chained), (behind.topic_index, behind.first, behind.chained)
            assert names[0] != names[1]


def announcement(groups: int) -> Message:
    sizes = [h.StoreGroup(grp_idx=number, grp_sz=1) for number in range(groups)]
    return Message(MessageKind.CONTROL, headers=(h.Sri(version=3, low_sqn=0, high_sqn=9), *sizes))


def test_an_announcement_that_comes_again_is_not_read_again() -> None:
    once, other = encode(announcement(2)), encode(announcement(3))
    first, between, again = StreamDecoder().feed(once + other + once)
    assert first is again == announcement(2)
    assert between == announcement(3)


def test_a_large_announcement_is_not_remembered() -> None:
    """A peer that sends ever different announcements must not fill the cache."""
    large = encode(announcement(MAX_ANNOUNCEMENT_BYTES // 8))
    first, again = StreamDecoder().feed(large + large)
    assert first == again
    assert first is not again


@given(st.one_of(st.binary(max_size=80), STREAMS.map(lambda m: b"".join(map(encode, m))).flatmap(mutations)), st.data())
def test_broken_streams_end_like_the_naive_decoder(stream: bytes, data: st.DataObject) -> None:
    """The decoder accepts a prefix of whole messages, and refuses only what the naive decoder refuses too."""
    decoder = StreamDecoder()
    found: list[Run | Message] = []
    try:
        for chunk in chunks(stream, data.draw(st.lists(st.integers(0, 1 << 16), max_size=4))):
            found += decoder.feed(chunk)
    except WireError:
        with pytest.raises(WireError):
            naive(stream)
        with pytest.raises(WireError, match="broken before"):
            decoder.feed(b"")
    else:
        accepted = stream[: len(stream) - decoder.pending]
        assert flat(found) == naive(accepted)


def plain(count: int, size: int, first: int = 0) -> bytes:
    return b"".join(encode(Message(MessageKind.DATA, 7, (first + n) & LAST, (), bytes(size))) for n in range(count))


@given(st.one_of(STREAMS.map(lambda messages: b"".join(map(encode, messages))), st.binary(max_size=80)), st.data())
def test_a_short_read_is_walked_to_the_same_end(stream: bytes, data: st.DataObject) -> None:
    """The shortcut for a short read finds the same as the general path, or nothing."""
    cut = data.draw(st.integers(0, len(stream)))
    with patch.object(lbttcp, "_SHORT", 0):
        long = _fed(stream[:cut])
    assert _fed(stream[:cut]) == long


def _fed(octets: bytes) -> tuple[list[Run | Message], int] | str:
    decoder = StreamDecoder()
    try:
        return decoder.feed(octets), decoder.pending
    except WireError as error:
        return str(error)


def test_the_numbers_of_a_run_wrap() -> None:
    (run,) = StreamDecoder().feed(plain(4, 10, LAST - 1))
    assert isinstance(run, Run)
    assert (run.first, run.count, run.payload_bytes) == (LAST - 1, 4, 40)


def test_a_topic_index_is_no_carry_of_a_number() -> None:
    messages = [Message(MessageKind.DATA, 7, LAST), Message(MessageKind.DATA, 8, 0)]
    found = StreamDecoder().feed(b"".join(map(encode, messages)))
    assert [item.count for item in found if isinstance(item, Run)] == [1, 1]


def test_a_whole_read_is_used_as_it_is() -> None:
    stream = plain(3, 10)
    (run,) = StreamDecoder().feed(stream)
    assert isinstance(run, Run)
    assert run.block is stream
    assert all(isinstance(payload, bytes) for payload in payloads(run.block, 0, run.count))


def test_part_of_a_read_is_not_copied() -> None:
    stream = plain(3, 10)
    (run,) = StreamDecoder().feed(stream[:-1])
    assert isinstance(run, Run)
    assert isinstance(run.block, memoryview)
    assert (run.count, bytes(run.block)) == (2, stream[:44])


@pytest.mark.parametrize("bad", ["10000010", "03000010", "00000000", "0000000b", "08ff0004", "08ff0007"])
def test_a_bad_beginning_is_refused_before_the_rest_comes(bad: str) -> None:
    decoder = StreamDecoder()
    decoder.feed(plain(2, 5))
    with pytest.raises(WireError):
        decoder.feed(bytes.fromhex(bad))
    with pytest.raises(WireError, match="close its connection"):
        decoder.feed(plain(1, 5))
    assert decoder.pending == 0


def test_pending_bytes_are_bounded() -> None:
    longest = encode(Message(MessageKind.DATA, 1, 0, (), bytes(MAX_MESSAGE - DATA_HEADER.size)))
    decoder = StreamDecoder()
    assert decoder.feed(longest[:-1]) == []
    assert decoder.pending == len(longest) - 1 < MAX_PENDING
    assert len(decoder.feed(longest[-1:])) == 1
    assert decoder.pending == 0


MIXED = st.lists(
    st.tuples(st.integers(1, 60), st.integers(0, 3)).map(lambda part: [bytes(part[1])] * part[0]),
    min_size=1,
    max_size=8,
).map(lambda parts: list(chain.from_iterable(parts)))


@given(MIXED, st.sampled_from([0, 200, LAST - 20]), st.integers(0, 100), st.integers(0, 30))
def test_blocks_are_the_same_however_many_are_alike(sizes: list[bytes], first: int, at: int, skip: int) -> None:
    """One size for a while, then another: built, walked and split like message by message."""
    numbered = [bytes((n % 256,)) * len(content) for n, content in enumerate(sizes)]
    block = build(7, first, numbered)
    messages = [Message(MessageKind.DATA, 7, (first + n) & LAST, (), content) for n, content in enumerate(numbered)]
    assert block == b"".join(map(encode, messages))
    strange = Message(MessageKind.DATA, 7, (first + at) & LAST, (), b"")
    place = min(at, len(messages))
    mixed = [*messages[:place], strange, strange, *messages[place:]]
    found = StreamDecoder().feed(b"".join(map(encode, mixed)))
    assert flat(found) == mixed
    low = min(skip, len(numbered))
    for kept in (block, memoryview(block)):
        assert payloads(kept, low, len(numbered) - low) == numbered[low:]
        start, stop = span(kept, low, len(numbered) - low)
        assert bytes(kept[start:stop]) == b"".join(map(encode, messages[low:]))


HOSTILE = {
    "announced, never sent": b"\0\0\xff\xff" + bytes(8),
    "an empty message per topic": b"".join(encode(Message(MessageKind.DATA, n, 0)) for n in range(5000)),
    "shortest control messages": encode(Message(MessageKind.CONTROL, headers=(h.StoreId(flags=1),))) * 8000,
    "one long chain": encode(Message(MessageKind.CONTROL, headers=(h.StoreId(flags=1),) * 16_000)),
    "unknown headers": encode(Message(MessageKind.CONTROL, headers=(h.UnknownHeader(200, b"xx"),) * 16_000)),
}


@pytest.mark.no_cover
@pytest.mark.parametrize("stream", HOSTILE.values(), ids=HOSTILE.keys())
def test_memory_is_bounded_by_the_input(stream: bytes) -> None:
    decoder = StreamDecoder()
    tracemalloc.start()
    try:
        found = decoder.feed(stream)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found or decoder.pending == len(stream)
    assert peak < GROWTH * len(stream) + 4096


def test_trickled_bytes_are_not_copied_again_and_again() -> None:
    """A message that arrives byte by byte takes the memory of its bytes."""
    longest = encode(Message(MessageKind.DATA, 1, 0, (), bytes(MAX_MESSAGE - DATA_HEADER.size)))
    decoder = StreamDecoder()
    tracemalloc.start()
    try:
        for position in range(0, len(longest) - 2, 2):
            decoder.feed(longest[position : position + 2])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * MAX_PENDING
