"""The world of the stability model: what its abstraction forgets does not matter, and its invariants hold."""

import pytest

from stablecast.core.source import SourceEndpoint, SourceState
from stablecast.lab.model.canonical import Fn, Value
from stablecast.lab.model.clone import clone
from stablecast.lab.model.explorer import Action, explore
from stablecast.lab.model.worlds.stability import StabilityWorld
from tests.adapters.lab.model import invariants
from tests.adapters.lab.model.invariants import STABILITY, violations

CONSTANTS: dict[str, Value] = {
    "Layout": "one",
    "Inside": "quorum",
    "Between": "any",
    "Consensus": "highest",
    "Repairs": frozenset({"every_group", "one_life", "holes"}),
    "Numbers": 1,
    "Flight": 1,
    "Lives": 2,
    "Crashes": 1,
    "Faults": frozenset(),
    "Paths": "open",
    "Memory": 9,
}


def world(**changes: Value) -> StabilityWorld:
    return StabilityWorld.create({**CONSTANTS, **changes})


def played(*actions: Action, **changes: Value) -> StabilityWorld:
    here = world(**changes)
    for action in actions:
        assert action in list(here.actions()), action
        here.do(action)
    return here


REGISTERED: tuple[Action, ...] = (("Begin",), ("Ask", 1), ("Sync", 1), ("ToSource", 1))
INFORMED: tuple[Action, ...] = (*REGISTERED, ("Inform", 1), ("Sync", 1))
"""The only store keeps what the first life sends."""


@pytest.mark.rows("P-023", "P-302", "P-415", "P-515")
@pytest.mark.no_cover
@pytest.mark.parametrize(
    "changes",
    [
        {"Faults": frozenset({"late", "lose", "slow"}), "Numbers": 2, "Flight": 2, "Crashes": 0},
        {"Layout": "one and one", "Between": "all_active", "Crashes": 0, "Faults": frozenset({"lag"})},
        {"Layout": "two", "Inside": "all_active", "Lives": 1},
    ],
)
def test_the_abstraction_forgets_nothing_that_matters(changes: dict[str, Value]) -> None:
    """S1, S2, S3, P1 and C1 hold everywhere: P-023, P-302, P-415, P-515, T5, T15."""
    found = explore(world(**changes), twins=4)
    assert len(found.graph.states) > 500
    assert found.twins > 400
    assert violations(found.graph, STABILITY) == set()


@pytest.mark.rows("P-416", "P-511", "P-526")
@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("invariant", "changes"),
    [
        ("NoReuse", {"Layout": "backup", "Crashes": 2, "Repairs": frozenset({"one_life", "holes"})}),
        ("NoReuse", {"Faults": frozenset({"wipe"})}),
        ("SyncedFirst", {"Layout": "two", "Consensus": "lowest", "Repairs": frozenset({"every_group", "holes"})}),
    ],
)
def test_the_core_shows_the_documented_dangers(invariant: str, changes: dict[str, Value]) -> None:
    """P-416, P-511, P-526, T20; formal design, 7.1 and 7.3: what the model's `doc_*` configurations show."""
    assert invariant in violations(explore(world(**changes)).graph, STABILITY)


@pytest.mark.rows("P-023", "P-302")
def test_a_stable_message_is_on_disk_and_its_copy_goes() -> None:
    here = played(*INFORMED, ("Send",), ("ToStore", 1))
    assert here.stores[0].back == []
    for action in (("Sync", 1), ("ToSource", 1)):
        here.do(action)
    assert here.safe == {(1, 0)}
    assert here.source is not None
    assert here.source.window.trail == 1


@pytest.mark.rows("P-441")
def test_what_was_not_synced_is_gone_and_fetched_again() -> None:
    """T15: the store asks for what the source still has."""
    here = played(*INFORMED, ("Send",), ("ToStore", 1), ("Crash", 1), ("Restart", 1), ("Ask", 1), ("Sync", 1))
    assert here.stores[0].synced.messages == {}
    for action in (("ToSource", 1), ("Inform", 1), ("Fill", 1), ("Sync", 1), ("ToSource", 1)):
        here.do(action)
    assert here.safe == {(1, 0)}


def test_copies_share_what_no_action_has_changed() -> None:
    here = played(*REGISTERED, Layout="two")
    before = here.shared_stores
    there = clone(here)
    there.do(("Ask", 2))
    assert there.stores[0] is before[0].machine
    assert there.stores[1] is not before[1].machine
    assert here.stores[1].life == 0


