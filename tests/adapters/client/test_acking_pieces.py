"""Explicit acknowledgements where messages come in pieces: of one that is not whole nothing is acknowledged (A1)."""

from typing import Any

import pytest

from stablecast.client.batch import Batch
from stablecast.client.session import ClientSession
from stablecast.core.errors import MisuseError
from stablecast.core.machine.serial import wire
from stablecast.core.protocol.events import UnrecoverableLoss
from stablecast.core.protocol.settings import Ordering
from stablecast.transports.codec import fragments
from stablecast.transports.codec.lbttcp import Run, build
from tests.adapters.client.test_going_on import ACKING, START, TOPIC_INDEX, Side, session_of

LARGE = b"abc" * 100
PIECES = fragments.encode_pieces(TOPIC_INDEX, START, LARGE, fragments.FRAGMENT_BYTES + len(LARGE) // 3)
"""A message of three."""

BEHIND = START + len(PIECES)


def piece(session: ClientSession, place: int) -> None:
    session.feed_run(Run(TOPIC_INDEX, wire(START + place), 1, len(PIECES[place]), PIECES[place], chained=True))


def behind(session: ClientSession, content: bytes = ACKING) -> None:
    """A plain message comes behind the one in pieces."""
    session.feed_run(Run(TOPIC_INDEX, wire(BEHIND), 1, len(content), build(TOPIC_INDEX, wire(BEHIND), [content])))


def begun(**changes: Any) -> tuple[Side, ClientSession]:
    """All but the last piece has come."""
    side = Side()
    session = session_of(side, **changes)
    piece(session, 0)
    piece(session, 1)
    return side, session


async def test_pieces_of_a_message_that_is_not_whole_are_not_acknowledged() -> None:
    side, session = begun(ordering=Ordering.ARRIVAL)
    behind(session)
    assert session._machine.window.acked == START - 1
    piece(session, 2)
    assert [told[1] for told in side.told if isinstance(told, tuple) and len(told) == 4] == [ACKING, LARGE]
    assert session._machine.window.acked == START - 1
    session.acknowledge(START, BEHIND - 1)
    assert session._machine.window.acked == BEHIND


async def test_a_message_that_never_gets_whole_holds_no_acknowledgement_up() -> None:
    """As with what is lost: the application is told, and what it acknowledged behind counts."""
    side, session = begun(ordering=Ordering.ARRIVAL)
    behind(session)
    session._pieces.lose(BEHIND - 1, BEHIND)
    session._machine.window.lose(BEHIND - 1, BEHIND, session._machine.outbox)
    session._drop_useless()
    assert UnrecoverableLoss(START, BEHIND - 2) in side.told
    assert session._machine.window.acked == BEHIND


async def test_messages_that_wait_to_be_taken_are_not_acknowledged() -> None:
    """They came after the one that is, with numbers below it. They count when the application is done with them."""
    taken: list[Batch] = []

    class Queue(Side):
        def deliver(self, batch: Batch) -> None:
            taken.append(batch)

    session = session_of(Queue(), ordering=Ordering.ARRIVAL)
    behind(session)
    session.feed_run(Run(TOPIC_INDEX, wire(START), 3, 3, build(TOPIC_INDEX, wire(START), [b"x"] * 3)))
    newest, waiting = taken
    newest.ack()
    assert session._machine.window.acked == START - 1
    waiting.ack_handle(1).ack()
    assert session._machine.window.acked == START + 1
    waiting.consumed()
    assert session._machine.window.acked == START + 1
    newest.ack()
    assert session._machine.window.acked == BEHIND


@pytest.mark.parametrize("ordering", Ordering)
async def test_a_number_within_a_message_that_is_not_whole_cannot_be_acknowledged(ordering: Ordering) -> None:
    _, session = begun(ordering=ordering)
    with pytest.raises(MisuseError, match="a piece of a message that is not delivered yet"):
        session.acknowledge(START + 1, START + 1)
    assert session._machine.window.acked == START - 1
    piece(session, 2)
    session.acknowledge(START, BEHIND - 1)
    assert session._machine.window.acked == BEHIND - 1
