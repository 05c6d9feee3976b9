"""The checkers alone: what each of them says of the least that breaks its rule. `tests/mutants` breaks it in worlds."""

from typing import Any

import attrs
import pytest

from stablecast.core.effects import Client
from stablecast.core.events import Oddity, Wakeup
from stablecast.core.messages import Pace, Role
from stablecast.core.quorum import GroupRules
from stablecast.core.registration import Registration, RegistrationState, RegistrationTimes
from stablecast.sim.checkers import PAYLOAD_BYTES, Checkers
from stablecast.sim.disk import Disk, Kind, Record
from stablecast.sim.facts import Facts
from stablecast.sim.setup import RECEIVERS, STORES, Setup
from tests.core.samples import register

LIFE, NEXT, STREAM = 7, 8, 50
READER, PROCESS = RECEIVERS[0], "receiver0.1"


def world(**setup: Any) -> Checkers:
    """Three empty disks, and a life that may send from 0 on."""
    checkers = Checkers.of(Facts(lambda: 0, {store: Disk() for store in STORES}, Setup(**setup)))
    checkers.on_life(LIFE, 0)
    return checkers


def store(checkers: Checkers, first: int, stop: int, stores: tuple[str, ...] = STORES, life: int = LIFE) -> None:
    """It is synced there."""
    for name in stores:
        disk, record = checkers.facts.disks[name], Record(1, Kind.MESSAGES, None, STREAM, first, stop, life)
        for contents in (disk.contents, disk.durable):
            contents.setdefault(STREAM, {}).update(dict.fromkeys(range(first, stop), record))


def stable(checkers: Checkers, first: int, stop: int) -> None:
    """Everywhere, and called so."""
    store(checkers, first, stop)
    checkers.on_stable(LIFE, first, stop, 7)


def begin(checkers: Checkers, number: int = 0, history: dict[int, list[tuple[int, int]]] | None = None) -> None:
    """A session delivers from there."""
    checkers.receivers.on_session(READER, PROCESS, LIFE, history or {})
    checkers.receivers.on_begin(READER, PROCESS, LIFE, number)


def deliver(checkers: Checkers, first: int, stop: int, sender: int = LIFE, payload: int = LIFE) -> None:
    """With what their sender put into them, or somebody else."""
    found = [(payload, number) for number in range(first, stop)]
    checkers.receivers.on_delivered(PROCESS, LIFE, sender, first, found)


def broken(checkers: Checkers) -> list[str]:
    return [violation.rule for violation in checkers.facts.violations]


def test_stable_is_what_enough_disks_have() -> None:
    checkers = world()
    store(checkers, 0, 2, STORES[:2])
    store(checkers, 2, 3, STORES[:1])
    checkers.on_stable(LIFE, 0, 2, 7)
    assert broken(checkers) == []
    checkers.on_stable(LIFE, 2, 3, 7)
    assert broken(checkers) == ["S1"]


def test_a_stable_number_is_of_one_life() -> None:
    checkers = world()
    stable(checkers, 0, 3)
    checkers.on_life(NEXT, 3)
    assert broken(checkers) == []
    store(checkers, 2, 3, life=NEXT)
    checkers.on_stable(NEXT, 2, 3, 7)
    assert broken(checkers) == ["S2"]
    checkers.on_life(NEXT + 1, 2)
    assert broken(checkers) == ["S2", "S2"]


def test_what_is_stable_is_not_cut_and_is_there_in_the_end() -> None:
    checkers = world()
    stable(checkers, 0, 3)
    checkers.stores.on_cut(STORES[0], STREAM, 3)
    assert broken(checkers) == []
    checkers.stores.on_cut(STORES[0], STREAM, 2)
    assert broken(checkers) == ["S3"]
    for name in STORES[:2]:
        del checkers.facts.disks[name].durable[STREAM][2]
    checkers.at_the_end()
    assert broken(checkers) == ["S3", "S3"]
    checkers.facts.farewell = True
    checkers.at_the_end()
    assert len(broken(checkers)) == 2


def test_what_a_quorum_of_disks_took_along_is_not_promised() -> None:
    checkers = world()
    stable(checkers, 0, 3)
    for name in STORES[:2]:
        checkers.facts.on_lost(name, disk=True)
        checkers.facts.disks[name].wipe()
    checkers.at_the_end()
    checkers.on_release(LIFE, 3)
    assert broken(checkers) == []


