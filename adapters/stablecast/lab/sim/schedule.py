"""Draw what is sent, and which faults happen when, from a seed."""

import json
from random import Random
from typing import Any, Final

import attrs

from stablecast.lab.schedules.faults import (
    OF_ENDPOINTS,
    Fault,
    Kind,
    ScheduleError,
    check_names,
    drawn_instant,
    drawn_span,
    faults_of,
)
from stablecast.lab.sim.setup import (
    CLIENTS,
    EVERYBODY,
    HORIZON_MS,
    RECEIVERS,
    SOURCE,
    STORES,
    Leaving,
    WorldSetup,
    draw_setup,
)
from stablecast.text import refusal

FAULTS: Final = (1, 12)
"""Smallest and largest number of drawn faults."""

STORMS: Final = (1, 3)
STORM_MS: Final = 150
"""Number and length of storms: most sends and most faults fall into a few short spans."""

SPANS_MS: Final = (30, 150, 600, 2500)
"""Limits to choose from for the span of a fault."""

SENDS: Final = (10, 25)
RUN_MESSAGES: Final = (1, 8, 40)
"""Number of sends, and limits to choose from for the messages of one send."""


SOURCE_SHARE: Final = 0.3
"""Share of faults that affect the source, because most rules are about its restarts."""


AMBUSH_SHARE: Final = 0.3
"""Share of worlds with an arranged rare sequence, such as `_lonely_tail`."""


DAMAGE_SHARE: Final = 0.25
"""Share of worlds in which disks are damaged."""


LOSS_SHARE: Final = 0.25
"""Share of worlds in which stores lose their disks, or get older copies of them."""


BRIEF_LEASE_MS: Final = 1000
"""Time in ms after which a store grants a silent client's RegID again, in worlds with brief leases."""


RARE: Final = (Kind.WIPE, Kind.LEAVE, Kind.FALTER, Kind.ROT, Kind.TWIN, Kind.RESTORE)
"""Faults that only special sequences have."""

USUAL: Final = tuple(kind for kind in OF_ENDPOINTS if kind not in RARE)

PAIRS: Final = (Kind.RESET, Kind.CUT, Kind.MUTE)
"""Faults between two processes."""

VICTIMS: Final[dict[Kind, tuple[str, ...]]] = {
    **dict.fromkeys(OF_ENDPOINTS, EVERYBODY),
    **dict.fromkeys((Kind.LEAP, Kind.TAKEOVER, Kind.TWIN), CLIENTS),
    **dict.fromkeys((Kind.SLOW, Kind.FULL, Kind.WIPE, Kind.FALTER, Kind.ROT, Kind.RESTORE), STORES),
    Kind.LEAVE: RECEIVERS,
}
"""The processes that each kind of fault may strike."""


@attrs.frozen
class Schedule:
    """Describe one world. `sends` are pairs of time in ms and number of messages."""

    seed: int
    sends: tuple[tuple[int, int], ...]
    faults: tuple[Fault, ...]
    setup: WorldSetup = WorldSetup()

    def as_json(self) -> dict[str, Any]:
        faults, sends = [attrs.asdict(fault) for fault in self.faults], [list(send) for send in self.sends]
        return {"seed": self.seed, "setup": self.setup.as_json(), "sends": sends, "faults": faults}

    def text(self) -> str:
        return json.dumps(self.as_json(), indent=1)

    @classmethod
    def from_json(cls, value: Any) -> "Schedule":
        """Return the schedule of JSON values. Raises ScheduleError."""
        try:
            sends = tuple((int(at), int(count)) for at, count in value["sends"])
            setup = WorldSetup.from_json(value.get("setup", {}))
            schedule = cls(int(value["seed"]), sends, faults_of(value["faults"]), setup)
        except (KeyError, TypeError, ValueError) as error:
            raise ScheduleError(f"not a schedule of the simulator: {refusal(error)}") from error
        check_names(schedule.faults, VICTIMS, EVERYBODY)
        return schedule


