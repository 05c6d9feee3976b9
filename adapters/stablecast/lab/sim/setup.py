"""Draw the configuration of a world: the plain one for half of the seeds, a few deviations for the others.

`Setup()` is the plain one: one group of three stores on disk, and a source that sets the pace and blocks. Its receivers
exist from the start, deliver in order and acknowledge in batches. Its stream loses nothing while it lasts.
"""

from collections.abc import Callable
from enum import IntEnum
from random import Random
from typing import Any, Final

import attrs

from stablecast.core.protocol.quorum import GroupRules, Intergroup, Intragroup
from stablecast.core.protocol.settings import AckMode
from stablecast.lab.schedules.reduction import deviations

SOURCE: Final = "source"
RECEIVERS: Final = ("receiver0", "receiver1")
STORES: Final = ("store0", "store1", "store2")
CLIENTS: Final = (SOURCE, *RECEIVERS)
EVERYBODY: Final = (*CLIENTS, *STORES)

HORIZON_MS: Final = 4000
"""Time in ms at which every fault is over."""

PLAIN_SHARE: Final = 0.5
"""Share of worlds with the plain setup."""

KITS: Final = (1, 3)
"""Smallest and largest number of deviations in the other worlds."""

LARGE_SHARE: Final = 0.4
"""Share of the other worlds with messages of many sizes."""

LARGE: Final = (2, 8)
"""Smallest and largest limit of their fragments."""

RESOLUTION_SHARE: Final = 0.3
"""Share of the other worlds with topic resolution."""

RESOLUTION_LOSS: Final = (1, 10, 40)
"""Percentages of lost resolution datagrams to choose from."""

HABIT_SHARE: Final = 0.4
"""Share of worlds with applications that are not prompt."""

BRIEF_SHARE: Final = 0.3
"""Share of worlds with brief leases and two live processes that claim one client."""

PAYLOAD_BYTES: Final = 12
"""Bytes of each message."""

MESSAGE_BYTES: Final = 24
"""Bytes that a message counts against a limit: its payload and 12 of its header; the payload alone under RPP."""


class Leaving(IntEnum):
    """Name the client that deregisters when all faults are over."""

    NOBODY = 0
    RECEIVER = 1
    """The last receiver, when all is settled. Receivers may also do so earlier, as a fault."""
    SOURCE = 2
    """The source, when all is settled."""
    HASTY_SOURCE = 3
    """The source, at once and in any state."""


class Habit(IntEnum):
    """Name how the applications of receivers consume."""

    PROMPT = 0
    """Consume each run at once."""
    SLOW = 1
    """Consume message by message, slowly: a backlog remains when a source returns."""
    BLOCKING = 2
    """Like `SLOW`, and sometimes block the event loop for a long time."""
    FICKLE = 3
    """Like `SLOW`, and sometimes leave the loop with a message in hand and continue later. Sources cancel sends."""
    THREADED = 4
    """Like `SLOW`, and acknowledge from other threads: later, in bursts and in any order."""


