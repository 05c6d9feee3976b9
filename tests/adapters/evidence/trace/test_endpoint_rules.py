"""The rules by themselves: what they let through, what they name, and that a trace may begin anywhere."""

from typing import Any

import attrs
import pytest

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.serial import wire
from stablecast.core.protocol.effects import (
    CacheMessages,
    Client,
    Deliver,
    Discard,
    Effect,
    Forget,
    Notify,
    PersistClient,
    PersistMessages,
    Reclaim,
    Send,
)
from stablecast.core.protocol.events import (
    RegistrationComplete,
    RegistrationFlag,
    Stable,
    StableFlag,
    UnrecoverableLoss,
)
from stablecast.core.protocol.inputs import (
    Acknowledge,
    Arrived,
    Consumed,
    Damaged,
    History,
    Input,
    Persisted,
    Sent,
    Tick,
    Useless,
)
from stablecast.core.protocol.messages import ConsumptionAck, Pace, Registered, Role, StableAck
from stablecast.core.protocol.quorum import GroupRules, Intergroup, Intragroup
from stablecast.core.protocol.settings import (
    AckMode,
    Ordering,
    ReceiverConfig,
    RepositoryConfig,
    SourceConfig,
    StoreBehavior,
    StoreConfig,
    StoreSpec,
)
from stablecast.core.receiver import ReceiverSession
from stablecast.core.source import SourceEndpoint
from stablecast.core.store import StoreEndpoint
from stablecast.core.store.repository import Repository
from stablecast.core.store.retention_terms import Terms
from stablecast.core.store.sync_tickets import PendingSync
from stablecast.evidence.trace import endpoint_rules
from stablecast.evidence.trace.converter import Endpoint
from tests.adapters.evidence.trace.rule_probe import ask
from tests.core.drivers import StoreDriver
from tests.core.samples import register

LIFE = 7
GROUP = StableFlag.INTRAGROUP | StableFlag.INTERGROUP | StableFlag.STABLE
WRAP = 1 << 32

Fact = Input | Effect

ONE_GROUP = GroupRules((3,))


def source(groups: GroupRules = ONE_GROUP, **more: Any) -> SourceEndpoint:
    stores = tuple(StoreSpec(f"s:{n}", group=n % len(groups.sizes)) for n in range(sum(groups.sizes)))
    return SourceEndpoint.create(SourceConfig("orders", LIFE, "a:1", "a:2", stores, groups, **more))


def receiver(**more: Any) -> ReceiverSession:
    return ReceiverSession.create(ReceiverConfig("orders", LIFE, "r:1", **more))


def store(**more: Any) -> StoreEndpoint:
    return StoreEndpoint.create(StoreConfig("s:1", 1, **more))


def judged(machine: Endpoint, *facts: Fact) -> list[tuple[str, str]]:
    """Return the first sentence of each rule about these inputs and effects."""
    found = []
    for rule in endpoint_rules.begin(machine):
        texts = [text for fact in facts if (text := ask(rule, fact)) is not None]
        found += [(rule.name, texts[0])] if texts else []
    return found


def begins(number: int) -> Notify:
    return Notify(RegistrationComplete(number, RegistrationFlag.NONE))


def ack(index: int, first: int, last: int, life: int = LIFE) -> Arrived:
    return Arrived(StableAck(index, life, wire(first), wire(last)))


def stable(first: int, last: int, index: int = 0, flags: StableFlag = GROUP) -> Notify:
    return Notify(Stable(first, last, index, flags))


def deliver(first: int, count: int) -> Deliver:
    return Deliver(1, 0, count, first, recovered=False, done=True)


def consumed(number: int) -> Send:
    return Send("s:1", ConsumptionAck(LIFE, 1, 2, wire(number)))


def held(first: int, last: int, life: int = LIFE) -> Send:
    return Send("a:1", StableAck(0, life, wire(first), wire(last)))


