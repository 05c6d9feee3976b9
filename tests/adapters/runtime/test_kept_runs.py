"""Runs behind tokens: bytes are kept until their last use, and retransmissions are joined."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.machine import serial
from stablecast.core.protocol.inputs import Lost
from stablecast.runtime.kept_runs import MAX_RECOVERED_RUN, Continuity, Tokens
from stablecast.transports.codec import Recovered, RecoveredRun, join
from stablecast.transports.codec.chained_messages import ChainedPiece, pieces
from stablecast.transports.codec.lbttcp import Run, payloads, span
from stablecast.transports.wire.headers import Fragment
from tests.adapters.runtime.peers import data

SESSION = join(9, 4)
LIFE = join(5, 7)
PAYLOADS = st.lists(st.binary(max_size=20), min_size=1, max_size=12)


def run_of(contents: list[bytes], first: int = 1) -> Run:
    block = b"".join(data(serial.wire(first + place), payload) for place, payload in enumerate(contents))
    return Run(7, serial.wire(first), len(contents), sum(map(len, contents)), block)


@given(PAYLOADS, st.data(), st.booleans())
def test_parts_of_a_block(contents: list[bytes], draw: st.DataObject, view: bool) -> None:
    skip = draw.draw(st.integers(0, len(contents)))
    count = draw.draw(st.integers(0, len(contents) - skip))
    block = run_of(contents).block
    assert payloads(memoryview(block) if view else block, skip, count) == contents[skip : skip + count]
    start, stop = span(block, skip, count)
    assert payloads(block[start:stop], 0, count) == contents[skip : skip + count]


def test_a_run_is_kept_until_its_last_use() -> None:
    tokens = Tokens()
    run = run_of([b"a", b"bb", b"ccc"])
    token = tokens.keep(run, LIFE)
    assert tokens.use(token, done=False) == (run, LIFE)
    assert payloads(tokens.block(token, 1, 1, done=False), 0, 1) == [b"bb"]
    assert tokens.block(token, 0, 2, done=False) == run_of([b"a", b"bb"]).block
    assert tokens.block(token, 0, 3, done=True) is run.block
    assert not len(tokens)
    tokens.drop(tokens.keep(run, LIFE))
    assert not len(tokens)


def test_neighbours_become_one_run() -> None:
    """Across the wrap of the numbers, and not across a gap, another life or another session."""
    tokens = Tokens()
    top = serial.MODULUS - 1
    messages = [
        Recovered(SESSION, LIFE, top, b"a"),
        Recovered(SESSION, LIFE, 0, b"bb"),
        Recovered(SESSION, LIFE, 2, b"c"),
        Recovered(SESSION, join(6, 7), 3, b"d"),
        Recovered(join(9, 5), join(6, 7), 4, b"e"),
    ]
    found = list(tokens.keep_recovered(messages))
    assert [(event.wire_first, event.count) for event in found] == [(top, 2), (2, 1), (3, 1), (4, 1)]
    assert [event.incarnation for event in found] == [LIFE, LIFE, join(6, 7), join(6, 7)]
    assert all(event.recovered for event in found)
    run, sender = tokens.use(found[0].token, done=True)
    assert (payloads(run.block, 0, 2), run.payload_bytes, sender) == ([b"a", b"bb"], 3, LIFE)


def test_pieces_of_large_messages_keep_their_headers() -> None:
    """They are in runs of their own."""
    tokens = Tokens()
    chain = (Fragment(first_sqn=1, offset=0, len=9),)
    messages = [Recovered(SESSION, LIFE, 0, b"a"), Recovered(SESSION, LIFE, 1, b"bb", False, chain)]
    plain, cut = (tokens.use(event.token, done=True)[0] for event in tokens.keep_recovered(messages))
    assert (plain.chained, cut.chained, cut.payload_bytes) == (False, True, 2)
    assert pieces(cut.block, 0, 1) == [ChainedPiece(b"bb", chain[0])]


@pytest.mark.rows("P-436")
def test_unrequested_retransmissions_are_marked() -> None:
    """A proactive retransmission."""
    tokens = Tokens()
    messages = [Recovered(SESSION, LIFE, 1, b"a"), Recovered(SESSION, LIFE, 2, b"b", proactive=True)]
    found = list(tokens.keep_recovered(messages))
    assert [(event.wire_first, event.recovered, event.proactive) for event in found] == [
        (1, True, False),
        (2, True, True),
    ]


def test_a_gap_of_a_stream_is_a_loss() -> None:
    """Across the wrap of the numbers; a stream may begin anywhere, and what comes again loses nothing."""
    streams = Continuity()
    top = serial.MODULUS - 1
    assert streams.check(LIFE, run_of([b"a"], top - 4)) is None
    assert streams.check(LIFE, run_of([b"a"], top - 3)) is None
    assert streams.check(LIFE, run_of([b"a", b"b"], 1)) == Lost(LIFE, top - 2, 4)
    assert streams.check(LIFE, run_of([b"b"], 2)) is None
    assert streams.check(SESSION, run_of([b"b"], 9)) is None
    streams.forget(LIFE)
    assert streams.check(LIFE, run_of([b"b"], 9)) is None
    assert streams.check(LIFE, run_of([b"z"], top)) is None, "it is further below than above"
    assert streams.check(LIFE, run_of([b"c"], 2)) == Lost(LIFE, 0, 2)


def test_a_run_of_retransmissions_is_bounded() -> None:
    tokens = Tokens()
    messages = [Recovered(SESSION, LIFE, number, b"x") for number in range(MAX_RECOVERED_RUN + 1)]
    assert [event.count for event in tokens.keep_recovered(messages)] == [MAX_RECOVERED_RUN, 1]
    assert list(tokens.keep_recovered([])) == []


def test_series_are_runs_of_their_own() -> None:
    """The messages before and after them do not matter."""
    tokens = Tokens()
    contents = [b"%d" % (n % 10) for n in range(3 * MAX_RECOVERED_RUN)]
    messages: list[Recovered | RecoveredRun] = [
        Recovered(SESSION, LIFE, 4, b"a"),
        RecoveredRun(SESSION, LIFE, 5, contents, proactive=True),
        RecoveredRun(SESSION, LIFE, 5 + len(contents), contents),
        Recovered(SESSION, LIFE, 5 + 2 * len(contents), b"b"),
    ]
    found = list(tokens.keep_recovered(messages))
    assert [(event.wire_first, event.count, event.proactive) for event in found] == [
        (4, 1, False),
        (5, len(contents), True),
        (5 + len(contents), len(contents), False),
        (5 + 2 * len(contents), 1, False),
    ]
    run, sender = tokens.use(found[1].token, done=True)
    assert (payloads(run.block, 0, run.count), run.payload_bytes, sender) == (contents, len(contents), LIFE)
