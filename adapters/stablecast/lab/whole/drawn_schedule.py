"""Draw the programs of a whole world, and which faults happen when, from a seed.

No schedule breaks a condition of the guarantees: the disks of a quorum survive. Every other fault may happen. One
store of a world may lose its disk, records of it, or all that it wrote since a backup, more than once. In long worlds
another one may after it, when the first one has its messages back.
"""

from random import Random
from typing import Any, Final

import attrs

from stablecast.lab.schedules.faults import OF_PROGRAMS, Fault, Kind, drawn_instant, drawn_span
from stablecast.lab.whole.consumers import BEGINNINGS
from stablecast.lab.whole.drawn_domains import parted
from stablecast.lab.whole.schedule import (
    DAEMON,
    DISK_FAULTS,
    HORIZON_MS,
    MEMORY,
    PACED,
    PROGRAMS,
    RECEIVERS,
    ROUTER,
    ROUTERS,
    SECOND_SOURCE,
    SIDES,
    SOURCE,
    STORES,
    TURNS,
    WHOLE_BYTES,
    Setup,
    WorldSchedule,
)

HABIT_SHARE: Final = 0.35
"""Share of the seeds whose receivers have one or two habits."""

STRUCK_APART: Final = 0.4
"""Share of the faults of the source that strike the second program that sends instead."""

MODES: Final = ("arrival", "settled", "fickle", "impatient", "threads")


def habitual(rng: Random, setup: Setup) -> Setup:
    """Return the setup with habits of receivers, in few seeds, or with a second program that sends.

    They are drawn apart from all else, so that a seed keeps its faults and programs when a habit is added.
    """
    if rng.random() >= HABIT_SHARE:
        return setup
    possible = _possible(setup)
    for habit in rng.sample(possible, min(len(possible), rng.choice((1, 1, 2)))):
        setup = _with(rng, setup, habit)
    return setup


def _possible(setup: Setup) -> list[str]:
    """Return the habits for which the stores of a setup keep what the rules require."""
    options = dict(setup.options)
    possible = ["modes", "start", "pattern"]
    if setup.storage == TURNS or "ume_store_group" in options:
        return possible  # A majority of the stores does not decide there what is stable.
    possible.append("stored")
    if PACED in options or setup.kept or setup.tight:
        return possible  # The stores let messages go.
    possible.append("reader")
    if setup.ids == "session" and not setup.storage:
        possible.append("apart")
        if setup.handles == 1 and not (setup.late or setup.second):
            possible += ["group", "hot"]
    return possible


def _with(rng: Random, setup: Setup, habit: str) -> Setup:
    modes = tuple(rng.choice(MODES) for _ in RECEIVERS)
    match habit:
        case "modes" if not (setup.hot and "settled" in modes):  # A hot number cannot be delivered again.
            return attrs.evolve(setup, modes=modes)
        case "reader" if not setup.hot:  # A reader returns the messages of each source, also the later copies.
            place = rng.randrange(len(RECEIVERS))
            return attrs.evolve(setup, modes=(*setup.modes[:place], "reader", *setup.modes[place + 1 :]))
        case "start":
            return attrs.evolve(setup, start=rng.choice(tuple(BEGINNINGS)))
        case "hot" if not (setup.group or setup.pattern or "reader" in setup.modes):
            return attrs.evolve(setup, apart=True, hot=True, modes=("plain", "slow"))
        case "pattern" if not (setup.hot or setup.group):
            return attrs.evolve(setup, pattern=True)
        case "group" if not (setup.hot or setup.pattern):
            return attrs.evolve(setup, group=True)
        case "stored":
            return attrs.evolve(setup, stored=True)
        case "apart":
            return attrs.evolve(setup, apart=True)
        case _:
            return setup  # It does not go with the first habit.


