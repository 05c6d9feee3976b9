"""C1 and P2: what is let go too early is found, whoever says it was right."""

from typing import Any

import attrs
import pytest

from stablecast.core.protocol.effects import Client, Effect, Forget, Notify, PersistClient, Reclaim, Release
from stablecast.core.protocol.events import Reclaimed, RegistrationComplete, RegistrationFlag
from stablecast.core.protocol.inputs import Arrived, Input, Sent, Tick
from stablecast.core.protocol.messages import FROM_THE_START, ConsumptionAck, Pace, Registered, Role, StableAck
from stablecast.core.protocol.quorum import GroupRules
from stablecast.core.protocol.settings import RepositoryConfig, Retention, SourceConfig, StoreConfig, StoreSpec
from stablecast.core.source import SourceEndpoint
from stablecast.core.store import StoreEndpoint
from stablecast.core.store.repository import Repository
from stablecast.core.store.retention_terms import Terms
from stablecast.evidence.trace import endpoint_rules
from stablecast.evidence.trace.converter import Endpoint
from tests.adapters.evidence.trace.rule_probe import ask

LIFE = 7
BEGUN = Notify(RegistrationComplete(0, RegistrationFlag.NONE))
SENT = Sent(0, 10, 100)


def judged(machine: Endpoint, rule: str, *facts: Input | Effect) -> list[str]:
    """Return the verdict of a rule on these inputs and effects, which the rules before it get too."""
    standing = endpoint_rules.begin(machine)
    found = []
    for fact in facts:
        for one in standing:
            text = ask(one, fact)
            found += [text] if text is not None and one.name == rule else []
    return found


def source(stores: int = 3) -> SourceEndpoint:
    specs = tuple(StoreSpec(f"s:{store}") for store in range(stores))
    groups = GroupRules((stores,)) if stores else GroupRules(())
    return SourceEndpoint.create(SourceConfig("orders", LIFE, "a:1", "a:2", specs, groups))


def ack(store: int, first: int, last: int) -> Arrived:
    return Arrived(StableAck(store, LIFE, first, last))


def gone(first: int, last: int, forced: bool = False) -> Notify:
    return Notify(Reclaimed(first, last, forced))


def test_c1_what_is_let_go_is_stable() -> None:
    acks = (ack(0, 0, 5), ack(1, 0, 3), ack(2, 4, 9))
    assert judged(source(), "C1", BEGUN, SENT, *acks, gone(0, 5), Tick()) == []
    assert judged(source(), "C1", BEGUN, SENT, *acks, gone(0, 6)) == [
        "number 6 is let go, and acknowledged by stores [2] only"
    ]
    assert judged(source(), "C1", BEGUN, SENT, *acks, gone(0, 9, forced=True)) == []


@pytest.mark.rows("P-321", "P-323")
def test_c1_copies_that_are_released_are_stable_or_had_to_go() -> None:
    """From the first number of this life on."""
    acks = (ack(0, 0, 5), ack(1, 0, 3))
    assert judged(source(), "C1", BEGUN, SENT, *acks, Release(3), Release(4), Release(2)) == []
    assert judged(source(), "C1", BEGUN, SENT, *acks, Release(6)) == [
        "number 4 is let go, and acknowledged by stores [0] only"
    ]
    assert judged(source(), "C1", BEGUN, SENT, *acks, gone(4, 9, forced=True), Release(10)) == []
    later = Notify(RegistrationComplete(50, RegistrationFlag.NONE))
    assert judged(source(), "C1", later, Sent(50, 5, 60), ack(0, 50, 54), ack(1, 50, 54), later, Release(55)) == []


def confirmed(receiver: int, first: int | None, last: int) -> Arrived:
    start = FROM_THE_START if first is None else first
    return Arrived(ConsumptionAck(LIFE, 5, 1, last, session_id=receiver, first=start))