@attrs.frozen
class WorldSetup:
    """Configure a world. Sizes are in bytes, 0: no limit.

    Attributes:
        rules: Groups of stores. No group makes a streaming source.
        forgetful: The streaming source retains nothing.
        memory: Stores have no disks.
        proxies: Stores may run proxies; `quorate`: only with a quorum of stores that have state.
        orphaned: The source stays away until everything else is settled.
        named: Stores have names and move. `turns`: round robin.
        request_rate: Messages per second that a store retransmits.
        paced: Receivers set the pace. `on_reception`: messages are stable before they are synced.
        unique: Confirmations that each message needs. `retained`: threshold and limit of copies.
        notify: The source is notified instead of blocked.
        stability_ms: Timeout after which the source sends again, 0: the default.
        large: Most fragments of a message.
        non_blocking: The last receiver does not block. `late_ms`: it starts late.
        arrival: Receivers deliver in arrival order.
        lossy: Percentage of affected runs of a stream.
        leaving: The client that deregisters in the end.
        habit: How applications consume.
        brief: A RegID is free soon after its holder was partitioned.
        resolution: Percentage of lost resolution datagrams, 0: no topic resolution.
        documented: The guide's rules to the letter, without repairs, and majority consensus. No seed draws it,
            because these rules lose messages.
        refill: Stores refill and count generations; False: as in release 0.1.0, which no seed draws.
        earlier: Stores that speak as those of release 0.1.0, beside newer ones (`earlier_release`); no seed draws them.
    """

    rules: GroupRules = GroupRules((3,))
    forgetful: bool = False
    memory: bool = False
    proxies: bool = False
    quorate: bool = False
    orphaned: bool = False
    named: bool = False
    turns: bool = False
    size_threshold: int = 0
    size_limit: int = 0
    disk_limit: int = 0
    write_delay_ms: int = 0
    ack_minimum: int = 1
    request_rate: int = 0
    forwarding: bool = False
    paced: bool = False
    on_reception: bool = False
    unique: int = 0
    retained: tuple[int, int] = (0, 0)
    notify: bool = False
    stability_ms: int = 0
    non_blocking: bool = False
    late_ms: int = 0
    arrival: bool = False
    ack_mode: AckMode = AckMode.BATCHED
    lossy: int = 0
    leaving: Leaving = Leaving.NOBODY
    large: int = 0
    resolution: int = 0
    brief: bool = False
    habit: Habit = Habit.PROMPT
    documented: bool = False
    refill: bool = True
    earlier: tuple[str, ...] = ()

    def refills(self, store: str) -> bool:
        """Return whether a store refills and counts generations."""
        return self.refill and store not in self.earlier

    @property
    def groups(self) -> list[int]:
        return [group for group, size in enumerate(self.rules.sizes) for _ in range(size)]

    @property
    def volatile(self) -> bool:
        """True if a stable message may be in memory only."""
        return self.memory or self.on_reception

    @property
    def limited(self) -> bool:
        """True if limits may delete messages that some receiver has not consumed."""
        # Beyond the threshold the oldest messages are deleted (P-102).
        forgetful_memory = self.memory and self.size_threshold
        return bool(self.size_limit or self.disk_limit or self.retained[1] or forgetful_memory)

    def as_json(self) -> dict[str, Any]:
        return {name: _plain(value) for name, value in deviations(self).items()}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "WorldSetup":
        """Return the setup of JSON values. Raises KeyError, TypeError, ValueError."""
        known = dict(value)
        if "rules" in known:
            sizes, inside, between = known["rules"]
            known["rules"] = GroupRules(tuple(sizes), Intragroup[inside], Intergroup[between])
            if sum(known["rules"].sizes) not in (0, len(STORES)):
                raise ValueError(f"there are {len(STORES)} stores or none, not {sum(known['rules'].sizes)}")
        for name, kind in (("ack_mode", AckMode), ("leaving", Leaving), ("habit", Habit)):
            if name in known:
                known[name] = kind[known[name]]
        for name in {"retained", "earlier"} & known.keys():
            known[name] = tuple(known[name])
        return cls(**known)


def draw_setup(seed: int) -> WorldSetup:
    """Return the setup of a seed.

    Brief leases need a source with a quorum of stores; habits combine with every setup.
    """
    apart = Random(f"habit {seed}")  # noqa: S311  # not a secret
    habit = apart.choice(tuple(Habit)[1:]) if apart.random() < HABIT_SHARE else Habit.PROMPT
    setup = attrs.evolve(_draw(seed), habit=habit)
    # In turns two lives may have stores of their own, and no checker knows which life is right.
    if setup.rules.sizes and not setup.turns:
        rng = Random(f"brief {seed}")  # noqa: S311  # not a secret
        setup = attrs.evolve(setup, brief=rng.random() < BRIEF_SHARE)
    return setup


def _draw(seed: int) -> WorldSetup:
    rng = Random(f"setup {seed}")  # noqa: S311  # not a secret
    if rng.random() < PLAIN_SHARE:
        return WorldSetup()
    found: dict[str, Any] = {}
    for kit in rng.sample(_KITS, rng.randint(*KITS)):
        found |= kit(rng)
    if not found.get("rules", GroupRules((3,))).sizes:
        found = {name: found[name] for name in _STREAMING if name in found}
    if found.get("turns"):
        found = {name: value for name, value in found.items() if name not in _ALL_STORES}
    if found.get("proxies"):
        found.pop("named", None)  # A proxy knows only the addresses that stores had.
    if found.get("memory") and found.get("size_limit"):
        found["notify"] = True  # A full memory stays full: a source that waits for it gives up flight by flight.
    if found.get("leaving") is Leaving.RECEIVER and "unique" in found:
        found["unique"] = 1  # Only one receiver is left in the end.
    if found.get("paced"):
        found.pop("notify", None)  # A burst beyond the flight may exceed the room of a store.
        found.pop("unique", None)  # Messages deleted while there are no receivers are never confirmed.
    return WorldSetup(**found, large=_pieces(seed), resolution=_resolution(seed))