def test_a_store_says_only_what_its_disk_has() -> None:
    checkers = world()
    store(checkers, 0, 3, STORES[:1])
    checkers.facts.disks[STORES[0]].clients[STREAM] = LIFE
    checkers.stores.on_acknowledged(STORES[0], LIFE, 0, 3)
    checkers.stores.on_granted(STORES[0], STREAM, LIFE)
    assert broken(checkers) == []
    checkers.stores.on_acknowledged(STORES[0], LIFE, 0, 4)
    checkers.stores.on_granted(STORES[0], STREAM, NEXT)
    assert broken(checkers) == ["P1", "P1"]


@pytest.mark.parametrize(("pace", "found"), [(Pace.RECEIVERS, ["P2"]), (Pace.NON_BLOCKING, [])])
def test_a_paced_store_keeps_what_is_not_consumed(pace: Pace, found: list[str]) -> None:
    checkers = world(paced=True)
    blank: dict[str, Any] = dict.fromkeys(("reply_to", "transport", "topic"), "")
    fields = {field.name: 0 for field in attrs.fields(Client) if field.default is attrs.NOTHING}
    known = {"role": Role.RECEIVER, "reg_id": 70, "session_id": 2, "source_reg_id": STREAM, "acknowledged": -1}
    reader = Client(**{**fields, **blank, **known, "lives": (), "pace": pace})
    for name in STORES:
        checkers.stores.on_start(name, [reader])
    stable(checkers, 0, 6)
    begin(checkers)
    deliver(checkers, 0, 4)
    checkers.receivers.on_consumed(READER, LIFE, 0, 4)
    checkers.stores.on_reclaim(STORES[0], STREAM, 4)
    assert broken(checkers) == []
    checkers.stores.on_reclaim(STORES[0], STREAM, 5)
    assert broken(checkers) == found
    checkers.stores.on_forget(STORES[0], Role.RECEIVER, 70)
    checkers.stores.on_reclaim(STORES[0], STREAM, 6)
    assert broken(checkers) == found


def test_copies_stay_until_they_are_stable_or_forced_out() -> None:
    checkers = world()
    stable(checkers, 0, 2)
    checkers.on_forced(LIFE, 2, 3)
    checkers.on_release(LIFE, 3)
    assert broken(checkers) == []
    checkers.on_release(LIFE, 4)
    assert broken(checkers) == ["C1"]


def test_copies_stay_until_somebody_consumed_them_where_that_is_asked() -> None:
    checkers = world(unique=1)
    begin(checkers, 1)
    stable(checkers, 0, 4)
    checkers.receivers.on_consumed(READER, LIFE, 1, 3)
    checkers.on_release(LIFE, 3)
    assert broken(checkers) == []
    checkers.on_release(LIFE, 4)
    assert broken(checkers) == ["C1"]


@pytest.mark.parametrize("limit", [(3, 0), (0, 3 * PAYLOAD_BYTES)])
def test_no_more_is_in_flight_than_the_limits_allow(limit: tuple[int, int]) -> None:
    checkers = world()
    checkers.on_sent(LIFE, 0, 3, limit)
    stable(checkers, 0, 1)
    checkers.on_sent(LIFE, 3, 4, limit)
    assert broken(checkers) == []
    checkers.on_sent(LIFE, 4, 5, limit)
    assert broken(checkers) == ["F1"]
    checkers = world(notify=True)
    checkers.on_sent(LIFE, 0, 4, limit)
    assert broken(checkers) == []


@attrs.define
class Process:
    """Counts on RegID 50 at store 0."""

    name: str
    alive: bool = True
    frozen: bool = False

    def registrations(self) -> list[Registration]:
        held = Registration(register(reg_id=50), "store0:1", RegistrationTimes(), RegistrationState.REGISTERED)
        return [held, attrs.evolve(held, state=RegistrationState.UNRESPONSIVE)]


def test_a_reg_id_has_one_live_holder() -> None:
    checkers = world()
    ours = Process("ours")
    checkers.clients += [ours, Process("ended", alive=False), Process("stopped", frozen=True)]
    checkers.on_registered(ours, 0, 50)
    checkers.clients.append(Process("other"))
    checkers.on_registered(ours, 0, 51)
    checkers.on_registered(ours, 1, 50)
    assert broken(checkers) == []
    checkers.on_registered(ours, 0, 50)
    assert broken(checkers) == ["R1"]


