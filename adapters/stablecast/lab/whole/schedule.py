"""Draw the programs of a whole world, and which faults happen when, from a seed.

No schedule breaks a condition of the guarantees: the disks of a quorum survive. Every other fault may happen. One
store of a world may lose its disk, records of it, or all that it wrote since a backup, more than once.
"""

import json
from collections.abc import Iterator
from enum import StrEnum
from random import Random
from typing import Any, Final

import attrs

from stablecast.core.errors import StablecastError
from stablecast.text import refusal

SOURCE: Final = "source"
RECEIVERS: Final = ("receiver0", "receiver1")
STORES: Final = ("store0", "store1", "store2")
SECOND_RECEIVER: Final = "receiver1-second"
"""The receiver of a second context in the process of the last receiver."""
FINDERS: Final = ("finder", "finder1")
"""The hosts of relays and resolution services."""
PROGRAMS: Final = (SOURCE, *RECEIVERS, *STORES, *FINDERS)
DAEMON: Final = STORES[0]
"""The host of the daemon with two stores. Its disk never fails, because it has two copies of each message."""

HORIZON_MS: Final = 5_000
"""Time in ms, from the start of the applications, at which every fault is over."""

FAULTS: Final = (1, 8)
"""Smallest and largest number of drawn faults."""

SPANS_MS: Final = (60, 400, 1_500, 4_000)
"""Limits to choose from for the span of a fault. The longest is longer than a client waits for a store."""

WHOLE_BYTES: Final = 1_000
"""Bytes of a message that every transport sends in one piece."""

LARGE_FLIGHT: Final = 50
"""Flight of a source whose messages have several pieces."""

PACED: Final = "ume_receiver_paced_persistence"
"""The option with which receivers set the pace."""

MAIN_SHARE: Final = 0.3
"""Share of faults that strike the source, because most rules are about its restarts."""


class WorldScheduleError(StablecastError):
    """Report a file that is not a schedule."""


class Do(StrEnum):
    """The kinds of faults; each strikes the program or host `who` and lasts a span."""

    KILL = "kill"
    """Kill the program, and start it again after the span."""
    POWER = "power"
    """Cut the power of the host: unsynced writes are lost or torn. It returns after the span."""
    STOP = "stop"
    """Stop the program for the span."""
    CUT = "cut"
    """Cut the host off from `other`, or from all."""
    MUTE = "mute"
    """Let nothing pass from the host to `other`, or to all."""
    NOISE = "noise"
    """Lose, duplicate, reorder and delay what the host sends and receives; `amount` is a percentage."""
    RESET = "reset"
    """Break all connections of the host."""
    SLOW = "slow"
    """Slow down each sync of the host's disk by `amount` ms."""
    FULL = "full"
    """Leave `amount` bytes of room on the disk of a store."""
    FAIL = "fail"
    """Let writes or syncs of a store's disk fail after `amount` calls."""
    ROT = "rot"
    """Flip a bit of a file of a store."""
    LEAP = "leap"
    """Let the wall clock of the host leap by `amount` ms."""
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
    """Start a second process with the identity of a client on another host; it is killed after the span."""
    WIPE = "wipe"
    """Kill a store and empty its directory; start it again after the span."""
    RESTORE = "restore"
    """Put back a store's directory as it was at the beginning of the span, declare that, and start the store again."""


DISK_FAULTS: Final = frozenset({Do.FULL, Do.FAIL, Do.ROT, Do.WIPE, Do.RESTORE})
"""Faults that may cost a store its records; one store of a world suffers them."""

MEMORY: Final = "memory"
TURNS: Final = "turns"

UNCOMMON_SHARE: Final = 0.12
"""Share of the seeds whose stores keep messages in memory, or are used in turn, if nothing else forbids it."""

DEPARTURE_SHARE: Final = 0.1
"""Share of the seeds whose source deregisters in the middle of the run, if nothing forbids it."""

LIMIT_SHARE: Final = 0.15  # of the seeds have stores with small limits

