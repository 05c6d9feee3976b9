"""How a world is set up: the plain way in half of the worlds, in the others with some of all that may be configured.

`Setup()` is the plain one: one group of three stores on disk, a source that sets the pace and blocks, receivers that
are there from the start, deliver in order and acknowledge in batches, and a stream that loses nothing while it lasts.
"""

from collections.abc import Callable, Iterator
from enum import IntEnum
from random import Random
from typing import Any, Final

import attrs

from stablecast.core.errors import StablecastError
from stablecast.core.protocol.quorum import GroupRules, Intergroup, Intragroup
from stablecast.core.protocol.settings import AckMode

SOURCE: Final = "source"
RECEIVERS: Final = ("receiver0", "receiver1")
STORES: Final = ("store0", "store1", "store2")
CLIENTS: Final = (SOURCE, *RECEIVERS)
EVERYBODY: Final = (*CLIENTS, *STORES)

HORIZON_MS: Final = 4000
"""When every fault is over."""

PLAIN_SHARE: Final = 0.5
"""How many worlds are plain."""

KITS: Final = (1, 3)
"""How many deviations the others have."""

LARGE_SHARE: Final = 0.4
"""How many worlds that are not plain have messages of many sizes,"""

LARGE: Final = (2, 8)
"""in so many pieces at most."""

RESOLUTION_SHARE: Final = 0.3
"""In how many worlds that are not plain sources are found by topic resolution,"""

RESOLUTION_LOSS: Final = (1, 10, 40)
"""which loses one of these shares of its datagrams, in percent."""

HABIT_SHARE: Final = 0.4
"""In how many worlds applications are not prompt."""

BRIEF_SHARE: Final = 0.3
"""In how many worlds leases are brief, and two living processes claim one client."""

MESSAGE_BYTES: Final = 24
"""What a message counts against a limit: 12 bytes of payload and its header; of the payload alone under RPP."""


class ScheduleError(StablecastError):
    """A file that is no schedule."""


class Leaving(IntEnum):
    """Who deregisters, when all faults are over."""

    NOBODY = 0
    RECEIVER = 1
    """The last receiver, when all is settled; receivers may do so before, as a fault."""
    SOURCE = 2
    """When all is settled."""
    HASTY_SOURCE = 3
    """At once, whatever has become of it."""


class Habit(IntEnum):
    """How the applications of receivers read."""

    PROMPT = 0
    """Run by run, each at once."""
    SLOW = 1
    """Message by message, so slowly that a backlog waits when a source returns."""
    BLOCKING = 2
    """Likewise; now and then it works for long without giving way to anything else in its process."""
    FICKLE = 3
    """Likewise; now and then it leaves its loop with a message in hand, and reads on later. Sources cancel sends."""
    THREADED = 4
    """Likewise; what it acknowledges itself other threads do, later, in bursts and in any order."""


