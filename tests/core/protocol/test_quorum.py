"""Quorum arithmetic: majorities of the configured size, rules inside and between groups, one number out of many."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.protocol.quorum import Consensus, GroupRules, Intergroup, Intragroup, Quorums, agree, quorum_of

NUMBERS = st.lists(st.integers(-1, 9), min_size=1, max_size=7)
Q, ALL, ACTIVE = Intragroup.QUORUM, Intragroup.ALL, Intragroup.ALL_ACTIVE


@st.composite
def group_rules(draw: st.DrawFn) -> Quorums:
    """Up to three groups of up to four stores, of which all or fewer than configured are listed."""
    listed = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3).filter(sum))
    sizes = tuple(max(1, count + draw(st.integers(0, 1))) for count in listed)
    groups = draw(st.permutations([group for group, count in enumerate(listed) for _ in range(count)]))
    rules = GroupRules(sizes, draw(st.sampled_from(Intragroup)), draw(st.sampled_from(Intergroup)))
    return Quorums.of(rules, groups)


def masks(quorums: Quorums) -> st.SearchStrategy[int]:
    return st.integers(0, sum(quorums.members))


def naive(quorums: Quorums, held: int, registered: int, registering: bool) -> bool:
    """The rules as they are written down, store by store; `registering`: who is registered is who holds."""
    met, active = [], []
    for size, members in zip(quorums.rules.sizes, quorums.members, strict=True):
        ours = {store for store in range(12) if members >> store & 1}
        have = {store for store in ours if held >> store & 1}
        there = {store for store in ours if registered >> store & 1}
        majority = 2 * len(have) > size
        rule = {Q: majority, ALL: len(have) >= size, ACTIVE: majority and (registering or there <= have)}
        met.append(rule[quorums.rules.intragroup])
        active.append(2 * len(there) > size)
    between = {
        Intergroup.ANY: any(met),
        Intergroup.MAJORITY: 2 * sum(met) > len(met),
        Intergroup.ALL: all(met),
        Intergroup.ALL_ACTIVE: any(active) and all(m for m, a in zip(met, active, strict=True) if a),
    }
    return between[quorums.rules.intergroup]


@pytest.mark.rows("P-026")
def test_a_quorum_is_a_simple_majority() -> None:
    assert [quorum_of(size) for size in range(1, 10)] == [1, 2, 2, 3, 3, 4, 4, 5, 5]


@pytest.mark.rows("P-217", "P-513", "P-514", "P-515")
@given(group_rules(), st.data())
def test_the_rules_are_those_that_are_written_down(quorums: Quorums, data: st.DataObject) -> None:
    held, registered = data.draw(masks(quorums)), data.draw(masks(quorums))
    assert quorums.stable(held, registered) == naive(quorums, held, registered, registering=False)
    assert quorums.registered(held) == naive(quorums, held, held, registering=True)


@given(group_rules(), st.data())
def test_every_group_means_a_quorum_of_each(quorums: Quorums, data: st.DataObject) -> None:
    """Formal design, 7.2: then whatever was stable by any rule is held by a store that was heard."""
    one, other, registered = (data.draw(masks(quorums)) for _ in range(3))
    if quorums.every_group(one) and quorums.stable(other, registered):
        assert one & other


@given(group_rules(), st.data())
def test_a_quorum_of_the_rules_shares_a_store_with_what_is_stable(quorums: Quorums, data: st.DataObject) -> None:
    """If one group is not enough, any registered client finds every stable message."""
    one, other, registered = (data.draw(masks(quorums)) for _ in range(3))
    if not quorums.any_group and quorums.registered(one) and quorums.stable(other, registered):
        assert one & other


@pytest.mark.rows("P-336")
@given(group_rules())
def test_the_number_needed_is_the_least_that_is_enough(quorums: Quorums) -> None:
    """Where all stores of the groups are listed, some choice of that many is enough and none of fewer."""
    enough = [mask.bit_count() for mask in range(sum(quorums.members) + 1) if quorums.registered(mask)]
    assert min(enough, default=quorums.needed) >= quorums.needed
    full = all(mask.bit_count() == size for mask, size in zip(quorums.members, quorums.rules.sizes, strict=True))
    if full and quorums.rules.intragroup is not ALL:
        assert min(enough) == quorums.needed


@pytest.mark.rows("P-507", "P-508", "P-513")
@pytest.mark.parametrize(
    ("rule", "held", "registered", "stable"),
    [
        (Q, 0b00111, 0b11111, True),
        (Q, 0b00011, 0b11111, False),
        (ALL, 0b01111, 0b01111, False),
        (ALL, 0b11111, 0b00000, True),
        (ACTIVE, 0b00111, 0b00111, True),
        (ACTIVE, 0b00111, 0b01111, False),
        (ACTIVE, 0b00111, 0b00011, True),
        (ACTIVE, 0b00011, 0b00011, False),
    ],
)
def test_inside_a_group_of_five(rule: Intragroup, held: int, registered: int, stable: bool) -> None:
    """Quorum, all, or every registered store and a quorum at least."""
    quorums = Quorums.of(GroupRules((5,), rule), [0] * 5)
    assert quorums.intragroup(0, held, registered) is stable


BETWEEN = [
    (Intergroup.ANY, (False, True, True, True)),
    (Intergroup.MAJORITY, (False, False, True, True)),
    (Intergroup.ALL, (False, False, False, True)),
    (Intergroup.ALL_ACTIVE, (False, False, False, True)),
]


@pytest.mark.rows("P-509", "P-514")
@pytest.mark.parametrize(("rule", "expected"), BETWEEN)
def test_between_three_groups(rule: Intergroup, expected: tuple[bool, ...]) -> None:
    """C-23: of three groups of one store none, one, two and three hold it, all being registered."""
    quorums = Quorums.of(GroupRules((1, 1, 1), intergroup=rule), [0, 1, 2])
    assert tuple(quorums.stable(held, 0b111) for held in (0, 0b1, 0b11, 0b111)) == expected


@pytest.mark.rows("P-523")
def test_a_group_that_lost_its_quorum_is_not_active() -> None:
    """C-24: without an active group nothing is stable and nobody is registered."""
    quorums = Quorums.of(GroupRules((3, 1), intergroup=Intergroup.ALL_ACTIVE), [0, 0, 0, 1])
    assert quorums.active(0b1011) == [0, 1]
    assert quorums.active(0b1001) == [1]
    assert quorums.stable(0b1000, 0b1001)
    assert not quorums.stable(0b1000, 0b1011)
    assert not quorums.stable(0b1111, 0b0001)
    assert not quorums.registered(0b0001)


@pytest.mark.rows("P-523")
def test_a_single_group_that_lost_its_quorum_is_not_active_either() -> None:
    """The rule between groups counts where there is one group only; both stores hold it, one is registered."""
    for rule, stable in ((Intergroup.ANY, True), (Intergroup.ALL_ACTIVE, False)):
        quorums = Quorums.of(GroupRules((3,), intergroup=rule), [0, 0, 0])
        assert quorums.judge(0b011, 0b001) == ([True], stable)
        assert quorums.stable(0b011, 0b011)


@pytest.mark.rows("P-516")
def test_the_sample_of_thirteen_stores() -> None:
    """Groups of 5, 3 and 5, quorum inside, all-active between: 3, 2 and 3 of them are needed and suffice."""
    quorums = Quorums.of(GroupRules((5, 3, 5), Q, Intergroup.ALL_ACTIVE), [0] * 5 + [1] * 3 + [2] * 5)
    everyone = (1 << 13) - 1
    assert quorums.members == (0b11111, 0b111 << 5, 0b11111 << 8)
    assert quorums.needed == 2
    for counts in product(range(6), range(4), range(6)):
        held = sum(((1 << n) - 1) << at for n, at in zip(counts, (0, 5, 8), strict=True))
        enough = counts[0] >= 3 and counts[1] >= 2 and counts[2] >= 3
        assert quorums.stable(held, everyone) is enough
        dead_third = everyone & ~(0b111 << 10)
        assert quorums.stable(held, dead_third) is (counts[0] >= 3 and counts[1] >= 2)


@pytest.mark.rows("P-336")
@pytest.mark.parametrize(
    ("intergroup", "needed"),
    [(Intergroup.ANY, 1), (Intergroup.MAJORITY, 3), (Intergroup.ALL, 6), (Intergroup.ALL_ACTIVE, 1)],
)
def test_the_least_number_of_stores_is_known(intergroup: Intergroup, needed: int) -> None:
    """Groups of 5, 1 and 3."""
    assert Quorums(GroupRules((5, 1, 3), Q, intergroup), (0, 0, 0)).needed == needed
    assert Quorums(GroupRules((5, 1, 3), ALL, Intergroup.ALL), (0, 0, 0)).needed == 9
    assert Quorums(GroupRules(), ()).needed == 0


def test_one_group_may_be_enough_only_where_there_are_several() -> None:
    assert not Quorums.of(GroupRules((3,)), [0, 0, 0]).any_group
    several = [Quorums.of(GroupRules((1, 1), intergroup=rule), [0, 1]).any_group for rule in Intergroup]
    assert several == [True, False, False, True]
    assert [Quorums.of(GroupRules((1, 2)), [1, 0, 1]).group_of(store) for store in range(3)] == [1, 0, 1]


def test_a_store_belongs_to_a_group_that_is_configured() -> None:
    with pytest.raises(IndexError):
        Quorums.of(GroupRules((1,)), [1])


@pytest.mark.rows("P-028")
def test_without_groups_everyone_is_registered() -> None:
    assert Quorums(GroupRules(), ()).registered(0)


@given(NUMBERS, st.integers(1, 7))
def test_majority_is_the_highest_that_a_quorum_reaches(numbers: list[int], size: int) -> None:
    """C-15."""
    agreed = agree(numbers, Consensus.MAJORITY, size)
    reached = [n for n in numbers if sum(other >= n for other in numbers) >= quorum_of(size)]
    assert agreed == max(reached, default=min(numbers))


@given(NUMBERS)
def test_lowest_and_highest(numbers: list[int]) -> None:
    assert agree(numbers, Consensus.LOWEST, 3) == min(numbers)
    assert agree(numbers, Consensus.HIGHEST, 3) == max(numbers)


def test_nothing_agrees_on_nothing() -> None:
    with pytest.raises(ValueError, match="at least one answer"):
        agree([], Consensus.HIGHEST, 3)
