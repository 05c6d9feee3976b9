"""Runs of the system of Recovery at small bounds: what the rules forbid, what they allow, and what broken ones do."""

import random
from collections.abc import Callable, Iterator
from itertools import combinations, product

from stablecast.lab.proof import recovery
from stablecast.lab.proof.evaluation import Value
from stablecast.lab.proof.system import SystemText, Transition
from tests.adapters.lab.proof import mutants_recovery
from tests.adapters.lab.proof.runs import Run, Step

STORES, LIVES, NUMBERS = 3, 3, 4
QUORUMS = list(combinations(range(STORES), 2))
SIZES = {"Store": STORES, "Life": LIVES, "Number": NUMBERS, "Quorum": len(QUORUMS)}
CONSTANTS: dict[str, Value] = {
    "careful": True,
    "healing": True,
    "nobody": 0,
    "least": 0,
    "in_k": frozenset((store, at) for at, one in enumerate(QUORUMS) for store in one),
}
K01, K02, K12 = range(3)
RUNS, LENGTH = 150, 40
"""Random runs, and the steps of each."""
DISTURBING = {"Crash", "Stop", "Begin", "Begin.all", "Replace", "Release", "Forget"}
LATER = 0.5
"""They are drawn later than others by so much on average, because otherwise no session gets far."""
NOBODY: frozenset[tuple[int, ...]] = frozenset()


def begun(change: Callable[[SystemText], None] | None = None) -> Run:
    """Return a run of the system, or of one with broken rules."""
    return Run(recovery.text(), SIZES, CONSTANTS, change)


def stable(number: int) -> Iterator[Step]:
    """Make a message stable at the first two stores."""
    yield "Send", {"n": number}
    yield "Sync", {"s": 0}
    yield "Sync", {"s": 1}
    yield "Report", {"n": number, "k": K01}


def before_the_return() -> Iterator[Step]:
    """The second store is emptied, and the third was away: only the first knows the receiver and has all messages."""
    yield "Stop", {"s": 2}
    yield "Begin", {"l": 1, "n": 0, "k": K01}
    yield from stable(0)
    yield "Register", {}
    yield "Grant.new", {"s": 0, "m": 0, "m2": 0}
    yield "Grant.new", {"s": 1, "m": 0, "m2": 0}
    yield "Complete.votes", {"k": K01, "s": 0}
    yield "Deliver", {"n": 0, "l": 1}
    yield "Consume", {"n": 0, "l": 1}
    yield "Acknowledge", {"s": 0, "n": 0}
    yield "Acknowledge", {"s": 1, "n": 0}
    yield "Arrive", {"s": 0, "l": 1, "n": 0}
    yield "Arrive", {"s": 1, "l": 1, "n": 0}
    yield "Crash", {}
    yield from stable(1)
    yield "Stop", {"s": 1}
    yield "Replace", {"s": 1, "mended": NOBODY}
    yield "Start", {"s": 1}
    yield "Start", {"s": 2}
    yield "Begin", {"l": 2, "n": 2, "k": K02}
    yield "Register", {}
    yield "Grant.new", {"s": 1, "m": 2, "m2": 0}
    yield "Grant.new", {"s": 2, "m": 2, "m2": 0}


def known_to_one() -> Iterator[Step]:
    """A run acknowledges to the first store alone. The next one begins by the votes of the others."""
    yield "Begin", {"l": 1, "n": 0, "k": K01}
    yield from stable(0)
    yield "Register", {}
    yield "Grant.new", {"s": 0, "m": 0, "m2": 0}
    yield "Grant.new", {"s": 1, "m": 0, "m2": 0}
    yield "Complete.votes", {"k": K01, "s": 0}
    yield "Deliver", {"n": 0, "l": 1}
    yield "Consume", {"n": 0, "l": 1}
    yield "Acknowledge", {"s": 0, "n": 0}
    yield "Arrive", {"s": 0, "l": 1, "n": 0}
    yield "Crash", {}
    yield "Register", {}
    yield "Grant.new", {"s": 1, "m": 0, "m2": 0}
    yield "Grant.new", {"s": 2, "m": 0, "m2": 0}
    yield "Complete.votes", {"k": K12, "s": 1}


