"""Facts of frames about other endpoints: ranges that grow, whatever the frame begins with."""

from collections.abc import Iterable
from typing import Any

import attrs
import pytest

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.effects import (
    CacheMessages,
    Cut,
    Deliver,
    Effect,
    Forget,
    Notify,
    PersistMessages,
    Send,
    StartProxy,
    StopProxy,
)
from stablecast.core.protocol.events import (
    RegistrationComplete,
    RegistrationFlag,
    RegistrationSuccess,
    Stable,
    StableFlag,
)
from stablecast.core.protocol.inputs import Arrived, Data, Input, Persisted, Sent, Start, Tick
from stablecast.core.protocol.messages import (
    ConsumptionAck,
    ElectionToken,
    Refusal,
    Refused,
    Register,
    Registered,
    Role,
    StableAck,
    StoreEntry,
)
from stablecast.core.protocol.settings import RepositoryConfig, StoreBehavior, StoreConfig
from stablecast.core.source import SourceEndpoint
from stablecast.core.store import StoreEndpoint
from stablecast.core.store.repository import Repository
from stablecast.core.store.sync_tickets import PendingSync
from stablecast.evidence.trace.converter import Endpoint
from stablecast.evidence.trace.facts import ALL_GROUPS, PATIENCE, UNCOUNTED, Book, digest_of, gatherer, identity
from stablecast.evidence.trace.frame_judge import RecordWatch, unjudged
from tests.adapters.evidence.trace.test_endpoint_rules import LIFE, receiver, source, store
from tests.core.samples import register

TICK = Tick()

Row = tuple[str, int, str, int, int]


CONTROL = ("withdrew", "reach", "wrote", "began", "context", "asked", "spoke", "listened", "announced")
"""Kinds of facts for the rule that what arrived was sent; tests of the others leave them out."""


def told(
    machine: Endpoint, *records: tuple[Input, Iterable[Effect]], fresh: bool = False, control: bool = False
) -> list[Row]:
    """Kind, life, peer and range of each fact, of those for one rule or of all others."""
    book = Book()
    watch = RecordWatch([], gatherer(machine, book, fresh=fresh), book, unjudged)
    watch.judge([(number, number, event, [*effects]) for number, (event, effects) in enumerate(records)])
    found = [one for one in book.facts if (one.kind in CONTROL) is control]
    return [(one.kind, one.life, one.peer, one.first, one.last) for one in found]


def acked(first: int, last: int, store_index: int = 0, **more: Any) -> Arrived:
    return Arrived(attrs.evolve(StableAck(store_index, LIFE, first, last), **more))


def success(store_index: int, address: str, number: int = 0) -> Notify:
    return Notify(RegistrationSuccess(store_index, address, 5, 0, number, RegistrationFlag.NONE))


def stable(first: int, last: int, flags: StableFlag = StableFlag.STABLE) -> Notify:
    return Notify(Stable(first, last, 0, flags))


def test_a_fresh_source_says_what_it_asks_for() -> None:
    rows = told(source(), fresh=True)
    assert rows[:2] == [("asks", LIFE, "", 0, 2), ("asks", LIFE, "", ALL_GROUPS, 1)]
    assert rows[2:] == [("member", LIFE, f"s:{index}", 0, index) for index in range(3)]
    assert told(source()) == []
    streaming = SourceEndpoint.create(attrs.evolve(source().config, stores=()))
    assert told(streaming, fresh=True) == [], "it asks for nothing"


def test_stability_in_turns_is_no_fact_for_other_lives() -> None:
    turning = source(behavior=StoreBehavior.RR)
    assert told(turning, (Sent(0, 5, 5), [stable(0, 4)])) == [
        ("sent", LIFE, "", 0, 4),
        ("turned", LIFE, "", 0, 4),
    ]


def test_a_source_has_facts_of_its_sends_and_acknowledgements() -> None:
    rows = told(
        source(),
        (TICK, [Notify(RegistrationComplete(100, RegistrationFlag.NONE))]),
        (Sent(100, 5, 50), []),
        (acked(100, 102), []),
        (Sent(105, 5, 50), []),
        (acked(103, 104), [stable(100, 104), stable(105, 105, StableFlag.STORE)]),
        (acked(104, 109, nack=True), []),
        (acked(104, 109, incarnation=LIFE + 1), []),
        (acked(104, 109, store_index=9), []),
    )
    assert rows == [
        ("sent", LIFE, "", 100, 109),
        ("acked", LIFE, "s:0", 100, 104),
        ("stable", LIFE, "", 100, 104),
    ]


def test_a_store_that_moves_is_a_member_under_both_addresses() -> None:
    rows = told(
        source(),
        (TICK, [success(1, "s:1")]),
        (TICK, [success(1, "t:1")]),
        (TICK, [success(9, "u:1")]),
        (acked(0, 0, 1), []),
    )
    assert rows == [
        ("holds", LIFE, "s:1", 5, 5),
        ("holds", LIFE, "t:1", 5, 5),
        ("member", LIFE, "t:1", 0, 1),
        ("holds", LIFE, "u:1", 5, 5),
        ("acked", LIFE, "t:1", 0, 0),
    ]


