"""A store's clients: who holds a RegID, who may take it, what is remembered."""

from typing import Any

import attrs
import pytest

from stablecast.core.machine.seeded import Seeded
from stablecast.core.protocol.messages import Deregister, ElectionToken, Refusal, Role
from stablecast.core.protocol.settings import RepositoryConfig, StoreConfig
from stablecast.core.store import clients as clients_module
from stablecast.core.store.clients import LAST_REG_ID, LAST_TERM, ClientRecord, ClientTable
from tests.core.samples import LIFE, OLDER_LIFE, SECOND, register
from tests.support.abstract_states import abstract

KEPT = RepositoryConfig(
    source_activity_ns=30 * SECOND,
    receiver_activity_ns=20 * SECOND,
    source_lifetime_ns=100 * SECOND,
    receiver_lifetime_ns=0,
)
CONFIG = StoreConfig("store:1", 1, KEPT, keepalive_ns=0)
RECEIVER: dict[str, Any] = {"role": Role.RECEIVER, "source_reg_id": 50, "transport": ""}


def clients(seed: int = 1) -> ClientTable:
    return ClientTable(CONFIG, Seeded(seed))


def found(machine: ClientTable, **changes: Any) -> ClientRecord | Refusal | None:
    return machine.find(register(**changes))


@pytest.mark.rows("P-017", "P-234", "P-235")
def test_a_store_chooses_at_random_and_counts_up() -> None:
    first, other = clients(1), clients(2)
    chosen = [first.add(register(), 0).client.reg_id for _ in range(3)]
    assert chosen == [chosen[0], chosen[0] + 1, chosen[0] + 2]
    assert other.add(register(), 0).client.reg_id != chosen[0]


def test_a_chosen_reg_id_is_free_and_never_0() -> None:
    machine = clients()
    machine.add(register(reg_id=LAST_REG_ID), 0)
    machine.add(register(reg_id=1), 0)
    machine.next_reg_id = LAST_REG_ID
    assert machine.add(register(), 0).client.reg_id == 2
    assert machine.next_reg_id == 3


def test_the_same_life_comes_back_another_is_refused() -> None:
    machine = clients()
    record = machine.add(register(reg_id=50), 0)
    assert found(machine, reg_id=51) is None
    assert found(machine, reg_id=50, reply_to="moved:1") is record
    assert found(machine, reg_id=50, incarnation=9, reply_to="other:1") is Refusal.HELD_BY_SOURCE
    record.lifetime.on_gone(1)
    assert found(machine, reg_id=50, incarnation=9, reply_to="other:1") is record


def test_a_port_has_one_owner() -> None:
    """A new life that listens where the old one did proves that the old one has ended."""
    machine = clients()
    record = machine.add(register(reg_id=50, incarnation=OLDER_LIFE), 0)
    assert found(machine, reg_id=50) is record


@pytest.mark.rows("P-018", "P-019", "P-246", "P-251", "P-252")
@pytest.mark.parametrize(
    ("holder", "request_", "reason"),
    [
        ({}, RECEIVER, Refusal.HELD_BY_SOURCE),
        (RECEIVER, {}, Refusal.HELD_BY_RECEIVER),
        ({}, {"topic": "other"}, Refusal.OTHER_TOPIC),
        ({"session_id": 9}, {}, Refusal.HELD_BY_SOURCE),
        (RECEIVER, {**RECEIVER, "source_reg_id": 51}, Refusal.UNKNOWN_SOURCE),
        (RECEIVER, {**RECEIVER, "reply_to": "other:1"}, Refusal.HELD_BY_RECEIVER),
    ],
)
def test_refusals_have_their_reason(holder: dict[str, Any], request_: dict[str, Any], reason: Refusal) -> None:
    """A fixed number that a session holds is refused like any other."""
    machine = clients()
    held = machine.add(register(reg_id=60, **holder), 0).client
    assert found(machine, reg_id=held.reg_id, **request_) is reason


def test_a_free_reg_id_may_be_refused() -> None:
    """C-40: an election lets no proxy be the first that a store hears of a source."""
    machine = clients()
    assert machine.find(register(reg_id=50), admitted=False) is Refusal.UNKNOWN_SOURCE
    assert machine.find(register(reg_id=50), admitted=True) is None


