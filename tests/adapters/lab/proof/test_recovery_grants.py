"""A store of the core grants to a receiver that it does not know what the system of Recovery allows."""

from collections.abc import Iterator
from itertools import chain, combinations, product

import pytest

from stablecast.core.protocol.inputs import Data
from stablecast.core.protocol.messages import Registered, StoreEntry, StoreMemory
from stablecast.core.protocol.repairs import Repair
from stablecast.core.store import grants
from stablecast.lab.proof.evaluation import Value
from tests.adapters.lab.proof.test_recovery import NUMBERS
from tests.adapters.lab.proof.test_recovery_core import EVALUATOR, changed
from tests.core.drivers import RECEIVER, SOURCE, StoreDriver
from tests.core.samples import LIFE, info, register
from tests.core.store.test_memory import NEXT, started

MESSAGES = NUMBERS - 1
ENOUGH = 90
"""Stores that are compared at least."""
PEERS = tuple(StoreEntry(index, 0, f"store{index}:1", 50, 1) for index in range(2))


def subsets(numbers: range) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(numbers, count) for count in range(len(numbers) + 1))


def store(standing: StoreMemory, seen: tuple[int, ...], first: int) -> StoreDriver:
    """Return a store that has some messages of a life, and heard of the next, which begins at `first`."""
    driver = started(standing, Repair.ALL & ~Repair.MEMORY)
    lives = ((LIFE, 0), (NEXT, first))
    if standing is StoreMemory.KEPT and seen:
        driver.hear(register(**SOURCE))
        driver.sync()
        driver.hear(info(low=0, high=MESSAGES - 1, lives=lives[:1], stores=PEERS, group_sizes=(2,)))
        for number in seen:
            driver.data(number, 1)
    driver.hear(register(**{**SOURCE, "incarnation": NEXT, "generation": 2}))
    driver.sync()
    high = (first - 1) % 2**32
    driver.hear(info(incarnation=NEXT, low=first, high=high, lives=lives, stores=PEERS, group_sizes=(2,)))
    driver.sync()
    return driver


def stores() -> Iterator[tuple[StoreDriver, StoreMemory, int]]:
    """Yield stores, each with the memory with which it began, and where the present life begins."""
    for standing, first in product((StoreMemory.KEPT, StoreMemory.LOST), range(MESSAGES + 1)):
        choices = product(subsets(range(first)), subsets(range(first)), subsets(range(first, MESSAGES)))
        for seen, refilled, sent in choices:
            if (seen and standing is StoreMemory.LOST) or set(seen) & set(refilled):
                continue
            driver = store(standing, seen, first)
            for number in refilled:
                driver.feed(Data(NEXT, LIFE, number, 1, 0, True, 90 + number))
            for number in sent:
                driver.data(number, 1, life=NEXT)
            driver.sync()
            yield driver, standing, first


def compare() -> int:
    """Compare the grants of stores with the transition of the system; return how many there were."""
    count = 0
    transition = EVALUATOR.transitions["Grant.new"]
    for driver, standing, first in stores():
        driver.hear(register(**{**RECEIVER, "incarnation": NEXT}))
        driver.sync()
        (answer,) = (one for _, one in driver.sent(Registered) if one.role is RECEIVER["role"])
        held = {number for low, stop in driver.machine.repositories[50].held.ranges for number in range(low, stop)}
        owner = {number: 1 if number < first else 2 for number in range(NUMBERS)}
        forgot = standing is StoreMemory.LOST
        values: dict[str, Value] = {
            "of": 2,
            "own": frozenset((2, number, life) for number, life in owner.items()),
            "up": frozenset({(0,)}),
            "disk_life": frozenset({(0, 2)}),
            "kept": frozenset({(0,)}),
            "used": frozenset((0, number) for number in range(first) if forgot),
            "holds": frozenset((0, number, owner[number]) for number in held),
        }
        structure = changed(EVALUATOR.initial(), values)
        parameters: dict[str, Value] = {
            "s": 0,
            "m": answer.low,
            "m2": answer.low if answer.known is None else answer.known,
        }
        case = (standing, first, held, answer.low, answer.known, answer.memory)
        assert EVALUATOR.enabled(transition, structure, parameters) is None, case
        after = EVALUATOR.perform(transition, structure, parameters)
        votes = bool(EVALUATOR.value(after, "votes"))
        assert votes == (answer.memory is StoreMemory.KEPT), case
        count += 1
    return count


def test_a_store_grants_what_the_system_allows() -> None:
    assert compare() > ENOUGH


@pytest.mark.parametrize(("name", "answer"), [("first_lacking", None), ("remembers", True)])
def test_a_store_that_hides_what_it_lacks_is_noticed(
    name: str, answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grants, name, lambda source: answer)
    with pytest.raises(AssertionError):
        compare()
