"""The history of a source at a store: the life that counts, and the cut of older ones."""

import pytest

from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.history import FORGOTTEN, HISTORY_LIVES, remembered
from stablecast.core.protocol.messages import Role
from stablecast.core.protocol.repairs import Repair
from stablecast.core.store.source_history import SourceHistory
from tests.core.samples import LIFE, OLDER_LIFE, info

NEXT = LIFE + 1


def lifeline(repairs: Repair = Repair.ALL) -> SourceHistory:
    line = SourceHistory(repairs, LIFE)
    line.resume(0, info(), -1)
    return line


def test_another_life_has_no_resume_point_yet() -> None:
    line = lifeline()
    told = [(line.begin(life), line.resume_point) for life in (LIFE, NEXT)]
    assert told == [(False, 0), (True, None)]
    assert (line.is_current(LIFE), line.is_current(NEXT)) == (False, True)


def test_messages_of_an_older_life_above_are_cut() -> None:
    line = lifeline()
    line.begin(NEXT)
    assert line.resume(7, info(term=2), newest=9) == (7, False)
    assert (line.lives, line.term, line.resume_point) == ([(LIFE, 0), (NEXT, 7)], 2, 7)


def test_a_missed_life_is_where_the_cut_goes() -> None:
    line = lifeline()
    line.begin(NEXT + 1)
    lives = ((LIFE, 0), (NEXT, 5), (NEXT + 1, 10))
    assert line.resume(10, info(lives=lives), newest=9) == (5, False)
    assert line.lives == list(lives)


def test_a_life_that_comes_back_finds_what_it_left() -> None:
    line = lifeline()
    line.begin(NEXT)
    line.begin(LIFE)
    assert line.resume(0, info(lives=((LIFE, 0),)), newest=9) == (10, False)


def test_a_life_that_comes_back_keeps_what_it_left_below_the_next_one() -> None:
    """Its messages below the next life's first number may be stable, so the cut is where the histories part."""
    line = lifeline()
    line.begin(NEXT)
    assert line.resume(1, info(lives=((LIFE, 0), (NEXT, 1))), newest=0) == (1, False)
    line.begin(LIFE)
    assert line.resume(0, info(lives=((LIFE, 0),)), newest=4) == (1, False)
    assert line.lives == [(LIFE, 0)]


def test_messages_of_no_known_life_are_not_kept_under_a_new_one() -> None:
    """A store that ran with the documented rules holds messages of lives that it was never told of."""
    line = SourceHistory(Repair.ALL, LIFE)
    line.resume(3, info(lives=((LIFE, 3),)), newest=2)
    line.begin(NEXT)
    assert line.resume(0, info(lives=((NEXT, 0),)), newest=5) == (0, False)


def test_a_store_that_missed_more_lives_than_are_remembered_keeps_nothing_of_them() -> None:
    """Nobody can tell which of its messages are dead, so none may count as stable."""
    line = lifeline()
    lives = [(LIFE, 0)]
    for missed in range(HISTORY_LIVES + 1):
        lives = remembered([*lives, (NEXT + missed, 5 + missed)])
    newest, first = lives[-1]
    line.begin(newest)
    assert line.resume(first, info(lives=tuple(lives)), newest=9) == (0, True)


def test_a_store_that_missed_no_life_keeps_what_it_has_however_many_there_were() -> None:
    line = lifeline()
    for later in range(3 * HISTORY_LIVES):
        lives = [*line.lives, (NEXT + later, 5 + later)]
        line.begin(NEXT + later)
        assert line.resume(5 + later, info(lives=tuple(lives)), newest=4 + later) == (5 + later, False)
    assert len(line.lives) == HISTORY_LIVES
    assert line.lives[0] == (FORGOTTEN, 0)


def test_a_life_that_goes_on_under_a_newer_term_told_this_under_it() -> None:
    """Formal design, 7.6: and an announcement from before does not take that back."""
    line = lifeline()
    line.begin(NEXT)
    line.affirm(9)
    assert line.term == 0
    line.begin(LIFE)
    line.affirm(4)
    line.affirm(3)
    assert line.term == 4
    line.resume(0, info(term=2, lives=((LIFE, 0),)), newest=9)
    assert line.term == 4


def test_as_documented_nothing_is_cut_and_a_number_is_enough() -> None:
    """Formal design, 7.3: without the repair."""
    line = lifeline(Repair.ALL & ~Repair.ONE_LIFE)
    line.begin(NEXT)
    assert line.is_current(LIFE)
    assert line.resume(7, info(), newest=9) == (10, False)


@pytest.mark.parametrize(("life", "resume_point"), [(LIFE, 5), (NEXT, None), (OLDER_LIFE, None)])
def test_a_restart_knows_the_lives(life: int, resume_point: int | None) -> None:
    """Formal design, 7.3: one that comes back behind others has to say again where it resumes, and theirs is cut."""
    lives = ((OLDER_LIFE, 0), (LIFE, 5))
    client = Client(Role.SOURCE, 50, 0, "topic", 0, life, 0, "a:1", "b:1", 0, 0, -1, lives, lives_term=3)
    line = SourceHistory.recover(Repair.ALL, client)
    assert (line.resume_point, line.lives, line.term) == (resume_point, list(lives), 3)
