"""Messages that did not come plain, as an application sees them."""

from stablecast.client.batch import AssembledBatch
from stablecast.core.protocol.effects import Deliver
from stablecast.transports.codec.fragments import WholeMessage
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.wire import properties
from tests.adapters.client.test_inbox import Told


def assembled(told: Told, *wholes: WholeMessage) -> AssembledBatch:
    run = Run(7, 9, 1, 1, b"", chained=True)
    return AssembledBatch(list(wholes), run, Deliver(1, 0, 1, 9, recovered=False, done=True), 5, told)


def test_properties_that_cannot_be_read_are_none() -> None:
    """The payload is the application's, whichever peer sent it."""
    good = properties.block({"symbol": "ABC"})
    batch = assembled(
        Told(),
        WholeMessage(1, 1, b"p", good),
        WholeMessage(2, 2, b"q", good[:-3]),
        WholeMessage(3, 3, b"r", b"nonsense"),
    )
    assert [batch.properties(index) for index in range(3)] == [{"symbol": "ABC"}, {}, {}]
    assert batch.payloads() == [b"p", b"q", b"r"]
    assert batch.size == 3 + 2 * len(good) - 3 + len(b"nonsense"), "properties take memory, too"


def test_numbers_between_messages_are_not_told_to_be_consumed() -> None:
    """Pieces that were passed, or that a message needs which is not whole yet."""
    told = Told()
    batch = assembled(
        told, WholeMessage(1, 3, b"p"), WholeMessage(4, 4, b"q"), WholeMessage(8, 9, b"r"), WholeMessage(10, 12, b"s")
    )
    batch.consumed(2)
    assert told.consumptions == [(1, 4)]
    batch.consumed()
    assert told.consumptions == [(1, 4), (8, 12)]
    several = assembled(told, WholeMessage(1, 3, b"p"), WholeMessage(8, 9, b"r"))
    several.consumed()
    assert told.consumptions[2:] == [(1, 3), (8, 9)]


def test_a_part_of_messages_that_came_in_pieces_has_those_messages() -> None:
    told = Told()
    batch = assembled(told, WholeMessage(1, 3, b"p"), WholeMessage(4, 4, b"q"), WholeMessage(8, 9, b"r"))
    parts = [batch.part(0, 1), batch.take_out(1), batch.part(2, 3)]
    assert [(part.payloads(), part.numbers(0)) for part in parts] == [
        ([b"p"], (1, 3)),
        ([b"q"], (4, 4)),
        ([b"r"], (8, 9)),
    ]
    assert (batch.count, batch.reported) == (3, 2)