def written(ticket: int, first: int, count: int, life: int = LIFE) -> PersistMessages:
    return PersistMessages(ticket, 1, life, 1, 0, count, first, done=True)


def confirmed(first: int, number: int) -> Send:
    return Send("a:1", ConsumptionAck(LIFE, 0, 2, wire(number), first=wire(first)))


@pytest.mark.rows("P-349")
@pytest.mark.parametrize("start", [0, WRAP - 2])
def test_a_confirmation_names_only_what_was_consumed(start: int) -> None:
    """A1, P-349: a store hears one number, the source hears ranges; they may come again."""
    facts: list[Fact] = [begins(start), deliver(start, 1), Notify(UnrecoverableLoss(start + 1, start + 3))]
    facts += [deliver(start + 4, 2), Consumed(start, start), Consumed(start + 4, start + 5), consumed(start + 5)]
    fine = [confirmed(start, start), confirmed(start + 4, start + 5)]
    machine = receiver()
    machine.window.begin(start, [])
    assert judged(machine, *facts, *fine, *fine) == []
    text = f"number {start + 1} is confirmed and was never consumed"
    assert judged(machine, *facts, confirmed(start, start + 5)) == [("A1", text)]


@pytest.mark.rows("P-349")
def test_no_message_of_another_share_is_confirmed() -> None:
    """A1: a share acknowledges them, and may acknowledge nothing else. What it consumed itself it confirms."""
    facts: list[Fact] = [begins(0), deliver(0, 4), Consumed(0, 1, unseen=True), Consumed(2, 2)]
    facts += [Consumed(3, 3, unseen=True), consumed(3)]
    machine = receiver()
    assert judged(machine, *facts, confirmed(2, 2)) == []
    for first, number, wrong in ((0, 0, 0), (2, 3, 3), (0, 3, 0)):
        text = f"number {wrong} is confirmed and was never consumed"
        assert judged(machine, *facts, confirmed(first, number)) == [("A1", text)]


def test_a_share_repeats_only_confirmations_of_an_earlier_session() -> None:
    """A1: what that session consumed may have been for others; what it confirmed was not, whatever comes first."""
    known = [History(LIFE, 0, 3), History(LIFE, 1, 2, confirmed=True), History(LIFE, 0, 3)]
    machine = receiver(divides=True)
    assert judged(machine, *known, confirmed(1, 2)) == []
    assert judged(machine, *known, confirmed(1, 3)) == [("A1", "number 3 is confirmed and was never consumed")]


def holds(life: int, context: int = 5, role: Role = Role.SOURCE) -> PersistClient:
    machine = StoreDriver()
    machine.hear(register(reg_id=50, incarnation=life, context=context))
    [client] = machine.machine.checkpoint()
    return PersistClient(1, attrs.evolve(client, role=role))


FORGOTTEN = Forget(1, Role.SOURCE, 50)


@pytest.mark.rows("P-019")
@pytest.mark.parametrize(
    ("facts", "broken"),
    [
        ([holds(7), holds(8), holds(8)], False),
        ([holds(7), holds(8), holds(7), holds(8)], True),
        ([holds(7), holds(8), holds(7)], False),
        ([holds(8), holds(7), holds(9)], False),
        ([holds(8), FORGOTTEN, holds(7), holds(8)], False),
        ([holds(8), holds(7), FORGOTTEN, holds(8)], False),
        ([holds(8, 0), holds(7, 0), holds(8, 0)], False),
        ([holds(8), holds(7, 6), holds(8)], False),
        ([holds(8), holds(7, role=Role.RECEIVER), holds(8)], False),
    ],
)
def test_a_reg_id_does_not_go_to_and_fro_between_lives_of_one_context(facts: list[Fact], broken: bool) -> None:
    """R6, P-019: one that came back once may have outlived the other."""
    text = "RegID 50 goes to and fro between lives 0x7 and 0x8 of one context"
    assert judged(store(), *facts) == ([("R6", text)] if broken else [])