def test_a_full_store_takes_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients_module, "MAX_CLIENTS", 1)
    machine = clients()
    assert found(machine, reg_id=50) is None
    record = machine.add(register(reg_id=50), 0)
    assert found(machine, reg_id=51) is Refusal.INCOMPATIBLE
    assert found(machine, reg_id=50) is record


@pytest.mark.rows("P-241", "P-242", "P-244", "P-245")
def test_a_session_id_stands_for_topic_and_role() -> None:
    """U20: a source and a receiver of each source; a RegID given beside it is ignored."""
    machine = clients()
    source = machine.add(register(session_id=9, reg_id=33), 0)
    assert source.client.reg_id != 33
    assert found(machine, session_id=9) is source
    assert found(machine, session_id=9, topic="other") is None
    assert found(machine, session_id=8) is None
    assert machine.holder(register(session_id=9, reg_id=33)) is source
    one = machine.add(register(session_id=9, **RECEIVER), 0)
    assert found(machine, session_id=9, **RECEIVER) is one
    assert found(machine, session_id=9, **{**RECEIVER, "source_reg_id": 51}) is None
    machine.remove(one)
    assert found(machine, session_id=9, **RECEIVER) is None
    assert machine.sources() == [source]
    machine.remove(machine.add(register(reg_id=70, **RECEIVER), 0))
    assert list(machine.records) == [source.client.reg_id]


def test_a_store_counts_lives_and_believes_a_higher_count() -> None:
    """Formal design, 7.3. The count ends where the wire's 32 bits do."""
    machine = clients()
    record = machine.add(register(reg_id=50, incarnation=OLDER_LIFE), 0)
    assert record.client.term == 1
    terms = []
    for incarnation, term in ((OLDER_LIFE, 0), (LIFE, 0), (LIFE, 7), (LIFE, 3), (9, 5), (9, LAST_TERM), (LIFE, 0)):
        machine.renew(record, register(reg_id=50, incarnation=incarnation, term=term), 0)
        terms.append(record.client.term)
    assert terms == [1, 2, 7, 7, 8, LAST_TERM, LAST_TERM]
    assert machine.add(register(reg_id=51, term=4), 0).client.term == 4


def test_a_client_that_returns_may_move_but_keeps_its_timeouts() -> None:
    machine = clients()
    record = machine.add(register(reg_id=50, incarnation=OLDER_LIFE, activity_timeout_ms=5000), 0)
    machine.renew(record, register(reg_id=50, reply_to="moved:1", transport="new:1", activity_timeout_ms=60_000), 7)
    client = record.client
    assert (client.incarnation, client.reply_to, client.transport, client.term) == (LIFE, "moved:1", "new:1", 2)
    assert (record.lifetime.activity_ns, record.lifetime.heard_at) == (5 * SECOND, 7)
    machine.renew(record, register(reg_id=50), 8)
    assert record.client.term == 2


