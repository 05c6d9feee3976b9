"""Define the stores of the world of `tla/Stability`: machine, disk and connections; and all configurations."""

from collections.abc import Mapping

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.effects import Client, Cut, PersistClient, PersistMessages, Send
from stablecast.core.protocol.inputs import StoreInput
from stablecast.core.protocol.messages import LateJoinRequest, Registered, RetransmitRequest, StableAck
from stablecast.core.protocol.quorum import Consensus, GroupRules, Intergroup, Intragroup
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import RegistrationTimes, RepositoryConfig, SourceConfig, StoreConfig, StoreSpec
from stablecast.core.store import StoreEndpoint
from stablecast.core.store.status import RepositoryStatus

LAYOUTS: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "one": ((1,), (0,)),
    "two": ((2,), (0, 0)),
    "three": ((3,), (0, 0, 0)),
    "backup": ((1,), (0, 0)),
    "one and one": ((1, 1), (0, 1)),
    "one and two": ((1, 2), (0, 1, 1)),
}
"""Configured sizes of the groups, and the group of each store."""
PATHS: Mapping[str, tuple[frozenset[int], ...]] = {
    "apart": (frozenset({0}), frozenset({0, 1}), frozenset({1, 2}), frozenset({0, 2})),
    "away": (frozenset({0, 2}), *[frozenset({0, 1})] * 3, frozenset({0, 1, 2})),
    "once": (frozenset({0, 1}), frozenset({0, 2})),
    "return": (frozenset({0, 1}), frozenset({0, 2}), frozenset({0, 1})),
    "ring": (frozenset({0, 1}), frozenset({1, 2}), frozenset({0, 1})),
}
"""Stores that each life of the source reaches before a later one begins. Paths not listed reach all stores."""
LAST_REACHED: Mapping[str, int] = {"return": 0}
"""The store that a returning process reaches only after its second round."""
NEVER_REACHED: Mapping[str, int] = {"ring": 1}
"""The store that a returning process does not reach."""
REG_ID = 1
INTERVAL_NS = 1
LONG_NS = 1_000_000 * SECOND
"""A span in ns that no model reaches the end of."""


@attrs.frozen
class StabilityConstants:
    """Hold the model's constants."""

    Layout: str
    Inside: str
    Between: str
    Consensus: str
    Repairs: frozenset[str]
    Numbers: int
    Flight: int
    Lives: int
    Crashes: int
    Faults: frozenset[str]
    Paths: str
    Memory: int

    @property
    def groups(self) -> tuple[int, ...]:
        """The group of each store, by index."""
        return LAYOUTS[self.Layout][1]

    def weak(self, fault: str, store: int) -> bool:
        """Return whether the connection to a store (by index) has a fault.

        On the paths "once" only one store's connection has faults.
        """
        return fault in self.Faults and (self.Paths != "once" or store == 0)

    def slow(self, store: int) -> bool:
        """Return whether messages to and from a store (by index) take time."""
        return self.weak("slow", store)

    def connected(self, store: int, life: int, later: int, proven: bool) -> bool:
        """Return whether the source's process reaches the store.

        Args:
            store: Index of the store.
            life: Life of the process, 0: none began.
            later: Life of the process that is partitioned meanwhile.
            proven: Whether this life had a second round.
        """
        paths = PATHS.get(self.Paths)
        if paths is None or not life:
            return True
        if later > life:
            return store != NEVER_REACHED.get(self.Paths) and (store != LAST_REACHED.get(self.Paths) or proven)
        return store in paths[life - 1]

    @property
    def repairs(self) -> Repair:
        """The rules that the model may have as documented, with all others repaired."""
        asked = Repair.EVERY_GROUP | Repair.ONE_LIFE | Repair.HOLES
        chosen = Repair.NONE
        for name in self.Repairs:
            chosen |= Repair[name.upper()]
        return Repair.ALL & ~asked | chosen


