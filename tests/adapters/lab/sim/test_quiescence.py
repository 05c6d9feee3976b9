"""Peace: what is not settled is named, by the rule that speaks of it."""

from collections.abc import Callable

import attrs
import pytest

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.events import LackCause
from stablecast.core.protocol.messages import Role
from stablecast.core.protocol.quorum import GroupRules, Intergroup, Intragroup, Quorums
from stablecast.core.registration.store_registration import Registration
from stablecast.core.source.endpoint import SourceState
from stablecast.core.store.ack_batch import AckBatch
from stablecast.lab.schedules.faults import Fault, Kind
from stablecast.lab.sim.cluster import Cluster, seeded
from stablecast.lab.sim.disk import DiskRecord, DiskRecordKind
from stablecast.lab.sim.quiescence import lacking, trouble
from stablecast.lab.sim.runner import run
from stablecast.lab.sim.schedule import Schedule
from stablecast.lab.sim.setup import RECEIVERS, SOURCE, STORES, Leaving, WorldSetup
from stablecast.lab.sim.store import StoreProcess
from stablecast.store.client_records import client_record
from tests.adapters.lab.sim.test_found import FOUND

IN_TURNS = WorldSetup(turns=True, named=True, leaving=Leaving.RECEIVER)


def quiet(setup: WorldSetup, seed: int = 1) -> Cluster:
    """All is settled."""
    cluster = Cluster(seeded(seed), setup=setup)
    cluster.world.run(SECOND)
    cluster.want(3)
    cluster.world.run(3 * SECOND)
    assert trouble(cluster) is None
    return cluster


def rule(cluster: Cluster) -> str | None:
    found = trouble(cluster)
    return None if found is None else found[0]


def test_nobody_is_there_at_first() -> None:
    assert trouble(Cluster(seeded(1))) == ("L1", "not everything sent is stable long after the last fault: nobody")


def test_what_was_sent_is_to_be_stable() -> None:
    cluster = quiet(WorldSetup())
    cluster.want(1)
    assert rule(cluster) == "L1"
    cluster.world.run(cluster.world.now + SECOND)
    assert trouble(cluster) is None


@pytest.mark.parametrize(("setup", "passed"), [(WorldSetup(), "D1"), (WorldSetup(arrival=True), "L1")])
def test_what_is_stable_is_to_be_everywhere(setup: WorldSetup, passed: str) -> None:
    """Messages that an ordered session has passed over never come."""
    cluster = quiet(setup)
    ledger = cluster.checkers.receivers.ledgers[RECEIVERS[1]]
    ledger.consumed = {life: RangeSet([(1, 3)]) for life in ledger.consumed}
    assert rule(cluster) == passed
    ledger.last = None
    assert rule(cluster) == "L1"


def test_a_store_asks_for_nothing_that_it_holds() -> None:
    cluster = quiet(WorldSetup())
    assert lacking(cluster) is None
    store = cluster.processes[STORES[1]]
    assert isinstance(store, StoreProcess)
    ((reg_id, repository),) = store.machine.repositories.items()
    assert repository.refill is not None
    repository.refill.lack([(1, 2)], LackCause.AWAY, 0, [])
    assert lacking(cluster) == ("L1", f"store1 asks for messages of source {reg_id} that it holds")


def test_stores_are_not_whole_while_the_source_is_registered_with_none() -> None:
    cluster = quiet(WorldSetup())
    source = cluster.source
    assert source is not None
    source.machine.state = SourceState.SUSPENDED
    assert lacking(cluster) == ("L1", f"{source.name} is registered with too few stores long after the last fault")


@pytest.mark.rows("P-586", "P-587")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_source_that_leaves_is_to_be_forgotten(seed: int) -> None:
    """Its first farewell may arrive or not."""
    cluster = quiet(WorldSetup(), seed)
    cluster.leave(SOURCE)
    assert rule(cluster) == "L1"
    source = cluster.source
    assert source is not None
    source.left = True
    found = trouble(cluster)
    assert found is not None
    assert "has not forgotten it" in found[1]
    source.left = False
    cluster.world.run(cluster.world.now + SECOND)
    assert trouble(cluster) is None


@pytest.mark.rows("P-586")
@pytest.mark.parametrize(
    ("reg_id", "source_reg_id", "same_life", "over"),
    [(9, 0, False, True), (9, 0, True, False), (None, 0, False, False), (9, None, False, False), (9, 8, False, True)],
)
def test_who_registers_once_more_when_a_source_has_left_is_another(
    reg_id: int | None, source_reg_id: int | None, same_life: bool, over: bool
) -> None:
    """An earlier life under a RegID of its own, and its receivers; None stands for the RegID of who left."""
    cluster = quiet(WorldSetup())
    cluster.leave(SOURCE)
    cluster.world.run(cluster.world.now + SECOND)
    source = cluster.source
    assert source is not None
    index, left = next(iter(source.known_at.items()))
    reg_id, source_reg_id = left if reg_id is None else reg_id, left if source_reg_id is None else source_reg_id
    life = source.config.incarnation if same_life else 1
    client = Client(Role.SOURCE, reg_id, index, "sim", 1, life, source_reg_id, "a:1", "a:2", 0, 0, -1, ())
    cluster.disks[STORES[index]].log.append(DiskRecord(99, DiskRecordKind.STATE, lambda: client_record(client), reg_id))
    assert (trouble(cluster) is None) is over


