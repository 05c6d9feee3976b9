"""Segments to a stream: against a naive twin that writes bytes to their places."""

from hypothesis import given
from hypothesis import strategies as st

from stablecast.evidence.capture.tcp import MAX_SEGMENTS, MAX_WAITING, HalfStream, StreamChunk

STREAM = bytes(range(64))


@given(st.permutations(range(8)), st.integers(0, 0xFFFF_FFFF), st.booleans())
def test_segments_in_any_order_and_twice_make_the_stream(order: list[int], first: int, again: bool) -> None:
    half = HalfStream()
    half.open(first)
    found = b""
    for number in order * (2 if again else 1):
        start = number * 8
        sequence = (first + 1 + start) & 0xFFFF_FFFF
        chunks = half.feed(sequence, STREAM[start : start + 8], number)
        assert all(chunk.lost == 0 for chunk in chunks)
        found += b"".join(chunk.octets for chunk in chunks)
    assert found == STREAM
    assert half.close() == []
    assert half.frames == set()


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=12), st.integers(0, 0xFFFF_FFFF))
def test_overlapping_segments_give_each_byte_once(spans: list[tuple[int, int]], first: int) -> None:
    half = HalfStream()
    half.open(first)
    chunks = []
    for number, (start, length) in enumerate(spans):
        chunks += half.feed((first + 1 + start) & 0xFFFF_FFFF, STREAM[start : start + length], number)
    chunks += half.close()
    at, found = 0, dict[int, int]()
    for chunk in chunks:
        at += chunk.lost
        found |= {at + place: octet for place, octet in enumerate(chunk.octets)}
        at += len(chunk.octets)
    assert found == {place: STREAM[place] for start, length in spans for place in range(start, min(start + length, 64))}


def test_a_capture_may_begin_in_the_middle() -> None:
    half = HalfStream()
    assert half.feed(500, b"middle", 1) == [StreamChunk(b"middle", 1)]
    assert not half.whole
    assert half.opens_anew(499)


def test_the_first_segment_may_be_captured_later() -> None:
    half = HalfStream(start=0xFFFF_FFFE)
    assert half.feed(3, b"second", 1) == []
    assert half.feed(0xFFFF_FFFE, b"first", 2) == [StreamChunk(b"first", 2), StreamChunk(b"second", 1)]


def test_a_start_far_away_is_that_of_another_part() -> None:
    half = HalfStream(start=0)
    assert half.feed(MAX_WAITING, b"middle", 1) == [StreamChunk(b"middle", 1)]


def test_a_repeated_syn_opens_nothing() -> None:
    half = HalfStream()
    assert not half.opens_anew(7)
    half.open(7)
    half.open(7)
    assert half.whole
    assert not half.opens_anew(7)
    assert half.opens_anew(8)


def test_bytes_behind_a_gap_wait_and_are_given_up_at_the_end() -> None:
    half = HalfStream()
    assert half.feed(0, b"start", 1) == [StreamChunk(b"start", 1)]
    assert half.feed(10, b"behind", 2) == []
    assert half.frames == {2}
    assert half.close() == [StreamChunk(b"behind", 2, lost=5)]


def test_bytes_that_the_capture_cut_off_are_lost() -> None:
    half = HalfStream()
    assert half.feed(0, b"cut", 1, missing=4) == [StreamChunk(b"cut", 1)]
    assert half.feed(7, b"next", 2) == [StreamChunk(b"next", 2, lost=4)]


def test_a_gap_is_given_up_when_too_many_bytes_wait() -> None:
    half = HalfStream()
    half.feed(0, b"!", 1)
    big = bytes(MAX_WAITING // 2)
    assert half.feed(2, big, 2) == []
    assert half.feed(2 + len(big), big, 3) == []
    assert [(chunk.frame, chunk.lost) for chunk in half.feed(2 + 2 * len(big), b"!", 4)] == [(2, 1), (3, 0), (4, 0)]


def test_a_gap_is_given_up_when_too_many_segments_wait() -> None:
    half = HalfStream()
    half.feed(0, b"!", 1)
    for number in range(MAX_SEGMENTS):
        assert half.feed(2 + 2 * number, b"!", number) == []
    assert [chunk.lost for chunk in half.feed(9999, b"!", 1)] == [1]