@attrs.define
class LifeJournal:
    """Hold a disk: the source's newest record, and the life of each message."""

    client: Client | None = None
    messages: dict[int, int] = attrs.field(factory=dict)

    def write(self, write: PersistClient | PersistMessages | Cut) -> None:
        """Apply a write; the caller syncs or loses it later."""
        match write:
            case PersistClient():
                self.client = write.client
            case PersistMessages():
                self.messages.update(dict.fromkeys(range(write.first, write.first + write.count), write.incarnation))
            case _:
                self.messages = {n: life for n, life in self.messages.items() if n < write.number}

    def extents(self) -> list[tuple[int, int, int, int]]:
        """Return the extents that a restarting store finds."""
        return [(REG_ID, number, 1, 0) for number in sorted(self.messages)]


@attrs.define
class StabilityStore:
    """Hold a store's machine (None: it is down), connections and disk. `written` includes unsynced writes."""

    index: int
    machine: StoreEndpoint | None
    stream: list[int] = attrs.field(factory=list)
    back: list[Registered | StableAck] = attrs.field(factory=list)
    written: LifeJournal = attrs.field(factory=LifeJournal)
    synced: LifeJournal = attrs.field(factory=LifeJournal)
    dirty: bool = False

    @property
    def repository(self) -> RepositoryStatus | None:
        """The repository of the source."""
        return None if self.machine is None else self.machine.status.repositories.get(REG_ID)

    @property
    def life(self) -> int:
        """The life whose messages the repository holds, 0: none."""
        repository = self.repository
        return 0 if repository is None else repository.incarnation

    @property
    def granting(self) -> bool:
        """True if a grant to this life waits for the disk."""
        waiting = () if self.machine is None else self.machine.status.waiting
        return any(due.generation >= 0 and due.incarnation == self.life for due in waiting)

    def granted(self, life: int) -> bool:
        """Return whether a grant is in flight."""
        return any(isinstance(answer, Registered) and answer.incarnation == life for answer in self.back)

    def feed(self, event: StoreInput) -> list[LateJoinRequest | RetransmitRequest]:
        """Pass an input to the store and perform its effects; return its requests to the source."""
        assert self.machine is not None
        self.machine.receive(event, 0)
        self.machine.handle_timeout(0)
        asked: list[LateJoinRequest | RetransmitRequest] = []
        for effect in self.machine.take_effects():
            if isinstance(effect, PersistClient | PersistMessages | Cut):
                self.written.write(effect)
                self.dirty = True
            elif isinstance(effect, Send) and isinstance(effect.message, Registered | StableAck):
                self.back.append(effect.message)
            elif isinstance(effect, Send) and isinstance(effect.message, LateJoinRequest | RetransmitRequest):
                asked.append(effect.message)
        return asked

    def disconnect(self) -> None:
        """Break the connections and lose their messages."""
        self.stream, self.back = [], []

    def crash(self) -> None:
        """End the process."""
        self.disconnect()
        self.machine, self.dirty = None, False


def address(index: int) -> str:
    """Return the address of a store."""
    return f"store:{index + 1}"


def store_config(constants: StabilityConstants, index: int) -> StoreConfig:
    """Return a configuration with an unlimited disk and no timers."""
    kept = RepositoryConfig(size_threshold=0, size_limit=0, disk_limit=0, ack_interval_ns=0, source_activity_ns=LONG_NS)
    return StoreConfig(
        address(index),
        1,
        repository=kept,
        check_ns=LONG_NS,
        keepalive_ns=0,
        retry_ns=LONG_NS,
        give_up_ns=LONG_NS,
        repairs=constants.repairs,
        history_lives=constants.Memory,
    )


def source_config(constants: StabilityConstants, life: int) -> SourceConfig:
    """Return the configuration of a life whose only timer is the registration interval."""
    sizes, groups = LAYOUTS[constants.Layout]
    return SourceConfig(
        topic="topic",
        incarnation=life,
        reply_to="source:1",
        transport="stream:1",
        stores=tuple(StoreSpec(address(index), REG_ID, group) for index, group in enumerate(groups)),
        groups=GroupRules(sizes, Intragroup[constants.Inside.upper()], Intergroup[constants.Between.upper()]),
        consensus=Consensus[constants.Consensus.upper()],
        times=RegistrationTimes(INTERVAL_NS, LONG_NS, LONG_NS),
        flight_messages=constants.Flight,
        stability_timeout_ns=0,
        stability_lifetime_ns=0,
        check_ns=LONG_NS,
        sri_interval_ns=LONG_NS,
        sri_maximum=1,
        repairs=constants.repairs,
    )
