"""Columns find the same as a walk from message to message."""

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.wire import uniform_runs
from stablecast.transports.wire.lbmc import DATA_HEADER

MASK = 0xFFFF_FFFF
HEADS = st.binary(max_size=6).map(lambda chain: DATA_HEADER.pack(10, 5, 0, 7, 0) + chain)
NUMBERS = st.sampled_from([0, 1, 250, 255, 65_530, MASK - 3, MASK]) | st.integers(0, MASK)


def headed(head: bytes, number: int, payload: bytes) -> bytes:
    kind, code, _, topic, _ = DATA_HEADER.unpack_from(head)
    lead = DATA_HEADER.pack(kind, code, len(head) + len(payload), topic, number & MASK)
    return lead + head[DATA_HEADER.size :] + payload


def naive(data: bytes, start: int, head: int) -> int:
    length = int.from_bytes(data[start + 2 : start + 4])
    number = int.from_bytes(data[start + 8 : start + 12])
    found, lead = 0, data[start : start + 8]
    while start + length <= len(data):
        one = data[start : start + length]
        expected = lead + (number + found & MASK).to_bytes(4)
        if one[:12] != expected or one[12:head] != data[start - found * length :][12:head]:
            break
        found, start = found + 1, start + length
    return found


@given(HEADS, NUMBERS, st.integers(1, 700), st.integers(0, 3), st.binary(max_size=40), st.integers(0, 5))
def test_messages_built_at_once_equal_those_built_one_by_one(
    head: bytes, number: int, messages: int, size: int, rest: bytes, before: int
) -> None:
    contents = [bytes((n % 251,)) * size for n in range(messages)]
    block = b"".join(headed(head, number + n, content) for n, content in enumerate(contents))
    lead = headed(head, 0, bytes(size))[: len(head)]
    assert uniform_runs.build(lead, number, contents) == block
    assert uniform_runs.count(bytes(before) + block + rest, before, len(head)) >= messages
    length = len(head) + size
    assert uniform_runs.size(block, messages) == uniform_runs.size(memoryview(block + rest), messages) == length
    skip = min(before, messages)
    assert uniform_runs.payloads(block, len(head), length, skip * length, messages - skip) == contents[skip:]


@given(HEADS, NUMBERS, st.integers(2, 600), st.integers(0, 3), st.data())
def test_the_first_message_that_differs_ends_what_is_alike(
    head: bytes, number: int, messages: int, size: int, data: st.DataObject
) -> None:
    block = bytearray(b"".join(headed(head, number + n, bytes(size)) for n in range(messages)))
    at = data.draw(st.integers(len(head) + size, len(block) - 1))
    block[at] ^= data.draw(st.integers(1, 255))
    octets = bytes(block)
    assert uniform_runs.count(octets, 0, len(head)) == naive(octets, 0, len(head))


@given(NUMBERS, st.lists(st.sampled_from([1] * 8 + [2, 3, -3, 0, 256, 65_536]), min_size=2, max_size=40))
def test_numbers_that_jump_more_than_once_end_at_the_first_jump(number: int, steps: list[int]) -> None:
    """A repair among later datagrams: bytes of a number differ at several places."""
    numbers = list(accumulate(steps, initial=number))
    head = DATA_HEADER.pack(0, 0, 0, 7, 0)
    octets = b"".join(headed(head, one, b"") for one in numbers)
    assert uniform_runs.count(octets, 0, len(head)) == naive(octets, 0, len(head))


@given(st.lists(st.integers(0, 2), min_size=1, max_size=20), st.integers(1, 20))
def test_lengths_that_differ_are_noticed(sizes: list[int], messages: int) -> None:
    block = b"".join(headed(DATA_HEADER.pack(0, 0, 0, 7, 0), n, bytes(size)) for n, size in enumerate(sizes))
    some = sizes[:messages]
    assert uniform_runs.size(block, len(some)) == (12 + some[0] if len(set(some)) == 1 else 0)


def test_a_block_shorter_than_its_messages_would_be_has_several_lengths() -> None:
    block = headed(DATA_HEADER.pack(0, 0, 0, 7, 0), 0, b"long") + headed(DATA_HEADER.pack(0, 0, 0, 7, 0), 1, b"")
    assert uniform_runs.size(block, 2) == 0