def draw(seed: int, *, wipe: bool = False) -> Schedule:
    """Return the schedule of a seed. Each world draws its own mixture of faults.

    With `wipe` disks are lost and damaged in every world.
    """
    rng = Random(f"schedule {seed}")  # noqa: S311  # not a secret
    possible = (*USUAL, Kind.WIPE) if wipe else USUAL
    kinds = rng.sample(possible, rng.randint(1, len(possible)))
    storms = [rng.randrange(HORIZON_MS) for _ in range(rng.randint(*STORMS))]
    times = sorted(_instant(rng, storms) for _ in range(rng.randint(*SENDS)))
    sends = tuple((at, rng.randint(1, rng.choice(RUN_MESSAGES))) for at in times)
    faults = [_fault(rng, rng.choice(kinds), _instant(rng, storms)) for _ in range(rng.randint(*FAULTS))]
    if rng.random() < AMBUSH_SHARE:
        at, ambush = _lonely_tail(rng, rng.choice(storms)) if rng.random() < 0.7 else _late_riser(rng)
        sends = tuple(sorted((*sends, (at, rng.randint(1, 40)))))
        faults += [
            attrs.evolve(fault, span_ms=min(fault.span_ms, HORIZON_MS - fault.at_ms))
            for fault in ambush
            if fault.at_ms < HORIZON_MS
        ]
    setup = draw_setup(seed)
    faults += _special(rng, setup)
    # A separate generator keeps worlds without damage as they were before damage existed.
    apart = Random(f"damage {seed}")  # noqa: S311
    if (apart.random() < DAMAGE_SHARE or wipe) and not setup.turns:
        faults += _bad_disk(apart)
    apart = Random(f"losses {seed}")  # noqa: S311  # not a secret
    if (apart.random() < LOSS_SHARE or wipe) and not setup.turns:
        faults += _lost_disks(apart)
    if setup.brief:
        apart = Random(f"rivals {seed}")  # noqa: S311  # not a secret
        if apart.random() < AMBUSH_SHARE:
            at, ambush = _life_that_comes_back(apart)
            sends = tuple(sorted((*sends, (at, apart.randint(1, 5)))))
        else:
            ambush = _claimants(apart)
        faults += [attrs.evolve(fault, span_ms=min(fault.span_ms, HORIZON_MS - fault.at_ms)) for fault in ambush]
    if setup.turns:  # Two lives may have stores of their own then, and no checker knows which life is right.
        faults = [fault for fault in faults if (fault.kind, fault.who) != (Kind.TAKEOVER, SOURCE)]
    return Schedule(seed, sends, tuple(sorted(faults, key=lambda fault: fault.at_ms)), setup)


def with_earlier(schedule: Schedule, count: int) -> Schedule:
    """Return the world with `count` stores of release 0.1.0, as in the middle of an upgrade.

    No disk is lost or damaged meanwhile: a store of that release keeps quiet about it, and gets nothing back.
    """
    setup = attrs.evolve(schedule.setup, earlier=STORES[:count])
    kept = tuple(fault for fault in schedule.faults if fault.kind not in (Kind.WIPE, Kind.RESTORE, Kind.ROT))
    return attrs.evolve(schedule, setup=setup, faults=kept)


def _special(rng: Random, setup: WorldSetup) -> list[Fault]:
    """Return rare sequences that matter only in some setups."""
    faults: list[Fault] = []
    if setup.proxies:
        faults += _absence(rng)
    if setup.named:
        faults += _moves(rng)
    if setup.leaving is Leaving.RECEIVER:
        faults += _leave(rng)
    if setup.leaving is Leaving.HASTY_SOURCE:
        faults += _haste(rng, setup)
    return faults


def _haste(rng: Random, setup: WorldSetup) -> list[Fault]:
    """Return faults shortly before a hasty source leaves: it has no quorum, or has not begun.

    In turns it has asked one store after the other.
    """
    if setup.turns:
        away = rng.randint(1500, 3000)
        return [Fault(HORIZON_MS - away, Kind.CUT, SOURCE, away)]
    away = rng.randint(200, 1000)
    gone = rng.choice((rng.sample(STORES, 2), (SOURCE,), ()))
    return [Fault(HORIZON_MS - away, Kind.KILL, who, away) for who in gone]


