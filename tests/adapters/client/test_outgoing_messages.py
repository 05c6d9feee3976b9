"""Lists leave as blocks, and never as other bytes than one by one."""

from hypothesis import given
from hypothesis import strategies as st

from stablecast.client.outgoing_messages import FLUSH_BYTES, MAX_BLOCK_BYTES, TURN_MESSAGES, Outgoing
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import Run, StreamDecoder, payloads
from stablecast.transports.wire.lbmc import DATA_HEADER

LIFE = codec.join(9, 7)
PLENTY = (1 << 40, 1 << 40)
LONGEST = 60_000


def one_by_one(first: int, contents: list[bytes]) -> bytes:
    """As `try_send` does it."""
    return b"".join(
        DATA_HEADER.pack(0, 0, 12 + len(content), 7, number & 0xFFFF_FFFF) + content
        for number, content in enumerate(contents, first)
    )


@given(st.lists(st.binary(max_size=3), min_size=1, max_size=300), st.integers(0, 1 << 33), st.integers(1, 400))
def test_a_block_has_the_bytes_that_its_messages_have_one_by_one(
    contents: list[bytes], first: int, credit: int
) -> None:
    outgoing = Outgoing(LIFE)
    outgoing.next = first
    block = outgoing.portion(contents, 0, (credit, 1 << 40), LONGEST)
    assert block is not None
    octets, number, count, size, large = block
    assert (number, count, large) == (first, min(credit, len(contents)), ())
    assert outgoing.next == first + count
    assert size == sum(map(len, contents[:count]))
    assert octets == one_by_one(first, contents[:count])
    assert payloads(octets, 0, count) == contents[:count]


def test_a_message_that_must_go_alone_makes_no_block() -> None:
    """No credit, no room in bytes, no message, too long a message, or many that are longer than the first."""
    outgoing = Outgoing(LIFE)
    assert outgoing.portion([b"a", b"b"], 0, (0, 100), LONGEST) is None
    assert outgoing.portion([b"a", b"b"], 0, (5, 1), LONGEST) is None
    assert outgoing.portion([b"a", b"bb"], 0, PLENTY, 1) is None
    for content in (bytearray(b"a"), "a"):
        assert outgoing.portion([content], 0, PLENTY, LONGEST) is None  # type: ignore[list-item]  # as applications err
        assert outgoing.portion([b"a", content], 0, PLENTY, LONGEST) is None  # type: ignore[list-item]
    assert outgoing.portion([b"", *[bytes(LONGEST)] * 9], 0, PLENTY, LONGEST) is None
    assert outgoing.next == 0


def test_blocks_are_bounded() -> None:
    outgoing = Outgoing(LIFE)
    many = outgoing.portion([b"x"] * 9999, 0, PLENTY, LONGEST)
    large = outgoing.portion([bytes(1000)] * 999, 0, PLENTY, LONGEST)
    assert many is not None
    assert large is not None
    assert many[2] == TURN_MESSAGES
    assert len(large[0]) <= FLUSH_BYTES + 2000 < MAX_BLOCK_BYTES


def test_collected_messages_leave_once() -> None:
    outgoing = Outgoing(LIFE)
    outgoing.parts += [one_by_one(0, [b""]), b"", one_by_one(1, [b""]), b""]
    outgoing.next, outgoing.parts_bytes = 2, 24
    assert outgoing.bytes_from(0) == 0
    assert outgoing.collected() == (one_by_one(0, [b"", b""]), 0, 2, 0, ())
    assert (outgoing.parts, outgoing.parts_bytes) == ([], 0)


def test_pieces_leave_once_with_their_numbers() -> None:
    outgoing = Outgoing(LIFE)
    outgoing.next = 5
    assert [outgoing.cut(bytes(size), properties, 500) for size, properties in ((1000, 0), (10, 4), (460, 1))] == [
        7,
        8,
        9,
    ]
    assert outgoing.bytes_from(0) == 1470
    octets, first, count, size, large = outgoing.collected()
    assert (first, count, size, large) == (5, 5, 1470, ((5, 7),))
    (run,) = StreamDecoder().feed(octets)
    assert isinstance(run, Run)
    assert (outgoing.pieces, outgoing.large, outgoing.pieces_bytes, outgoing.bytes_from(0)) == ([], [], 0, 0)
