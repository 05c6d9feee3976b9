"""The condition on which a whole world has settled, from the lines of its applications and the output of its stores.

A store prints when it asks other stores for messages that it lacks, and when nothing is lacking any more. A world has
not settled before the second line. Some messages cannot come back: the others released them by a rule, or the source
took them with it. So stores are not asked where receivers set the pace, where limits are small, where no disk keeps
messages, and where the source deregistered. A number that was never stable may exist nowhere (`copies`).
"""

from collections.abc import Callable, Collection, Iterable, Sequence

from stablecast.lab.schedules.faults import Kind
from stablecast.lab.whole.application_history import Line
from stablecast.lab.whole.history_checker import gather, undelivered
from stablecast.lab.whole.schedule import PACED, SOURCE, STORES, WorldSchedule
from stablecast.store.store_log import ASKED, WHOLE


def unsettled(
    schedule: WorldSchedule,
    lines: Sequence[Line],
    newest: Collection[str],
    lacks: Callable[[str], bool],
) -> str:
    """Return what has not settled; empty if everything has.

    Args:
        schedule: The world's schedule.
        lines: What applications and conductor wrote.
        newest: The newest run of each source program.
        lacks: Whether a store lacks messages that are to come back.
    """
    setup = schedule.setup
    quiet = {line["stream"].rpartition(".")[0] for line in lines if line["is"] == "quiet" and line["run"] in newest}
    if len(quiet) < len(setup.topics) * setup.handles * len(newest):
        return f"of {', '.join(newest)} one is not silent with everything stable"
    facts = gather(lines)
    for name in setup.receivers:
        missing, unseen = undelivered(facts, name)
        if missing or unseen:
            return f"{name} has not got {len(missing) + sum(map(len, unseen.values()))} stable messages"
    for name in STORES if heals(schedule) else ():
        if lacks(name):
            return f"{name} lacks messages that other stores have, or that were stable"
    return ""


def heals(schedule: WorldSchedule) -> bool:
    """Return whether every store gets back what it lacks."""
    setup = schedule.setup
    departs = any(fault.kind is Kind.LEAVE and fault.who == SOURCE for fault in schedule.faults)
    return not (departs or setup.storage or setup.kept or setup.tight or PACED in dict(setup.options))


def is_lacking(output: Iterable[str]) -> bool:
    """Return whether a store asked other stores for messages, and has not got all of them back."""
    asked = whole = 0
    for line in output:
        asked += ASKED in line
        whole += WHOLE in line
    return asked > whole
