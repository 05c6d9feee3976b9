"""Runs of Stability with Refill: two processes of one owner, and disks that are replaced one after the other."""

from collections.abc import Callable, Iterator
from itertools import combinations

import pytest

from stablecast.lab.proof import healing
from stablecast.lab.proof.evaluation import Value
from stablecast.lab.proof.system import SystemText
from tests.adapters.lab.proof.mutants_healing import MUTANTS
from tests.adapters.lab.proof.runs import Run, Step

STORES = 3
QUORUMS = list(combinations(range(STORES), 2))
INSIDE: Value = frozenset((store, at) for at, one in enumerate(QUORUMS) for store in one)
K01, K02, K12 = range(3)
SIZES = {
    "Store": STORES,
    "Life": 3,
    "Epoch": 2,
    "Term": 3,
    "Number": 2,
    **dict.fromkeys(("BeginQuorum", "GoOnQuorum", "KeepQuorum"), len(QUORUMS)),
}
CONSTANTS: dict[str, Value] = {
    "rivals": True,
    "nobody": 0,
    "zero": 0,
    "least": 0,
    "life": frozenset({(0, 1), (1, 2)}),
    "term": frozenset({(0, 1), (1, 2)}),
    "in_r": INSIDE,
    "in_c": INSIDE,
    "in_k": INSIDE,
}
NOTHING: Value = frozenset()


def begun(change: Callable[[SystemText], None] | None = None) -> Run:
    return Run(healing.text(), SIZES, CONSTANTS, change)


def granted(life: int, store: int, term: int) -> Iterator[Step]:
    yield "Ask.moved", {"l": life, "s": store, "t": term}
    yield "Sync.granted", {"s": store, "l": life}


def second_process() -> Iterator[Step]:
    """A message is stable at two stores. One loses its disk, and another process follows the one that is cut off."""
    yield "Begin", {"l": 1}
    for store in range(STORES):
        yield from granted(1, store, 1)
        yield "ToSource.grant", {"l": 1, "s": store}
    yield "Resume", {"l": 1, "e": 0, "r": K01, "n": 0}
    yield "Send", {"l": 1, "n": 0}
    for store in (0, 1):
        yield "Inform.first", {"s": store, "l": 1, "e": 0}
        yield "ToStore", {"l": 1, "s": store, "e": 0, "n": 0}
        yield "Sync", {"s": store}
        yield "Tell", {"s": store, "l": 1, "e": 0, "e2": 0, "told": frozenset({(0,)})}
        yield "ToSource.acks", {"l": 1, "s": store, "heard": frozenset({(0,)})}
    yield "Judge", {"l": 1, "e": 0, "n": 0, "k": K01}
    yield "Wait", {"l": 1, "c": K12, "dropped": frozenset({(0,)})}
    yield "Crash", {"s": 0}
    yield "Wipe", {"s": 0, "mended": NOTHING}
    yield "Restart", {"s": 0}
    yield "Wait.suspended", {"l": 1, "dropped": frozenset({(0,), (1,), (2,)})}
    yield "Begin", {"l": 2}
    for store in (1, 2):
        yield from granted(2, store, 2)
        yield "ToSource.grant", {"l": 2, "s": store}
    yield "Resume.followed", {"l": 2, "e": 1, "r": K12, "n": 1, "s": 1, "e0": 0}
    yield "Inform.cut", {"s": 1, "l": 2, "e": 1, "e2": 0, "n": 1, "l2": 1, "l3": 2}
    yield "Sync", {"s": 1}
    yield from granted(2, 0, 2)
    yield "ToSource.proven", {"l": 2, "s": 0, "e": 1, "lost": NOTHING}


def filled(store: int) -> Iterator[Step]:
    """A store learns of the second process, and gets the message of the first one from a peer."""
    yield "Inform.first", {"s": store, "l": 2, "e": 1}
    yield "Refill", {"s": store, "l": 2, "e": 1, "found": frozenset({(0, 1)})}
    yield "Sync", {"s": store}


LEAVE: list[Step] = [("Wait", {"l": 2, "c": K02, "dropped": frozenset({(1,)})}), ("Crash", {"s": 1})]
MENDED: Value = frozenset({(0,), (2,)})


def test_a_stable_message_outlives_all_disks_that_it_was_stable_on() -> None:
    run = begun()
    run.steps(*second_process(), *filled(0), *filled(2), *LEAVE)
    assert run.refused("Wipe", s=1, mended=NOTHING) == "guard 4 of Wipe"
    run.step("Wipe", s=1, mended=MENDED)
    assert run.has("safe", 0, 0)
    assert not run.broken


def test_a_store_is_not_whole_before_it_is_filled_up() -> None:
    run = begun()
    run.steps(*second_process(), *filled(2), *LEAVE)
    assert run.refused("Wipe", s=1, mended=MENDED) == "guard 3 of Wipe"


@pytest.mark.parametrize(
    "name", ["a disk is replaced before the others are mended", "only the messages of the newest life count"]
)
def test_a_disk_that_is_replaced_too_early_loses_the_message(name: str) -> None:
    run = begun(MUTANTS[name].breaks)
    run.steps(*second_process(), *LEAVE)
    run.step("Wipe", s=1, mended=MENDED)
    assert {"wiped is gone", "NoStableLost"} <= run.broken


def test_a_process_that_was_followed_fills_up_no_store() -> None:
    run = begun()
    run.steps(*second_process())
    assert run.refused("Refill", s=1, l=1, e=0, found=frozenset({(0, 1)})) is not None
    assert not run.broken
