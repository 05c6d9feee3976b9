"""The judge: the documented rules by example, and against the core's arithmetic over every set of stores."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.protocol.quorum import GroupRules, Intergroup, Intragroup, Quorums
from stablecast.lab.quorum_judge import Judge

STORES = tuple(f"store{number}" for number in range(5))


def judge(sizes: tuple[int, ...], inside: Intragroup, between: Intergroup = Intergroup.ANY) -> Judge:
    names = iter(STORES)
    groups = tuple(frozenset(next(names) for _ in range(size)) for size in sizes)
    return Judge(GroupRules(sizes, inside, between), groups)


def some(numbers: str) -> list[str]:
    return [STORES[int(number)] for number in numbers]


@pytest.mark.rows("P-023", "P-026", "P-513")
@pytest.mark.parametrize(
    ("inside", "held", "active", "stable"),
    [
        (Intragroup.QUORUM, "01", "", True),
        (Intragroup.QUORUM, "0", "0", False),
        (Intragroup.ALL, "01", "01", False),
        (Intragroup.ALL, "012", "", True),
        (Intragroup.ALL_ACTIVE, "01", "01", True),
        (Intragroup.ALL_ACTIVE, "01", "12", False),
        (Intragroup.ALL_ACTIVE, "0", "0", False),
    ],
)
def test_within_a_group(inside: Intragroup, held: str, active: str, stable: bool) -> None:
    """T2."""
    assert judge((3,), inside).stable(some(held), some(active)) is stable


@pytest.mark.rows("P-514", "P-515", "P-523")
@pytest.mark.parametrize(
    ("between", "held", "active", "stable"),
    [
        (Intergroup.ANY, "0", "012", True),
        (Intergroup.ANY, "", "012", False),
        (Intergroup.MAJORITY, "0", "012", False),
        (Intergroup.MAJORITY, "02", "012", True),
        (Intergroup.ALL, "02", "02", False),
        (Intergroup.ALL, "012", "", True),
        (Intergroup.ALL_ACTIVE, "02", "02", True),
        (Intergroup.ALL_ACTIVE, "02", "01", False),
        (Intergroup.ALL_ACTIVE, "012", "", False),
    ],
)
def test_between_groups(between: Intergroup, held: str, active: str, stable: bool) -> None:
    """C-23, C-24."""
    assert judge((1, 1, 1), Intragroup.QUORUM, between).stable(some(held), some(active)) is stable


@pytest.mark.rows("P-502")
@pytest.mark.parametrize(("held", "active", "stable"), [("1", "1", True), ("1", "", True), ("1", "2", False)])
def test_in_turns_one_store_decides(held: str, active: str, stable: bool) -> None:
    taking_turns = Judge(GroupRules((3,)), (frozenset(STORES[:3]),), turns=True)
    assert taking_turns.stable(some(held), some(active)) is stable
    assert taking_turns.recoverable(some(held))
    assert not taking_turns.recoverable([])


def test_without_groups_nothing_is_stable() -> None:
    assert not judge((), Intragroup.QUORUM).stable([], [])


@pytest.mark.rows("P-023", "P-217")
@given(
    st.sampled_from([(3,), (1, 2), (2, 1), (1, 1, 1), (5,), (2, 3), (1, 1, 3)]),
    st.sampled_from(Intragroup),
    st.sampled_from(Intergroup),
    st.sets(st.sampled_from(STORES)),
    st.sets(st.sampled_from(STORES)),
)
def test_the_core_comes_to_the_same(
    sizes: tuple[int, ...], inside: Intragroup, between: Intergroup, held: set[str], active: set[str]
) -> None:
    """Two ways to write the rules down."""
    groups = [group for group, size in enumerate(sizes) for _ in range(size)]
    there = set(STORES[: len(groups)])
    quorums = Quorums.of(GroupRules(sizes, inside, between), groups)
    naive = judge(sizes, inside, between)
    masks = [sum(1 << STORES.index(store) for store in stores & there) for stores in (held, active)]
    assert naive.stable(held & there, active & there) is quorums.stable(*masks)
    assert naive.registered(active & there) is quorums.registered(masks[1])
