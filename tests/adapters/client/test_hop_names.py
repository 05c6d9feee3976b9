"""The names of lives on the hops of routers."""

import pytest

from stablecast.client import hop_names
from stablecast.client.hop_names import HopNames

LIFE, OTHER = 1, 2


def test_a_name_stands_for_a_life_at_its_place() -> None:
    names = HopNames()
    names.learn("here", 11, LIFE, ())
    names.learn("there", 12, LIFE, ())
    assert (names.life(11), names.life(12), names.life(13)) == (LIFE, LIFE, 13)
    assert (names.hop("here", LIFE), names.hop("there", LIFE), names.hop("where", LIFE)) == (11, 12, LIFE)


def test_a_router_that_begins_again_gives_another_name_at_the_same_place() -> None:
    """What still comes under the old one is of the same life."""
    names = HopNames()
    names.learn("here", 11, LIFE, ())
    names.learn("here", 12, LIFE, ())
    assert (names.hop("here", LIFE), names.life(11), names.life(12)) == (12, LIFE, LIFE)


def test_nothing_is_kept_of_a_source_that_is_heard_itself() -> None:
    names = HopNames()
    names.learn("here", LIFE, LIFE, ())
    assert names == HopNames()


def test_names_are_bounded_and_those_in_use_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hop_names, "MAX_NAMES", 2)
    names = HopNames()
    names.learn("here", 11, LIFE, {LIFE})
    names.learn("there", 12, OTHER, {LIFE})
    names.learn("where", 13, OTHER, {LIFE})
    assert list(names.lives) == [11, 13]
    assert names.hops == {("here", LIFE): 11, ("where", OTHER): 13}
    names.learn("there", 14, 3, {LIFE, OTHER, 3})
    assert list(names.lives) == [11, 13], "without an idle one the newcomer is not kept"


def test_to_forget_an_old_name_leaves_the_present_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hop_names, "MAX_NAMES", 2)
    names = HopNames()
    for place, hop, life in (("here", 11, LIFE), ("here", 12, LIFE), ("there", 13, OTHER)):
        names.learn(place, hop, life, ())
    assert (names.life(11), names.life(12), names.hop("here", LIFE)) == (11, LIFE, 12)


def test_a_name_that_is_heard_again_is_forgotten_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hop_names, "MAX_NAMES", 2)
    names = HopNames()
    for hop in (11, 12, 11, 13):
        names.learn("here", hop, 100 + hop, ())
    assert list(names.lives) == [11, 13]


def test_a_name_that_another_life_gets_is_not_the_old_ones_any_more() -> None:
    names = HopNames()
    names.learn("here", 11, LIFE, ())
    names.learn("there", 11, OTHER, ())
    assert (names.life(11), names.hop("there", OTHER), names.hop("here", LIFE)) == (OTHER, 11, LIFE)
    assert names.hops == {("there", OTHER): 11}