def suited(rng: Random, setup: Setup, faults: list[Fault]) -> list[Fault]:
    """Return the faults as they suit the habits: a member of a group only ends, and the second program fails, too."""
    found = []
    for fault in faults:
        if setup.group and fault.kind is Kind.LEAVE and fault.who in RECEIVERS:
            found.append(attrs.evolve(fault, kind=Kind.CLOSE))
        elif setup.hot and fault.kind is Kind.LEAVE and fault.who == SOURCE:
            found.append(
                attrs.evolve(fault, kind=Kind.KILL)
            )  # It would take messages with it that the other one never had.
        elif setup.apart and fault.who == SOURCE and fault.kind is not Kind.LEAVE and rng.random() < STRUCK_APART:
            found.append(attrs.evolve(fault, who=SECOND_SOURCE))
        else:
            found.append(fault)
    return found


ROUTED_FACTOR: Final = 2
"""Factor of all times in a world with a router, if they are not long anyway: it listens before it takes part."""

ROUTER_FAULTS: Final = (1, 4)
"""Smallest and largest number of faults that strike the router."""

STRIKES_ROUTERS: Final = (
    *(Kind.KILL, Kind.KILL, Kind.POWER, Kind.CLOSE, Kind.STOP, Kind.CUT, Kind.CUT, Kind.MUTE, Kind.NOISE, Kind.RESET),
    *(Kind.SLOW, Kind.SCARCE, Kind.LEAP, Kind.DRIFT),
)
"""Faults of a router, the more frequent ones twice."""


def _of_the_router(rng: Random, setup: Setup) -> list[Fault]:
    if not setup.far:
        return []
    faults = []
    for _ in range(rng.randint(*ROUTER_FAULTS)):
        kind, at = rng.choice(STRIKES_ROUTERS), rng.randrange(HORIZON_MS - 1)
        span = drawn_span(rng, SPANS_MS, HORIZON_MS - at)
        other = rng.choice(("", *SIDES)) if kind in (Kind.CUT, Kind.MUTE, Kind.SLOW) else ""
        who = ROUTER
        if setup.linked:  # It is cut off from all, or the two from each other.
            who, partner = rng.sample(ROUTERS, 2)
            other = other and partner
        faults.append(Fault(at, kind, who, span, other, _amount(rng, kind)))
    return faults


LONG_SHARE: Final = 0.06
"""Share of the seeds with long faults."""

FACTORS: Final = (3, 9)
"""Factors to choose from. Faults of 4 s then last longer than receivers wait for a store (10 s), or a lease (30 s)."""

WEAK_SHARE: Final = 0.03
"""Share of the seeds in which two stores lose their disks, one after the other."""

REFILL_MS: Final = 15_000
"""Time without any fault, in which the first store gets its messages back; the conductor checks that it did."""

WHOLE_DISK: Final = Kind.WIPE
"""The fault in place of one that a store notices late, or that ends it."""


def long(rng: Random, schedule: WorldSchedule) -> WorldSchedule:
    """Return the schedule, in few seeds with longer faults, or with those of a second store after them.

    Faults then last longer than each time-out. The clock is stretched, not the count: faults and pauses are longer by
    one factor, and the messages are as many.
    """
    setup = schedule.setup
    if setup.storage or setup.tight:
        return schedule
    drawn = rng.random()
    if drawn < LONG_SHARE:
        return _stretched(schedule, rng.choice(FACTORS))
    if drawn < LONG_SHARE + WEAK_SHARE and schedule.seed % 2 and "ume_store_group" not in dict(setup.options):
        return _twice(rng, schedule)
    return schedule


def _stretched(schedule: WorldSchedule, factor: int) -> WorldSchedule:
    faults = tuple(
        attrs.evolve(fault, at_ms=fault.at_ms * factor, span_ms=fault.span_ms * factor) for fault in schedule.faults
    )
    setup = attrs.evolve(schedule.setup, pause_ms=schedule.setup.pause_ms * factor)
    return attrs.evolve(schedule, setup=setup, faults=faults, horizon_ms=schedule.horizon_ms * factor)