@pytest.mark.parametrize("start", [0, WRAP - 5])
def test_s1_counts_stores_number_by_number(start: int) -> None:
    facts = (begins(start), Sent(start, 10, 1), ack(0, start, start + 5), ack(1, start + 3, start + 9))
    assert judged(source(), *facts, stable(start + 3, start + 5), Tick()) == []
    assert judged(source(), *facts, stable(start + 2, start + 5)) == [
        ("S1", f"number {start + 2} is reported stable, and acknowledged by stores [0] only")
    ]
    assert judged(source(), *facts, stable(start + 3, start + 6))[0][1].startswith(f"number {start + 6} ")


def test_s1_wants_the_ack_of_the_very_store() -> None:
    facts = (begins(0), Sent(0, 5, 1), ack(1, 0, 4))
    assert judged(source(), *facts, stable(0, 4, 1, StableFlag.STORE)) == []
    assert judged(source(), *facts, stable(0, 4, 2, StableFlag.STORE)) == [
        ("S1", "number 0 is reported as held by store 2, which never acknowledged it")
    ]
    assert judged(source(), *facts, stable(0, 4, 2, StableFlag.NONE)) == []


@pytest.mark.rows("P-513", "P-514")
@pytest.mark.parametrize(
    ("rules", "enough", "too_few"),
    [
        (GroupRules((3, 3), Intragroup.QUORUM, Intergroup.ANY), [0, 2], [0, 1]),
        (GroupRules((3, 3), Intragroup.ALL, Intergroup.ALL_ACTIVE), [1, 3, 5], [0, 2, 1, 3]),
        (GroupRules((3, 3), Intragroup.ALL_ACTIVE, Intergroup.MAJORITY), [0, 2, 1, 3], [0, 2, 4, 1]),
        (GroupRules((3, 3), Intragroup.QUORUM, Intergroup.ALL), [0, 2, 1, 3], [0, 2, 4, 1]),
    ],
)
def test_s1_knows_the_rules_of_groups(rules: GroupRules, enough: list[int], too_few: list[int]) -> None:
    """Stores 0, 2, 4 are group 0."""
    facts = (begins(0), Sent(0, 5, 1))
    assert judged(source(rules), *facts, *(ack(index, 0, 4) for index in enough), stable(0, 4)) == []
    assert judged(source(rules), *facts, *(ack(index, 0, 4) for index in too_few), stable(0, 4)) == [
        ("S1", f"number 0 is reported stable, and acknowledged by stores {sorted(too_few)} only")
    ]


@pytest.mark.rows("P-502")
def test_s1_asks_for_one_store_where_they_take_turns() -> None:
    """The store whose turn it is decides (P-502)."""
    machine = source(behavior=StoreBehavior.RR)
    assert judged(machine, begins(0), Sent(0, 5, 1), ack(2, 0, 4), stable(0, 4)) == []
    assert judged(machine, begins(0), Sent(0, 5, 1), stable(0, 4))[0][0] == "S1"


@pytest.mark.parametrize(
    "unheard", [ack(2, 0, 4, life=LIFE + 1), ack(3, 0, 4), ack(255, 0, 4), ack(1, 0, 4)], ids=lambda a: str(a.message)
)
def test_s1_counts_only_acks_of_this_life_and_these_stores_once(unheard: Arrived) -> None:
    assert judged(source(), begins(0), Sent(0, 5, 1), ack(1, 0, 4), unheard, stable(0, 4))[0][0] == "S1"


def test_s1_does_not_count_acks_for_what_was_never_sent() -> None:
    facts = (begins(0), Sent(0, 5, 1), ack(0, 0, 99), ack(1, 0, 99), Sent(5, 5, 1))
    assert judged(source(), *facts, stable(0, 5)) == [
        ("S1", "number 5 is reported stable, and acknowledged by stores [] only")
    ]


