"""What happens in one history: who takes part, and which faults come when. A seed makes one plan, always the same.

Times are seconds since the first message was stable. Faults that the steps leave are healed at the end of a plan. No
plan breaks a condition of the README: the disks of a quorum are kept, everything else may happen.
"""

import json
import random
from collections.abc import Mapping
from typing import Any

import attrs

STORES = ("store1", "store2", "store3")
LATE = "late"
"""The receiver that starts when everything is over."""
ACTIVITY_MS = 1500
"""When a store takes a silent client for gone: short, so that takeovers fit into a history."""
LONG_SECONDS = 4.0
"""Longer than every timeout that is shortened, and than a client's patience with a store (3 s)."""
STARVED_SECONDS = 6.0
"""Longer than an attempt to connect may take (5 s)."""
DISK_MEGABYTES = 32


@attrs.frozen
class Step:
    """One thing that is done to somebody; `other` and `how` say more where there is more to say."""

    at: float
    do: str
    who: str
    other: str = ""
    how: str = ""
    seed: int = 0


@attrs.frozen
class Plan:
    """A whole history. `sources` and `receivers` are the jobs of the applications by role."""

    seed: int
    kind: str
    disks: tuple[str, ...]
    sources: Mapping[str, Mapping[str, Any]]
    receivers: Mapping[str, Mapping[str, Any]]
    steps: tuple[Step, ...]
    daemon: bool = False
    later: tuple[str, ...] = ()
    """Roles that only a step starts."""
    prompt: bool = False
    """Whether nothing keeps receivers from acknowledging at once."""
    service: bool = False
    """Whether they find each other by a service over TCP, and not by a relay."""

    def text(self) -> str:
        """The plan as JSON."""
        return json.dumps(attrs.asdict(self), indent=1)

    @classmethod
    def read(cls, text: str) -> "Plan":
        """Read what `text` wrote."""
        fields = json.loads(text)
        fields["steps"] = tuple(Step(**step) for step in fields["steps"])
        fields["disks"], fields["later"] = tuple(fields["disks"]), tuple(fields["later"])
        return cls(**fields)


@attrs.define
class Draft:
    """A plan in the making."""

    rng: random.Random
    disks: list[str] = attrs.field(factory=lambda: ["plain"] * 3)
    sources: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    receivers: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    steps: list[Step] = attrs.field(factory=list)
    daemon: bool = False
    later: list[str] = attrs.field(factory=list)
    prompt: bool = False
    service: bool = False

    def source(self, name: str = "source", **job: Any) -> None:
        """Add a source application."""
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
        """Add a receiver application."""
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
        """One source, and two receivers of which one is sometimes slow."""
        self.source()
        self.receiver("receiver1")
        mode = self.rng.choice(("plain", "slow", "batches"))
        self.receiver("receiver2", mode=mode, delay=0.004 if mode == "slow" else 0.0)

    def add(self, at: float, do: str, who: str, **more: Any) -> None:
        """Add a step."""
        self.steps.append(Step(round(at, 2), do, who, **more))

    def during(self, at: float, seconds: float, what: tuple[str, str], who: str, **more: Any) -> None:
        """Add a step and the one that undoes it."""
        self.add(at, what[0], who, **more)
        self.add(at + seconds, what[1], who, **more)

    def anybody(self) -> str:
        """Somebody who takes part."""
        return self.rng.choice([*STORES, *self.sources, *self.receivers])

    def moment(self, last: float = 4.0) -> float:
        """When something happens."""
        return self.rng.uniform(0.3, last)
