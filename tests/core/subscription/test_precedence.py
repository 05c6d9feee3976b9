"""Which of two lives is the later one, and the lives that are passed over."""

import attrs

from stablecast.core.protocol.messages import Life, SourceInfo
from stablecast.core.subscription import precedence as module
from stablecast.core.subscription.inputs import Place
from stablecast.core.subscription.precedence import PassedOver, outranks


def told(term: int, *lives: Life) -> SourceInfo:
    """Return the announcement of the last of these lives."""
    return SourceInfo(lives[-1][0], "orders", 1, 0, 0xFFFF_FFFF, "", (1,), False, (), term, lives)


def test_the_higher_term_is_later_among_lives_with_a_common_past() -> None:
    """Terms of lives that have nothing in common are of stores that forgot."""
    proxy, life = told(4, (1, 0), (8, 74)), told(5, (1, 0), (2, 74))
    assert outranks(life, proxy)
    assert not outranks(proxy, life)
    assert not outranks(life, attrs.evolve(proxy, term=5))
    assert outranks(told(2, (1, 0), (2, 74)), told(1, (1, 0)))
    assert not outranks(life, told(1, (9, 0)))
    assert not outranks(told(5, (0, 0), (2, 74)), told(4, (0, 0), (8, 74)))


def test_few_lives_are_kept() -> None:
    """The oldest goes; the newest announcement of a life counts, and all of a stream are taken together."""
    passed = PassedOver()
    one, two = Place("one"), Place("two")
    for life in range(module.MAX_PASSED_OVER + 1):
        passed.add(told(1, (life, 0)), one)
    assert 0 not in passed
    passed.add(told(2, (16, 0)), one)
    passed.add(told(2, (99, 0)), two)
    passed.drop(3)
    passed.drop(3)
    assert passed.places() == {"one": one, "two": two}
    taken = passed.remove("one")
    assert [info.incarnation for info, _ in taken] == [2, *range(4, 17)]
    assert taken[-1][0].term == 2
    assert list(passed.announcements) == [99]
