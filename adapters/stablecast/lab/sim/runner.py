"""Run one schedule: faults until the horizon, a calm phase until everything is settled; then some clients leave.

Reduce a failing schedule to one that still breaks the same rule and cannot be reduced further.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from traceback import extract_tb

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.settings import ReceiverConfig
from stablecast.core.store.refill import AGAIN_NS, TRIES
from stablecast.lab.schedules.reduction import Reduction, plainer, with_shorter_spans, without
from stablecast.lab.sim.cluster import Cluster, seeded
from stablecast.lab.sim.endpoint_configs import GIVE_UP_NS, RETRY_NS
from stablecast.lab.sim.facts import Violation
from stablecast.lab.sim.quiescence import Trouble, asked_in_vain, lacking, proxied, trouble
from stablecast.lab.sim.schedule import Schedule
from stablecast.lab.sim.setup import HORIZON_MS, RECEIVERS, SOURCE, STORES, Habit, Leaving

LAST_MESSAGES = 5
"""Messages that the application sends when all faults are over. They must be delivered."""

SETTLE_NS = 15 * SECOND
STEP_NS = 50 * MILLISECOND
"""Longest calm phase, and interval of the checks whether everything is settled."""

BACKLOG_NS = 15 * SECOND
"""Additional time for slow applications, whose backlog may wait until a loss is given up."""

HEAL_NS = AGAIN_NS + 10 * SECOND
"""Time in which stores get back what they lack. A round of refill that faults made vain is followed by another one."""

VAIN_NS = TRIES * (len(STORES) - 1) * RETRY_NS
"""Time in which a store finds out that no other store has a number. One with little room asks for few at a time."""

LASTING_NS = 1 * SECOND
"""Time that the only remaining proxy must keep running."""


@attrs.frozen
class Report:
    """Hold the result of a schedule.

    Equal fingerprints mean that two worlds drew the same random numbers and ran equally many events.
    """

    schedule: Schedule
    violations: tuple[Violation, ...]
    counts: Counter[str]
    virtual_ns: int
    fingerprint: str


def run(
    schedule: Schedule,
    traces: Path | None = None,
    transcript: list[str] | None = None,
    watch: Callable[[Cluster], None] | None = None,
) -> Report:
    """Run a schedule.

    Args:
        schedule: Messages, faults and setup.
        traces: Directory for a trace of every endpoint.
        transcript: Receives a line for each input of a machine.
        watch: Looks at the cluster at regular intervals, and changes nothing.
    """
    world = seeded(schedule.seed, transcript)
    cluster = Cluster(world, traces, schedule.setup)
    world.watch = None if watch is None else partial(watch, cluster)
    for at, count in schedule.sends:
        world.at(at * MILLISECOND, partial(cluster.want, count))
    for fault in schedule.faults:
        world.at(fault.at_ms * MILLISECOND, partial(cluster.suffer, fault))
    facts = cluster.checkers.facts
    try:
        _live(cluster)
    except Exception as error:  # noqa: BLE001  # an exception of a machine or driver is a violation
        where = extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno} in {where.name})"
        facts.report("X1", text)
    finally:
        cluster.close()
    fingerprint = f"{world.now:x}-{world.rng.getrandbits(64):016x}"
    return Report(schedule, tuple(facts.violations), facts.counts, world.now, fingerprint)


def _live(cluster: Cluster) -> None:
    world, facts = cluster.world, cluster.checkers.facts
    while world.now < HORIZON_MS * MILLISECOND and not facts.violations:
        world.run(world.now + 10 * STEP_NS)
    cluster.calm()
    if cluster.deserted:
        _await_proxy(cluster)
        # Lost datagrams may hide one proxy from another for a while.
        _settle(cluster, LASTING_NS if cluster.setup.resolution else 0, proxied)
        _settle(cluster)
        cluster.adopt()
    cluster.want(LAST_MESSAGES)
    leaving = cluster.setup.leaving
    if leaving is Leaving.HASTY_SOURCE:
        cluster.leave(SOURCE)
    _settle(cluster)
    if leaving is Leaving.SOURCE:
        cluster.leave(SOURCE)
        _settle(cluster)
    elif leaving is Leaving.RECEIVER:
        cluster.leave(RECEIVERS[-1])
        cluster.want(LAST_MESSAGES)
        _settle(cluster)
    cluster.scrub()
    _settle(cluster, HEAL_NS + asked_in_vain(cluster) * VAIN_NS, lacking)
    if not facts.violations:
        cluster.checkers.at_the_end()


def _await_proxy(cluster: Cluster) -> None:
    """Run until one proxy has lasted. One that a later life overtook ends, and then the next one must last."""
    world, counts = cluster.world, cluster.checkers.facts.counts
    for _ in STORES:  # Each may have had a proxy that the others did not reach.
        _settle(cluster)
        before = counts["overtaken proxies"]
        world.run(world.now + LASTING_NS)
        if counts["overtaken proxies"] == before:
            return


def _settle(
    cluster: Cluster, span: int = SETTLE_NS, unsettled: Callable[[Cluster], Trouble | None] | None = None
) -> None:
    """Run until nothing is left to do; report a violation if that takes too long."""
    world, facts = cluster.world, cluster.checkers.facts
    deadline = world.now + span
    if span and cluster.setup.habit is not Habit.PROMPT:
        deadline += BACKLOG_NS
    if span and cluster.setup.turns and cluster.setup.named:
        # In turns an SRI names one store (P-502). So a receiver asks another one, which moved, at its old address, and
        # waits in vain for its vote, and then again for a message that only that store has.
        deadline += GIVE_UP_NS
    if span:
        # A receiver gives up what no disk holds any more, as many numbers at a time as its window has. Before that it
        # may wait as long for the vote of a store whose disk was replaced.
        gone = sum(numbers.total() for numbers in facts.wiped.values())
        deadline += (bool(gone) + gone // ReceiverConfig("", 0, "").window) * GIVE_UP_NS
    while not facts.violations and (found := (unsettled or trouble)(cluster)) is not None:
        if world.now >= deadline:
            facts.report(*found)
            return
        world.run(world.now + STEP_NS)


MAX_RUNS = 400
"""Most worlds to try."""


def shrink(report: Report, attempt: Callable[[Schedule], Report] = run) -> Report:
    """Return the report of a smaller schedule that breaks the same rule, or the given report if there is none.

    Faults go first, alone or by halves, then sends, then deviations of the setup. Then runs of messages and spans
    become shorter.
    """
    return Reduction(attempt, _rule, MAX_RUNS).smallest(report, lambda one: _smaller(one.schedule))


def _rule(report: Report) -> str | None:
    return report.violations[0].rule if report.violations else None


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    """Yield smaller schedules, the largest reductions first."""
    for faults in without(schedule.faults):
        yield attrs.evolve(schedule, faults=faults)
    for sends in without(schedule.sends):
        yield attrs.evolve(schedule, sends=sends)
    for setup in plainer(schedule.setup):
        yield attrs.evolve(schedule, setup=setup)
    for index, (at, count) in enumerate(schedule.sends):
        if count > 1:
            sends = (*schedule.sends[:index], (at, count // 2), *schedule.sends[index + 1 :])
            yield attrs.evolve(schedule, sends=sends)
    for faults in with_shorter_spans(schedule.faults):
        yield attrs.evolve(schedule, faults=faults)