def test_s1_may_begin_anywhere() -> None:
    machine = source()
    machine.window.next = 5
    machine.window.acked[0].add(0, 5)
    assert judged(machine, ack(1, 0, 4), stable(0, 4)) == []
    assert machine.window.acked[1] == RangeSet(), "the machine is not touched"


def test_d1_lets_order_through() -> None:
    assert judged(receiver(), begins(3), deliver(3, 2), deliver(5, 1), Tick()) == []
    assert judged(receiver(), deliver(30, 2), deliver(32, 1)) == [], "a streaming source begins anywhere"


@pytest.mark.parametrize(
    ("effect", "text"),
    [
        (deliver(4, 2), "number 4 is delivered after number 4"),
        (deliver(3, 2), "number 3 is delivered after number 4"),
        (deliver(6, 2), "number 5 is passed over and was neither lost nor consumed before"),
        (deliver(5, 0), "nothing is delivered at number 5"),
    ],
)
def test_d1_names_what_is_out_of_order(effect: Effect, text: str) -> None:
    assert judged(receiver(), begins(3), deliver(3, 2), effect) == [("D1", text)]


def test_d1_passes_over_what_is_lost_or_known() -> None:
    facts = (History(6, 5, 6), begins(3), deliver(3, 2), Notify(UnrecoverableLoss(7, 8)))
    assert judged(receiver(), *facts, deliver(9, 1)) == []
    assert judged(receiver(), *facts, deliver(10, 1))[0][1].startswith("number 9 is passed over")


def test_a1_lets_reading_through() -> None:
    facts = (begins(3), deliver(3, 2), Consumed(3, 4), consumed(4), deliver(5, 1))
    assert judged(receiver(), *facts) == []
    assert judged(receiver(), *facts, Consumed(5, 6)) == [("A1", "number 6 is consumed and was never delivered")]
    # The session before delivered what this one could not recover; it is in the application's hands.
    lost = (*facts, Notify(UnrecoverableLoss(6, 8)))
    assert judged(receiver(), *lost, Consumed(7, 7)) == []
    assert judged(receiver(), *lost, Consumed(8, 9)) == [("A1", "number 9 is consumed and was never delivered")]
    assert judged(receiver(), *facts, consumed(5)) == [("A1", "number 5 is acknowledged and was never consumed")]


def test_a1_leaves_what_lies_below_the_start_to_the_session_before() -> None:
    assert judged(receiver(), begins(193), Consumed(182, 192)) == []
    assert judged(receiver(), begins(193), Consumed(182, 193))[0][0] == "A1"
    # A store that grants late takes the start back, and what lies above it is this session's again.
    assert judged(receiver(), begins(193), begins(100), Consumed(99, 100))[0][0] == "A1"
    delivered = (begins(193), deliver(193, 2))
    assert judged(receiver(), *delivered, Consumed(190, 194)) == []
    assert judged(receiver(), *delivered, Consumed(190, 195))[0][0] == "A1"


def test_d1_is_for_receivers_that_deliver_in_order() -> None:
    machine = receiver(ordering=Ordering.ARRIVAL)
    assert judged(machine, begins(3), deliver(5, 2), deliver(3, 1), Consumed(5, 6), Consumed(3, 3)) == []
    assert judged(machine, begins(3), consumed(3))[0][0] == "A1"


@pytest.mark.rows("P-431")
def test_d1_in_arrival_order_a_number_is_delivered_once() -> None:
    """A number comes once in any order (P-431)."""
    machine = receiver(ordering=Ordering.ARRIVAL)
    lost = Notify(UnrecoverableLoss(8, 9))
    assert judged(machine, deliver(5, 2), deliver(3, 1), lost, deliver(4, 1), Tick()) == []
    again = [("D1", "number 6 is delivered, and was before or is reported lost")]
    assert judged(machine, deliver(5, 2), deliver(6, 1)) == again
    assert judged(machine, lost, deliver(7, 2))[0][1].startswith("number 8 is delivered")
    machine.window.next = 4
    machine.window.have.add(6, 7)
    assert judged(machine, deliver(4, 2), deliver(7, 1)) == []
    assert judged(machine, deliver(6, 1)) == again
    assert judged(machine, deliver(3, 1))[0][0] == "D1"