def persisted(ticket: int, first: int, count: int, life: int = LIFE) -> PersistMessages:
    return PersistMessages(ticket, 5, life, 1, 0, count, first, done=True)


def said(first: int, last: int, *, nack: bool = False) -> Send:
    return Send("a:1", StableAck(0, LIFE, first, last, nack))


def test_a_store_holds_what_is_synced_or_kept_in_memory() -> None:
    rows = told(
        store(),
        (TICK, [persisted(1, 0, 5), persisted(2, 5, 5)]),
        (Persisted(1), [said(0, 4), said(7, 8, nack=True)]),
        (TICK, [CacheMessages(5, LIFE, 1, 0, 3, 20, done=True)]),
        (Persisted(2), []),
    )
    assert rows == [
        ("held", LIFE, "s:1", 0, 4),
        ("said", LIFE, "s:1", 0, 4),
        ("held", LIFE, "s:1", 20, 22),
        ("held", LIFE, "s:1", 5, 9),
    ]


@pytest.mark.rows("P-575")
def test_a_paced_store_holds_the_messages_that_it_acknowledges() -> None:
    """The source agreed to that (P-575)."""
    assert told(store(repository=RepositoryConfig(allow_rpp=True)), (TICK, [said(0, 4)])) == [
        ("said", LIFE, "s:1", 0, 4),
        ("held", LIFE, "s:1", 0, 4),
    ]


def kept(trail: int, lives: list[tuple[int, int]]) -> StoreEndpoint:
    """Return a store with 10..19 synced, and 20..24 in writing."""
    machine = store()
    repository = Repository.create(machine.config, 5, 0, "a:1", LIFE)
    repository.window.trail = trail
    repository.window.held.add(10, 20)
    repository.window.synced.add(10, 20)
    repository.life.lives = lives
    machine.registry.repositories[5] = repository
    machine.tickets.wait(PendingSync(3, 5, LIFE, first=20, stop=25))
    return machine


def test_a_fresh_store_says_what_it_has_and_what_nobody_can_know() -> None:
    machine = kept(10, [(LIFE - 1, 0), (LIFE, 14)])
    both = [("kept", LIFE - 1, "s:1", 5, 19), ("kept", LIFE, "s:1", 5, 19)]
    reigns = [("reign", LIFE - 1, "s:1", 5, 14), ("reign", LIFE, "s:1", 5, -1)]
    held = [("held", LIFE - 1, "s:1", 0, 13), ("held", LIFE, "s:1", 14, 19)]
    assert sorted(told(machine, fresh=True)) == sorted([*both, *reigns, *held]), "it had what it let go"
    let_go = told(kept(17, [(LIFE - 1, 0), (LIFE, 14)]), fresh=True)[2:4]
    assert let_go == [("held", LIFE - 1, "s:1", 0, 13), ("held", LIFE, "s:1", 14, 16)], "each by the life that sent it"
    assert told(kept(0, []), fresh=True) == [("kept", LIFE, "s:1", 5, 19), ("held", LIFE, "s:1", 10, 19)]
    assert told(machine, (Persisted(3), [])) == [("held", LIFE, "s:1", 20, 24)]


def test_a_store_tells_which_sources_it_registered() -> None:
    machine = store()
    answer = Registered(Role.SOURCE, 2, 1, 6, LIFE, False, 0, -1, 1000, 2000)
    sent = [Send("a:1", one) for one in (answer, attrs.evolve(answer, role=Role.RECEIVER, reg_id=8))]
    assert told(machine, (TICK, sent)) == [("granted", LIFE, machine.config.address, 6, 6)]


def test_a_store_has_facts_of_cuts_and_forgotten_sources() -> None:
    machine = kept(0, [(LIFE - 1, 0), (LIFE, 14)])
    assert told(machine, (TICK, [Cut(4, 5, 12)]), (TICK, [Cut(4, 5, 0)]), (TICK, [Cut(4, 6, 0)])) == [
        ("cut", LIFE - 1, "s:1", 12, 13),
        ("cut", LIFE, "s:1", 14, 19),
        ("cut", LIFE - 1, "s:1", 10, 11),
    ]
    forget = Forget(4, Role.SOURCE, 5)
    reader = Forget(4, Role.RECEIVER, 6)
    assert told(machine, (TICK, [forget, reader, Cut(4, 5, 0)])) == [("forgot", 0, "s:1", 5, 5)]


def test_a_proxy_is_named_by_its_source() -> None:
    stores = (StoreEntry(1, 0, "b:1", 8, 0), StoreEntry(0, 0, "a:1", 5, 0))
    start = StartProxy(5, "orders", 42, ElectionToken(1, 0, LIFE), stores, (2,))
    assert told(store(), (TICK, [start]), (TICK, [StopProxy(5)])) == [
        ("proxy", LIFE, "orders/42/a:1=5,b:1=8", 5, 5),
        ("retired", 0, "", 5, 5),
    ]


