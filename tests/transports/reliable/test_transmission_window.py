"""The datagrams that a source can retransmit: bounded by payload, memory and age."""

from hypothesis import given
from hypothesis import strategies as st

from stablecast.transports.reliable.transmission_window import OVERHEAD, TransmissionWindow


def filled(window: TransmissionWindow, sizes: list[int], now: int = 0) -> TransmissionWindow:
    for size in sizes:
        window.add([bytes(size)])
        window.leave(1, now)
    return window


def test_an_empty_window_begins_at_0() -> None:
    window = TransmissionWindow(100)
    assert (window.trail, window.lead, window.sent, len(window)) == (0, -1, -1, 0)


def test_payload_beyond_the_limit_moves_the_trail() -> None:
    window = filled(TransmissionWindow(100), [40, 40, 40])
    assert (window.trail, window.lead, window.payload_bytes) == (1, 2, 80)
    assert window.get(0) is None
    assert window.get(1) == bytes(40)


def test_the_newest_that_left_stays_however_large() -> None:
    window = filled(TransmissionWindow(100), [40, 500])
    assert (window.trail, len(window), window.payload_bytes) == (1, 1, 500)


def test_memory_counts_overhead() -> None:
    assert filled(TransmissionWindow(10_000, memory=2 * (OVERHEAD + 1)), [1, 1, 1]).trail == 1


def test_the_age_is_counted_from_the_first_sending() -> None:
    window = filled(TransmissionWindow(10_000, age_ns=50), [1], 0)
    filled(window, [1, 1], 60)
    assert window.trail == 1
    window.trim(110)
    assert window.trail == 1, "just as old as it may be"
    window.trim(111)
    assert (window.trail, list(window.sent_at)) == (2, [2])


def test_datagrams_that_have_not_left_stay_and_cannot_be_retransmitted() -> None:
    """The rate limit may delay more than fits the window: nothing of it is lost."""
    window = filled(TransmissionWindow(100), [90])
    for _ in range(3):
        window.add([bytes(90)])
    assert (window.trail, window.lead, window.sent) == (0, 3, 0)
    assert window.get(1) is None
    assert window.leave(1, 0) == 1
    assert (window.trail, window.get(1)) == (1, bytes(90))


def test_datagrams_that_leave_together_stay_until_more_leave() -> None:
    """Their common trail is not above any of them; a NAK finds the window trimmed."""
    window = filled(TransmissionWindow(100, age_ns=50), [40])
    assert window.add([bytes(40)] * 4) == 1
    assert window.leave(4, 10) == 1
    assert (window.trail, window.sent, len(window), window.sent_at[4]) == (1, 4, 4, 10)
    window.trim(10)
    assert (window.trail, len(window)) == (3, 2)


@given(st.lists(st.tuples(st.integers(0, 60), st.booleans()), max_size=40), st.integers(1, 120))
def test_it_holds_what_a_list_would(steps: list[tuple[int, bool]], limit: int) -> None:
    window, twin = TransmissionWindow(limit), list[int]()
    for size, leaves in steps:
        window.add([bytes(size)])
        twin.append(size)
        if leaves:
            window.leave(1, 0)
            oldest = window.lead + 1 - len(twin)
            while oldest < window.sent and sum(twin) > limit:
                twin.pop(0)
                oldest += 1
        assert [len(payload) for payload in window.datagrams.values()] == twin
        assert window.payload_bytes == sum(twin)
        assert list(window.datagrams) == list(range(window.trail, window.lead + 1))
