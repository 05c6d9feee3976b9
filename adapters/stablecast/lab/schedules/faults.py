"""The one vocabulary of faults: their kinds, with the worlds that can do each, and when a fault happens."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from random import Random
from typing import Any, Final

import attrs

from stablecast.core.errors import StablecastError

STORM_SHARE: Final = 0.6
"""Share of sends and faults that fall into a few short spans, the storms."""


class ScheduleError(StablecastError):
    """Report a file that is not a schedule."""


class Kind(StrEnum):
    """The kinds of faults; each strikes the process, program or host `who` and lasts a span.

    A fault of a bare endpoint may have a variant, which `amount` 1 chooses.
    """

    KILL = "kill"
    """Kill the program, and start it again after the span. Variant: its written bytes are lost, and a source returns at
    other ports.
    """
    POWER = "power"
    """Cut the power of the host: unsynced writes are lost or torn. It returns after the span."""
    STOP = "stop"
    """Stop the program for the span. Variant: its timers run before its arrived data."""
    CUT = "cut"
    """Cut it off from `other`, or from all. Variant: their connections break."""
    MUTE = "mute"
    """Let nothing pass from it to `other`, or to all."""
    NOISE = "noise"
    """Lose, duplicate, reorder and delay what the host sends and receives; `amount` is a percentage."""
    RESET = "reset"
    """Break all connections of the host, or those of a bare endpoint with `other`."""
    SLOW = "slow"
    """Slow down each sync of the host's disk by `amount` ms; of the router, which has none, each packet."""
    FULL = "full"
    """Leave `amount` bytes of room on the disk of a store. A bare store stops, and restarts after the span."""
    FAIL = "fail"
    """Let writes or syncs of a store's disk fail after `amount` calls."""
    ROT = "rot"
    """Flip a bit of a file of a store, or damage a synced message record. Variant: damage all of them."""
    LEAP = "leap"
    """Let the wall clock of the host leap by `amount` ms, or that of a bare client by the span.

    Clocks of bare stores do not jump, because leases rely on their rate.
    """
    DRIFT = "drift"
    """Let the clocks of the host gain `amount` microseconds a second."""
    SCARCE = "scarce"
    """Leave the program `amount` sockets more than it has."""
    BLACKOUT = "blackout"
    """Cut the power of all hosts at once. All return after the span."""
    CLOSE = "close"
    """Send the program SIGTERM, and start it again after the span."""
    LEAVE = "leave"
    """Let a receiver, or the source, deregister and end; start it again after the span."""
    TWIN = "twin"
    """Start a second process with the identity of a client on another host; it is killed after the span.

    Later faults of a bare client affect the second process; a span of 0 means for ever. Variant: its written bytes are
    lost.
    """
    WIPE = "wipe"
    """Kill a store and empty its directory; start it again after the span."""
    RESTORE = "restore"
    """Put back a store's disk as it was at the beginning of the span, declare that, and start the store again.

    Variant: nobody declares it.
    """
    TAKEOVER = "takeover"
    """Freeze a client and start a second process in its place; the first continues after the span."""
    FALTER = "falter"
    """Stop a store for the span when it starts a proxy, if it does. Variant: as with `STOP`."""


OF_ENDPOINTS: Final = (
    *(Kind.KILL, Kind.RESET, Kind.CUT, Kind.MUTE, Kind.STOP, Kind.LEAP, Kind.SLOW, Kind.FULL, Kind.TAKEOVER),
    *(Kind.WIPE, Kind.LEAVE, Kind.FALTER, Kind.ROT, Kind.TWIN, Kind.RESTORE),
)
"""Faults of bare endpoints. Seeds draw from them in this order."""

OF_PROGRAMS: Final = tuple(kind for kind in Kind if kind not in (Kind.TAKEOVER, Kind.FALTER))
"""Faults of whole worlds. Seeds draw from them in this order."""


@attrs.frozen
class Fault:
    """A fault at a time, for a span."""

    at_ms: int
    kind: Kind
    who: str
    span_ms: int = 0
    other: str = ""
    amount: int = 0

    @property
    def variant(self) -> bool:
        """True if a bare endpoint suffers the variant of the kind."""
        return self.amount > 0

    def __str__(self) -> str:
        other = f" and {self.other}" if self.other else ""
        amount = f", {self.amount}" if self.amount else ""
        return f"{self.at_ms} ms: {self.kind} {self.who}{other} for {self.span_ms} ms{amount}"


def faults_of(values: Iterable[Mapping[str, Any]]) -> tuple[Fault, ...]:
    """Return the faults of JSON values. Raises KeyError, TypeError, ValueError."""
    return tuple(Fault(**{**value, "kind": Kind(value["kind"])}) for value in values)


def check_names(faults: Iterable[Fault], struck: Mapping[Kind, Collection[str]], others: Collection[str]) -> None:
    """Raise ScheduleError if a fault strikes nobody of `struck`, or has another host that is not in `others`."""
    for fault in faults:
        victims = struck.get(fault.kind, ())
        if fault.who not in victims or (fault.other and fault.other not in others):
            raise ScheduleError(f"'{fault}' strikes nobody of that name: the names are {', '.join(victims) or 'none'}")


def drawn_instant(rng: Random, storms: Sequence[int], storm_ms: int, horizon_ms: int) -> int:
    """Draw a time before the horizon, in or after one of the storms for most."""
    if rng.random() < STORM_SHARE:
        return min(rng.choice(storms) + rng.randrange(storm_ms), horizon_ms - 1)
    return rng.randrange(horizon_ms)


def drawn_span(rng: Random, limits: Sequence[int], left_ms: int) -> int:
    """Draw a span up to one of the limits, which ends within the time that is left."""
    return min(rng.randint(1, rng.choice(limits)), left_ms)
