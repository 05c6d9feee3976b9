"""Findings: contradictions in a configuration."""

from typing import Any

import attrs
import pytest

from stablecast.core.protocol.messages import MAX_STORES, ElectionToken, Pace
from stablecast.core.protocol.quorum import Consensus, GroupRules
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.setting_relations import LARGE_FLIGHT, recovery_relations, relations, without_duplicates
from stablecast.core.protocol.settings import ReceiverConfig, Retention, SourceConfig, StoreBehavior, StoreSpec
from tests.core.samples import LIFE

RR = StoreBehavior.RR


def stores(*groups: int, **changes: Any) -> tuple[StoreSpec, ...]:
    return tuple(StoreSpec(f"store{index}:1", group=group, **changes) for index, group in enumerate(groups))


GOOD = SourceConfig("topic", LIFE, "source:1", "stream:1", stores(0, 0, 0), GroupRules((3,)), late_join=True)


def found(**changes: Any) -> set[tuple[str, bool]]:
    return {(finding.code, finding.fatal) for finding in relations(attrs.evolve(GOOD, **changes))}


@pytest.mark.rows("P-519")
def test_three_stores_in_one_group_are_fine() -> None:
    assert found() == set()
    assert found(stores=(), groups=GroupRules()) == set()


CASES: list[Any] = [
    ({"stores": (*stores(0, 0), StoreSpec())}, {("store-nowhere", True)}),
    ({"stores": (*stores(0, 0), StoreSpec(name="third"))}, set()),
    ({"stores": stores(*[0] * (MAX_STORES + 1))}, {("too-many-stores", True)}),
    ({"stores": (*stores(0, 0), StoreSpec("0.0.0.0:1"))}, {("store-anywhere", True)}),
    ({"stores": (*stores(0, 0, 0), StoreSpec("store1:1"))}, {("duplicate-store", False)}),
    ({"stores": stores(0, 0, 0, reg_id=5)}, set()),
    ({"stores": (*stores(0, 0), StoreSpec("store2:1", 5))}, {("mixed-reg-ids", True)}),
    ({"stores": (*stores(0, 0), StoreSpec("store2:1", 5)), "session_id": 9}, {("reg-id-ignored", False)}),
    ({"wants_proxy": True}, {("proxy-without-identity", False)}),
    ({"wants_proxy": True, "session_id": 9}, set()),
    ({"wants_proxy": True, "stores": stores(0, 0, 0, reg_id=5)}, set()),
    ({"stores": stores(0, 0, 1)}, {("group-index", True)}),
    ({"stores": stores(0, 0, -1)}, {("group-index", True)}),
    pytest.param({"stores": stores(0, 0, 0, 0)}, {("backup-stores", True)}, marks=pytest.mark.rows("P-511")),
    pytest.param(
        {"stores": stores(0, 0, 0, 0), "repairs": Repair.NONE},
        {("backup-stores", False)},
        marks=pytest.mark.rows("P-526"),
    ),
    ({"stores": stores(0), "groups": GroupRules((1,))}, {("small-group", False)}),
    ({"stores": stores(0, 0, 0, 0), "groups": GroupRules((4,))}, {("even-group", False)}),
    pytest.param(
        {"stores": stores(0, 1), "groups": GroupRules((1, 1))},
        {("one-store-group", False), ("small-group", False)},
        marks=pytest.mark.rows("P-520", "P-525"),
    ),
    pytest.param({"behavior": RR}, {("round-robin", False)}, marks=pytest.mark.rows("P-505")),
    ({"behavior": RR, "groups": GroupRules((3, 3))}, {("round-robin", False), ("round-robin-groups", True)}),
    ({"behavior": RR, "stores": stores(0, 1)}, {("round-robin", False), ("round-robin-groups", True)}),
    pytest.param(
        {"behavior": RR, "pace": Pace.RECEIVERS, "flight_bytes": 10},
        {("round-robin", False), ("round-robin-paced", True)},
        marks=pytest.mark.rows("P-594", "P-970"),
    ),
    pytest.param(
        {"behavior": RR, "wants_proxy": True, "session_id": 9},
        {("round-robin", False), ("round-robin-proxy", True)},
        marks=pytest.mark.rows("P-543"),
    ),
    pytest.param({"pace": Pace.RECEIVERS}, {("paced-without-bytes", True)}, marks=pytest.mark.rows("P-565")),
    ({"pace": Pace.RECEIVERS, "flight_bytes": 10}, set()),
    ({"flight_messages": LARGE_FLIGHT}, set()),
    ({"flight_messages": LARGE_FLIGHT + 1}, {("large-flight", False)}),
    pytest.param(
        {"flight_bytes": 10, "retention": Retention(limit_bytes=9)},
        {("retention-below-flight", False)},
        marks=pytest.mark.rows("P-327"),
    ),
    pytest.param({"consensus": Consensus.MAJORITY}, {("consensus", False)}, marks=pytest.mark.rows("P-416")),
    pytest.param({"late_join": False}, {("late-join-set", False)}, marks=pytest.mark.rows("P-412")),
    ({"stores": (StoreSpec(), *stores(0, 0, reg_id=7)), "election": ElectionToken(5, 1)}, set()),
]


@pytest.mark.parametrize(
    ("changes", "expected"), CASES, ids=lambda case: ",".join(case) if isinstance(case, dict) else ""
)
def test_a_contradiction_is_found(changes: dict[str, Any], expected: set[tuple[str, bool]]) -> None:
    """U12, U20, C-05."""
    assert found(**changes) == expected


def test_a_store_that_is_listed_twice_counts_once() -> None:
    """Its index stays, so that the groups and the events name the others as they are listed."""
    listed = (StoreSpec("a"), StoreSpec("b"), StoreSpec("a", group=1), StoreSpec(name="n"), StoreSpec(name="n"))
    assert without_duplicates(listed) == [0, 1, 3]


@pytest.mark.rows("P-540")
def test_a_place_that_a_proxy_keeps_for_a_store_it_does_not_know_is_none() -> None:
    """The others keep the indices that they have for the source."""
    assert without_duplicates((StoreSpec(), StoreSpec("a"), StoreSpec(), StoreSpec("b"))) == [1, 3]


@pytest.mark.rows("P-412", "P-605")
def test_the_sentence_on_late_join_is_that_of_the_guide() -> None:
    [finding] = relations(attrs.evolve(GOOD, topic="UME Example", late_join=False))
    assert finding.text == 'Source "UME Example" Late Join not set, but UME store specified. Setting Late Join.'


@pytest.mark.rows("P-433")
@pytest.mark.parametrize(
    ("stores", "give_up_ns", "short"), [(3, 400, True), (3, 401, False), (1, 200, True), (0, 0, False)]
)
def test_a_receiver_has_time_to_ask_every_store(stores: int, give_up_ns: int, short: bool) -> None:
    """P-433, and what `tla/Recovery/doc_short.cfg` shows."""
    config = ReceiverConfig("topic", LIFE, "me:1", retry_ns=100, give_up_ns=give_up_ns)
    found = recovery_relations(config, stores)
    assert [(finding.code, finding.fatal) for finding in found] == [("short-give-up", False)] * short
