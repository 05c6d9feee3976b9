"""Generations of stores: a source believes no store that runs on an older copy of its directory."""

from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.protocol.events import RegistrationComplete, RegistrationFlag
from stablecast.core.protocol.generations import MARK_BITS, MAX_COUNT, NONE, following, newest, outdated
from stablecast.core.protocol.inputs import Gone
from stablecast.core.protocol.messages import Register
from tests.core.drivers import SourceDriver
from tests.core.source.test_votes import asking, errors, interval

COPY, LATER, OTHER = (5 << MARK_BITS | 7, 6 << MARK_BITS | 1, 5 << MARK_BITS | 8)
COUNTS = st.integers(1, 3) | st.just(MAX_COUNT)
GENERATIONS = st.builds(lambda count, mark: count << MARK_BITS | mark, COUNTS, st.integers(0, 3))


def asked(driver: SourceDriver, index: int) -> list[int]:
    """Return the known generation in each registration with a store that was just sent."""
    return [one.known_generation for _, one in driver.sent(Register) if one.store_index == index]


def test_an_older_copy_has_no_vote_and_learns_of_it() -> None:
    """Store 1 was restored from a backup. Store 2 was away, but knows that store 1 was started later."""
    driver = asking()
    driver.grant(1, store_generation=COPY)
    driver.grant(2, peers=((1, "store1:1", LATER),))
    assert asked(driver, 1) == [LATER]
    assert errors(interval(driver)) == []  # Store 1 is asked again.
    driver.grant(1, now=20, store_generation=COPY)
    assert not driver.machine.can_send
    assert driver.grant(0, now=20, high=4)[-1] == RegistrationComplete(5, RegistrationFlag.NONE)
    assert [entry.generation for entry in driver.infos()[-1].stores] == [NONE, LATER, NONE]


def test_it_does_not_matter_who_answers_first() -> None:
    for peers in ((1, "store1:1", OTHER), (1, "store1:1", COPY)):
        driver = asking()
        driver.grant(2, peers=((1, "store1:1", OTHER),))
        driver.grant(1, store_generation=COPY)
        assert len(asked(driver, 1)) == 1
        driver.grant(1, store_generation=COPY)
        driver.grant(0, peers=(peers,))
        assert driver.machine.enrollment.voters == 0b101


def test_a_store_that_was_only_restarted_votes() -> None:
    driver = asking()
    driver.grant(2, peers=((1, "store1:1", COPY), (0, "elsewhere:1", LATER), (7, "store7:1", LATER)))
    driver.grant(1, store_generation=LATER)
    assert driver.grant(0, store_generation=COPY)[-1] == RegistrationComplete(0, RegistrationFlag.NONE)
    assert [entry.generation for entry in driver.infos()[-1].stores] == [COPY, LATER, NONE]


def test_a_running_source_knows_what_it_was_granted() -> None:
    driver = asking()
    driver.grant(0, 1, 2, store_generation=LATER)
    driver.feed(Gone("store1:1"), 100)
    assert asked(driver, 1) == [LATER]
    driver.grant(1, now=101, store_generation=COPY)
    assert driver.machine.enrollment.voters == 0b101


def test_a_store_that_reports_none_is_of_an_earlier_release() -> None:
    driver = asking()
    driver.grant(2, peers=((1, "store1:1", LATER),))
    driver.grant(1)
    assert driver.machine.enrollment.voters == 0b110


@given(GENERATIONS, GENERATIONS, GENERATIONS)
def test_the_newest_generation_depends_on_no_order(one: int, two: int, three: int) -> None:
    assert newest(one, two) == newest(two, one)
    assert newest(one, newest(two, three)) == newest(newest(one, two), three)
    assert newest(one, one) == one


@given(GENERATIONS, GENERATIONS, st.integers(0, 2**MARK_BITS - 1))
def test_only_a_store_that_knows_all_generations_is_up_to_date(own: int, other: int, mark: int) -> None:
    known = newest(own, other)
    assert not outdated(own, own)
    if known >> MARK_BITS < MAX_COUNT:
        assert outdated(own, known) == (own != known)
        assert not outdated(following(known, mark), known)
