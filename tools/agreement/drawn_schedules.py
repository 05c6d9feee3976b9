"""Draw schedules that both a simulated world and real processes can play.

They are short, because a real process needs real time. No schedule breaks a condition of the guarantees. Faults do not
overlap if that means something else on the two sides: two faults of one program or host, and two faults of links.
"""

from random import Random
from typing import Final

import attrs

from stablecast.lab.schedules.faults import Fault, Kind
from stablecast.lab.whole.schedule import FINDERS, RECEIVERS, SOURCE, STORES, Setup, WorldSchedule

HORIZON_MS: Final = 3_500
"""Time in ms at which every fault is over."""

FIRST_MS: Final = 300
"""Time in ms before the first fault."""

MOST_FAULTS: Final = 4

TRIES: Final = 12
"""Draws for one fault before it is left out."""

SPANS_MS: Final = ((60, 400), (400, 1_200), (1_200, 2_600))
"""Shortest and longest spans to choose from. The longest is longer than the activity timeout of stores."""

FULL_BYTES: Final = 1_000
FULL_BURST: Final = 2
"""With messages and bursts of this size at least, a store writes more than the rest of a block in a span of its fault.

A full file system still lets a file fill its last block. Whether a store ends after a few small messages is chance.
"""

ACTIVITY: Final = ("source-activity-timeout=1500", "receiver-activity-timeout=1500")
"""Options of stores. The timeouts are short, so that takeovers fit into a schedule."""

LINKS: Final = frozenset({Kind.CUT, Kind.MUTE, Kind.NOISE})
LOSSES: Final = frozenset({Kind.WIPE, Kind.ROT})
"""Faults after which a store may lack synced records. The other two must stay in touch with all clients."""

KINDS: Final = (
    *(Kind.KILL,) * 4, *(Kind.STOP,) * 3, *(Kind.CUT,) * 3, *(Kind.MUTE,) * 2, *(Kind.NOISE,) * 2, *(Kind.SLOW,) * 2,
    Kind.FULL, Kind.WIPE, Kind.ROT,
)  # fmt: skip
"""Faults that both sides know, as often as they are drawn."""

PROGRAMS: Final = (SOURCE, *RECEIVERS, *STORES, FINDERS[0])


def draw(seed: int) -> WorldSchedule:
    rng = Random(f"agreement {seed}")
    setup = _setup(rng)
    faults: list[Fault] = []
    for _ in range(rng.randint(1, MOST_FAULTS)):
        do = rng.choice(KINDS)
        for _ in range(TRIES):
            drawn = _fault(rng, do)
            if _exists(setup, drawn) and _fits(drawn, faults):
                faults += drawn
                break
    if any(fault.kind is Kind.FULL for fault in faults):
        setup = attrs.evolve(setup, size=FULL_BYTES, burst=max(FULL_BURST, setup.burst))
    return WorldSchedule(seed, setup, tuple(sorted(faults, key=lambda fault: fault.at_ms)), HORIZON_MS)


def _setup(rng: Random) -> Setup:
    options: dict[str, int] = {}
    if rng.random() < 0.5:
        options["ume_confirmed_delivery_notification"] = 1
    if rng.random() < 0.3:
        options["ume_flight_size"] = rng.choice((1, 5, 20))
    several = rng.choice(("", "", "", "topics", "handles"))
    return Setup(
        finder=rng.choice(("relay", "relay", "service")),
        options=tuple(options.items()),
        store_options=ACTIVITY,
        pause_ms=rng.choice((20, 60, 100)),
        burst=rng.choice((1, 2, 5)),
        size=rng.choice((60, 100, 1_000)),
        modes=tuple(rng.choice(("plain", "plain", "batches", "callback", "slow", "explicit")) for _ in RECEIVERS),
        late=rng.random() < 0.2,
        topics=("orders", "trades") if several == "topics" else ("orders",),
        handles=2 if several == "handles" else 1,
    )


def _fault(rng: Random, do: Kind) -> list[Fault]:
    """Return one fault. Rot is a flipped bit while its store is killed, so it is two."""
    shortest, longest = rng.choice(SPANS_MS[-1:] if do is Kind.FULL else SPANS_MS)
    at = rng.randrange(FIRST_MS, HORIZON_MS - shortest)
    span = min(rng.randint(shortest, longest), HORIZON_MS - at)
    stores = do in LOSSES or do in {Kind.SLOW, Kind.FULL}
    who = rng.choice(STORES if stores else PROGRAMS)
    if do is Kind.ROT:
        return [Fault(at, Kind.KILL, who, span), Fault(at + span // 2, Kind.ROT, who)]
    other = ""
    if do in (Kind.CUT, Kind.MUTE) and rng.random() < 0.6:
        other = rng.choice([name for name in PROGRAMS if name != who])
    amount = {Kind.SLOW: rng.choice((50, 200, 400)), Kind.NOISE: rng.choice((5, 20))}.get(do, 0)
    return [Fault(at, do, who, span, other, amount)]


def _exists(setup: Setup, drawn: list[Fault]) -> bool:
    """Return whether the programs of a fault run; a late receiver starts when all faults are over."""
    return not (setup.late and RECEIVERS[-1] in {name for fault in drawn for name in (fault.who, fault.other)})


def _fits(drawn: list[Fault], faults: list[Fault]) -> bool:
    """Return whether a fault may join the others."""
    one = drawn[0]
    for fault in faults:
        together = fault.at_ms <= one.at_ms + one.span_ms and one.at_ms <= fault.at_ms + fault.span_ms
        if together and (fault.who == one.who or (fault.kind in LINKS and one.kind in LINKS)):
            return False
    return _quorum_stays([*faults, *drawn])


def _quorum_stays(faults: list[Fault]) -> bool:
    """Return whether one store at most suffers at its disk, and if it lost records, nothing separates the others."""
    weak = {fault.who for fault in faults if fault.kind in LOSSES or fault.kind is Kind.FULL}
    if len(weak) > 1:
        return False
    if not any(fault.kind in LOSSES for fault in faults):
        return True
    others = set(STORES) - weak
    return not any(
        others & {fault.who, fault.other} or (fault.kind in LINKS and (not fault.other or fault.kind is Kind.NOISE))
        for fault in faults
    )
