"""Faults as values: what may go wrong in a world, combined by `|`.

A fault names its victims by host or by kind: `store` is any store, `app` is any host on which the test starts a
program, and `any` is either. The seed chooses victims, times and spans. See `stablecast.testing.schedule`.
"""

from typing import Final

import attrs

from stablecast.core.errors import ConfigError

STORE: Final = "store"
APP: Final = "app"
ANY: Final = "any"


@attrs.frozen
class FaultKind:
    """One kind of fault, with its victims.

    Attributes:
        kind: What goes wrong, for example `crash`.
        who: A host, or a kind of hosts.
        to: The other host or kind of hosts, for faults of a path.
        power: The host loses its power: it loses what was not synced, and its peers are not notified.
        one_way: Only packets from `who` to `to` are affected.
        amount: The strength: a share of packets, milliseconds, seconds of a leap, or parts per million.
        undeclared: Nobody declares to a store that its disk is a restored backup.
    """

    kind: str
    who: str = ANY
    to: str = ""
    power: bool = False
    one_way: bool = False
    amount: float = 0.0
    undeclared: bool = False

    def __or__(self, other: "FaultKind | FaultKinds") -> "FaultKinds":
        return FaultKinds((self,)) | other


@attrs.frozen
class FaultKinds:
    """Several kinds of faults. Each seed draws its schedule from some of them."""

    kinds: tuple[FaultKind, ...] = ()

    def __or__(self, other: "FaultKind | FaultKinds") -> "FaultKinds":
        return FaultKinds(self.kinds + (other.kinds if isinstance(other, FaultKinds) else (other,)))


def as_faults(given: "FaultKind | FaultKinds | None") -> FaultKinds:
    """Return faults from what a user gave. Raises ConfigError."""
    if given is None:
        return FaultKinds()
    if isinstance(given, FaultKind):
        return FaultKinds((given,))
    if isinstance(given, FaultKinds):
        return given
    raise ConfigError(f"faults: {given!r} is no fault: combine faults by |, for example crash('store') | partition()")


def crash(who: str = ANY, *, power: bool = False) -> FaultKind:
    """Kill all programs of a host, and start them again later. With `power` the host loses what was not synced."""
    return FaultKind("crash", who, power=power)


def stop(who: str = ANY) -> FaultKind:
    """Suspend all programs of a host for a while, as SIGSTOP does."""
    return FaultKind("stop", who)


def partition(who: str = ANY, to: str = ANY, *, one_way: bool = False) -> FaultKind:
    """Let nothing pass between two hosts for a while; `one_way`: from the first to the second."""
    return FaultKind("partition", who, to, one_way=one_way)


def loss(share: float = 0.2, who: str = ANY, to: str = ANY) -> FaultKind:
    """Lose a share of the packets between two hosts for a while. A stream repeats them later."""
    return FaultKind("loss", who, to, amount=_share("loss", share))


def delay(ms: float = 200.0, who: str = ANY, to: str = ANY) -> FaultKind:
    """Lengthen the path between two hosts by this many milliseconds for a while."""
    return FaultKind("delay", who, to, amount=ms)


def duplicate(share: float = 0.2, who: str = ANY, to: str = ANY) -> FaultKind:
    """Deliver a share of the datagrams between two hosts twice for a while."""
    return FaultKind("duplicate", who, to, amount=_share("duplicate", share))


def reorder(share: float = 0.2, who: str = ANY, to: str = ANY) -> FaultKind:
    """Delay a share of the datagrams between two hosts ten times as long, for a while."""
    return FaultKind("reorder", who, to, amount=_share("reorder", share))


def reset(who: str = ANY, to: str = ANY) -> FaultKind:
    """Reset all connections between two hosts."""
    return FaultKind("reset", who, to)


def slow_disk(who: str = STORE, ms: float = 200.0) -> FaultKind:
    """Lengthen each sync of a disk by this many milliseconds for a while."""
    return FaultKind("slow_disk", who, amount=ms)


def full_disk(who: str = STORE) -> FaultKind:
    """Leave no room on a disk for a while."""
    return FaultKind("full_disk", who)


def failing_disk(who: str = STORE) -> FaultKind:
    """Let the writes and syncs of a disk fail for a while."""
    return FaultKind("failing_disk", who)


def rot(who: str = STORE) -> FaultKind:
    """Flip one bit of a stored file, silently."""
    return FaultKind("rot", who)


def wipe(who: str = STORE) -> FaultKind:
    """Kill all programs of a host, and start them again with an empty disk."""
    return FaultKind("wipe", who)


def restore(who: str = STORE, *, declared: bool = True) -> FaultKind:
    """Copy a disk, kill all programs of the host a while later, and start them again with the copy.

    Args:
        who: The host.
        declared: The operator of a store runs `stablecast store restore` first. Without it, the store has to notice
            the older copy by itself, which it cannot in every case.
    """
    return FaultKind("restore", who, undeclared=not declared)


def clock(who: str = ANY, *, leap: float = 0.0, drift: float = 0.0) -> FaultKind:
    """Move the wall clock of a host by up to `leap` seconds either way, or let its clocks drift for a while.

    Args:
        who: The host.
        leap: Seconds.
        drift: Parts per million; the host gains or loses that much.

    Raises:
        ConfigError: Neither or both are given.
    """
    if bool(leap) == bool(drift):
        raise ConfigError("clock: give either leap in seconds or drift in parts per million")
    return FaultKind("leap", who, amount=leap) if leap else FaultKind("drift", who, amount=drift)


def _share(name: str, share: float) -> float:
    if not 0 < share <= 1:
        raise ConfigError(f"{name}: a share is above 0 and at most 1, not {share:g}")
    return share
