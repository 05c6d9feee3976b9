"""Retransmissions built from the bytes of a run equal those built message by message."""

from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports import codec
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc, uniform_runs
from tests.support.retransmissions import encode_recovered
from tests.support.vocabulary import INCARNATIONS

CHAINS: list[tuple[h.Header, ...]] = [
    (),
    (h.Fragment(first_sqn=4, offset=0, len=90),),
    (h.Fragment(first_sqn=4, offset=0, len=90), h.ApplicationChain(first=6, chain=b"\xff\x08\0\0\0\0\0\1")),
]


@given(
    INCARNATIONS,
    INCARNATIONS,
    st.lists(st.binary(max_size=40), min_size=1, max_size=5),
    st.booleans(),
    st.data(),
    st.sampled_from(CHAINS),
)
def test_a_run_is_sent_again_as_its_messages_are(
    session: int, sender: int, payloads: list[bytes], proactive: bool, data: st.DataObject, chain: tuple[h.Header, ...]
) -> None:
    """The chain of a message is retransmitted with it."""
    messages = [codec.Recovered(session, sender, place, one, proactive, chain) for place, one in enumerate(payloads)]
    block = b"".join(message.data for message in messages)
    skip = data.draw(st.integers(0, len(messages)))
    count = data.draw(st.integers(0, len(messages) - skip))
    again = codec.encode_again(session, sender, memoryview(block), skip, count, proactive)
    wanted = messages[skip : skip + count]
    assert again == b"".join(map(encode_recovered, wanted))
    found, at = [], 0
    while at < len(again):
        message, at = lbmc.decode(again, at)
        found.append(codec.decode_recovered(message))
    assert found == wanted


def test_a_run_of_messages_that_all_have_no_room_is_not_sent_again() -> None:
    """The messages are uniform, and enough of them to be handled at once."""
    block = b"".join(
        codec.Recovered(1, 1, place, bytes(lbmc.MAX_MESSAGE - 12)).data for place in range(uniform_runs.MANY)
    )
    assert codec.encode_again(1, 1, block, 0, uniform_runs.MANY) == b""


def test_a_message_without_room_for_more_headers_is_not_retransmitted() -> None:
    large, small = bytes(lbmc.MAX_MESSAGE - 12), bytes(lbmc.MAX_MESSAGE - 12 - codec.AGAIN_BYTES)
    block = b"".join(codec.Recovered(1, 1, number, payload).data for number, payload in enumerate((large, small)))
    (message, end) = lbmc.decode(again := codec.encode_again(1, 1, block, 0, 2))
    assert (message.sequence, end) == (1, len(again))
