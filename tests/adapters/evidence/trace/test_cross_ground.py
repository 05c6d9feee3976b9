"""Lost witnesses, and stores that went elsewhere: what the rules between traces cannot tell, and what they can."""

from pathlib import Path

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.quorum import GroupRules
from stablecast.core.protocol.settings import SourceConfig, StoreConfig, StoreSpec
from stablecast.evidence.trace.cross_rules import LOSSES
from stablecast.evidence.trace.facts import Fact
from stablecast.evidence.trace.file_names import find
from stablecast.evidence.trace.trace_judge import verify_paths
from tests.adapters.evidence.trace.test_cross_rules import (
    LIFE,
    OLDER,
    A,
    B,
    C,
    asking,
    fact,
    judged,
    rules,
    source,
    store,
)
from tests.adapters.evidence.trace.traced import STORES, TracedSource, TracedStore, TracedWorld, tapping


def granting(store: str, *lives: int, reg_id: int = 5) -> list[Fact]:
    return [fact("granted", reg_id, reg_id, store, life) for life in lives]


def registered(life: int, *stores: str, reg_id: int = 5, time: int = 0) -> list[Fact]:
    return [fact("holds", reg_id, reg_id, store, life, time) for store in stores]


def test_a_killed_life_may_have_left_at_a_store_whose_trace_is_lost() -> None:
    """The source was killed when it had deregistered at B, and B lost power and its trace: the next is new to it."""
    facts = {
        "s6": [*registered(OLDER, A, B), fact("stable", 0, 9, life=OLDER)],
        "s7": [*registered(LIFE, A, time=5), *registered(LIFE, B, reg_id=8, time=5), fact("stable", 0, 3, time=5)],
        A: [*granting(A, OLDER, LIFE), fact("cut", 0, 9, A, OLDER)],
        B: granting(B, LIFE, reg_id=8),
    }
    witnesses = [store(A), store(B), source(), source(OLDER, complete=False)]
    finding = judged(witnesses, **facts)
    assert rules(finding) == []
    assert {text[:2] for text in finding.untold} >= {*LOSSES}
    found = [("S2", "s7", 0), ("S3", A, 0)]
    told = [store(A), store(B), source(), source(OLDER)]
    assert sorted(rules(judged(told, **facts))) == found, "the source did not leave"
    forgotten = [*granting(B, LIFE, reg_id=8), fact("forgot", 5, 5, B, 0)]
    for known in (granting(B, OLDER, LIFE), [fact("kept", 5, 9, B, OLDER)], forgotten):
        assert sorted(rules(judged(witnesses, **(facts | {B: known})))) == found, known
    running = [store(A), store(B, complete=False), *witnesses[2:]]
    assert rules(judged(running, **(facts | {B: granting(B, OLDER)}))) == []
    assert sorted(rules(judged(running, **(facts | {B: granting(B, OLDER, LIFE)})))) == found, "its end is not needed"


def test_a_store_that_does_not_know_what_it_registered_lost_a_trace() -> None:
    """P6, S1 and H1 do not judge what only that trace has, and judge what no store can have."""
    asks = asking((2, [A, B, C]))
    answer = [fact("asked", 0, 0, A), fact("listened", 3, 3, "#0")]
    said = [fact("said", 0, 4, B), fact("held", 0, 4, B), *granting(B, LIFE)]
    facts = {
        "s7": [*asks, *registered(LIFE, A, B), *answer, fact("acked", 0, 9, A), fact("stable", 0, 9)],
        A: [fact("began", 0, 0, A), *granting(A, 9, reg_id=8)],
        B: said,
    }
    witnesses = [store(A), store(B), store(C), source()]
    finding = judged(witnesses, **facts)
    assert rules(finding) == [("S1", "s7", 5)], "not even with what A may have had"
    assert {text[:2] for text in finding.untold} == {"P6"}
    facts["s7"][-1] = fact("stable", 0, 4)
    finding = judged(witnesses, **facts)
    assert rules(finding) == []
    assert {text[:2] for text in finding.untold} == {"P6", "S1"}
    facts[A] += granting(A, LIFE)
    assert rules(judged(witnesses, **facts)) == [("H1", "s7", 3), ("P6", "s7", 0), ("S1", "s7", 0)]