@pytest.mark.rows("P-329", "P-349")
def test_c1_copies_stay_until_as_many_receivers_confirmed_them_as_the_source_asks_for() -> None:
    """A receiver counts once, whichever way it confirms."""
    asking = attrs.evolve(source().config, retention=Retention(unique_confirmations=2), confirmations=True)
    stable = (BEGUN, SENT, ack(0, 0, 9), ack(1, 0, 9))
    both = (confirmed(2, None, 6), confirmed(3, 0, 3), confirmed(2, 0, 6), confirmed(3, 5, 6))

    def told(*facts: Input | Effect) -> list[str]:
        return judged(SourceEndpoint.create(asking), "C1", *stable, *facts)

    assert told(*both, Release(4)) == []
    assert told(*both, Release(5)) == ["number 4 is let go, and too few receivers have confirmed it"]
    assert told(*both, gone(4, 4, forced=True), Release(7)) == []
    assert told(*both[::2], Release(1)) == ["number 0 is let go, and too few receivers have confirmed it"]


def test_c1_stores_that_keep_nothing_hold_nothing_up() -> None:
    granted = Registered(Role.SOURCE, 0, 1, 5, LIFE, False, 0, 0, 0, 0, no_cache=True)
    assert judged(source(), "C1", BEGUN, Arrived(granted), SENT, gone(0, 9)) == []
    assert judged(source(0), "C1", BEGUN, SENT, gone(0, 9)) == []


def client(role: Role, reg_id: int, acknowledged: int = -1, pace: Pace = Pace.RECEIVERS) -> Client:
    return Client(role, reg_id, 0, "orders", 0, LIFE, 5, "c:1", "", 0, 0, acknowledged, (), True, pace=pace)


def written(*arguments: Any, **more: Any) -> PersistClient:
    return PersistClient(1, client(*arguments, **more))


SOURCE = written(Role.SOURCE, 5)
RECLAIM = Reclaim(2, 5, 10)


def paced() -> StoreEndpoint:
    return StoreEndpoint.create(StoreConfig("s:1", 1, repository=RepositoryConfig(allow_rpp=True)))


@pytest.mark.parametrize(
    "clients",
    [
        (SOURCE,),
        (SOURCE, written(Role.RECEIVER, 6, 9)),
        (SOURCE, written(Role.RECEIVER, 6, 3), written(Role.RECEIVER, 6, 9)),
        (SOURCE, written(Role.RECEIVER, 6, 3, pace=Pace.NON_BLOCKING)),
        (SOURCE, written(Role.RECEIVER, 6, 3), Forget(3, Role.RECEIVER, 6)),
        (SOURCE, PersistClient(1, attrs.evolve(client(Role.RECEIVER, 6, 3), source_reg_id=7))),
        (SOURCE, written(Role.RECEIVER, 6, 3), Forget(3, Role.SOURCE, 5)),
        (written(Role.SOURCE, 5, pace=Pace.SOURCE), written(Role.RECEIVER, 6, 3)),
    ],
)
def test_p2_what_all_have_who_block_may_go(clients: tuple[Effect, ...]) -> None:
    assert judged(paced(), "P2", *clients, RECLAIM, Tick()) == []


def test_p2_a_receiver_that_blocks_holds_messages() -> None:
    facts = (SOURCE, written(Role.RECEIVER, 6, 12), written(Role.RECEIVER, 8, 8))
    assert judged(paced(), "P2", *facts, RECLAIM) == [
        "numbers below 10 are let go, and receiver 8 has consumed up to 8 only"
    ]


def test_p2_knows_who_was_there_before() -> None:
    machine = paced()
    machine.clients.restore(client(Role.RECEIVER, 8, 8), 0)
    machine.repositories[5] = Repository.create(machine.config, 5, 0, "a:1", LIFE, Terms(pace=Pace.RECEIVERS))
    assert len(judged(machine, "P2", RECLAIM)) == 1