def _with(value: Value, change: Value) -> Value:
    """A change of a record is a field and its value; anything else is replaced."""
    if not isinstance(value, Fn):
        return change
    assert isinstance(change, tuple)
    field, new = change
    return Fn({**value, field: new})


def broken(name: str, **changes: Value) -> bool:
    """Return whether an invariant notices."""
    state = dict(played(*INFORMED, ("Send",), ("ToStore", 1), ("Sync", 1), ("ToSource", 1), Numbers=2).abstract())
    assert invariants.broken(state, STABILITY) == []
    for variable, change in changes.items():
        state[variable] = _with(state[variable], change)
    return not STABILITY[name](state)


def test_each_invariant_can_be_broken() -> None:
    empty = world(Numbers=2).abstract()
    assert broken("StableByQuorum", disk=empty["disk"])
    assert broken("NoStableLost", disk=empty["disk"])
    assert broken("NoReuse", source=("life", 2))
    assert broken("RetainedUntilSettled", safe=frozenset())
    assert broken("NumbersUnique", safe=frozenset({(1, 1), (2, 1)}))
    assert broken("SyncedFirst", window=("acked", (frozenset({2}),)))


LIVES = (
    "Begin,Ask 1,Sync 1,Stop",
    "Begin,Ask 1,Sync 1,ToSource 1,Ask 2,Sync 2,ToSource 2,Wait,Inform 1,Sync 1,Stop",
    "Begin,Ask 2,Sync 2,ToSource 2,Ask 3,Sync 3,ToSource 3,Wait,Inform 2,Sync 2,Inform 3,Sync 3",
    "Send,ToStore 2,Sync 2,ToSource 2,ToStore 3,Sync 3,ToSource 3,Stop",
    "Begin,Ask 1,Sync 1,ToSource 1,Ask 3,Sync 3,ToSource 3,Wait,Ask 1,Sync 1,ToSource 1,Inform 3,Sync 3",
)
"""Four lives and three stores; nothing is lost under way, and no store crashes."""


def played_by(lives: tuple[str, ...], **changes: Value) -> StabilityWorld:
    steps = [step.split() for text in lives for step in text.split(",")]
    actions: list[Action] = [(name, *map(int, number)) for name, *number in steps]
    bounds: dict[str, Value] = {"Numbers": 2, "Lives": 4, **changes}
    return played(*actions, Layout="three", Faults=frozenset({"rival", "slow"}), **bounds)


def test_a_life_that_told_one_store_does_not_undo_what_a_later_one_got_stable() -> None:
    """S3. The second life told its history to the first store only, the third got a message stable at the others; the
    fourth hears of both. Formal design, 7.3: the third one's term is higher, for the second one's was known to the
    store that they share before it told anybody.
    """
    here = played_by(LIVES)
    assert here.safe == {(3, 0)}
    here.do(("Inform", 1))
    assert [process.repository.lives_term for process in here.stores if process.repository] == [4, 3, 4]
    assert here.source is not None
    assert [life for life, _ in here.source.lineage.lives] == [3, 4]
    assert STABILITY["NoStableLost"](here.abstract())


def test_a_store_that_counts_fewer_lives_is_asked_again() -> None:
    """Formal design, 7.3: it had answered before another one said that there were more."""
    before = ("Begin,Ask 1,Sync 1,Stop", "Begin,Ask 2,Sync 2,ToSource 2,Ask 1,Sync 1,ToSource 1,Wait")
    asking, agreed = played_by(before).source, played_by((*before, "Ask 2,Sync 2,ToSource 2")).source
    assert asking is not None
    assert asking.state is SourceState.REGISTERING
    assert agreed is not None
    assert agreed.state is SourceState.ACTIVE
    assert agreed.lineage.term == 2


RIVALS = (
    "Begin,Wait,Ask 1,Sync 1,ToSource 1,Ask 2,Sync 2,ToSource 2,Inform 1,Sync 1,Turn",
    "Begin,Wait,Ask 2,Sync 2,ToSource 2,Ask 3,Sync 3,ToSource 3,Inform 2,Sync 2,Stop,Turn",
    "Ask 1,Sync 1,ToSource 1,Ask 3,Sync 3,ToSource 3",
)
"""Two processes that want to be the source; the first one comes back through a store that it never reached."""


def returned(*steps: str) -> tuple[StabilityWorld, SourceEndpoint]:
    here = played_by((*RIVALS, *steps))
    assert here.source is not None
    return here, here.source


