"""Session messages: growing intervals, which only data resets."""

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.transports.reliable.source_session import Heartbeat

MS = MILLISECOND


def test_there_is_none_before_the_first_data() -> None:
    heart = Heartbeat(200 * MS, 10 * SECOND)
    assert heart.due is None
    assert not heart.is_due(SECOND)


def test_intervals_double_up_to_the_longest() -> None:
    """6.14 as observed: 200 ms after the data, then 400, 800, 1600 ms, here up to 2 s."""
    heart = Heartbeat(200 * MS, 2 * SECOND)
    heart.on_data(0)
    instants: list[int] = []
    while len(instants) < 7:
        assert heart.due is not None
        assert not heart.is_due(heart.due - 1)
        assert heart.is_due(heart.due)
        instants.append(heart.due // MS)
        heart.advance(heart.due)
    assert instants == [200, 600, 1400, 3000, 5000, 7000, 9000]


def test_data_starts_them_again() -> None:
    heart = Heartbeat(200 * MS, 2 * SECOND)
    heart.on_data(0)
    heart.advance(200 * MS)
    heart.on_data(300 * MS)
    assert heart.due == 500 * MS
    heart.advance(500 * MS)
    assert heart.due == 900 * MS


def test_each_has_a_number_from_0() -> None:
    heart = Heartbeat(1, 2)
    assert [heart.next_number() for _ in range(3)] == [0, 1, 2]