@attrs.frozen
class Setup:
    """Sizes in bytes, 0: no limit.

    Of the system: `rules` of the groups (no sizes: a streaming source, which may be `forgetful` and retain nothing),
    `memory` instead of disks, `proxies` that may stand in (`quorate`: a quorum of stores must have state), a source
    that stays away until all else is settled (`orphaned`), stores that are `named` and move, or have their `turns`
    (round robin).
    Of the stores: `size_threshold`, `size_limit`, `disk_limit`, `write_delay_ms`, `ack_minimum`, `request_rate` in
    messages per second, `forwarding`.
    Of the source: `paced` by receivers, stability `on_reception`, `unique` confirmations, the `retained` threshold and
    limit, `notify` instead of blocking, a `stability_ms` after which it sends again, 0: the default; `large` messages,
    in up to so many pieces.
    Of the receivers: the last is `non_blocking`, or comes `late_ms`; all deliver in `arrival` order, acknowledge by
    `ack_mode`; the stream is `lossy` for so many percent of its runs. And who is `leaving` in the end.
    Applications have a `habit`. Where leases are `brief` a RegID is free again soon after its holder was cut off.
    Sources are found by `resolution` whose datagrams are lost for so many percent; 0: the world tells where they are.
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

    @property
    def groups(self) -> list[int]:
        """The group of each store."""
        return [group for group, size in enumerate(self.rules.sizes) for _ in range(size)]

    @property
    def volatile(self) -> bool:
        """Whether what is stable may be in memory only."""
        return self.memory or self.on_reception

    @property
    def limited(self) -> bool:
        """Whether messages may have to go before everybody has them."""
        forgetful_memory = self.memory and self.size_threshold  # Beyond it the oldest go for good (P-102).
        return bool(self.size_limit or self.disk_limit or self.retained[1] or forgetful_memory)

    def as_json(self) -> dict[str, Any]:
        """What is not plain, as JSON values."""
        return {name: _plain(value) for name, value in _deviations(self)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Setup":
        """The inverse of `as_json`. Raises KeyError, TypeError, ValueError."""
        known = dict(value)
        if "rules" in known:
            sizes, inside, between = known["rules"]
            known["rules"] = GroupRules(tuple(sizes), Intragroup[inside], Intergroup[between])
            if sum(known["rules"].sizes) not in (0, len(STORES)):
                raise ValueError(f"there are {len(STORES)} stores or none, not {sum(known['rules'].sizes)}")
        for name, kind in (("ack_mode", AckMode), ("leaving", Leaving), ("habit", Habit)):
            if name in known:
                known[name] = kind[known[name]]
        if "retained" in known:
            known["retained"] = tuple(known["retained"])
        return cls(**known)


def plainer(setup: Setup) -> Iterator[Setup]:
    """Nearer to the plain one: that itself, then one thing less."""
    names = [name for name, _ in _deviations(setup)]
    if len(names) > 1:
        yield Setup()
    for name in names:
        yield attrs.evolve(setup, **{name: getattr(Setup(), name)})


def draw_setup(seed: int) -> Setup:
    """Return the setup of a seed; leases may be brief wherever a source has a quorum of stores, habits are anywhere."""
    apart = Random(f"habit {seed}")  # noqa: S311  # not a secret
    habit = apart.choice(tuple(Habit)[1:]) if apart.random() < HABIT_SHARE else Habit.PROMPT
    setup = attrs.evolve(_draw(seed), habit=habit)
    if setup.rules.sizes and not setup.turns:  # In turns two lives may have stores of their own: nobody knows whose.
        rng = Random(f"brief {seed}")  # noqa: S311  # not a secret
        setup = attrs.evolve(setup, brief=rng.random() < BRIEF_SHARE)
    return setup


def _draw(seed: int) -> Setup:
    rng = Random(f"setup {seed}")  # noqa: S311  # not a secret
    if rng.random() < PLAIN_SHARE:
        return Setup()
    found: dict[str, Any] = {}
    for kit in rng.sample(_KITS, rng.randint(*KITS)):
        found |= kit(rng)
    if not found.get("rules", GroupRules((3,))).sizes:
        found = {name: found[name] for name in _STREAMING if name in found}
    if found.get("turns"):
        found = {name: value for name, value in found.items() if name not in _ALL_STORES}
    if found.get("proxies"):
        found.pop("named", None)  # A proxy knows stores by the address they had.
    if found.get("memory") and found.get("size_limit"):
        found["notify"] = True  # A memory that is full stays so; who waits for it gives up flight by flight.
    if found.get("leaving") is Leaving.RECEIVER and "unique" in found:
        found["unique"] = 1  # There is no second one in the end.
    if found.get("paced"):
        found.pop("notify", None)  # What is sent at once beyond the flight may be more than a store has room for.
        found.pop("unique", None)  # What goes while there are no receivers nobody ever confirms.
    return Setup(**found, large=_pieces(seed), resolution=_resolution(seed))


def _pieces(seed: int) -> int:
    """How many pieces messages have at most; drawn by itself, so that all else of a seed is as it was."""
    rng = Random(f"large {seed}")  # noqa: S311  # not a secret
    return rng.randint(*LARGE) if rng.random() < LARGE_SHARE else 0


def _resolution(seed: int) -> int:
    """How many percent of the datagrams of topic resolution are lost, if it is there; drawn by itself likewise."""
    rng = Random(f"resolution {seed}")  # noqa: S311  # not a secret
    return rng.choice(RESOLUTION_LOSS) if rng.random() < RESOLUTION_SHARE else 0


def _deviations(setup: Setup) -> list[tuple[str, Any]]:
    plain = Setup()
    values = ((field.name, getattr(setup, field.name)) for field in attrs.fields(Setup))
    return [(name, value) for name, value in values if value != getattr(plain, name)]


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
"""What there is without stores."""

_ALL_STORES: Final = ("rules", "paced", "on_reception", "non_blocking", "proxies", "quorate", "orphaned")
"""What there is only with all stores at once (P-543, P-594)."""

_Kit = dict[str, Any]


def _groups(rng: Random) -> _Kit:
    return {"rules": rng.choice(_GROUPS)}


def _streaming(rng: Random) -> _Kit:
    leaving = rng.choice((Leaving.NOBODY, Leaving.NOBODY, Leaving.RECEIVER))
    return {"rules": GroupRules(()), "forgetful": rng.random() < 0.2, "leaving": leaving}


def _paced(rng: Random) -> _Kit:
    return {
        "paced": True,
        "on_reception": rng.random() < 0.2,
        "write_delay_ms": rng.choice((0, 0, 20)),
        "non_blocking": rng.random() < 0.3,
        "disk_limit": rng.choice((0, 30 * MESSAGE_BYTES)),
        "size_limit": rng.choice((0, 30 * MESSAGE_BYTES)),
    }


def _proxies(rng: Random) -> _Kit:
    return {"proxies": True, "orphaned": rng.random() < 0.6, "late_ms": rng.choice((0, HORIZON_MS - 1))}


def _quorate_proxies(rng: Random) -> _Kit:
    return _proxies(rng) | {"quorate": True}


def _limits(rng: Random) -> _Kit:
    return {
        "size_threshold": rng.choice((0, 5, 20)) * MESSAGE_BYTES,
        "size_limit": rng.choice((0, 60, 100)) * MESSAGE_BYTES,
        "disk_limit": rng.choice((0, 20, 100)) * MESSAGE_BYTES,
    }


def _store(rng: Random) -> _Kit:
    return {
        "ack_minimum": rng.choice((1, 5, 30)),
        "request_rate": rng.choice((0, 200)),
        "forwarding": rng.random() < 0.5,
        "write_delay_ms": rng.choice((0, 20)),
    }


def _receivers(rng: Random) -> _Kit:
    return {"arrival": rng.random() < 0.6, "ack_mode": rng.choice(tuple(AckMode))}


def _confirmations(rng: Random) -> _Kit:
    return {"unique": rng.choice((1, 2)), "retained": rng.choice(((0, 0), (20 * MESSAGE_BYTES, 60 * MESSAGE_BYTES)))}


def _flight(rng: Random) -> _Kit:
    return {"notify": True, "stability_ms": rng.choice((0, 100))}


def _lossy(rng: Random) -> _Kit:
    return {"lossy": rng.choice((5, 30)), "stability_ms": 200}


def _late(rng: Random) -> _Kit:
    return {"late_ms": rng.randint(500, HORIZON_MS - 1)}


def _leaving(rng: Random) -> _Kit:
    return {"leaving": rng.choice(tuple(Leaving)[1:])}


def _named(_: Random) -> _Kit:
    return {"named": True}


def _turns(rng: Random) -> _Kit:
    return {"turns": True, "named": rng.random() < 0.3, "leaving": rng.choice(tuple(Leaving))}


def _memory(_: Random) -> _Kit:
    return {"memory": True}


_KITS: Final[tuple[Callable[[Random], _Kit], ...]] = (
    _groups,
    _streaming,
    _paced,
    _paced,
    _proxies,
    _quorate_proxies,
    _limits,
    _store,
    _receivers,
    _confirmations,
    _flight,
    _lossy,
    _late,
    _leaving,
    _leaving,
    _named,
    _turns,
    _memory,
)
"""What may deviate, the intricate ones twice."""
