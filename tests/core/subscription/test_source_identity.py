"""The lives that belong to one source."""

import pytest

from stablecast.core.protocol.messages import SourceInfo, StoreEntry
from stablecast.core.subscription.source_identity import SourceIdentity
from tests.core import samples


def announced(life: int, *places: tuple[str, int], earlier: tuple[int, ...] = ()) -> SourceInfo:
    stores = tuple(StoreEntry(index, 0, address, reg_id, 1) for index, (address, reg_id) in enumerate(places))
    return samples.info(incarnation=life, stores=stores, lives=tuple((other, 0) for other in earlier))


def test_lives_with_a_place_in_common_are_of_one_source() -> None:
    """Without one, a single source that is gone may have lost its stores: its history counts, its messages do not."""
    known = SourceIdentity()
    assert known.begin(announced(1, ("a", 5)), []) == {1}
    assert known.begin(announced(2, ("a", 6)), [1]) == {2}
    assert known.begin(announced(3, ("b", 7), ("a", 5)), [2]) == {1, 3}
    known.learn(announced(3, ("c", 8)), [3, 30])
    assert known.begin(announced(4, ("c", 8)), [2, 3]) == {1, 3, 30, 4}
    assert known.begin(announced(5, ("d", 9)), [2]) == {1, 3, 4, 30, 5}
    assert [known.same(life, 1) for life in (1, 2, 3, 30, 4, 5)] == [True, False, True, True, True, False]
    assert known.begin(announced(6, ("e", 9)), []) == {6}
    known.learn(announced(99, ("a", 5)), [99])
    known.learn(None, [98])
    assert not {98, 99} & known.sources.keys()
    assert (known.same(99, 99), known.same(99, 98)) == (True, False)


def test_an_announcement_that_names_an_earlier_life_is_of_its_source() -> None:
    known = SourceIdentity()
    known.begin(announced(1, ("a", 5)), [])
    known.begin(announced(2, ("b", 6)), [1])
    assert known.begin(announced(3, ("c", 7), earlier=(1,)), [1, 2]) == {1, 3}
    known.learn(announced(2, ("b", 6), earlier=(4,)), [])
    assert known.begin(announced(4, ("d", 8)), [2, 3]) == {2, 4}


def test_sources_that_turn_out_to_be_one_are_united() -> None:
    known = SourceIdentity()
    known.begin(announced(1, ("a", 5)), [])
    known.begin(announced(2, ("b", 6)), [1])
    assert known.begin(announced(3, ("a", 5), ("b", 6)), []) == {1, 2, 3}
    assert known.same(1, 2)
    assert list(known.places.values()) == [{("a", 5), ("b", 6)}]


def test_known_sources_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stablecast.core.subscription.source_identity.MAX_LIVES", 2)
    known = SourceIdentity()
    for life in range(5):
        known.begin(announced(life, ("a", life)), range(life))
    assert set(known.sources) == {3, 4}
    assert list(known.places.values()) == [{("a", 3)}, {("a", 4)}]
    known.begin(announced(3, ("a", 3)), [])
    known.begin(announced(5, ("a", 5)), [])
    assert set(known.sources) == {3, 5}