def test_a_life_that_comes_back_does_not_lose_what_it_gets_stable_then() -> None:
    """S3: formal design, 7.6. The second life told store 2 where it begins, and sent nothing.

    The first has to make a newer term known to a quorum, and to be shown it, or the third would follow the second.
    """
    here, source = returned()
    assert (source.state, source.enrollment.term) == (SourceState.SUSPENDED, 3)
    here, source = returned("Ask 1,Sync 1,ToSource 1")
    assert (source.state, source.lineage.term) == (SourceState.ACTIVE, 3)
    kept = (
        "Ask 1,Sync 1,ToSource 1,Ask 1,Sync 1,ToSource 1,Ask 3,Sync 3,ToSource 3,Inform 3,Sync 3",
        "Send,ToStore 1,Sync 1,ToSource 1,ToStore 3,Sync 3,ToSource 3",
    )
    here, source = returned(*kept)
    assert [store.synced.messages for store in here.stores] == [{0: 1}, {}, {0: 1}]
    assert here.safe == set()
    proved = (*kept, "Ask 3,Sync 3,ToSource 3,ToSource 3")
    here, source = returned(*proved)
    assert here.safe == {(1, 0)}
    third = "Stop,Begin,Wait,Ask 1,Sync 1,ToSource 1,Ask 2,Sync 2,ToSource 2,Inform 1,Sync 1"
    here, source = returned(*proved, third)
    assert [life for life, _ in source.lineage.lives] == [1, 3]
    assert source.resume_point == 1
    assert STABILITY["NoStableLost"](here.abstract())


def test_a_life_that_comes_back_is_over_where_the_other_one_told_a_store() -> None:
    """Formal design, 7.6: the store that it had before was not asked again yet."""
    steps = (RIVALS[0], RIVALS[1].replace("Inform 2", "Inform 3,Sync 3,Inform 2"), "Ask 3,Sync 3,ToSource 3")
    assert played_by(steps).source is None


CUT_OFF = (
    "Begin,Ask 1,Sync 1,ToSource 1,Ask 2,Sync 2,ToSource 2,Wait,Inform 1,Sync 1,Inform 2,Sync 2",
    "Send,ToStore 1,Sync 1,ToSource 1,ToStore 2,Sync 2,ToSource 2,Turn",
    "Begin,Ask 1,Sync 1,ToSource 1,Ask 3,Sync 3,ToSource 3,Wait,Inform 1,Sync 1,Stop,Turn",
    "Ask 2,Sync 2,ToSource 2,ToSource 2,Ask 3,Sync 3,ToSource 3,Ask 2,Sync 2,ToSource 2,ToSource 2",
    "Ask 1,Sync 1,ToSource 1",
)
"""Life 1 has message 0 stable at stores 1 and 2. Life 2 tells store 1 only, and dies. Life 1 comes back."""


def test_a_life_that_comes_back_keeps_what_it_got_stable() -> None:
    """S1, S3: store 1 was told of the life before, and what that life left below the parting is its own."""
    here = played_by(CUT_OFF)
    assert here.safe == {(1, 0)}
    here.do(("Inform", 1))
    here.do(("Sync", 1))
    assert [store.synced.messages for store in here.stores] == [{0: 1}, {0: 1}, {}]
    state = here.abstract()
    assert all(STABILITY[name](state) for name in ("StableByQuorum", "NoStableLost", "NumbersUnique"))


def life(stores: tuple[int, int]) -> str:
    """A life that two stores hear, which sends one message that becomes stable."""
    one, other = stores
    begun = ",".join(f"Ask {store},Sync {store},ToSource {store}" for store in stores)
    kept = ",".join(f"ToStore {store},Sync {store},ToSource {store}" for store in stores)
    return f"Begin,{begun},Wait,Inform {one},Sync {one},Inform {other},Sync {other},Send,{kept},Stop"


def test_a_store_that_missed_more_lives_than_are_remembered_serves_none_of_its_messages() -> None:
    """S3: store 3 alone holds message 0 of life 1. Life 2 uses the number again, and is forgotten by life 5."""
    first = "Begin,Ask 1,Sync 1,ToSource 1,Ask 3,Sync 3,ToSource 3,Wait,Inform 3,Sync 3,Send,ToStore 3,Sync 3,Stop"
    last = "Begin,Ask 1,Sync 1,ToSource 1,Ask 2,Sync 2,ToSource 2,Wait,Ask 3,Sync 3,ToSource 3"
    here = played_by((first, *[life((1, 2))] * 3, last), Numbers=4, Lives=5, Memory=2)
    assert here.safe == {(2, 0), (3, 1), (4, 2)}
    assert here.stores[2].synced.messages == {0: 1}
    here.do(("Inform", 3))
    here.do(("Sync", 3))
    assert here.stores[2].synced.messages == {}
    assert STABILITY["NoDeadServed"](here.abstract())