def test_acknowledgements_speak_of_all_up_to_a_number_at_both_ends() -> None:
    rows = told(
        store(),
        (Arrived(ConsumptionAck(LIFE, 5, 6, 9)), [persisted(1, 0, 40)]),
        (Arrived(ConsumptionAck(LIFE, 5, 6, 12)), []),
        (Arrived(ConsumptionAck(LIFE, 5, 6, 11)), []),
    )
    assert rows == [("heard", LIFE, "s:1/6", -1, 12), ("heard", LIFE, "s:1/6", -1, 11)]
    ack = Send("s:1", ConsumptionAck(LIFE, 5, 6, 9))
    assert told(receiver(), (TICK, [success(0, "s:1", 5), ack])) == [
        ("holds", LIFE, "s:1", 5, 5),
        ("confirmed", LIFE, "s:1/6", -1, 9),
    ]


def test_deliveries_are_ascribed_to_the_life_that_sent_them() -> None:
    data = Data(LIFE, LIFE - 1, 3, 2, 20, recovered=True, token=1)
    deliver = Deliver(1, 0, 2, 3, recovered=True, done=True)
    unknown = Deliver(7, 0, 2, 5, recovered=False, done=True)
    assert told(receiver(), (data, [deliver]), (TICK, [unknown])) == [("delivered", LIFE - 1, "", 3, 4)]
    assert told(receiver(), (Start(), [])) == []


def test_while_a_store_moves_nobody_knows_who_acknowledges() -> None:
    """P1, seed 385: the acknowledgement of the new place is there before its grant."""
    ack: tuple[Input, list[Effect]] = (Arrived(StableAck(0, LIFE, 0, 0)), [])
    request = Register(Role.SOURCE, 0, 2, 5, LIFE, 0, "orders", 0, "a:1", "a:2", 0, 0)
    moving = (TICK, [Send("s:0", request)])
    moved = (TICK, [Send("n:0", request)])
    there = (TICK, [success(0, "n:0", 5)])
    assert [row for row in told(source(), moving, ack, moved, ack, there, ack) if row[0] == "acked"] == [
        ("acked", LIFE, "s:0", 0, 0),
        ("acked", LIFE, "n:0", 0, 0),
    ]


def test_facts_that_make_no_sense_are_none() -> None:
    book = Book()
    book.note("sent", LIFE, 5, 4)
    book.note("sent", LIFE, 0, 1 << 70)
    book.note("held", LIFE, -(1 << 70), 0)
    assert book.facts == []


def test_endpoints_are_known_by_their_addresses() -> None:
    assert identity(source()) == ("a:1", LIFE, 0)
    assert identity(receiver()) == ("r:1", LIFE, 0)
    assert identity(StoreEndpoint.create(StoreConfig("s:1", 1, proxy_interval_ns=7))) == ("s:1", 0, PATIENCE * 7)


def test_gaps_of_ranges_are_not_filled() -> None:
    """Runs that do not touch stay apart."""
    assert told(source(), (Sent(0, 2, 2), []), (Sent(5, 2, 2), [])) == [
        ("sent", LIFE, "", 0, 1),
        ("sent", LIFE, "", 5, 6),
    ]
    assert RangeSet([(0, 2)]).missing(0, 3) == [(2, 3)]


def test_messages_are_named_by_their_content_and_noted_once() -> None:
    """A store notes requests by the address in them. It answers, and repeats the answer."""
    request = register(context=77)
    answer = Registered(Role.SOURCE, 2, 1, 6, LIFE, False, 0, -1, 1000, 2000)
    send = Send("c:1", answer)
    rows = told(store(), (Arrived(request), [send]), (Arrived(request), [send]), fresh=True, control=True)
    address = store().config.address
    endpoint = digest_of((request.role, request.incarnation, request.topic, request.session_id, request.reg_id))
    assert rows == [
        ("began", 0, address, 0, 0),
        ("context", 77, request.reply_to, endpoint, endpoint),
        ("listened", request.incarnation, request.reply_to, digest_of(request), digest_of(request)),
        ("spoke", LIFE, address, digest_of(answer), digest_of(answer)),
        ("context", 77, request.reply_to, endpoint, endpoint),
    ]
    assert digest_of(request) != digest_of(attrs.evolve(request, session_id=request.session_id + 1))


def test_a_refusal_for_lack_of_room_is_not_compared() -> None:
    """The daemon refuses without its traced machine when it has no room."""
    refusals = [Refused(Role.SOURCE, 2, 1, 6, LIFE, why) for why in (Refusal.INCOMPATIBLE, Refusal.OTHER_TOPIC)]
    rows = told(source(), *[(Arrived(one), []) for one in refusals], control=True)
    assert [row[3] for row in rows if row[0] == "listened"] == [digest_of(refusals[1])]


def test_endless_messages_are_not_counted_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stablecast.evidence.trace.facts.MAX_CONTROL", 2)
    answers = [Registered(Role.SOURCE, 2, number, 6, LIFE, False, 0, -1, 1000, 2000) for number in range(9)]
    rows = told(store(), (TICK, [Send("c:1", one) for one in answers]), control=True)
    assert [row[3] for row in rows if row[0] == "spoke"] == [*map(digest_of, answers[:2]), UNCOUNTED]
