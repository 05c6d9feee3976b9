"""Record what a world looks like, frame by frame, for people who watch it.

The page that runs the core in a browser shows these frames. A frame is a look at the world: it changes nothing, so a
world that is watched has the digest of one that is not.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.store.status import RepositoryStatus
from stablecast.lab.sim.cluster import Cluster
from stablecast.lab.sim.disk import VirtualDisk
from stablecast.lab.sim.endpoint_configs import HOSTS
from stablecast.lab.sim.receiver import ReceiverProcess
from stablecast.lab.sim.runner import Report, run
from stablecast.lab.sim.schedule import Schedule
from stablecast.lab.sim.setup import RECEIVERS, SOURCE, STORES
from stablecast.lab.sim.source import SourceProcess
from stablecast.lab.sim.store import StoreProcess

Frame = dict[str, Any]
"""One look at a world, as JSON values."""

EVENT: Final = re.compile(r"Notify\(event=(\w+)")
SILENT_EVENTS: Final = frozenset({"Stable", "Reclaimed", "Wakeup"})
"""Events that come with every message."""

_NAMES: Final = {host: name for name, host in HOSTS.items()}


@attrs.frozen
class Film:
    """A world as it was seen.

    Attributes:
        frames: One look every 20 ms of virtual time.
        events: Instant in ns, process and name of each event of an application that is not a matter of course.
        report: The verdict of the checkers.
        digest: The digest of every input and all effects.
    """

    frames: Sequence[Frame]
    events: Sequence[tuple[int, str, str]]
    report: Report
    digest: str

    def as_json(self) -> dict[str, Any]:
        """Return the film as JSON values. Numbers of more than 53 bits are text."""
        violations = [
            {"rule": one.rule, "name": one.name, "ms": one.at / MILLISECOND, "text": one.text}
            for one in self.report.violations
        ]
        return {
            "frames": list(self.frames),
            "events": [[at / MILLISECOND, who, what] for at, who, what in self.events],
            "violations": violations,
            "counts": dict(self.report.counts),
            "digest": self.digest,
            "schedule": self.report.schedule.as_json(),
        }


def film(schedule: Schedule) -> Film:
    """Run a schedule and record what it looks like."""
    frames: list[Frame] = []
    transcript: list[str] = []
    report = run(schedule, transcript=transcript, watch=lambda cluster: frames.append(look(cluster)))
    return Film(frames, list(_events(transcript)), report, digest(transcript))


def digest(transcript: Iterable[str]) -> str:
    """Return the SHA-256 of a transcript, in hexadecimal."""
    return hashlib.sha256("\n".join(transcript).encode()).hexdigest()


def look(cluster: Cluster) -> Frame:
    """Return one frame: a copy of what the processes, disks and checkers show now."""
    lives = cluster.checkers.facts.order
    return {
        "ms": cluster.world.now / MILLISECOND,
        "calm": cluster.checkers.facts.calm,
        "source": _source(cluster),
        "stores": [_store(cluster, name, lives) for name in STORES],
        "receivers": [_receiver(cluster, name) for name in RECEIVERS],
        "cut": sorted({tuple(sorted((_NAMES.get(a, a), _NAMES.get(b, b)))) for a, b in cluster.network.partitions}),
        "broken": len(cluster.checkers.facts.violations),
    }


def _source(cluster: Cluster) -> Frame:
    process = cluster.processes.get(SOURCE)
    if not isinstance(process, SourceProcess):
        return {"alive": False, "frozen": False, "life": 0, "next": 0, "stable": -1, "state": "IDLE", "stores": []}
    machine = process.machine
    return {
        "alive": process.alive,
        "frozen": process.frozen,
        "life": process.config.incarnation & 0xFFFF_FFFF,
        "next": machine.next_number,
        "stable": machine.stable_through,
        "state": machine.state.name,
        "stores": [one.state.name for one in machine.status.registrations.values()],
    }


def _store(cluster: Cluster, name: str, lives: dict[int, int]) -> Frame:
    process, disk = cluster.processes.get(name), cluster.disks[name]
    known = process if isinstance(process, StoreProcess) else None
    repositories = [] if known is None else list(known.machine.status.repositories.values())
    return {
        "name": name,
        "alive": known is not None and known.alive,
        "frozen": known is not None and known.frozen,
        "waits": known is not None and known.machine.status.muted_until is not None,
        "slow": disk.slow,
        "full": disk.full,
        "disk": _on_disk(disk, lives),
        "holes": [list(span) for one in repositories for span in _holes(one)],
        "proxies": 0 if known is None or not known.alive else known.proxies,
    }


def _holes(one: RepositoryStatus) -> list[tuple[int, int]]:
    """Return the ranges that a store lacks: those that it gave up, and those that may come."""
    return sorted([*one.lost.within(one.trail, one.newest + 1), *one.holes])


def _on_disk(disk: VirtualDisk, lives: dict[int, int]) -> list[list[int]]:
    """Return ranges of synced numbers with the place of their life: first, end, life."""
    found: list[list[int]] = []
    for numbers in disk.durable.values():
        for number in sorted(numbers):
            life = lives.get(numbers[number].tag, 0)
            if found and found[-1][1] == number and found[-1][2] == life:
                found[-1][1] = number + 1
            else:
                found.append([number, number + 1, life])
    return found


def _receiver(cluster: Cluster, name: str) -> Frame:
    process, ledger = cluster.processes.get(name), cluster.checkers.receivers.ledgers[name]
    known = process if isinstance(process, ReceiverProcess) else None
    consumed = RangeSet()
    for numbers in ledger.consumed.values():
        consumed.update(list(numbers))
    return {
        "name": name,
        "alive": known is not None and known.alive,
        "frozen": known is not None and known.frozen,
        "consumed": [list(span) for span in consumed],
        "lost": ledger.lost.total(),
        "stores": [] if known is None or not known.alive else [one.state.name for one in known.registrations()],
    }


def _events(transcript: Iterable[str]) -> Iterable[tuple[int, str, str]]:
    for line in transcript:
        for name in EVENT.findall(line):
            if name not in SILENT_EVENTS:
                at, who, _ = line.split(" ", 2)
                yield int(at), who, name