@pytest.mark.rows("P-531", "P-534", "P-834")
@pytest.mark.parametrize(
    ("role", "asked_ms", "lifetime_ms", "expected"),
    [
        (Role.SOURCE, 0, 0, (30, 100)),
        (Role.SOURCE, 5000, 200_000, (5, 100)),
        (Role.SOURCE, 0, 50_000, (30, 50)),
        (Role.RECEIVER, 0, 0, (20, 0)),
        (Role.RECEIVER, 0, 7000, (20, 7)),
    ],
)
def test_the_clients_activity_timeout_and_the_shorter_lifetime(
    role: Role, asked_ms: int, lifetime_ms: int, expected: tuple[int, int]
) -> None:
    record = clients().add(register(role=role, activity_timeout_ms=asked_ms, state_lifetime_ms=lifetime_ms), 0)
    assert (record.lifetime.activity_ns // SECOND, record.lifetime.lifetime_ns // SECOND) == expected


@pytest.mark.rows("P-431")
def test_acknowledgements_only_rise_once_there_is_one() -> None:
    """C-39: a store keeps one number."""
    machine = clients()
    record = machine.add(register(**RECEIVER), 0)
    record.client = attrs.evolve(record.client, acknowledged=49)
    assert machine.on_acknowledged(record, 20)
    assert not machine.on_acknowledged(record, 20)
    assert not machine.on_acknowledged(record, 19)
    assert machine.on_acknowledged(record, 21)
    assert (record.client.acknowledged, record.client.has_acknowledged) == (21, True)
    assert not machine.cut_back(record, 22)
    assert machine.cut_back(record, 21)
    assert record.client.acknowledged == 20


def test_terms_never_fall() -> None:
    machine = clients()
    record = machine.add(register(), 0)
    for term, expected in ((5, 5), (3, 5)):
        machine.on_term(record, term)
        assert record.client.term == expected


def test_an_address_that_refuses_frees_who_listened_there() -> None:
    machine = clients()
    source = machine.add(register(reg_id=50, reply_to="a:1", transport="b:1"), 0)
    receiver = machine.add(register(reg_id=60, reply_to="c:1", **RECEIVER), 0)
    machine.on_gone("b:1", 1)
    assert [source.lifetime.active, receiver.lifetime.active] == [False, True]
    machine.on_gone("c:1", 1)
    assert not receiver.lifetime.active
    assert machine.receivers_of(50) == [receiver]
    assert machine.receivers_of(51) == []


@pytest.mark.parametrize(
    ("address", "context", "active"),
    [("client:1", 2, False), ("client:1", 1, True), ("client:1", 0, True), ("x:1", 2, True)],
)
def test_another_context_at_the_same_address_ends_the_old_one(address: str, context: int, active: bool) -> None:
    machine = clients()
    named = machine.add(register(reg_id=50, context=1), 0)
    unnamed = machine.add(register(reg_id=51, context=0), 0)
    machine.on_heard_from(address, context, 1)
    assert named.lifetime.active is active
    assert unnamed.lifetime.active


@pytest.mark.rows("P-019")
@pytest.mark.parametrize(
    ("context", "life", "taken"),
    [(5, 8, True), (5, 6, False), (0, 6, True), (5, 1 << 32 | 6, False), (5, 1 << 32 | 8, True)],
)
def test_the_later_life_of_one_context_holds_the_reg_id(context: int, life: int, taken: bool) -> None:
    """The topic index counts a context's lives; who does not name its context is known by its address alone."""
    machine = clients()
    record = machine.add(register(reg_id=50, context=context, incarnation=7), 0)
    asked = {"reg_id": 50, "context": context, "incarnation": life}
    assert found(machine, **asked) is (record if taken else Refusal.HELD_BY_SOURCE)
    assert found(machine, **{**asked, "incarnation": 7}) is record
    record.lifetime.on_gone(1)
    assert found(machine, **asked) is record


def test_the_lives_of_a_context_are_counted_with_a_wrap() -> None:
    machine = clients()
    record = machine.add(register(reg_id=50, context=5, incarnation=0xFFFF_FFFF), 0)
    assert found(machine, reg_id=50, context=5, incarnation=3 << 32) is record
    assert found(machine, reg_id=50, context=5, incarnation=3 << 32 | 0xFFFF_FFFE) is Refusal.HELD_BY_SOURCE


def test_for_how_long_a_reg_id_is_held() -> None:
    """Nothing is said where waiting is no remedy: another role or session keeps its RegID."""
    machine = clients()
    record = machine.add(register(reg_id=50), 0)
    other = register(reg_id=50, incarnation=9, reply_to="other:1")
    assert machine.held_ms(other, 9 * SECOND) == 21_000
    assert machine.held_ms(other, 31 * SECOND) == 0
    assert machine.held_ms(attrs.evolve(other, reg_id=51), 0) == 0
    assert machine.held_ms(attrs.evolve(other, role=Role.RECEIVER), 0) == 0
    record.lifetime.on_gone(9 * SECOND)
    assert machine.held_ms(other, 9 * SECOND) == 0
    machine.add(register(session_id=4), 0)
    assert machine.held_ms(register(session_id=4, incarnation=9), SECOND) == 29_000


def test_time_runs_out_for_each_alone() -> None:
    machine = clients()
    source = machine.add(register(reg_id=50), 0)
    receiver = machine.add(register(reg_id=60, **RECEIVER), 0)
    assert machine.check(20 * SECOND - 1) == ([], [])
    assert machine.check(20 * SECOND) == ([receiver], [])
    assert machine.check(30 * SECOND) == ([], [])
    assert not source.lifetime.active
    assert machine.check(100 * SECOND) == ([source], [])
    assert machine.agenda.deadlines == {}
    assert abstract(machine) == ((50, "SOURCE", "EXPIRED", LIFE, -1), (60, "RECEIVER", "EXPIRED", LIFE, -1))


@pytest.mark.rows("P-538", "P-836")
def test_a_silent_client_is_asked_once_an_interval() -> None:
    machine = ClientTable(attrs.evolve(CONFIG, keepalive_ns=5 * SECOND), Seeded(1))
    source = machine.add(register(reg_id=50), 0)
    machine.on_heard(source, 3 * SECOND)
    for second, asked in ((5, []), (7, []), (8, [source]), (12, []), (13, [source]), (32, [source])):
        assert machine.check(second * SECOND) == ([], asked)
    assert machine.check(33 * SECOND) == ([], [])
    assert not source.lifetime.active
    assert machine.check(99 * SECOND) == ([], [])


def test_who_only_registers_is_asked_less_and_less_often() -> None:
    """Ten thousand such clients of a stranger took nine tenths of a store's time."""
    machine = ClientTable(attrs.evolve(CONFIG, keepalive_ns=SECOND), Seeded(1))
    source = machine.add(register(reg_id=50), 0)
    asked = [second for second in range(15) if machine.check(second * SECOND)[1]]
    assert asked == [1, 3, 7]
    machine.renew(source, register(reg_id=50), 15 * SECOND)
    assert [second for second in range(15, 29) if machine.check(second * SECOND)[1]] == [23]
    machine.on_heard(source, 29 * SECOND)
    assert [second for second in range(29, 34) if machine.check(second * SECOND)[1]] == [30, 31, 32, 33]


@pytest.mark.rows("P-537")
def test_a_client_that_returns_has_its_timers_back() -> None:
    """The look at it must not wait until its state would have been deleted."""
    machine = clients()
    source = machine.add(register(reg_id=50), 0)
    assert machine.check(30 * SECOND) == ([], [])
    machine.on_heard(source, 31 * SECOND)
    assert machine.check(61 * SECOND) == ([], [])
    assert not source.lifetime.active


@pytest.mark.rows("P-247", "P-250")
def test_the_receivers_of_a_source_are_known() -> None:
    machine = clients()
    receivers = [machine.add(register(**{**RECEIVER, "reg_id": n}), 0) for n in (62, 60, 61)]
    assert [record.client.reg_id for record in machine.receivers_of(50)] == [60, 61, 62]
    for record in (*receivers, *receivers):
        machine.remove(record)
    assert (machine.receivers_of(50), machine.readers) == ([], {})
    machine.remove(machine.add(register(reg_id=50), 0))
    assert machine.records == {}


def test_the_contexts_at_addresses_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients_module, "MAX_CLIENTS", 2)
    machine = clients()
    for port in range(3):
        machine.on_heard_from(f"client:{port}", 1, 0)
    assert machine.contexts == {"client:2": 1}