@pytest.mark.rows("P-346")
def test_a1_acknowledgements_do_not_fall() -> None:
    """This holds for every peer, but the application may withdraw its own acknowledgement. P-346."""
    facts = (begins(3), deliver(3, 4), Consumed(3, 6), consumed(6))
    assert judged(receiver(), *facts, consumed(6)) == []
    assert judged(receiver(), *facts, consumed(5)) == [("A1", "number 5 is acknowledged after number 6")]
    other = Send("s:2", ConsumptionAck(LIFE, 1, 2, 5))
    assert judged(receiver(), *facts, other)[0][0] == "A1"
    assert judged(receiver(ack_mode=AckMode.EXPLICIT), *facts, consumed(5)) == []


@pytest.mark.rows("P-347")
def test_a1_lets_the_application_acknowledge() -> None:
    """And everything below with it."""
    assert judged(receiver(), begins(3), deliver(3, 4), Acknowledge(5), consumed(5)) == []


def test_a1_counts_what_was_consumed_in_earlier_sessions() -> None:
    assert judged(receiver(), History(6, 0, 9), consumed(9)) == []


@pytest.mark.parametrize("start", [10, WRAP + 10])
def test_receiver_rules_may_begin_anywhere(start: int) -> None:
    machine = receiver()
    machine.window.next, machine.window.acked = start, start - 5
    machine.window.consumed.add(start - 4, start - 2)
    machine.window.known.add(start, start + 1)
    facts = (consumed(start - 5), consumed(start - 3), Consumed(start - 2, start - 1), deliver(start + 1, 1))
    assert judged(machine, *facts, consumed(start)) == []
    assert judged(machine, *facts, consumed(start + 1))[0][0] == "A1"


def test_a1_covers_everything_below_an_acknowledgement() -> None:
    """Down to the start; what is lost need not be consumed."""
    facts: tuple[Fact, ...] = (begins(2), deliver(2, 5), Consumed(2, 3), Consumed(5, 6))
    assert judged(receiver(), *facts, consumed(3)) == []
    unread = [("A1", "number 6 is acknowledged, and number 4 was never consumed")]
    assert judged(receiver(), *facts, consumed(3), consumed(6)) == unread
    for gone in (Useless(4, 4), Notify(UnrecoverableLoss(4, 4))):
        assert judged(receiver(), *facts, gone, consumed(6)) == []


@pytest.mark.parametrize(("pace", "late", "found"), [(1, False, 0), (0, False, 1), (1, True, 1)])
def test_a1_begins_again_with_a_start_that_is_taken_back(pace: int, late: bool, found: int) -> None:
    """Before, a receiver that sets the pace acknowledged what lies below its start."""
    facts: list[Fact] = [begins(5), *([consumed(4)] if pace else [deliver(5, 1), Consumed(5, 5), consumed(5)])]
    facts += [deliver(5, 1)] if late else []
    facts += [begins(0), deliver(0, 3), Consumed(0, 2), consumed(2)]
    verdicts = [rule for rule, _ in judged(receiver(pace=Pace(pace)), *facts) if rule == "A1"]
    assert len(verdicts) == found


def test_p1_waits_for_the_disk() -> None:
    facts: tuple[Fact, ...] = (written(1, 0, 5), written(2, 5, 5), Persisted(1))
    assert judged(store(), *facts, held(0, 4), Tick()) == []
    assert judged(store(), *facts, held(0, 5)) == [("P1", "number 5 is acknowledged and was never synced")]
    assert judged(store(), *facts, held(0, 4, life=8)) == [("P1", "number 0 is acknowledged and was never synced")]
    assert judged(store(), *facts, Persisted(2), held(WRAP, WRAP + 9)) == []


