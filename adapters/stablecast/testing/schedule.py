"""The schedule of a world: a list of strikes that a seed draws, and that a person can read, shorten and keep.

A strike happens at a time, or at a turn of its victim. A turn of a host is one resumption of a thread that runs there.
Between two turns lies each place where a program waits. Therefore a crash at a random turn finds the short moment
between two effects of a program, which a crash at a random time would miss.

As a literal, a strike is a dictionary with the keys `fault`, `on`, and as needed `to`, `turn` or `at_ms`, `ms` for its
span, `amount`, `power`, `one_way` and `undeclared`. The literal is valid Python and valid JSON.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from stablecast.core.errors import ConfigError
from stablecast.testing.faults import ANY, APP, STORE, FaultKind, FaultKinds

MILLISECOND: Final = 1_000_000
"""Nanoseconds of a millisecond."""

AT_A_TURN: Final = 0.75
"""Share of strikes that happen at a turn of their victim. The others happen at a time."""

SPANS_MS: Final[Mapping[str, tuple[float, float]]] = {
    "crash": (5, 5_000),
    "wipe": (5, 5_000),
    "restore": (50, 20_000),
    "stop": (50, 20_000),
    "partition": (50, 20_000),
}
"""The shortest and the longest span of a fault in ms. The seed draws the logarithm."""

USUAL_SPAN_MS: Final = (50, 10_000)

AT_ONCE: Final = frozenset({"reset", "rot", "leap"})
"""Faults without a span."""

OF_PATHS: Final = frozenset({"partition", "loss", "delay", "duplicate", "reorder", "reset"})
"""Faults between two hosts."""

OF_DISKS: Final = frozenset({"slow_disk", "full_disk", "failing_disk", "rot", "wipe", "restore"})
"""Faults of a disk."""

KINDS: Final = OF_PATHS | OF_DISKS | {"crash", "stop", "leap", "drift"}
"""All faults that a strike may name."""

FLAGS: Final = ("power", "one_way", "undeclared")
"""The fields of a strike that are true or false, in their order."""


@attrs.frozen
class Strike:
    """One fault with its victim, time and span.

    Attributes:
        fault: The kind of fault.
        on: The host.
        to: The other host of a path.
        turn: The strike happens at this turn of the host, counted since the stores were ready; 0 if it has a time.
        at: The time in ns of virtual time since the stores were ready, used unless `turn` is set.
        span: The time in ns until the fault is healed, until killed programs start again, or until a copy is put back.
        amount: The strength.
        power: The host loses its power.
        one_way: Only packets from `on` to `to` are affected.
        undeclared: Nobody declares to a store that its disk is a restored backup.
    """

    fault: str
    on: str
    to: str = ""
    turn: int = 0
    at: int = 0
    span: int = 0
    amount: float = 0.0
    power: bool = False
    one_way: bool = False
    undeclared: bool = False

    def literal(self) -> dict[str, Any]:
        """Return the strike as a dictionary of plain values."""
        made: dict[str, Any] = {"fault": self.fault, "on": self.on}
        if self.to:
            made["to"] = self.to
        if self.turn:
            made["turn"] = self.turn
        else:
            made["at_ms"] = _plain(self.at)
        if self.span:
            made["ms"] = _plain(self.span)
        if self.amount:
            made["amount"] = self.amount
        for flag in FLAGS:
            if getattr(self, flag):
                made[flag] = True
        return made

    def __str__(self) -> str:
        where = f"{self.on} {'->' if self.one_way else '-'} {self.to}" if self.to else self.on
        when = f"at turn {self.turn:,}" if self.turn else f"at {_plain(self.at):g} ms"
        amount = f" {self.amount:g}" if self.amount else ""
        span = f" for {_plain(self.span):g} ms" if self.span else ""
        flags = "".join(f" ({flag})" for flag in ("power", "undeclared") if getattr(self, flag))
        return f"{self.fault}{flags}{amount} of {where} {when}{span}"


@attrs.frozen
class HostActivity:
    """The activity of one host in a run without faults.

    Attributes:
        kind: `store`, `app` or `other`.
        turns: The turns of its programs.
    """

    kind: str
    turns: int


@attrs.frozen
class Activity:
    """The activity of a world in a run without faults. Schedules are drawn for it.

    Attributes:
        hosts: The hosts by name.
        end: The time of the last activity in ns since the stores were ready.
    """

    hosts: Mapping[str, HostActivity]
    end: int

    def literal(self) -> list[Any]:
        """Return plain values from which `of` makes the activity again."""
        return [self.end, {name: [one.kind, one.turns] for name, one in self.hosts.items()}]

    @staticmethod
    def of(literal: Sequence[Any]) -> "Activity":
        return Activity({name: HostActivity(*one) for name, one in literal[1].items()}, literal[0])


def strike_of(literal: Mapping[str, Any]) -> Strike:
    """Return the strike of a literal. Raises ConfigError."""
    left = dict(literal)
    try:
        fault, on = str(left.pop("fault")), str(left.pop("on"))
    except KeyError as missing:
        raise ConfigError(f"the strike {literal!r} has no {missing}") from None
    if fault not in KINDS:
        raise ConfigError(f"the strike {literal!r} names no known fault: choose from {', '.join(sorted(KINDS))}")
    strike = Strike(
        fault,
        on,
        str(left.pop("to", "")),
        int(left.pop("turn", 0)),
        round(float(left.pop("at_ms", 0)) * MILLISECOND),
        round(float(left.pop("ms", 0)) * MILLISECOND),
        float(left.pop("amount", 0)),
        *(bool(left.pop(flag, False)) for flag in FLAGS),
    )
    if left:
        raise ConfigError(f"the strike {literal!r} has unknown keys: {', '.join(sorted(left))}")
    return strike


def schedule_of(given: Iterable[Mapping[str, Any] | Strike]) -> list[Strike]:
    """Return the schedule of literals. Raises ConfigError."""
    return [one if isinstance(one, Strike) else strike_of(one) for one in given]


def draw(seed: int, faults: FaultKinds, activity: Activity, most: int) -> list[Strike]:
    """Draw the schedule of a seed: at most `most` strikes, from some of the kinds of faults.

    Raises:
        ConfigError: A fault names a host that the world does not have.
    """
    if not faults.kinds:
        return []
    rng = random.Random(f"schedule {seed}")  # noqa: S311 - a seed must repeat its schedule
    # A world with few kinds of faults goes deeper into their interplay than one with all kinds at once.
    kinds = rng.sample(faults.kinds, rng.randint(1, len(faults.kinds)))
    strikes = [_strike(rng, rng.choice(kinds), activity) for _ in range(rng.randint(1, most))]
    return sorted(strikes, key=lambda one: (one.turn, one.at))


def _strike(rng: random.Random, fault: FaultKind, activity: Activity) -> Strike:
    on = rng.choice(hosts_of(fault.who, activity.hosts, fault.kind))
    to = ""
    if fault.kind in OF_PATHS:
        others = [one for one in hosts_of(fault.to, activity.hosts, fault.kind) if one != on]
        to = rng.choice(others or [on])
    turn = at = 0
    turns = activity.hosts[on].turns
    if turns and rng.random() < AT_A_TURN:
        turn = rng.randint(1, turns)
    else:
        at = rng.randrange(activity.end + 1)
    span = 0
    if fault.kind not in AT_ONCE:
        shortest, longest = SPANS_MS.get(fault.kind, USUAL_SPAN_MS)
        span = round(shortest * (longest / shortest) ** rng.random() * MILLISECOND)
    amount = fault.amount
    if fault.kind in ("leap", "drift"):
        amount = round(rng.uniform(-amount, amount), 3)
    elif fault.kind in ("delay", "slow_disk"):
        amount = round(amount * rng.uniform(0.1, 1), 1)
    return Strike(fault.kind, on, to, turn, at, span, amount, fault.power, fault.one_way, fault.undeclared)


def hosts_of(who: str, hosts: Mapping[str, HostActivity], fault: str) -> list[str]:
    """Return the hosts that a name or a kind stands for, sorted. Raises ConfigError if there are none."""
    kinds = (STORE, APP) if who == ANY else (who,)
    # A host that is named like a kind, as `app` usually is, is one of several hosts of that kind.
    found = sorted(name for name, host in hosts.items() if host.kind in kinds) or [
        name for name in hosts if name == who
    ]
    if not found:
        names = ", ".join(sorted(hosts)) or "none"
        raise ConfigError(
            f"the fault {fault} names {who!r}, but the test started nothing there: hosts of its world are {names}"
        )
    return found


def _plain(ns: int) -> float:
    return round(ns / MILLISECOND, 6)
