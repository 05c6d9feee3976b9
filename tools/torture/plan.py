"""Plans of histories: the programs, and the time of each fault. One seed always makes the same plan.

Times are seconds after the first stable message. Open faults are healed at the end of a plan. No plan breaks a
condition of the guarantees: the disks of a quorum survive. Every other fault may happen.
"""

import json
import random
from collections.abc import Mapping
from typing import Any

import attrs

STORES = ("store1", "store2", "store3")
LATE = "late"
"""Name of the receiver that starts after all sources ended."""
ACTIVITY_MS = 1500
"""Activity timeout of clients at the stores. It is short, so that takeovers fit into a history."""
LONG_SECONDS = 4.0
"""Longer than every shortened timeout, and than a client waits for a store (3 s)."""
STARVED_SECONDS = 6.0
"""Longer than the limit of a connection attempt (5 s)."""
DISK_MEGABYTES = 32
KEPT_BYTES = 104_857_600
"""Bytes of the newest messages of a source that a store keeps by default (repository-disk-file-size-limit)."""
SURCHARGE_BYTES = 200
"""More than a store counts for a message beside its payload, which may be in several pieces."""
LEAST_DISK_BYTES = 200_000
"""Limit of a store that messages reach soon: a little above the least that a store permits."""


@attrs.frozen
class Step:
    """One action `do` on the program or store `who`. `other` is a second host, `how` the variant of the action."""

    at: float
    do: str
    who: str
    other: str = ""
    how: str = ""
    seed: int = 0


@attrs.frozen
class Plan:
    """The plan of a history. `sources` and `receivers` are the jobs of the applications by role."""

    seed: int
    kind: str
    disks: tuple[str, ...]
    sources: Mapping[str, Mapping[str, Any]]
    receivers: Mapping[str, Mapping[str, Any]]
    steps: tuple[Step, ...]
    daemon: bool = False
    later: tuple[str, ...] = ()
    """Roles that a step starts, and not the beginning of the history."""
    prompt: bool = False
    """True if nothing delays the acknowledgements of receivers."""
    service: bool = False
    """True if a service over TCP resolves topics instead of a relay."""
    late: bool = True
    """True if a new receiver starts after all sources ended."""
    store_options: tuple[str, ...] = ()
    """Options of every store, beside the usual ones."""
    kept: int = 0
    """Messages of a source that stores keep at least, because of a limit of this plan; 0: their usual one counts."""
    forked: bool = False
    """True if stores and the relay are forked from the player. It saves the start of interpreters."""

    def kept_by_owner(self) -> dict[str, int]:
        """Return how many of the newest messages of each owner and topic stores keep at least."""
        sizes = [(job["owner"], int(job["size"]) + SURCHARGE_BYTES) for job in self.sources.values()]
        largest = dict(sorted(sizes))
        return {owner: self.kept or KEPT_BYTES // size for owner, size in largest.items()}

    def text(self) -> str:
        return json.dumps(attrs.asdict(self), indent=1)

    @classmethod
    def read(cls, text: str) -> "Plan":
        fields = json.loads(text)
        fields["steps"] = tuple(Step(**step) for step in fields["steps"])
        for name in ("disks", "later", "store_options"):
            fields[name] = tuple(fields.get(name, ()))
        return cls(**fields)


@attrs.define
class Draft:
    """An unfinished plan, and the random numbers that it is drawn from."""

    rng: random.Random
    disks: list[str] = attrs.field(factory=lambda: ["plain"] * 3)
    sources: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    receivers: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    steps: list[Step] = attrs.field(factory=list)
    daemon: bool = False
    later: list[str] = attrs.field(factory=list)
    prompt: bool = False
    service: bool = False
    store_options: tuple[str, ...] = ()
    kept: int = 0

    def source(self, name: str = "source", **job: Any) -> None:
        rng = self.rng
        usual = {
            "session": 11,
            "owner": "source",
            "topics": ["orders"],
            "pause": 0.02,
            "burst": rng.choice((1, 2, 5)),
            "size": rng.choice((60, 100, 1000)),
            "options": {"ume_confirmed_delivery_notification": 1},
            "uvloop": rng.random() < 0.5,
            "again": True,
        }
        self.sources[name] = {**usual, **job}

    def receiver(self, name: str, **job: Any) -> None:
        rng = self.rng
        usual = {
            "session": 21 + len(self.receivers),
            "owner": name,
            "topics": ["orders"],
            "mode": rng.choice(("plain", "plain", "batches", "callback")),
            "delay": 0.0,
            "uvloop": rng.random() < 0.5,
        }
        self.receivers[name] = {**usual, **job}

    def usual(self) -> None:
        """Add one source, and two receivers of which one is sometimes slow."""
        self.source()
        self.receiver("receiver1")
        mode = self.rng.choice(("plain", "slow", "batches"))
        self.receiver("receiver2", mode=mode, delay=0.004 if mode == "slow" else 0.0)

    def add(self, at: float, do: str, who: str, **more: Any) -> None:
        self.steps.append(Step(round(at, 2), do, who, **more))

    def during(self, at: float, seconds: float, what: tuple[str, str], who: str, **more: Any) -> None:
        """Add a step and the one that undoes it."""
        self.add(at, what[0], who, **more)
        self.add(at + seconds, what[1], who, **more)

    def anybody(self) -> str:
        """Return a random store, source or receiver."""
        return self.rng.choice([*STORES, *self.sources, *self.receivers])

    def moment(self, last: float = 4.0) -> float:
        """Return a random time for a fault (s)."""
        return self.rng.uniform(0.3, last)