def _absence(rng: Random) -> list[Fault]:
    """Keep the source away until a proxy replaces it. Stores may be slow or stop in the middle of the election."""
    at = rng.randrange(HORIZON_MS // 2)
    away = rng.choice((HORIZON_MS - at, rng.randint(1000, 1700)))
    faults = [Fault(at, Kind.KILL, SOURCE, away, amount=_maybe(rng))]
    slow = rng.sample(STORES, rng.randint(0, len(STORES)))
    faults += [Fault(at + 900, Kind.SLOW, store, 1000) for store in slow]
    if rng.random() < AMBUSH_SHARE:
        stopped = at + rng.randint(1200, 1900)
        faults.append(Fault(stopped, Kind.STOP, rng.choice(STORES), HORIZON_MS - stopped, amount=1))
    if rng.random() < AMBUSH_SHARE:
        faults += [Fault(at, Kind.FALTER, store, rng.randint(10, 1500), amount=_maybe(rng)) for store in STORES]
    return faults


def _moves(rng: Random) -> list[Fault]:
    """Move stores so early that their clients notice the move before the crash."""
    times = (rng.randrange(HORIZON_MS) for _ in range(rng.randint(1, 6)))
    return [Fault(at, Kind.KILL, rng.choice(STORES), 1, amount=1) for at in times]


def _leave(rng: Random) -> list[Fault]:
    """Deregister receivers, one of them while a source starts."""
    at, span = rng.randrange(HORIZON_MS // 2), rng.randint(30, 200)
    faults = [Fault(at, Kind.KILL, SOURCE, span, amount=1)]
    for receiver in rng.sample(RECEIVERS, rng.randint(1, len(RECEIVERS))):
        begun = at + span + rng.choice((rng.randint(1, 12), rng.randint(0, 300)))
        left = rng.choice((begun, begun, rng.randrange(HORIZON_MS)))
        faults.append(Fault(left, Kind.LEAVE, receiver, min(rng.randint(1, 1000), HORIZON_MS - left)))
    return faults


def _bad_disk(rng: Random) -> list[Fault]:
    """Damage records that only one store's disk has, shortly before a receiver requests them or the store restarts."""
    faults: list[Fault] = []
    for _ in range(rng.randint(1, 3)):
        at, who, receiver = rng.randrange(300, HORIZON_MS - 300), rng.choice(STORES), rng.choice(RECEIVERS)
        away, back = at - rng.randint(50, 300), at + rng.randint(0, 300)
        faults.append(Fault(at - rng.randint(20, 250), Kind.KILL, who, 1))
        faults.append(Fault(at, Kind.ROT, who, 0, amount=_maybe(rng, 0.7)))
        faults.append(Fault(away, Kind.CUT, receiver, back - away, amount=1))
        if rng.random() < AMBUSH_SHARE:
            faults.append(Fault(back, Kind.KILL, rng.choice((SOURCE, who)), 40))
    return faults


def _lost_disks(rng: Random) -> list[Fault]:
    """Let stores lose their disks, or get older copies of them, one after the other."""
    faults: list[Fault] = []
    for _ in range(rng.randint(1, 3)):
        at, span = rng.randrange(100, HORIZON_MS - 300), rng.randint(1, rng.choice((50, 300, 2000)))
        act = rng.choice((Kind.WIPE, Kind.RESTORE))
        faults.append(Fault(at, act, rng.choice(STORES), min(span, HORIZON_MS - at), amount=_maybe(rng)))
    return faults


def _lonely_tail(rng: Random, at: int) -> tuple[int, list[Fault]]:
    """Let one store receive what is sent at `at`; the source dies, and the store is away while new lives begin."""
    alone = rng.choice(STORES)
    faults = [Fault(max(0, at - 5), Kind.MUTE, SOURCE, other=store, span_ms=120) for store in STORES if store != alone]
    killed = at + rng.randint(10, 90)
    away = rng.choice((Kind.KILL, Kind.CUT, Kind.STOP))
    faults.append(Fault(killed, Kind.KILL, SOURCE, rng.randint(30, 200), amount=1))
    faults.append(Fault(killed + rng.randint(0, 20), away, alone, rng.randint(300, 1500), amount=_maybe(rng)))
    later = [killed + rng.randint(300, 1200) for _ in range(rng.randint(0, 2))]
    return at, faults + [Fault(again, Kind.KILL, SOURCE, rng.randint(30, 200), amount=1) for again in later]


def _late_riser(rng: Random) -> tuple[int, list[Fault]]:
    """Let a replaced life of the source wake up when its successor has sent something and dies."""
    at, span = rng.randrange(1000), rng.randint(2200, 2700)
    goes = rng.choice((Kind.KILL, Kind.KILL, Kind.STOP, Kind.CUT, Kind.TAKEOVER))
    gone = Fault(at + span + rng.randint(-50, 200), goes, SOURCE, rng.randint(30, 2500), amount=_maybe(rng))
    return at + span - 20, [Fault(at, Kind.TAKEOVER, SOURCE, span, amount=_maybe(rng)), gone]


def _claimants(rng: Random) -> list[Fault]:
    """Start second processes of clients, with the first ones partitioned from all, some or no stores for a while."""
    faults: list[Fault] = []
    for _ in range(rng.randint(1, 3)):
        at, who = rng.randrange(100, HORIZON_MS - 500), rng.choice((SOURCE, SOURCE, *RECEIVERS))
        others = rng.choice(([""], [""], rng.sample(STORES, 2), rng.sample(STORES, 1), []))
        for other in others:
            away = rng.randint(300, 2500)
            faults.append(Fault(at - rng.randint(0, 5), Kind.CUT, who, other=other, span_ms=away, amount=_maybe(rng)))
        lived = rng.choice((0, rng.randint(100, 600), rng.randint(900, 2500)))
        faults.append(Fault(at + 1, Kind.TWIN, who, lived, amount=_maybe(rng)))
        if rng.random() < 0.5:
            faults.append(Fault(at + 2, Kind.CUT, who, other=rng.choice(STORES), span_ms=rng.randint(300, 2500)))
    return faults


def _life_that_comes_back(rng: Random) -> tuple[int, list[Fault]]:
    """Partition a life, kill its successor when few stores know it, and let the life return through the others.

    The first life never reaches the store `away`, so it continues with a second round. The successor registers with
    that store and with `told`. Only `told` learns where it begins, because the disk of the other is slow and a stall
    begins in time. Leases of the first life end after a second (`brief`), and those of the successor end before the
    first life returns.
    """
    at = rng.randrange(400, 600)
    told, away, through = rng.sample(STORES, 3)
    begins = at + rng.randint(1150, 1400)
    dies = begins + rng.randint(200, 400)
    late = dies + BRIEF_LEASE_MS + rng.randint(50, 500)
    faults = [
        Fault(1, Kind.CUT, SOURCE, other=away, span_ms=at + 5),
        Fault(at, Kind.CUT, SOURCE, begins + rng.randint(300, 900) - at, amount=_maybe(rng)),
        Fault(at, Kind.CUT, SOURCE, other=told, span_ms=late - at, amount=_maybe(rng)),
        Fault(at + 1, Kind.TWIN, SOURCE, dies - at, amount=1),
        Fault(at + 2, Kind.CUT, SOURCE, other=through, span_ms=dies - at),
        Fault(at + 2, Kind.CUT, SOURCE, other=told, span_ms=begins - at - 2),
        Fault(begins - 30, Kind.SLOW, away, 600),
        Fault(begins + rng.randint(3, 60), Kind.MUTE, SOURCE, other=away, span_ms=dies - begins + 100),
    ]
    return at - 20, faults


def _instant(rng: Random, storms: list[int]) -> int:
    return drawn_instant(rng, storms, STORM_MS, HORIZON_MS)


def _fault(rng: Random, kind: Kind, at: int) -> Fault:
    span, victims = drawn_span(rng, SPANS_MS, HORIZON_MS - at), VICTIMS[kind]
    who = SOURCE if SOURCE in victims and rng.random() < SOURCE_SHARE else rng.choice(victims)
    other = rng.choice([name for name in EVERYBODY if name != who])
    if kind not in PAIRS or (kind is Kind.CUT and rng.random() < 0.3):
        other = ""  # from everybody
    return Fault(at, kind, who, span, other, _maybe(rng))


def _maybe(rng: Random, share: float = 0.5) -> int:
    """Draw whether a fault is of the variant of its kind."""
    return int(rng.random() < share)
