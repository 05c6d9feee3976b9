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
class Fault:
    """One kind of fault, with its victims.

    Attributes:
        kind: What goes wrong, for example `crash`.
        who: A host, or a kind of hosts.
        to: The other host or kind of hosts, for faults of a path.
        power: The host loses its power: it loses what was not synced, and its peers are not notified.
        one_way: Only packets from `who` to `to` are affected.
        amount: The strength: a share of packets, milliseconds, seconds of a leap, or parts per million.
    """

    kind: str
    who: str = ANY
    to: str = ""
    power: bool = False
    one_way: bool = False
    amount: float = 0.0

    def __or__(self, other: "Fault | Faults") -> "Faults":
        """Return both faults."""
        return Faults((self,)) | other


@attrs.frozen
class Faults:
    """Several kinds of faults. Each seed draws its schedule from some of them."""

    kinds: tuple[Fault, ...] = ()

    def __or__(self, other: "Fault | Faults") -> "Faults":
        """Return these faults and others."""
        return Faults(self.kinds + (other.kinds if isinstance(other, Faults) else (other,)))


def as_faults(given: "Fault | Faults | None") -> Faults:
    """Return faults from what a user gave. Raises ConfigError."""
    if given is None:
        return Faults()
    if isinstance(given, Fault):
        return Faults((given,))
    if isinstance(given, Faults):
        return given
    raise ConfigError(f"faults: {given!r} is no fault: combine faults by |, for example crash('store') | partition()")


def crash(who: str = ANY, *, power: bool = False) -> Fault:
    """Kill all programs of a host, and start them again later. With `power` the host loses what was not synced."""
    return Fault("crash", who, power=power)


def stop(who: str = ANY) -> Fault:
    """Suspend all programs of a host for a while, as SIGSTOP does."""
    return Fault("stop", who)


def partition(who: str = ANY, to: str = ANY, *, one_way: bool = False) -> Fault:
    """Let nothing pass between two hosts for a while; `one_way`: from the first to the second."""
    return Fault("partition", who, to, one_way=one_way)


def loss(share: float = 0.2, who: str = ANY, to: str = ANY) -> Fault:
    """Lose a share of the packets between two hosts for a while. A stream repeats them later."""
    return Fault("loss", who, to, amount=_share("loss", share))


def delay(ms: float = 200.0, who: str = ANY, to: str = ANY) -> Fault:
    """Lengthen the path between two hosts by this many milliseconds for a while."""
    return Fault("delay", who, to, amount=ms)


def duplicate(share: float = 0.2, who: str = ANY, to: str = ANY) -> Fault:
    """Deliver a share of the datagrams between two hosts twice for a while."""
    return Fault("duplicate", who, to, amount=_share("duplicate", share))


def reorder(share: float = 0.2, who: str = ANY, to: str = ANY) -> Fault:
    """Delay a share of the datagrams between two hosts ten times as long, for a while."""
    return Fault("reorder", who, to, amount=_share("reorder", share))


def reset(who: str = ANY, to: str = ANY) -> Fault:
    """Reset all connections between two hosts."""
    return Fault("reset", who, to)


def slow_disk(who: str = STORE, ms: float = 200.0) -> Fault:
    """Lengthen each sync of a disk by this many milliseconds for a while."""
    return Fault("slow_disk", who, amount=ms)


def full_disk(who: str = STORE) -> Fault:
    """Leave no room on a disk for a while."""
    return Fault("full_disk", who)


def failing_disk(who: str = STORE) -> Fault:
    """Let the writes and syncs of a disk fail for a while."""
    return Fault("failing_disk", who)


def rot(who: str = STORE) -> Fault:
    """Flip one bit of a stored file, silently."""
    return Fault("rot", who)


def wipe(who: str = STORE) -> Fault:
    """Kill all programs of a host, and start them again with an empty disk."""
    return Fault("wipe", who)


def clock(who: str = ANY, *, leap: float = 0.0, drift: float = 0.0) -> Fault:
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
    return Fault("leap", who, amount=leap) if leap else Fault("drift", who, amount=drift)


def _share(name: str, share: float) -> float:
    if not 0 < share <= 1:
        raise ConfigError(f"{name}: a share is above 0 and at most 1, not {share:g}")
    return share