def test_without_the_rule_about_votes_a_receiver_passes_over_a_stable_message() -> None:
    run = begun(mutants_recovery.MUTANTS["everybody votes"].breaks)
    run.steps(*before_the_return())
    assert not run.broken
    run.step("Complete.votes", k=K12, s=1)
    run.step("Send", n=2)
    run.step("Deliver", n=2, l=2)
    assert run.has("stable", 1, 1)
    assert {"began above what is settled", "NoGap"} <= run.broken
    # And that is acknowledged to the store which knows the receiver, when its grant comes at last.
    run = begun(both("everybody votes", "a late grant takes nothing back"))
    run.steps(*before_the_return(), ("Complete.votes", {"k": K12, "s": 1}), ("Late.above", {"s": 0}))
    run.steps(("Acknowledge", {"s": 0, "n": 1}), ("Arrive", {"s": 0, "l": 2, "n": 1}))
    assert {"AcknowledgedIsConsumed", "PassedOverIsLetGo"} <= run.broken


def both(*names: str) -> Callable[[SystemText], None]:
    def change(text: SystemText) -> None:
        for name in names:
            mutants_recovery.MUTANTS[name].breaks(text)

    return change


def test_stores_that_lack_messages_leave_the_start_to_one_that_knows() -> None:
    run = begun()
    run.steps(*before_the_return())
    assert run.refused("Complete.votes", k=K12, s=1) == "guard 3 of Complete.votes"
    run.step("Grant.old", s=0)
    run.step("Complete.old", s=0)
    run.step("Deliver", n=1, l=1)
    assert not run.broken


def test_a_receiver_that_waited_in_vain_reports_what_all_stores_lack() -> None:
    run = begun()
    run.steps(*before_the_return(), ("Complete.lost", {"k": K12, "s": 1}))
    assert run.has("lost", 1, 1)
    # The store that knows it grants at last: nothing was delivered, so the session goes back.
    run.step("Late.back", s=0)
    run.step("Deliver", n=1, l=1)
    assert not run.broken


def test_a_message_that_a_quorum_released_is_not_acknowledged_to_the_store_that_keeps_it() -> None:
    run = begun()
    run.steps(*before_the_return())
    # Both others have all, and release it: so they have votes again, except the one that may have forgotten.
    run.steps(("Release", {"s": 1, "l": 2, "n": 2}), ("Release", {"s": 2, "l": 2, "n": 2}))
    run.steps(("Grant.new", {"s": 1, "m": 2, "m2": 2}), ("Grant.new", {"s": 2, "m": 2, "m2": 2}))
    assert run.refused("Complete.votes", k=K12, s=1) == "guard 3 of Complete.votes"
    run.step("Complete.all", k=K12, s=1, s2=1)
    run.step("Send", n=2)
    run.step("Deliver", n=2, l=2)
    assert run.refused("Late.back", s=0) is not None
    run.step("Late.lost", s=0)
    assert run.has("lost", 1, 1)
    assert not run.has("lost", 0, 1)
    run.steps(("Acknowledge", {"s": 0, "n": 1}), ("Arrive", {"s": 0, "l": 2, "n": 1}))
    assert not run.broken


def choices(transition: Transition) -> Iterator[dict[str, Value]]:
    """Yield parameters of a transition. Sets that others choose: nothing, and each single element."""
    ranges: list[list[Value]] = []
    for one in transition.parameters:
        if one.arguments:
            elements = list(product(*(range(SIZES[sort]) for sort in one.arguments)))
            ranges.append([NOBODY, *(frozenset([element]) for element in elements)])
        else:
            ranges.append(list(range(SIZES[one.result])))
    names = [one.name[1:] for one in transition.parameters]
    for values in product(*ranges):
        yield dict(zip(names, values, strict=True))


def test_every_transition_occurs_and_no_run_breaks_an_invariant() -> None:
    run, chance, seen = begun(), random.Random(1), set[str]()
    system = run.evaluator.system
    parameters = {one.name: list(choices(one)) for one in system.transitions}
    openings = ([*before_the_return(), ("Complete.lost", {"k": K12, "s": 1})], list(known_to_one()))
    for _ in range(RUNS):
        run.at = run.evaluator.initial()
        opening = chance.choice(openings)
        first = opening[: chance.randrange(1, len(opening) + 1)]
        run.steps(*first)
        seen.update(name for name, _ in first)
        for _ in range(LENGTH):
            names = sorted(parameters, key=lambda name: chance.random() + LATER * (name in DISTURBING))
            for name in names:
                enabled = [one for one in parameters[name] if run.refused(name, **one) is None]
                if enabled:
                    run.step(name, **chance.choice(enabled))
                    seen.add(name)
                    break
            assert not run.broken
    # Replaced disks are a minority here.
    assert seen == set(parameters) - {"Replace.early"}