def test_a_store_that_forgot_a_source_in_a_lost_trace_may_have_acknowledged() -> None:
    """The source deregistered and began anew under its RegID. Planted: a trace without one before it, and a name."""
    facts = {
        "s6": [*registered(OLDER, A), fact("acked", 0, 9, A, OLDER), fact("stable", 0, 9, life=OLDER)],
        "s7": [*registered(LIFE, A, time=5), fact("stable", 0, 3, time=5)],
    }
    witnesses = [store(A), source(), source(OLDER, complete=False)]
    knows = [fact("kept", 5, 9, A), *granting(A, LIFE)]
    finding = judged(witnesses, **facts, **{A: [fact("began", 3, 0, A), *knows]})
    assert rules(finding) == []
    assert {text[:2] for text in finding.untold} >= {"P6", *LOSSES}
    fresh = [fact("began", 0, 0, A), *knows]
    named = [fact("began", 3, 0, A), *knows, fact("kept", 5, 9, A, OLDER)]
    for planted in (fresh, named):
        assert ("P6", "s6", 0) in rules(judged(witnesses, **facts, **{A: planted})), planted
    facts["s6"] += [fact("member", 0, 0, A, OLDER)]
    there = {A: [fact("began", 3, 0, A), *knows], B: [fact("kept", 5, 9, B, OLDER)]}
    found = rules(judged([store(A), store(B), *witnesses[1:]], **facts, **there))
    assert ("P6", "s6", 0) in found, "it names the life where it went"


def test_a_store_that_returned_elsewhere_is_known_by_the_reg_id_that_it_kept() -> None:
    """It acknowledges before the source has learnt its port. Planted: another RegID, and a store with a name."""
    facts = [*asking((2, [A, B])), *registered(LIFE, A), fact("acked", 0, 9, A), fact("stable", 0, 9)]
    kept = {A: [*granting(A, LIFE), fact("said", 0, 4, A), fact("held", 0, 4, A)], B: [fact("held", 0, 9, B)]}
    returned = [fact("said", 5, 9, C), fact("held", 0, 9, C)]
    three = [store(A), store(B), store(C), source()]
    found = [("P6", "s7", 5), ("S1", "s7", 5)]
    same, other = (kept | {C: [*returned, fact("kept", reg_id, 4, C)]} for reg_id in (5, 6))
    assert rules(judged(three, s7=facts, **same)) == []
    assert rules(judged(three, s7=facts, **other)) == found
    named = [*facts, fact("member", 0, 2, C)]
    assert rules(judged(three, s7=named, **same)) == found[:1]
    same[C][:2] = fact("said", 5, 8, C), fact("held", 0, 8, C)
    killed = judged([store(A), store(B), store(C, complete=False), source()], s7=facts, **same)
    assert rules(killed) == []
    assert {text[:2] for text in killed.untold} == {"P6"}


def test_a_store_that_returned_elsewhere_acknowledges_there(tmp_path: Path) -> None:
    """The source, which knows it at its old port, counts what it says."""
    world = TracedWorld(wrap=tapping(tmp_path, kill=False))
    stores = [TracedStore.create(world, StoreConfig(address, seed)) for seed, address in enumerate(STORES)]
    config = SourceConfig(
        "orders", LIFE, "10.2.0.1:1", "10.2.0.1:2", tuple(map(StoreSpec, STORES)), GroupRules((len(STORES),))
    )
    source = TracedSource.create(world, config)
    world.run_until(lambda: bool(source.machine.can_send))
    source.send(5)
    world.run(SECOND)
    world.crash(stores[0])
    elsewhere = attrs.evolve(stores[0].machine.config, address="10.0.0.1:14999")
    stores[0] = TracedStore.create(world, elsewhere, stores[0].disk)
    source.send(5)
    world.run(SECOND // 10)
    assert source.machine.can_send, "it counts the store"
    for node in (*stores, source):
        node.stop()
    assert verify_paths(find([tmp_path])).violations == []
