"""Draw how the receivers of a whole world read, and whether a second program sends.

The habits are drawn apart from all else, so that a seed keeps its faults and programs when a habit is added.
"""

from random import Random
from typing import Final

import attrs

from stablecast.lab.whole.consumers import BEGINNINGS
from stablecast.lab.whole.schedule import PACED, RECEIVERS, SECOND_SOURCE, SOURCE, TURNS, Do, HostFault, Setup

HABIT_SHARE: Final = 0.35
"""Share of the seeds whose receivers have one or two habits."""

STRUCK_APART: Final = 0.4
"""Share of the faults of the source that strike the second program that sends instead."""

MODES: Final = ("arrival", "settled", "fickle", "impatient", "threads")


def habitual(rng: Random, setup: Setup) -> Setup:
    """Return the setup with habits, in few seeds."""
    if rng.random() >= HABIT_SHARE:
        return setup
    possible = _possible(setup)
    for habit in rng.sample(possible, min(len(possible), rng.choice((1, 1, 2)))):
        setup = _with(rng, setup, habit)
    return setup


def _possible(setup: Setup) -> list[str]:
    """Return the habits for which the stores of a setup keep what the rules require."""
    options = dict(setup.options)
    possible = ["modes", "start", "pattern"]
    if setup.storage == TURNS or "ume_store_group" in options:
        return possible  # A majority of the stores does not decide there what is stable.
    possible.append("stored")
    if PACED in options or setup.kept or setup.tight:
        return possible  # The stores let messages go.
    possible.append("reader")
    if setup.ids == "session" and not setup.storage:
        possible.append("apart")
        if setup.handles == 1 and not (setup.late or setup.second):
            possible += ["group", "hot"]
    return possible


def _with(rng: Random, setup: Setup, habit: str) -> Setup:
    modes = tuple(rng.choice(MODES) for _ in RECEIVERS)
    match habit:
        case "modes" if not (setup.hot and "settled" in modes):  # A hot number cannot be delivered again.
            return attrs.evolve(setup, modes=modes)
        case "reader" if not setup.hot:  # A reader returns the messages of each source, also the later copies.
            place = rng.randrange(len(RECEIVERS))
            return attrs.evolve(setup, modes=(*setup.modes[:place], "reader", *setup.modes[place + 1 :]))
        case "start":
            return attrs.evolve(setup, start=rng.choice(tuple(BEGINNINGS)))
        case "hot" if not (setup.group or setup.pattern or "reader" in setup.modes):
            return attrs.evolve(setup, apart=True, hot=True, modes=("plain", "slow"))
        case "pattern" if not (setup.hot or setup.group):
            return attrs.evolve(setup, pattern=True)
        case "group" if not (setup.hot or setup.pattern):
            return attrs.evolve(setup, group=True)
        case "stored":
            return attrs.evolve(setup, stored=True)
        case "apart":
            return attrs.evolve(setup, apart=True)
        case _:
            return setup  # It does not go with the first habit.


def suited(rng: Random, setup: Setup, faults: list[HostFault]) -> list[HostFault]:
    """Return the faults as they suit the habits: a member of a group only ends, and the second program fails, too."""
    found = []
    for fault in faults:
        if setup.group and fault.do is Do.LEAVE and fault.who in RECEIVERS:
            found.append(attrs.evolve(fault, do=Do.CLOSE))
        elif setup.hot and fault.do is Do.LEAVE and fault.who == SOURCE:
            found.append(
                attrs.evolve(fault, do=Do.KILL)
            )  # It would take messages with it that the other one never had.
        elif setup.apart and fault.who == SOURCE and fault.do is not Do.LEAVE and rng.random() < STRUCK_APART:
            found.append(attrs.evolve(fault, who=SECOND_SOURCE))
        else:
            found.append(fault)
    return found