LEAST_DISK: Final = 196_992
"""Bytes of the smallest limit of a repository on disk."""

NUMBER_BYTES: Final = 12
"""Bytes that each number counts against a limit besides its payload."""

ENDS_STORES: Final = DISK_FAULTS | {Do.KILL, Do.POWER, Do.CLOSE}
"""Faults after which a store in memory has forgotten its messages."""

STRIKES_PATHS: Final = frozenset({Do.CUT, Do.MUTE, Do.NOISE, Do.RESET, Do.STOP, Do.SCARCE, Do.POWER})
"""Faults after which a source that uses stores in turn may go on to the next one, which has no earlier messages.

After a power cut the first store does not know that the earlier life of the source is over, and refuses the next one.
"""

STRIKES_STORES: Final = DISK_FAULTS | {Do.SLOW}
STRIKES_CLIENTS: Final = frozenset({Do.TWIN})
STRIKES_RECEIVERS: Final = frozenset({Do.LEAVE})


@attrs.frozen
class HostFault:
    """A fault at a time, for a span."""

    at_ms: int
    do: Do
    who: str
    span_ms: int = 0
    other: str = ""
    amount: int = 0

    def __str__(self) -> str:
        """Return one line for people."""
        other = f" and {self.other}" if self.other else ""
        amount = f", {self.amount}" if self.amount else ""
        return f"{self.at_ms} ms: {self.do} {self.who}{other} for {self.span_ms} ms{amount}"


