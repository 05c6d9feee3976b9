"""The core and the system of Recovery judge the grants of three stores alike."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, product
from typing import Any

import attrs
import pytest

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import Event, UnrecoverableLoss
from stablecast.core.protocol.inputs import LowChosen, Tick
from stablecast.core.protocol.messages import StoreMemory
from stablecast.core.protocol.quorum import Quorums
from stablecast.core.receiver.arrival import FirstNumberChoice
from stablecast.core.receiver.store_registrations import StoreRegistrations
from stablecast.lab.proof import recovery
from stablecast.lab.proof.evaluation import Evaluator, Structure, Value
from tests.adapters.lab.proof.test_recovery import CONSTANTS, K01, NUMBERS, QUORUMS, SIZES, STORES
from tests.core.drivers import GIVE_UP_NS, INTERVAL_NS, ReceiverDriver

HIGH = NUMBERS - 2
"""The newest message; the source may send one more."""
EVALUATOR = Evaluator(recovery.recovery(), SIZES, CONSTANTS)


@attrs.frozen
class Grant:
    """A store's grant: the start that it offers, and if it does not know the receiver, its marks."""

    low: int
    old: bool = False
    memory: bool = True
    lacks: int | None = None

    @property
    def votes(self) -> bool:
        return self.memory and self.lacks is None

    def fields(self) -> dict[str, Any]:
        memory = StoreMemory.KEPT if self.old or self.votes else StoreMemory.LOST
        return {
            "low": self.low,
            "high": max(HIGH, self.low - 1),
            "old": self.old,
            "memory": memory,
            "known": self.lacks,
        }


OFFERS = range(HIGH + 2)
KNOWING = [Grant(low, old=True) for low in OFFERS if low]
GRANTS = [
    *KNOWING,
    *(Grant(low, memory=memory) for low, memory in product(OFFERS, (True, False))),
    *(Grant(low, lacks=lacks, memory=False) for low in OFFERS for lacks in range(low)),
]
BALLOTS = [one for count in range(STORES + 1) for one in combinations_with_replacement(GRANTS, count)]


def registering(grants: Sequence[Grant]) -> Structure:
    """Return the structure in which a session of life 1 has these grants, of the first stores."""
    numbers = range(NUMBERS)
    values: dict[str, Value] = {
        "now": 1,
        "of": 1,
        "born": frozenset({(1,)}),
        "passed": frozenset((number,) for number in range(HIGH + 1)),
        "own": frozenset((1, number, 1) for number in numbers),
        "sent": frozenset((1, number) for number in range(HIGH + 1)),
        "disk_life": frozenset((store, 1) for store in range(STORES)),
        "granted": frozenset((store,) for store in range(len(grants))),
        "old": frozenset((store,) for store, one in enumerate(grants) if one.old),
        "votes": frozenset((store,) for store, one in enumerate(grants) if one.votes),
        "below": frozenset((store, n) for store, one in enumerate(grants) for n in range(one.low)),
        "lacks": frozenset(
            (store, n) for store, one in enumerate(grants) if one.lacks is not None for n in range(one.lacks, one.low)
        ),
    }
    return changed(EVALUATOR.initial(), values)


def changed(structure: Structure, values: Mapping[str, Value]) -> Structure:
    named = {**dict(zip(EVALUATOR.names, structure, strict=True)), **values}
    return tuple(named[name] for name in EVALUATOR.names)


def after(structure: Structure, action: str) -> Iterator[tuple[str, Structure]]:
    """Yield the structure after each step of an action that the system allows."""
    for transition in EVALUATOR.system.transitions:
        if transition.action == action:
            names = [one.name[1:] for one in transition.parameters]
            for values in product(*(range(SIZES[one.result]) for one in transition.parameters)):
                parameters: dict[str, Value] = dict(zip(names, values, strict=True))
                if EVALUATOR.enabled(transition, structure, parameters) is None:
                    yield transition.name, EVALUATOR.perform(transition, structure, parameters)


def shown(structure: Structure) -> tuple[set[int], set[int]]:
    """Return the numbers that a session passed over, and those of them that were reported lost."""
    over, lost = EVALUATOR.value(structure, "over"), EVALUATOR.value(structure, "lost")
    return {number for (number,) in over} | {number for number, _ in lost}, {number for number, _ in lost}


def losses(told: Sequence[Event]) -> set[int]:
    reports = [event for event in told if isinstance(event, UnrecoverableLoss)]
    return {number for one in reports for number in range(one.first, one.last + 1)}