def test_p1_is_about_what_is_to_be_synced() -> None:
    """Messages for the memory only are never synced; a farewell says nothing of the disk."""
    cached = CacheMessages(1, LIFE, 1, 0, 5, 0, done=True)
    lost = Send("a:1", StableAck(0, LIFE, 0, 9, nack=True))
    assert judged(store(), cached, held(0, 4), lost) == []
    assert judged(store(), cached, held(0, 5))[0][0] == "P1"
    assert judged(store(repository=RepositoryConfig(allow_rpp=True)), written(1, 0, 5), held(0, 4))[0][0] == "P1"
    assert judged(store(repository=None), held(0, 4))[0][0] == "P1"


def test_p1_what_cannot_be_read_back_must_be_synced_again() -> None:
    """Unless it had to go before; what a store began with may be damaged, too."""
    synced: tuple[Fact, ...] = (written(1, 0, 9), Persisted(1), Reclaim(2, 1, 2), Damaged(1, 1, 4))
    assert judged(store(), *synced, held(5, 8), held(0, 1)) == []
    assert judged(store(), *synced, held(2, 8)) == [("P1", "number 2 is acknowledged and was never synced")]
    assert judged(store(), *synced, written(3, 2, 3), Persisted(3), held(0, 8)) == []
    machine = store()
    machine.repositories[1] = Repository.create(machine.config, 1, 0, "a:1", LIFE)
    machine.repositories[1].restore(0, 5, 5)
    assert judged(machine, Damaged(2, 0, 4), held(0, 4)) == []
    assert judged(machine, Damaged(1, 3, 3), held(0, 4)) == [("P1", "number 3 is acknowledged and was never synced")]


def known(reg_id: int, life: int = LIFE, pace: Pace = Pace.SOURCE, ticket: int = 1) -> PersistClient:
    return PersistClient(
        ticket, Client(Role.SOURCE, reg_id, 0, "orders", 0, life, 0, "c:1", "", 0, 0, -1, (), pace=pace)
    )


def granted(reg_id: int, life: int = LIFE) -> Send:
    return Send("c:1", Registered(Role.SOURCE, 0, 1, reg_id, life, False, 0, 0, 0, 0))


@pytest.mark.rows("P-010")
def test_p1_where_receivers_set_the_pace_asks_for_what_was_kept_or_went() -> None:
    """Messages may wait in memory (P-010, T19)."""
    paced = known(5, pace=Pace.RECEIVERS)
    assert judged(store(), paced, written(1, 0, 5), held(0, 4)) == []
    assert judged(store(), paced, CacheMessages(5, LIFE, 1, 0, 5, 0, done=True), held(0, 4)) == []
    assert judged(store(), paced, written(1, 0, 5), held(0, 5))[0][0] == "P1"
    assert judged(store(), paced, Reclaim(2, 5, 9), held(0, 8)) == []
    assert judged(store(), paced, Reclaim(2, 6, 9), held(0, 8))[0][0] == "P1"
    machine = store()
    machine.repositories[5] = Repository.create(machine.config, 5, 0, "a:1", LIFE, Terms(pace=Pace.RECEIVERS))
    machine.repositories[5].window.held.add(0, 5)
    assert judged(machine, held(0, 4)) == []
    assert judged(machine, held(0, 5))[0][0] == "P1"


@pytest.mark.rows("P-014")
def test_a_store_grants_what_is_written_down() -> None:
    """To this life, and not before the sync."""
    assert judged(store(), known(5), Persisted(1), granted(5)) == []
    assert judged(store(), known(5), granted(5)) == [
        ("R2", "RegID 5 is granted to life 0x7, which is not written down")
    ]
    assert judged(store(), known(5, ticket=2), Persisted(1), granted(5))[0][0] == "R2"
    assert judged(store(), known(5), Persisted(1), granted(5, life=8))[0][0] == "R2"
    machine = store()
    machine.clients.restore(known(5).client, 0)
    assert judged(machine, granted(5), Tick()) == []


