"""The axioms of the proof are checked for the groups of a configuration."""

import attrs
import pytest

from stablecast.core.protocol.quorum import Consensus, GroupRules, Intergroup, Intragroup
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import SourceConfig, StoreBehavior, StoreSpec
from stablecast.lab.proof.configurations import covers

pytest.importorskip("z3")
pytest.importorskip("cvc5")

INSIDE, BETWEEN = Intragroup.QUORUM, Intergroup.ANY


def config(listed: tuple[int, ...], rules: GroupRules) -> SourceConfig:
    groups = [group for group, count in enumerate(listed) for _ in range(count)]
    stores = tuple(StoreSpec(f"10.0.0.{at}:1", 1, group) for at, group in enumerate(groups))
    return SourceConfig(
        topic="topic",
        incarnation=1,
        reply_to="source:1",
        transport="stream:1",
        stores=stores,
        groups=rules,
        consensus=Consensus.HIGHEST,
        behavior=StoreBehavior.QC,
        repairs=Repair.ALL,
    )


@pytest.mark.parametrize("sizes", [(1,), (3,), (9,), (1, 1), (1, 2, 4), (4, 2, 1), (3, 1), (2, 2, 2)])
@pytest.mark.parametrize("between", Intergroup)
@pytest.mark.parametrize("inside", Intragroup)
def test_quorums_of_the_configured_sizes_are_covered(
    sizes: tuple[int, ...], inside: Intragroup, between: Intergroup
) -> None:
    assert covers(config(sizes, GroupRules(sizes, inside, between)), [Repair.ALL]).proved


def test_a_group_that_lists_more_stores_than_its_size_has_disjoint_quorums() -> None:
    found = covers(config((5,), GroupRules((3,), INSIDE, BETWEEN)), [Repair.ALL])
    assert not found.proved
    assert found.disjoint is not None
    assert not set(found.disjoint.one) & set(found.disjoint.other)
    assert len(found.disjoint.one) >= 2


def test_one_group_of_several_is_not_enough_without_the_repair() -> None:
    repairs = Repair.ALL & ~Repair.EVERY_GROUP
    source = attrs.evolve(config((1, 1), GroupRules((1, 1), INSIDE, BETWEEN)), repairs=repairs)
    found = covers(source, [repairs])
    assert found.disjoint is not None
    assert {found.disjoint.one, found.disjoint.other} == {(0,), (1,)}


@pytest.mark.parametrize("consensus", [Consensus.LOWEST, Consensus.MAJORITY])
def test_only_the_highest_consensus_is_covered(consensus: Consensus) -> None:
    source = attrs.evolve(config((3,), GroupRules((3,), INSIDE, BETWEEN)), consensus=consensus)
    assert "consensus" in covers(source, [Repair.ALL]).why


def test_round_robin_and_documented_rules_are_not_covered() -> None:
    source = config((3,), GroupRules((3,), INSIDE, BETWEEN))
    assert "round robin" in covers(attrs.evolve(source, behavior=StoreBehavior.RR), [Repair.ALL]).why
    assert "ONE_LIFE" in covers(source, [Repair.ALL & ~Repair.ONE_LIFE]).why