def proposal(driver: ReceiverDriver) -> int | None:
    return next((effect.low for effect in driver.effects if isinstance(effect, fx.AskLow)), None)


def asked(grants: Sequence[Grant]) -> ReceiverDriver:
    driver = ReceiverDriver()
    driver.inform(*[1] * STORES, high=HIGH, group_sizes=(STORES,))
    for store, one in enumerate(grants):
        driver.grant(store, **one.fields())
    return driver


def begun(grants: Sequence[Grant]) -> tuple[ReceiverDriver, int, set[int]] | None:
    """Return the receiver after its patience, when it began, and what it reported lost then; None: it waits on."""
    driver = asked(grants)
    for now in (0, INTERVAL_NS, INTERVAL_NS + GIVE_UP_NS):
        if now:
            driver.feed(Tick(), now)
        low = proposal(driver)
        if low is not None:
            return driver, now, losses(driver.feed(LowChosen(low), now))
    return None


def beginnings(*counts: int) -> None:
    """Compare how the core begins by so many grants with what the system allows."""
    for grants in (one for one in BALLOTS if len(one) in counts):
        count = len(grants)
        allowed = [(name, shown(one)) for name, one in after(registering(grants), "Complete")]
        found = begun(grants)
        assert (found is not None) == (count >= len(QUORUMS[K01])), grants
        if found is not None:
            driver, now, lost = found
            assert driver.machine.window.next is not None
            over = set(range(driver.machine.window.next))
            ways = {name for name, one in allowed if one == (over, lost)}
            assert ways, (grants, over, lost, allowed)
            # It waits as long as no store knows it, there are too few votes, and somebody did not answer.
            sure = {name for name, _ in allowed} & {"Complete.old", "Complete.votes"}
            assert (now < INTERVAL_NS + GIVE_UP_NS) == (bool(sure) or count == STORES), grants
            assert not sure or ways & sure, grants


def late_grants(late: Grant, delivers: bool) -> None:
    """Compare what the core does with a grant that comes after it began with what the system allows."""
    for grants in (one for one in BALLOTS if len(one) == STORES - 1):
        found = begun(grants)
        assert found is not None
        driver, now, lost = found
        window = driver.machine.window
        at = window.next
        assert at is not None
        handed = delivers and at <= HIGH
        if handed:
            driver.data(at, 1, recovered=True, now=now)
        began = [one for _, one in after(registering(grants), "Complete") if shown(one) == (set(range(at)), lost)]
        told = driver.grant(STORES - 1, now=now, **late.fields())
        assert window.next is not None
        over = set(range(at if handed else window.next))
        store = STORES - 1
        known: dict[str, Value] = {
            "handed": frozenset({(at,)} if handed else ()),
            "knows": frozenset({(store,)}),
            "acked": frozenset((store, number, 1) for number in range(late.low)),
        }
        allowed = [shown(step) for one in began for _, step in after(changed(one, known), "Late")]
        assert (over, lost | losses(told)) in allowed, (grants, over, lost, told, allowed)


@pytest.mark.parametrize("count", range(STORES + 1))
def test_the_core_begins_as_the_system_allows(count: int) -> None:
    beginnings(count)


@pytest.mark.parametrize("late", KNOWING, ids=lambda one: f"low {one.low}")
@pytest.mark.parametrize("delivers", [False, True])
def test_the_core_judges_a_late_grant_as_the_system_allows(late: Grant, delivers: bool) -> None:
    late_grants(late, delivers)


@pytest.mark.parametrize(
    ("where", "name", "answer"),
    [
        (Quorums, "voters", lambda rules, answered, *others, **more: answered),
        (StoreRegistrations, "known", False),
        (StoreRegistrations, "lacking", lambda stores, high: None),
        (StoreRegistrations, "_offers", lambda stores: [one.granted for one in stores.enrollment.counting]),
    ],
    ids=["all vote", "nobody knows", "nothing is lost", "all offer"],
)
def test_another_start_is_noticed(where: type, name: str, answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(where, name, answer)
    with pytest.raises(AssertionError):
        beginnings(STORES - 1, STORES)


@pytest.mark.parametrize("delivers", [False, True])
def test_a_late_grant_that_is_passed_over_is_noticed(delivers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FirstNumberChoice, "revise", lambda *given: None)
    with pytest.raises(AssertionError):
        late_grants(Grant(1, old=True), delivers)
