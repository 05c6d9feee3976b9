"""The schedule of a whole world: its programs, and which faults happen when; written down, read again, made smaller."""

import json
from collections.abc import Iterator
from typing import Any, Final

import attrs

from stablecast.lab.schedules.faults import OF_PROGRAMS, Fault, Kind, ScheduleError, check_names, faults_of
from stablecast.lab.schedules.reduction import plainer, with_shorter_spans, without
from stablecast.text import refusal

SOURCE: Final = "source"
SECOND_SOURCE: Final = "source1"
"""The second program that sends on the topic, if there is one."""
RECEIVERS: Final = ("receiver0", "receiver1")
STORES: Final = ("store0", "store1", "store2")
SECOND_RECEIVER: Final = "receiver1-second"
"""The receiver of a second context in the process of the last receiver."""
FINDERS: Final = ("finder", "finder1")
"""The hosts of relays and resolution services."""
ROUTER: Final = "router"
"""The host that reaches both domains, if a world has two."""
LINKED_ROUTER: Final = "router1"
"""The host with the router of the far domain, if it is linked to that of the near one."""
PROGRAMS: Final = (SOURCE, *RECEIVERS, *STORES, *FINDERS)
ROUTERS: Final = (ROUTER, LINKED_ROUTER)
STRUCK: Final = (*PROGRAMS, SECOND_SOURCE, *ROUTERS)
"""All hosts that a fault may strike."""
NEAR: Final = 1
FAR: Final = 2
"""The domains of a world with a router."""
SIDES: Final = {"near": NEAR, "far": FAR}
"""The names of all hosts of a domain, for a fault between them and the router."""
DAEMON: Final = STORES[0]
"""The host of the daemon with two stores. Its disk never fails, because it has two copies of each message."""

HORIZON_MS: Final = 5_000
"""Time in ms, from the start of the applications, at which every fault is over."""

WHOLE_BYTES: Final = 1_000
"""Bytes of a message that every transport sends in one piece."""

PACED: Final = "ume_receiver_paced_persistence"
"""The option with which receivers set the pace."""


DISK_FAULTS: Final = frozenset({Kind.FULL, Kind.FAIL, Kind.ROT, Kind.WIPE, Kind.RESTORE})
"""Faults that may cost a store its records; one store of a world suffers them."""

MEMORY: Final = "memory"
TURNS: Final = "turns"

NUMBER_BYTES: Final = 12
"""Bytes that each number counts against a limit besides its payload."""


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
            `arrival` is in no order; `settled` acknowledges or refuses each message, in any order; `fickle` leaves its
            loop; `impatient` cancels each long wait; `threads` blocks a thread (`stablecast.sync`). A `reader` follows
            what is stable, without a registration.
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
        stored: Receivers name the stores, too, and may begin before they meet a source.
        pattern: Receivers are receivers of a pattern.
        start: Where a new receiver begins, of `consumers.BEGINNINGS`; empty: it does not say.
        group: Both receivers are members of one group, which is one receiver.
        apart: A second program sends on the topic.
        hot: It sends the same messages, with hot numbers.
        far: The hosts in a second domain, which a router joins with the first; empty: there is one domain.
        leaving: The transport of the router's proxies; empty: the default.
        linked: Each domain has a router of its own, and the two are linked.
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
    stored: bool = False
    pattern: bool = False
    start: str = ""
    group: bool = False
    apart: bool = False
    hot: bool = False
    far: tuple[str, ...] = ()
    leaving: str = ""
    linked: bool = False

    @property
    def message_bytes(self) -> int:
        """Bytes that a message, which may have several numbers, counts against a limit at most."""
        return self.size + NUMBER_BYTES * (1 + self.size // WHOLE_BYTES)

    @property
    def tight(self) -> bool:
        """True if the memory of a store has room for one flight of a source only."""
        return "repository-size-limit" in "".join(self.store_options) and PACED not in dict(self.options)

    @property
    def spare(self) -> int:
        """Return how many hosts of stores the others make up for: one if there are three, in one group."""
        return 0 if self.daemon or self.storage or "ume_store_group" in dict(self.options) else 1

    @property
    def receivers(self) -> tuple[str, ...]:
        """The receivers to which every stable message is due."""
        if self.group:
            return RECEIVERS[:1]
        return (*RECEIVERS, SECOND_RECEIVER) if self.second else RECEIVERS

    @property
    def sources(self) -> tuple[str, ...]:
        """The hosts of programs that send."""
        return (SOURCE, SECOND_SOURCE) if self.apart else (SOURCE,)

    @property
    def finders(self) -> tuple[str, ...]:
        """The hosts of relays and resolution services."""
        return FINDERS if self.far or self.finder in {"relays", "services", "both"} else FINDERS[:1]

    @property
    def routers(self) -> tuple[str, ...]:
        return () if not self.far else ROUTERS if self.linked else ROUTERS[:1]

    def domain(self, name: str) -> int:
        if not self.far or name in ROUTERS:
            return 0
        host = RECEIVERS[-1] if name == SECOND_RECEIVER else name
        return FAR if host in self.far or host == FINDERS[1] else NEAR

    def is_apart(self, one: str, other: str) -> bool:
        """Return whether a router is between two hosts."""
        domains = {self.domain(one), self.domain(other)}
        return domains == {NEAR, FAR}


@attrs.frozen
class WorldSchedule:
    """One world. Sources send until `horizon_ms`, when every fault is over."""

    seed: int
    setup: Setup = Setup()
    faults: tuple[Fault, ...] = ()
    horizon_ms: int = HORIZON_MS

    def as_json(self) -> dict[str, Any]:
        fields: dict[str, Any] = attrs.asdict(self)
        return fields

    @classmethod
    def from_json(cls, value: Any) -> "WorldSchedule":
        """Return the schedule of JSON values. Raises ScheduleError."""
        try:
            setup = dict(value["setup"])
            for name in {"store_options", "modes", "topics", "far"} & setup.keys():
                setup[name] = tuple(setup[name])
            for name in {"options", "receiver_options"} & setup.keys():
                setup[name] = tuple((option, given) for option, given in setup[name])
            faults, horizon_ms = faults_of(value["faults"]), int(value.get("horizon_ms", HORIZON_MS))
            schedule = cls(int(value["seed"]), Setup(**setup), faults, horizon_ms)
        except (KeyError, TypeError, ValueError) as error:
            raise ScheduleError(f"not a schedule of whole worlds: {refusal(error)}") from error
        check_names(faults, dict.fromkeys(OF_PROGRAMS, STRUCK), (*STRUCK, *SIDES))
        return schedule

    def text(self) -> str:
        return json.dumps(self.as_json(), indent=1)


def smaller(schedule: WorldSchedule) -> Iterator[WorldSchedule]:
    """Yield smaller schedules, the largest reductions first."""
    for faults in without(schedule.faults):
        yield attrs.evolve(schedule, faults=faults)
    for setup in plainer(schedule.setup):
        yield attrs.evolve(schedule, setup=setup)
    for faults in with_shorter_spans(schedule.faults):
        yield attrs.evolve(schedule, faults=faults)
