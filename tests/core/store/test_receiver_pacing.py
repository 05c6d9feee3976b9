"""Receiver pacing: what all have consumed, and room for a flight."""

from collections.abc import Sequence

import pytest

from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import Pace, Role
from stablecast.core.store.receiver_pacing import ReceiverPacing
from stablecast.core.store.retention_terms import MAX_NUMBERS, Terms


def receivers(*known: tuple[int, Pace]) -> list[Client]:
    return [
        Client(Role.RECEIVER, 70, 0, "topic", 0, 7, 50, "a:1", "", 0, 0, acknowledged, (), pace=pace)
        for acknowledged, pace in known
    ]


@pytest.mark.rows("P-012", "P-563")
@pytest.mark.parametrize(
    ("known", "floor", "required"),
    [
        ((), 100, 100),
        (((4, Pace.RECEIVERS), (9, Pace.RECEIVERS)), 5, 5),
        (((4, Pace.NON_BLOCKING), (9, Pace.RECEIVERS)), 5, 10),
        (((4, Pace.NON_BLOCKING),), 5, 100),
        (((150, Pace.RECEIVERS),), 100, 100),
    ],
)
def test_the_slowest_receiver_decides(known: Sequence[tuple[int, Pace]], floor: int, required: int) -> None:
    """T18, C-33: without any receiver all have consumed everything."""
    paced = ReceiverPacing(consumed=1, required=1)
    paced.update(receivers(*known))
    assert (paced.floor(100), paced.required_floor(100)) == (floor, required)


@pytest.mark.rows("P-566")
@pytest.mark.parametrize(
    ("free_bytes", "messages", "room"),
    [(100, 0, True), (99, 0, False), (None, 0, True), (100, 10, True), (100, 11, False), (0, 11, False)],
)
def test_there_must_be_room_for_a_flight_in_bytes_and_messages(
    free_bytes: int | None, messages: int, room: bool
) -> None:
    """T17."""
    paced = ReceiverPacing(capacity=15)
    assert paced.has_room(Terms(flight_bytes=100, flight_messages=5), free_bytes, messages) is room


@pytest.mark.rows("P-127")
def test_a_repository_spans_what_numbers_can_tell_apart() -> None:
    assert ReceiverPacing().missing(Terms(flight_messages=1000), MAX_NUMBERS) == 1000
