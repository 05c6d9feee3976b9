"""The first number of a receiver: the stores' number, the request maximum and the application's wish."""

from typing import Any

import pytest

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import Event, RegistrationComplete, RegistrationFlag
from stablecast.core.protocol.messages import Pace
from stablecast.core.protocol.settings import ReceiverConfig
from stablecast.core.receiver.arrival import FirstNumberChoice
from tests.core.drivers import code
from tests.core.samples import LIFE, drain, events

NONE, QUORUM = RegistrationFlag.NONE, RegistrationFlag.QUORUM


def asked(said: int, high: int, recovers: bool = True, **changes: Any) -> tuple[FirstNumberChoice, list[fx.Effect]]:
    starting, out = FirstNumberChoice(ReceiverConfig("topic", LIFE, "me:1", **changes)), list[fx.Effect]()
    starting.ask(said, high, recovers, out)
    return starting, out


def chosen(starting: FirstNumberChoice, wish: int, high: int, everyone: bool = True) -> tuple[int, list[Event]]:
    out: list[fx.Effect] = []
    return starting.choose(wish, high, everyone, out), events(out)


@pytest.mark.rows("P-421", "P-422", "P-676")
def test_the_application_hears_three_numbers() -> None:
    """Newest, lowest by the request maximum, lowest."""
    assert asked(1, 6)[1] == [fx.AskLow(6, 1, 1)]
    assert asked(1, 6, request_maximum=2)[1] == [fx.AskLow(6, 4, 1)]
    assert asked(5, 6, request_maximum=2)[1] == [fx.AskLow(6, 5, 5)]
    assert asked(9, 6)[1] == [fx.AskLow(6, 7, 7)]


@pytest.mark.rows("P-419", "P-423", "P-424")
@pytest.mark.parametrize(("wish", "start"), [(0, 0), (1, 4), (2, 2), (3, 3), (5, 5), (6, 6), (7, 7)])
def test_the_worked_example(wish: int, start: int) -> None:
    """T9: seven messages, one consumed, maximum 2; any number but the unchanged one is taken."""
    starting, _ = asked(1, 6, request_maximum=2)
    flags = RegistrationFlag.REQUEST_MAXIMUM if wish == 1 else NONE
    assert chosen(starting, wish, 6) == (start, [RegistrationComplete(start, flags)])


@pytest.mark.rows("P-332", "P-424")
def test_without_a_maximum_an_unchanged_number_is_taken() -> None:
    """Completed by a quorum, with a session id."""
    starting, _ = asked(1, 6, session_id=9)
    told = [RegistrationComplete(1, QUORUM | RegistrationFlag.SESSION)]
    assert chosen(starting, 1, 6, everyone=False) == (1, told)


def test_nothing_starts_beyond_the_end() -> None:
    """T10."""
    starting, _ = asked(1, 6)
    start, told = chosen(starting, 11, 6)
    assert (start, code(told)) == (7, ["low-beyond-high"])


@pytest.mark.rows("P-411", "P-426")
def test_without_late_join_there_is_no_choice() -> None:
    starting, out = asked(1, 6, recovers=False)
    assert drain(out) == [fx.AskLow(6, 7, 7)]
    assert chosen(starting, 3, 6) == (7, [RegistrationComplete(7, NONE)])


@pytest.mark.rows("P-582")
def test_a_receiver_that_sets_the_pace_gets_nothing_from_before() -> None:
    """But it may begin later."""
    starting, _ = asked(3, 6, pace=Pace.RECEIVERS)
    assert chosen(starting, 1, 6)[0] == 3
    assert chosen(starting, 5, 6)[0] == 5