def _pieces(seed: int) -> int:
    """Return the most fragments of a message.

    A separate generator keeps all other draws of a seed as they were.
    """
    rng = Random(f"large {seed}")  # noqa: S311  # not a secret
    return rng.randint(*LARGE) if rng.random() < LARGE_SHARE else 0


def _resolution(seed: int) -> int:
    """Return the percentage of lost resolution datagrams, 0: no topic resolution."""
    rng = Random(f"resolution {seed}")  # noqa: S311  # not a secret
    return rng.choice(RESOLUTION_LOSS) if rng.random() < RESOLUTION_SHARE else 0


def _plain(value: Any) -> Any:
    match value:
        case GroupRules():
            return [list(value.sizes), value.intragroup.name, value.intergroup.name]
        case IntEnum():
            return value.name
        case tuple():
            return list(value)
        case _:
            return value


_GROUPS: Final = (
    GroupRules((3,), Intragroup.ALL),
    GroupRules((3,), Intragroup.ALL_ACTIVE),
    GroupRules((1, 1, 1), Intragroup.QUORUM, Intergroup.MAJORITY),
    GroupRules((1, 1, 1), Intragroup.QUORUM, Intergroup.ALL),
    GroupRules((2, 1), Intragroup.QUORUM, Intergroup.ANY),
    GroupRules((1, 2), Intragroup.QUORUM, Intergroup.ANY),
    GroupRules((2, 1), Intragroup.QUORUM, Intergroup.ALL_ACTIVE),
    GroupRules((1, 2), Intragroup.ALL_ACTIVE, Intergroup.ALL_ACTIVE),
)

_STREAMING: Final = ("rules", "forgetful", "late_ms", "arrival", "lossy", "leaving")
"""Deviations that exist without stores."""

_ALL_STORES: Final = ("rules", "paced", "on_reception", "non_blocking", "proxies", "quorate", "orphaned")
"""Deviations that exist only with all stores at once (P-543, P-594)."""


def _proxies(rng: Random) -> dict[str, Any]:
    return {"proxies": True, "orphaned": rng.random() < 0.6, "late_ms": rng.choice((0, HORIZON_MS - 1))}


def _paced(rng: Random) -> dict[str, Any]:
    return {
        "paced": True,
        "on_reception": rng.random() < 0.2,
        "write_delay_ms": rng.choice((0, 0, 20)),
        "non_blocking": rng.random() < 0.3,
        "disk_limit": rng.choice((0, 30 * MESSAGE_BYTES)),
        "size_limit": rng.choice((0, 30 * MESSAGE_BYTES)),
    }


def _leaving(rng: Random) -> dict[str, Any]:
    return {"leaving": rng.choice(tuple(Leaving)[1:])}


_KITS: Final[tuple[Callable[[Random], dict[str, Any]], ...]] = (
    lambda rng: {"rules": rng.choice(_GROUPS)},
    lambda rng: {
        "rules": GroupRules(()),
        "leaving": rng.choice((Leaving.NOBODY, Leaving.NOBODY, Leaving.RECEIVER)),
        "forgetful": rng.random() < 0.2,
    },
    _paced,
    _paced,
    _proxies,
    lambda rng: _proxies(rng) | {"quorate": True},
    lambda rng: {
        "size_threshold": rng.choice((0, 5, 20)) * MESSAGE_BYTES,
        "size_limit": rng.choice((0, 60, 100)) * MESSAGE_BYTES,
        "disk_limit": rng.choice((0, 20, 100)) * MESSAGE_BYTES,
    },
    lambda rng: {
        "ack_minimum": rng.choice((1, 5, 30)),
        "request_rate": rng.choice((0, 200)),
        "forwarding": rng.random() < 0.5,
        "write_delay_ms": rng.choice((0, 20)),
    },
    lambda rng: {"arrival": rng.random() < 0.6, "ack_mode": rng.choice(tuple(AckMode))},
    lambda rng: {
        "unique": rng.choice((1, 2)),
        "retained": rng.choice(((0, 0), (20 * MESSAGE_BYTES, 60 * MESSAGE_BYTES))),
    },
    lambda rng: {"notify": True, "stability_ms": rng.choice((0, 100))},
    lambda rng: {"lossy": rng.choice((5, 30)), "stability_ms": 200},
    lambda rng: {"late_ms": rng.randint(500, HORIZON_MS - 1)},
    _leaving,
    _leaving,
    lambda _: {"named": True},
    lambda rng: {"turns": True, "named": rng.random() < 0.3, "leaving": rng.choice(tuple(Leaving))},
    lambda _: {"memory": True},
)
"""Possible deviations; the intricate ones stand twice and are twice as likely."""