def proxy_of(life: int) -> dict[str, Any]:
    """Return what a proxy registers with that stands in for this life; 0: it does not say."""
    return {"election": ElectionToken(7, 0, life)}


@pytest.mark.rows("P-584")
@pytest.mark.parametrize(
    ("holder", "change", "is_holder"),
    [
        ({}, {}, True),
        ({}, {"incarnation": OLDER_LIFE}, False),
        ({}, {"role": Role.RECEIVER}, False),
        (proxy_of(OLDER_LIFE), {"incarnation": OLDER_LIFE}, True),
        (proxy_of(OLDER_LIFE), {"incarnation": 99}, False),
        (proxy_of(0), {"incarnation": OLDER_LIFE}, False),
        (proxy_of(0), {"incarnation": 0}, False),
        (RECEIVER, {"role": Role.RECEIVER, "source_reg_id": 50}, True),
        (RECEIVER, {"role": Role.RECEIVER, "source_reg_id": 51}, False),
        (RECEIVER, {"role": Role.RECEIVER, "source_reg_id": 50, "reply_to": "other:1"}, False),
    ],
)
def test_only_its_holder_gives_a_reg_id_back(holder: dict[str, Any], change: dict[str, Any], is_holder: bool) -> None:
    """A source that was cut off has its proxies deregistered with it."""
    machine = clients()
    record = machine.add(register(reg_id=60, **holder), 0)
    request = attrs.evolve(Deregister(Role.SOURCE, 0, 1, 60, LIFE, 0, "client:1"), **change)
    assert machine.is_holder(record, request) is is_holder
