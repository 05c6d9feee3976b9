"""Replace all stores of a fleet, one daemon after the other, without ever going below a quorum.

A store may go only while every source has all of its stores, and no store lacks a message that another one has. A
replaced store counts only when its daemon was started anew and it has fetched everything again. If that does not happen
in time, the roll ends.
"""

import time
from collections.abc import Callable, Iterator, Sequence

import attrs

from stablecast.ops.fleet.copies import joined
from stablecast.ops.fleet.survey import Survey
from stablecast.ops.operations.target import OperationError
from stablecast.text import plural

POLL_SECONDS = 1.0
"""Time between two surveys."""

SHOWN = 5
"""Obstacles that an error names at most."""


def obstacles(surveyed: Survey) -> Iterator[str]:
    """Yield a sentence for each reason why no store may go now."""
    yield from surveyed.silent.values()
    for store in surveyed.stores:
        if store.record["failure"]:
            yield f"store {store.name} does not serve: {store.record['failure']}"
        if store.record["muted_for_ns"]:
            yield f"store {store.name} grants no registration yet"
    for found in joined(surveyed):
        for copy in found.copies:
            # What all stores lack comes from none of them, so no wait would bring it.
            lacking = sum(copy.record["lacking"]) + copy.record["holes"] - found.nowhere
            if lacking:
                yield f"store {copy.store.name} lacks {plural(lacking, 'message')} of topic {found.topic}"
        there = found.serving if found.active else len(found.copies)
        if there < found.replicas:
            yield f"topic {found.topic}: {there} of its {plural(found.replicas, 'store')} have it"
        elif found.active and found.spare is None:
            yield f"topic {found.topic}: no store knows the groups of its stores"
        elif found.active and (found.spare or 0) < 1:
            stores = plural(found.replicas, "store")
            yield f"topic {found.topic}: {found.needed} of its {stores} are needed, so none may go"


@attrs.frozen
class Roll:
    """A rolling replacement.

    Attributes:
        look: Surveys all monitors.
        replace: Replaces the stores of one daemon, given its monitor; returns when the new daemon may be running.
        report: Gets a sentence for each step.
        patience: Seconds to wait for the fleet before each step.
        sleep: Waits between two surveys.
        clock: Returns seconds.
    """

    look: Callable[[], Survey]
    replace: Callable[[str], None]
    report: Callable[[str], None]
    patience: float = 600.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def run(self, monitors: Sequence[str]) -> None:
        """Replace the stores of each daemon in turn.

        Raises:
            OperationError: The fleet is not whole, or did not become whole in time. No further store was touched.
        """
        started = self._whole("no store was replaced")
        for number, monitor in enumerate(monitors, 1):
            if monitor not in started:
                raise OperationError(f"{monitor} has no store: name the monitors of the fleet's daemons")
            self.report(f"{monitor}: replacing ({number} of {len(monitors)})")
            self.replace(monitor)
            done = f"{plural(number, 'daemon')} of {len(monitors)} replaced, the last one is {monitor}"
            started = self._whole(done, monitor, started[monitor])
            self.report(f"{monitor}: replaced, and nothing is lacking")

    def _whole(self, done: str, monitor: str = "", before: int = 0) -> dict[str, int]:
        """Wait until a store may go; return when the stores of each monitor were started.

        Args:
            done: What was done so far, for the error.
            monitor: The daemon that was replaced last.
            before: When its stores had been started (ns).
        """
        until, told = self.clock() + self.patience, 0
        while True:
            surveyed = self.look()
            started: dict[str, int] = {}
            for store in surveyed.stores:
                since = int(store.record["started_ns"])
                started[store.monitor] = min(since, started.get(store.monitor, since))
            found = list(obstacles(surveyed))
            if monitor and monitor in started and started[monitor] <= before:
                found.append(f"{monitor} still runs the stores that it ran before")
            if not found:
                return started
            if self.clock() >= until:
                more = f", and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
                raise OperationError(f"{done}; not going on: {'; '.join(found[:SHOWN])}{more}")
            if len(found) != told:
                told = len(found)
                self.report(f"waiting: {found[0]}{f', and {told - 1} more' if told > 1 else ''}")
            self.sleep(POLL_SECONDS)