def _twice(rng: Random, schedule: WorldSchedule) -> WorldSchedule:
    """Let the faults happen again after a pause, with another weak store. At least one disk is lost each time."""
    first, second = rng.sample([name for name in STORES if not (schedule.setup.daemon and name == DAEMON)], 2)
    later = HORIZON_MS + REFILL_MS

    def of(weak: str, after: int) -> list[Fault]:
        at = rng.randrange(HORIZON_MS - 1_000)
        faults = [*schedule.faults, Fault(at, WHOLE_DISK, weak, rng.randint(1, 1_000))]
        return [
            attrs.evolve(fault, at_ms=fault.at_ms + after)
            if fault.kind not in DISK_FAULTS
            else attrs.evolve(fault, at_ms=fault.at_ms + after, kind=WHOLE_DISK, who=weak)
            for fault in faults
            if not (after and fault.kind is Kind.LEAVE)
        ]

    setup = attrs.evolve(schedule.setup, pause_ms=schedule.setup.pause_ms * 4)
    faults = (*of(first, 0), *of(second, later))
    return attrs.evolve(schedule, setup=setup, faults=faults, horizon_ms=later + HORIZON_MS)


FAULTS: Final = (1, 8)
"""Smallest and largest number of drawn faults."""

STORM_MS: Final = 300
"""Length of a storm, in which more faults happen than at other times."""

SPANS_MS: Final = (60, 400, 1_500, 4_000)
"""Limits to choose from for the span of a fault. The longest is longer than a client waits for a store."""

PAUSES_MS: Final = (120, 240, 400)
"""Pauses to choose from between two bursts of the source; plain worlds have the first one.

With half of them, worlds find the same faults after as many seeds, and each takes a third longer.
"""

LARGE_FLIGHT: Final = 50
"""Flight of a source whose messages have several pieces."""

MAIN_SHARE: Final = 0.3
"""Share of faults that strike the source, because most rules are about its restarts."""

UNCOMMON_SHARE: Final = 0.12
"""Share of the seeds whose stores keep messages in memory, or are used in turn, if nothing else forbids it."""

DEPARTURE_SHARE: Final = 0.1
"""Share of the seeds whose source deregisters in the middle of the run, if nothing forbids it."""

LIMIT_SHARE: Final = 0.15  # of the seeds have stores with small limits

LEAST_DISK: Final = 196_992
"""Bytes of the smallest limit of a repository on disk."""

ENDS_STORES: Final = DISK_FAULTS | {Kind.KILL, Kind.POWER, Kind.CLOSE}
"""Faults after which a store in memory has forgotten its messages."""

STRIKES_PATHS: Final = frozenset({Kind.CUT, Kind.MUTE, Kind.NOISE, Kind.RESET, Kind.STOP, Kind.SCARCE, Kind.POWER})
"""Faults after which a source that uses stores in turn may go on to the next one, which has no earlier messages.

After a power cut the first store does not know that the earlier life of the source is over, and refuses the next one.
"""

STRIKES_STORES: Final = DISK_FAULTS | {Kind.SLOW}
STRIKES_CLIENTS: Final = frozenset({Kind.TWIN})
STRIKES_RECEIVERS: Final = frozenset({Kind.LEAVE})


