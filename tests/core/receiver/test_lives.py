"""Lives: what the application consumed of each, told apart by incarnation."""

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.receiver.lives import MAX_LIVES, Lives


def test_consumption_is_noted_for_the_life_that_sent_it() -> None:
    lives = Lives()
    lives.saw(0, 5, 1)
    lives.saw(5, 9, 2)
    lives.on_consumed(3, 7)
    assert lives.known(1, 0, 9) == [(3, 5)]
    assert lives.known(2, 0, 9) == [(5, 7)]
    assert lives.known(3, 0, 9) == []


def test_scattered_runs_are_all_remembered() -> None:
    """Loss leaves many pieces; none may push another out."""
    lives = Lives()
    for number in range(0, 1000, 2):
        lives.saw(number, number + 1, 1)
    lives.on_consumed(0, 1000)
    assert lives.consumed[1].total() == 500


def test_the_number_of_lives_is_bounded() -> None:
    lives = Lives()
    for life in range(MAX_LIVES + 2):
        lives.remember(life, 0, 1)
    assert len(lives.consumed) == MAX_LIVES
    assert lives.known(0, 0, 1) == []
    assert lives.consumed[MAX_LIVES + 1] == RangeSet([(0, 1)])


def test_without_the_repair_numbers_are_all_there_is() -> None:
    """Without lives a consumed number counts for every life."""
    lives = Lives(told_apart=False)
    lives.saw(0, 5, 1)
    lives.on_consumed(0, 3)
    assert lives.known(2, 0, 9) == [(0, 3)]


def test_the_newest_number_of_other_lives() -> None:
    """T20: what this life may step back behind."""
    lives = Lives()
    assert lives.newest(1) is None
    lives.remember(1, 0, 50)
    assert lives.newest(1) is None
    lives.remember(2, 0, 9)
    lives.remember(3, 0, 5)
    assert lives.newest(1) == 8