@pytest.mark.parametrize("holders", [(1,), (), (1, None)], ids=["another since", "nobody", "another before"])
def test_another_life_that_got_the_reg_id_keeps_the_state_of_a_source_that_left(
    holders: tuple[int | None, ...],
) -> None:
    """A RegID has one holder at a time. None stands for the life that left."""
    cluster = quiet(WorldSetup())
    cluster.leave(SOURCE)
    cluster.world.run(cluster.world.now + SECOND)
    source = cluster.source
    assert source is not None
    index, reg_id = next(iter(source.known_at.items()))
    client = Client(Role.SOURCE, reg_id, index, "sim", 1, 1, 0, "a:1", "a:2", 0, 0, -1, ())
    cluster.disks[STORES[index]].log.append(DiskRecord(99, DiskRecordKind.STATE, lambda: client_record(client), reg_id))
    for life in holders:
        cluster.checkers.facts.on_granted(STORES[index], reg_id, source.config.incarnation if life is None else life)
    assert (trouble(cluster) is None) is (holders == (1,))


@pytest.mark.rows("P-586", "P-588")
def test_a_receiver_that_leaves_is_to_be_rid_of_its_stores() -> None:
    """And what is sent then is none of its business."""
    cluster = quiet(WorldSetup())
    cluster.leave(RECEIVERS[1])
    assert rule(cluster) == "L1"
    cluster.want(2)
    cluster.world.run(cluster.world.now + SECOND)
    assert trouble(cluster) is None


@pytest.mark.rows("P-540", "P-554")
def test_a_source_that_is_away_is_to_have_one_proxy() -> None:
    """If any store knows where a proxy would register."""
    cluster = quiet(WorldSetup(proxies=True, orphaned=True))
    cluster.calm()
    assert trouble(cluster) == ("E8", "nobody runs a proxy while source is away")
    for disk in cluster.disks.values():
        disk.log.clear()
    assert trouble(cluster) is None


@pytest.mark.parametrize("wiped", [1, 2])
def test_where_a_quorum_is_required_nobody_stands_in_without_one(wiped: int) -> None:
    """C-40: a store that has no state of the source does not count."""
    cluster = quiet(WorldSetup(proxies=True, quorate=True, orphaned=True))
    cluster.calm()
    for store in STORES[:wiped]:
        cluster.disks[store].log.clear()
    assert (trouble(cluster) is None) is (wiped == 2)


@pytest.mark.parametrize(("wiped", "due"), [((), True), (("store0",), False), (("store1",), False)])
def test_where_a_quorum_is_required_it_is_one_of_every_group(wiped: tuple[str, ...], due: bool) -> None:
    """A proxy does not know the rule between the groups: one group of the two would be enough for the source."""
    rules = GroupRules((1, 2), Intragroup.QUORUM, Intergroup.ANY)
    cluster = quiet(WorldSetup(rules=rules, proxies=True, quorate=True, orphaned=True))
    cluster.calm()
    for store in wiped:
        cluster.disks[store].log.clear()
    assert (trouble(cluster) is not None) is due


@pytest.mark.no_cover
def test_that_excuses_no_proxy_that_registers_without_a_quorum(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: a proxy is content with one group. A proxy from before the loss might stay, this one not."""
    wiped = FOUND["wiped_group"]
    lost_with_messages = attrs.evolve(wiped, sends=((1000, 1), *wiped.sends))
    assert run(lost_with_messages).violations == ()
    monkeypatch.setattr(Quorums, "every_group", lambda *_: True)
    for schedule in wiped, lost_with_messages:
        assert {violation.rule for violation in run(schedule).violations} == {"E8"}


@pytest.mark.rows("P-349")
@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("what", "planted"),
    [
        ("core.receiver.consumption_acks.Acknowledger.confirm", lambda *_: None),
        ("core.source.confirmations.ConfirmedRanges.add", lambda _, first, stop: [(first + 1, stop)]),
    ],
)
def test_that_excuses_no_confirmation_that_a_living_process_can_repeat(
    monkeypatch: pytest.MonkeyPatch, what: str, planted: Callable[..., object]
) -> None:
    """The planted faults: nobody confirms, or the source misses the first message of each."""
    monkeypatch.setattr(f"stablecast.{what}", planted)
    assert {violation.rule for violation in run(FOUND["confirmed_in_vain"]).violations} == {"L1"}


@pytest.mark.rows("P-502", "P-586")
@pytest.mark.no_cover
@pytest.mark.parametrize("schedule", [FOUND["turn_over"], attrs.evolve(FOUND["turn_over"], faults=())])
def test_that_excuses_no_receiver_that_hears_no_farewell(monkeypatch: pytest.MonkeyPatch, schedule: Schedule) -> None:
    """The planted fault: answers to a deregistration are lost on the receiver."""
    monkeypatch.setattr(Registration, "on_deregistered", lambda *_: False)
    assert {violation.rule for violation in run(schedule).violations} == {"L1"}


@pytest.mark.no_cover
def test_that_excuses_no_receiver_that_does_not_follow_a_store_whose_turn_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The planted fault: it asks where the store was, though an SRI says where it is."""
    monkeypatch.setattr(Registration, "move", lambda *_: None)
    moves = tuple(Fault(4049, Kind.KILL, store, 1, amount=1) for store in STORES)
    schedule = Schedule(3, (), moves, IN_TURNS)
    assert {violation.rule for violation in run(schedule).violations} == {"L1"}


@pytest.mark.rows("P-102", "P-438")
@pytest.mark.no_cover
def test_that_excuses_no_store_that_acknowledges_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: messages are given up though a quorum of stores had room for them."""
    monkeypatch.setattr(AckBatch, "add", lambda *_: None)
    (violation,) = run(attrs.evolve(FOUND["small_memory"], sends=())).violations
    assert violation.rule == "L1"
    assert violation.text.endswith("had room for it")