def draw(seed: int) -> WorldSchedule:
    """Return the schedule of a seed. Each world draws its own mixture of faults."""
    rng = Random(f"whole {seed}")  # noqa: S311 - not a secret
    # Drawn apart, so that the other seeds keep their worlds.
    setup = _uncommon(Random(f"whole uncommon {seed}"), _setup(rng))  # noqa: S311 - not a secret
    setup = _limited(Random(f"whole limits {seed}"), setup)  # noqa: S311 - not a secret
    setup = parted(Random(f"whole domains {seed}"), seed, setup)  # noqa: S311 - not a secret
    setup = habitual(Random(f"whole habits {seed}"), setup)  # noqa: S311 - not a secret
    possible = [kind for kind in OF_PROGRAMS if kind not in _excluded(setup)]
    kinds = rng.sample(possible, rng.randint(1, len(possible)))
    storms = [rng.randrange(HORIZON_MS) for _ in range(rng.randint(1, 3))]
    weak = rng.choice([name for name in STORES if not (setup.daemon and name == DAEMON)])
    faults = [_permitted(rng, setup, _fault(rng, rng.choice(kinds), storms, weak)) for _ in range(rng.randint(*FAULTS))]
    faults = _with_departure(Random(f"whole departures {seed}"), setup, faults)  # noqa: S311 - not a secret
    faults = suited(Random(f"whole habits of faults {seed}"), setup, faults)  # noqa: S311 - not a secret
    faults += _of_the_router(Random(f"whole routers {seed}"), setup)  # noqa: S311 - not a secret
    schedule = WorldSchedule(seed, setup, tuple(faults))
    schedule = long(Random(f"whole spans {seed}"), schedule)  # noqa: S311 - not a secret
    if setup.far and schedule.horizon_ms == HORIZON_MS:
        schedule = _stretched(schedule, ROUTED_FACTOR)
    return attrs.evolve(schedule, faults=tuple(sorted(schedule.faults, key=lambda fault: fault.at_ms)))


def _with_departure(rng: Random, setup: Setup, faults: list[Fault]) -> list[Fault]:
    """Let the source of few worlds deregister and come back.

    A second process of the source would go on with its life, so it strikes a receiver instead. Paced stores keep a
    message for the receivers that are registered, and after a deregistration there are none.
    """
    if rng.random() >= DEPARTURE_SHARE or setup.storage == TURNS or PACED in dict(setup.options):
        return faults
    at = rng.randrange(HORIZON_MS - 1)
    span = drawn_span(rng, SPANS_MS, HORIZON_MS - at)
    kept = [attrs.evolve(fault, who=RECEIVERS[0]) if fault.kind is Kind.TWIN else fault for fault in faults]
    return [*kept, Fault(at, Kind.LEAVE, SOURCE, span)]


def _excluded(setup: Setup) -> frozenset[Kind]:
    """Return the faults that would break a condition of the guarantees."""
    options = dict(setup.options)
    excluded: set[Kind] = set()
    if "ume_store_group" in options:
        excluded |= DISK_FAULTS  # A group of one store has no other copy.
    if PACED in options:
        excluded |= STRIKES_RECEIVERS  # Stores keep nothing for a receiver that deregistered.
    if setup.storage or setup.tight:
        excluded |= {*DISK_FAULTS, Kind.BLACKOUT}  # All stores would forget, or the first one return too late.
    if setup.storage == TURNS:
        excluded |= {Kind.TWIN, Kind.SLOW}  # Two lives could use different stores.
    return frozenset(excluded)


def _permitted(rng: Random, setup: Setup, fault: Fault) -> Fault:
    """Return a fault that breaks no condition of the storage: a forbidden one strikes a receiver instead."""
    strikes_store = fault.who in STORES
    if setup.storage == MEMORY:
        forbidden = strikes_store and fault.kind in ENDS_STORES
    else:
        on_path = fault.kind in STRIKES_PATHS and SOURCE in (fault.who, fault.other)
        slow = setup.tight and fault.kind is Kind.SLOW  # A store that refills would drop messages besides the slow one.
        forbidden = (setup.storage == TURNS or setup.tight) and not slow and (strikes_store or on_path)
    return attrs.evolve(fault, who=rng.choice(RECEIVERS), other="") if forbidden else fault