@pytest.mark.parametrize(
    ("what", "again"),
    [((5, 7), False), ((3, 5), False), ((4, 5, NEXT), False), ((1, 2), True)],
    ids=["a gap", "a repetition", "the payload of another", "consumed in an earlier session"],
)
def test_delivery_is_in_order_and_of_the_right_life(what: tuple[int, ...], again: bool) -> None:
    checkers = world()
    begin(checkers, 1 if again else 0, {LIFE: [(1, 2)]} if again else {})
    if not again:
        deliver(checkers, 0, 4)
    assert broken(checkers) == []
    deliver(checkers, what[0], what[1], payload=what[2] if len(what) > 2 else LIFE)
    assert broken(checkers) == ["D1"]


def test_what_was_lost_or_known_may_be_passed_over() -> None:
    checkers = world()
    begin(checkers, 0, {LIFE: [(2, 4)]})
    checkers.receivers.on_loss(READER, PROCESS, LIFE, 0, 2)
    deliver(checkers, 4, 6)
    assert broken(checkers) == []
    stable(checkers, 6, 8)
    checkers.receivers.on_loss(READER, PROCESS, LIFE, 7, 8)
    assert broken(checkers) == ["S3"]


def test_in_arrival_order_everything_is_delivered_once() -> None:
    checkers = world(arrival=True)
    begin(checkers)
    deliver(checkers, 3, 5)
    deliver(checkers, 0, 3)
    assert broken(checkers) == []
    deliver(checkers, 4, 6)
    assert broken(checkers) == ["D1"]


def test_no_session_begins_behind_what_the_application_never_had() -> None:
    checkers = world()
    stable(checkers, 0, 3)
    checkers.receivers.on_consumed(READER, LIFE, 0, 2)
    begin(checkers, 2)
    assert broken(checkers) == []
    begin(checkers, 3)
    assert broken(checkers) == ["D1"]
    deliver(checkers, 2, 3)
    assert broken(checkers) == ["D1", "D1"]


def test_what_another_life_got_stable_is_not_delivered_of_this_one() -> None:
    checkers = world()
    store(checkers, 0, 1, life=NEXT)
    checkers.on_life(NEXT, 0)
    checkers.on_stable(NEXT, 0, 1, 7)
    checkers.receivers.on_session(READER, PROCESS, NEXT, {})
    checkers.receivers.on_begin(READER, PROCESS, NEXT, 0)
    checkers.receivers.on_delivered(PROCESS, NEXT, LIFE, 0, [(LIFE, 0)])
    assert broken(checkers) == ["D1"]


def test_acknowledged_is_what_was_consumed() -> None:
    checkers = world()
    checkers.receivers.on_session(READER, PROCESS, LIFE, {})
    checkers.receivers.on_consumption_ack(READER, PROCESS, LIFE, 0)
    assert broken(checkers) == ["A1"]
    begin(checkers)
    deliver(checkers, 0, 3)
    checkers.receivers.on_consumed(READER, LIFE, 0, 2)
    checkers.receivers.on_consumption_ack(READER, PROCESS, LIFE, 1)
    assert broken(checkers) == ["A1"]
    checkers.receivers.on_consumption_ack(READER, PROCESS, LIFE, 2)
    assert broken(checkers) == ["A1", "A1"]


def test_what_a_limit_let_go_is_excused() -> None:
    checkers = world()
    stable(checkers, 0, 3)
    for name in STORES:
        checkers.stores.on_reclaim(name, STREAM, 2)
        del checkers.facts.disks[name].durable[STREAM][0]
    checkers.at_the_end()
    begin(checkers, 2)
    assert broken(checkers) == []
    begin(checkers, 3)
    assert broken(checkers) == ["D1"]


def test_what_machines_drop_is_counted() -> None:
    checkers = world()
    checkers.on_oddity(Oddity("late-ack", "late"))
    checkers.on_oddity(Wakeup())
    assert (checkers.facts.counts["late-ack"], broken(checkers)) == (1, [])


def test_who_left_is_promised_nothing() -> None:
    checkers = world()
    begin(checkers)
    stable(checkers, 0, 3)
    checkers.receivers.on_leave(READER, PROCESS)
    checkers.receivers.on_loss(READER, PROCESS, LIFE, 0, 3)
    assert broken(checkers) == []


def test_without_stores_copies_may_go() -> None:
    checkers = world(rules=GroupRules())
    checkers.on_release(LIFE, 3)
    checkers.receivers.on_session(READER, PROCESS, LIFE, {})
    deliver(checkers, 5, 6)
    assert broken(checkers) == []