def test_p1_may_begin_anywhere() -> None:
    machine = store()
    repository = Repository.create(machine.config, 1, 0, "a:1", LIFE)
    repository.restore(0, 5, 5)
    machine.repositories[1] = repository
    machine.tickets.wait(PendingSync(4, 1, LIFE, first=5, stop=10))
    assert judged(machine, held(0, 4)) == []
    assert judged(machine, held(0, 9)) == [("P1", "number 5 is acknowledged and was never synced")]
    assert judged(machine, Persisted(4), held(0, 9)) == []


@pytest.mark.rows("P-440")
def test_p1_knows_what_had_to_go_and_what_older_lives_left() -> None:
    """Synced messages may be acknowledged again, by the life that sent them (P-440)."""
    machine = store()
    repository = Repository.create(machine.config, 1, 0, "a:1", LIFE)
    repository.restore(5, 20, 5)
    repository.window.trail = 5
    repository.life.lives = [(LIFE - 1, 0), (LIFE, 12)]
    machine.repositories[1] = repository
    assert judged(machine, held(0, 4), held(12, 19), held(5, 11, life=LIFE - 1)) == []
    assert judged(machine, held(11, 12)) == [("P1", "number 11 is acknowledged and was never synced")]


def test_p1_counts_what_is_written_late_from_when_it_is_kept() -> None:
    """A trace that begins between the two knows it, too."""
    machine = store()
    terms = Terms(write_delay_ns=5)
    repository = Repository.create(machine.config, 1, 0, "a:1", LIFE, terms)
    repository.window.held.add(0, 5)
    machine.repositories[1] = repository
    assert judged(machine, held(0, 4)) == []


def test_in_arrival_order_what_is_held_until_the_registration_is_not_delivered_yet() -> None:
    """Seed 227: a frame that begins before the stores have answered, after data came."""
    machine = receiver(ordering=Ordering.ARRIVAL)
    machine.window.on_run(145, 150, 4, False, [])
    assert judged(machine, begins(145), deliver(145, 5), Consumed(145, 149)) == []
    assert judged(machine, begins(145), deliver(145, 5), deliver(147, 1)) == [
        ("D1", "number 147 is delivered, and was before or is reported lost")
    ]
    assert judged(machine, Consumed(145, 149)) == [("A1", "number 149 is consumed and was never delivered")]


def test_s1_has_no_opinion_on_other_effects() -> None:
    assert judged(source(), Discard(3), Tick()) == []


def test_in_arrival_order_what_was_delivered_is_ahead() -> None:
    """A1, seed 227: a trace that begins between a delivery and its consumption."""
    machine = receiver(ordering=Ordering.ARRIVAL)
    machine.window.next = 32
    assert judged(machine, Consumed(31, 31)) == []
    assert judged(machine, Consumed(32, 32))[0][0] == "A1"
    machine.window.have.add(96, 144)
    assert judged(machine, Consumed(141, 143)) == []
    assert judged(machine, Consumed(144, 144))[0][0] == "A1"


def test_receivers_know_what_older_sessions_consumed() -> None:
    machine = receiver()
    machine.lives.consumed[LIFE - 1] = RangeSet([(0, 5)])
    machine.window.next = 3
    assert judged(machine, deliver(5, 2)) == []


def test_every_role_has_rules() -> None:
    names = {
        type(machine): [rule.name for rule in endpoint_rules.begin(machine)]
        for machine in (source(), receiver(), store())
    }
    assert names == {
        SourceEndpoint: ["S1", "F1", "C1", "L2"],
        ReceiverSession: ["D1", "A1"],
        StoreEndpoint: ["P1", "R2", "R6"],
    }