_KITS: Final[tuple[tuple[dict[str, Any], dict[str, Any], tuple[str, ...]], ...]] = (
    (
        {PACED: 1, "ume_flight_size_bytes": 500_000},
        {PACED: 1},
        ("repository-allow-receiver-paced-persistence=1",),
    ),
    ({"ume_proxy_source": 1}, {}, ("allow-proxy-source=1", "proxy-election-interval=300")),
    ({"ume_activity_timeout": 1_500}, {"ume_activity_timeout": 1_500}, ()),
    ({}, {}, ("repository-type=reduced-fd",)),
    ({}, {"ume_use_ack_batching": 0}, ()),
    ({"ume_store_activity_timeout": 800}, {"ume_store_activity_timeout": 800}, ()),
    ({"ume_retention_unique_confirmations": 1}, {}, ()),
)
"""Options of the source, of the receivers and of the stores that go together."""

_WITHIN: Final = "ume_retention_intragroup_stability_behavior"
_BETWEEN: Final = "ume_retention_intergroup_stability_behavior"

_GROUPS: Final[tuple[dict[str, Any], ...]] = (
    {"ume_store_group": "0:3", _WITHIN: "all"},
    {"ume_store_group": "0:3", _WITHIN: "all-active"},
    {"ume_store_group": "0:1,1:1,2:1", _BETWEEN: "majority"},
    {"ume_store_group": "0:1,1:1,2:1", _BETWEEN: "all"},
    {"ume_store_group": "0:2,1:1", _BETWEEN: "any"},
    {"ume_store_group": "0:2,1:1", _BETWEEN: "all-active"},
)
"""Groups of the three stores, with the rules of stability."""


def _setup(rng: Random) -> Setup:
    if rng.random() < 0.2:
        return Setup(pause_ms=PAUSES_MS[0])
    options: dict[str, Any] = {}
    size = rng.choice((60, 60, 100, 100, 1_000, 1_000, 20_000))
    if rng.random() < 0.3:
        options["ume_confirmed_delivery_notification"] = 1
    if rng.random() < 0.3:
        options["ume_flight_size"] = rng.choice((1, 5, 20)) if size <= WHOLE_BYTES else LARGE_FLIGHT
    if rng.random() < 0.3:
        options["transport"] = rng.choice(("lbtrm", "lbtru"))
    receiver_options: dict[str, Any] = {}
    stores: list[str] = []
    for kit in rng.sample(_KITS, rng.choice((0, 0, 1, 2))):
        for given, more in zip((options, receiver_options), kit[:2], strict=True):
            given.update(more)
        stores += kit[2]
    paced = PACED in options
    if paced:
        options.pop("ume_retention_unique_confirmations", None)  # Nobody confirms what no receiver was there for.
    modes = tuple(rng.choice(("plain", "plain", "batches", "callback", "slow", "explicit")) for _ in RECEIVERS)
    setup = Setup(
        finder=rng.choice(("relay", "relay", "service", "multicast", "relays", "services", "both")),
        options=tuple(options.items()),
        receiver_options=tuple(receiver_options.items()),
        store_options=tuple(stores),
        pause_ms=rng.choice(PAUSES_MS),
        burst=rng.choice((1, 1, 2, 5)),
        size=size,
        modes=modes,
        late=rng.random() < 0.15 and not paced,
        hasty=rng.random() < 0.15,
        ending=rng.choice(("close", "close", "deregister")),
    )
    return setup if paced else _with_kits(rng, setup)


def _uncommon(rng: Random, setup: Setup) -> Setup:
    """Let few setups have stores in memory, or stores that are used in turn."""
    options = dict(setup.options)
    if rng.random() >= UNCOMMON_SHARE or setup.daemon or PACED in options or "ume_store_group" in options:
        return setup
    if rng.random() < 0.5:
        kept = tuple(one for one in setup.store_options if not one.startswith("repository-type="))
        return attrs.evolve(setup, storage=MEMORY, store_options=(*kept, "repository-type=memory"))
    if "ume_proxy_source" in options or setup.ids != "session":
        return setup
    return attrs.evolve(setup, storage=TURNS, options=(*setup.options, ("ume_store_behavior", "rr")))