@attrs.frozen
class Setup:
    """The programs of a world.

    Attributes:
        finder: How receivers find sources: `relay`, `service`, `multicast`, `relays` (two), `services` (two), or `both`
            (a relay and a service).
        options: Options of the source.
        receiver_options: Options of each receiver.
        store_options: Options of each store.
        pause_ms: Time between two bursts of the source.
        burst: Messages of one burst.
        size: Bytes of a message.
        modes: How each receiver reads: `plain`, `batches`, `callback`, `slow`, or `explicit`, which acknowledges later.
        late: The last receiver starts when all faults are over.
        topics: The topics of the source's context; it has a source for each.
        handles: Sources of each topic, with different session ids.
        second: The last receiver's process has a second context, whose receiver is judged, too.
        daemon: The first host of a store runs a daemon with two stores, from a configuration file.
        named: The source knows its stores by name.
        ids: The identity of clients: `session` ids, chosen `regid`s, or `new` RegIDs for each start of a receiver.
        hasty: Sends are cancelled if they have to wait.
        ending: How the clients end when all is settled: `close` or `deregister`.
        storage: Empty, `memory`: stores have no disks, or `turns`: the source uses its stores in turn.
        kept: Messages of a source that stores keep at least, because of a limit; 0: all of them.
    """

    finder: str = "relay"
    options: tuple[tuple[str, Any], ...] = ()
    receiver_options: tuple[tuple[str, Any], ...] = ()
    store_options: tuple[str, ...] = ()
    pause_ms: int = 60
    burst: int = 1
    size: int = 60
    modes: tuple[str, ...] = ("plain", "plain")
    late: bool = False
    topics: tuple[str, ...] = ("orders",)
    handles: int = 1
    second: bool = False
    daemon: bool = False
    named: bool = False
    ids: str = "session"
    hasty: bool = False
    ending: str = "close"
    storage: str = ""
    kept: int = 0

    @property
    def message_bytes(self) -> int:
        """Bytes that a message, which may have several numbers, counts against a limit at most."""
        return self.size + NUMBER_BYTES * (1 + self.size // WHOLE_BYTES)

    @property
    def tight(self) -> bool:
        """True if the memory of a store has room for one flight of a source only."""
        return "repository-size-limit" in "".join(self.store_options) and PACED not in dict(self.options)

    @property
    def receivers(self) -> tuple[str, ...]:
        """The receivers to which every stable message is due."""
        return (*RECEIVERS, SECOND_RECEIVER) if self.second else RECEIVERS

    @property
    def finders(self) -> tuple[str, ...]:
        """The hosts of relays and resolution services."""
        return FINDERS if self.finder in {"relays", "services", "both"} else FINDERS[:1]


@attrs.frozen
class WorldSchedule:
    """One world. Sources send until `horizon_ms`, when every fault is over."""

    seed: int
    setup: Setup = Setup()
    faults: tuple[HostFault, ...] = ()
    horizon_ms: int = HORIZON_MS

    def as_json(self) -> dict[str, Any]:
        """Return the schedule as JSON values."""
        fields: dict[str, Any] = attrs.asdict(self)
        return fields

    @classmethod
    def from_json(cls, value: Any) -> "WorldSchedule":
        """Return the schedule of JSON values. Raises WorldScheduleError."""
        try:
            setup = dict(value["setup"])
            for name in ("store_options", "modes", "topics"):
                setup[name] = tuple(setup[name])
            for name in ("options", "receiver_options"):
                setup[name] = tuple((option, given) for option, given in setup[name])
            faults = tuple(HostFault(**{**fault, "do": Do(fault["do"])}) for fault in value["faults"])
            schedule = cls(int(value["seed"]), Setup(**setup), faults, int(value.get("horizon_ms", HORIZON_MS)))
        except (KeyError, TypeError, ValueError) as error:
            raise WorldScheduleError(f"not a schedule of whole worlds: {refusal(error)}") from error
        for fault in faults:
            if fault.who not in PROGRAMS or fault.other not in ("", *PROGRAMS):
                raise WorldScheduleError(
                    f"'{fault}' strikes no program of that name: the names are {', '.join(PROGRAMS)}"
                )
        return schedule

    def text(self) -> str:
        """Return the schedule as a JSON text."""
        return json.dumps(self.as_json(), indent=1)


def draw(seed: int) -> WorldSchedule:
    """Return the schedule of a seed. Each world draws its own mixture of faults."""
    rng = Random(f"whole {seed}")  # noqa: S311 - not a secret
    # Drawn apart, so that the other seeds keep their worlds.
    setup = _uncommon(Random(f"whole uncommon {seed}"), _setup(rng))  # noqa: S311 - not a secret
    setup = _limited(Random(f"whole limits {seed}"), setup)  # noqa: S311 - not a secret
    possible = [kind for kind in Do if kind not in _excluded(setup)]
    kinds = rng.sample(possible, rng.randint(1, len(possible)))
    storms = [rng.randrange(HORIZON_MS) for _ in range(rng.randint(1, 3))]
    weak = rng.choice([name for name in STORES if not (setup.daemon and name == DAEMON)])
    faults = [_permitted(rng, setup, _fault(rng, rng.choice(kinds), storms, weak)) for _ in range(rng.randint(*FAULTS))]
    faults = _with_departure(Random(f"whole departures {seed}"), setup, faults)  # noqa: S311 - not a secret
    return WorldSchedule(seed, setup, tuple(sorted(faults, key=lambda fault: fault.at_ms)))


def _with_departure(rng: Random, setup: Setup, faults: list[HostFault]) -> list[HostFault]:
    """Let the source of few worlds deregister and come back.

    A second process of the source would go on with its life, so it strikes a receiver instead. Paced stores keep a
    message for the receivers that are registered, and after a deregistration there are none.
    """
    if rng.random() >= DEPARTURE_SHARE or setup.storage == TURNS or PACED in dict(setup.options):
        return faults
    at = rng.randrange(HORIZON_MS - 1)
    span = min(rng.randint(1, rng.choice(SPANS_MS)), HORIZON_MS - at)
    kept = [attrs.evolve(fault, who=RECEIVERS[0]) if fault.do is Do.TWIN else fault for fault in faults]
    return [*kept, HostFault(at, Do.LEAVE, SOURCE, span)]


def _excluded(setup: Setup) -> frozenset[Do]:
    """Return the faults that would break a condition of the guarantees."""
    options = dict(setup.options)
    excluded: set[Do] = set()
    if "ume_store_group" in options:
        excluded |= DISK_FAULTS  # A group of one store has no other copy.
    if PACED in options:
        excluded |= STRIKES_RECEIVERS  # Stores keep nothing for a receiver that deregistered.
    if setup.storage or setup.tight:
        excluded |= {*DISK_FAULTS, Do.BLACKOUT}  # All stores would forget, or the first one return too late.
    if setup.storage == TURNS:
        excluded |= {Do.TWIN, Do.SLOW}  # Two lives could use different stores.
    return frozenset(excluded)


def _permitted(rng: Random, setup: Setup, fault: HostFault) -> HostFault:
    """Return a fault that breaks no condition of the storage: a forbidden one strikes a receiver instead."""
    strikes_store = fault.who in STORES
    if setup.storage == MEMORY:
        forbidden = strikes_store and fault.do in ENDS_STORES
    else:
        on_path = fault.do in STRIKES_PATHS and SOURCE in (fault.who, fault.other)
        slow = setup.tight and fault.do is Do.SLOW  # A store that refills would drop messages besides the slow one.
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
        return Setup()
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
        pause_ms=rng.choice((60, 120, 200)),
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


def _fault(rng: Random, do: Do, storms: list[int], weak: str) -> HostFault:
    at = (rng.choice(storms) + rng.randrange(300)) if rng.random() < 0.6 else rng.randrange(HORIZON_MS)
    at = min(at, HORIZON_MS - 1)
    span = min(rng.randint(1, rng.choice(SPANS_MS)), HORIZON_MS - at)
    if do in DISK_FAULTS:
        who = weak
    elif do in STRIKES_STORES:
        who = rng.choice(STORES)
    elif do in STRIKES_RECEIVERS:
        who = rng.choice(RECEIVERS)
    elif do in STRIKES_CLIENTS:
        who = rng.choice((SOURCE, *RECEIVERS))
    else:
        who = SOURCE if rng.random() < MAIN_SHARE else rng.choice(PROGRAMS)
    other = ""
    if do in (Do.CUT, Do.MUTE) and rng.random() < 0.6:
        other = rng.choice([name for name in PROGRAMS if name != who])
    return HostFault(at, do, who, span, other, _amount(rng, do))


def _amount(rng: Random, do: Do) -> int:
    match do:
        case Do.NOISE:
            return rng.choice((1, 5, 20))
        case Do.SLOW:
            return rng.choice((5, 50, 400))
        case Do.FULL:
            return rng.choice((0, 1_000, 50_000))
        case Do.FAIL:
            return rng.randrange(20)
        case Do.SCARCE:
            return rng.randrange(4)
        case Do.LEAP:
            return rng.randrange(-5_000, 5_000)
        case Do.DRIFT:
            return rng.randrange(-20_000, 20_000)
        case _:
            return 0


def smaller(schedule: WorldSchedule) -> Iterator[WorldSchedule]:
    """Yield smaller schedules, the largest reductions first."""
    faults = schedule.faults
    half = len(faults) // 2
    if half > 1:
        yield attrs.evolve(schedule, faults=faults[half:])
        yield attrs.evolve(schedule, faults=faults[:half])
    for index in range(len(faults)):
        yield attrs.evolve(schedule, faults=(*faults[:index], *faults[index + 1 :]))
    plain = Setup()
    for field in attrs.fields(Setup):
        if getattr(schedule.setup, field.name) != getattr(plain, field.name):
            setup = attrs.evolve(schedule.setup, **{field.name: getattr(plain, field.name)})
            yield attrs.evolve(schedule, setup=setup)
    for index, fault in enumerate(faults):
        if fault.span_ms > 1:
            less = attrs.evolve(fault, span_ms=fault.span_ms // 2)
            yield attrs.evolve(schedule, faults=(*faults[:index], less, *faults[index + 1 :]))