def _limited(rng: Random, setup: Setup) -> Setup:
    """Let the stores of few worlds have limits that their messages reach.

    A paced store makes the source wait at its limit. Any other store releases the oldest messages, and drops new ones
    for good while the memory is full of messages that are not on disk. So one store at most may be slow there.
    """
    if rng.random() >= LIMIT_SHARE:
        return setup
    options, stores = dict(setup.options), setup.store_options
    if PACED in options:
        options["ume_flight_size_bytes"] = 60_000
        paced = ("source-flight-size-bytes-maximum=60000", "repository-size-limit=170000")
        stores = (*stores, *paced, f"repository-disk-file-size-limit={LEAST_DISK}")
        return attrs.evolve(setup, options=tuple(options.items()), store_options=stores)
    if setup.storage == MEMORY:
        kept = rng.choice((2, 10, 50))
        stores = (*stores, f"repository-size-threshold={kept * setup.message_bytes}")
        return attrs.evolve(setup, kept=kept, store_options=stores)
    if setup.message_bytes > WHOLE_BYTES:
        stores = (*stores, f"repository-disk-file-size-limit={LEAST_DISK}")
        return attrs.evolve(setup, kept=LEAST_DISK // setup.message_bytes, store_options=stores)
    flight = rng.choice((1, 5))
    options["ume_flight_size"] = flight
    stores = (*stores, f"repository-size-limit={flight * setup.message_bytes}")
    return attrs.evolve(setup, options=tuple(options.items()), store_options=stores)


def _with_kits(rng: Random, setup: Setup) -> Setup:
    """Add contexts, identities and stores. Paced worlds have none, because one session per store decides there."""
    several = rng.choice(("", "", "", "topics", "handles"))
    if several == "topics":
        setup = attrs.evolve(setup, topics=("orders", "trades"))
    elif several == "handles":
        setup = attrs.evolve(setup, handles=2)
    else:
        setup = attrs.evolve(setup, ids=rng.choice(("session", "session", "session", "regid", "new")))
    if setup.ids == "session" and not setup.late:
        setup = attrs.evolve(setup, second=rng.random() < 0.15)
    match rng.choice(("", "", "", "daemon", "named", "groups")):
        case "daemon":
            return attrs.evolve(setup, daemon=True)
        case "named":
            return attrs.evolve(setup, named=True)
        case "groups" if setup.ids == "session":
            return attrs.evolve(setup, options=(*setup.options, *rng.choice(_GROUPS).items()))
        case _:
            return setup


def _fault(rng: Random, kind: Kind, storms: list[int], weak: str) -> Fault:
    at = drawn_instant(rng, storms, STORM_MS, HORIZON_MS)
    span = drawn_span(rng, SPANS_MS, HORIZON_MS - at)
    if kind in DISK_FAULTS:
        who = weak
    elif kind in STRIKES_STORES:
        who = rng.choice(STORES)
    elif kind in STRIKES_RECEIVERS:
        who = rng.choice(RECEIVERS)
    elif kind in STRIKES_CLIENTS:
        who = rng.choice((SOURCE, *RECEIVERS))
    else:
        who = SOURCE if rng.random() < MAIN_SHARE else rng.choice(PROGRAMS)
    other = ""
    if kind in (Kind.CUT, Kind.MUTE) and rng.random() < 0.6:
        other = rng.choice([name for name in PROGRAMS if name != who])
    return Fault(at, kind, who, span, other, _amount(rng, kind))


def _amount(rng: Random, kind: Kind) -> int:
    match kind:
        case Kind.NOISE:
            return rng.choice((1, 5, 20))
        case Kind.SLOW:
            return rng.choice((5, 50, 400))
        case Kind.FULL:
            return rng.choice((0, 1_000, 50_000))
        case Kind.FAIL:
            return rng.randrange(20)
        case Kind.SCARCE:
            return rng.randrange(4)
        case Kind.LEAP:
            return rng.randrange(-5_000, 5_000)
        case Kind.DRIFT:
            return rng.randrange(-20_000, 20_000)
        case _:
            return 0
