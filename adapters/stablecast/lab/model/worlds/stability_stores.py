"""Define the stores of the world of `tla/Stability`: machine, disk and connections; and all configurations."""

from collections.abc import Iterable, Mapping

import attrs

from stablecast.core.protocol.inputs import StoreInput
from stablecast.core.protocol.messages import LateJoinRequest, Message, Registered, RetransmitRequest, StableAck
from stablecast.core.protocol.quorum import Consensus, GroupRules, Intergroup, Intragroup
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import SourceConfig, StoreConfig, StoreSpec
from stablecast.lab.model.store_process import SOURCE_ID, WorldStore, disk_only, messages, store_address, untimed

LAYOUTS: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "one": ((1,), (0,)),
    "two": ((2,), (0, 0)),
    "three": ((3,), (0, 0, 0)),
    "backup": ((1,), (0, 0)),
    "one and one": ((1, 1), (0, 1)),
    "one and two": ((1, 2), (0, 1, 1)),
    "three and one": ((3, 1), (0, 0, 0, 1)),
}
"""Configured sizes of the groups, and the group of each store."""
PATHS: Mapping[str, tuple[frozenset[int], ...]] = {
    "apart": (frozenset({0}), frozenset({0, 1}), frozenset({1, 2}), frozenset({0, 2})),
    "away": (frozenset({0, 2}), *[frozenset({0, 1})] * 3, frozenset({0, 1, 2})),
    "once": (frozenset({0, 1}), frozenset({0, 2})),
    "return": (frozenset({0, 1}), frozenset({0, 2}), frozenset({0, 1})),
    "ring": (frozenset({0, 1}), frozenset({1, 2}), frozenset({0, 1})),
    "groups": (frozenset({0, 1, 3}), frozenset({0, 2, 3})),
}
"""Stores that each life of the source reaches before a later one begins. Paths not listed reach all stores."""
LAST_REACHED: Mapping[str, int] = {"return": 0}
"""The store that a returning process reaches only after its second round."""
NEVER_REACHED: Mapping[str, int] = {"ring": 1, "groups": 0}
"""The store that a returning process does not reach."""


@attrs.frozen
class StabilityConstants:
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
        asked = Repair.EVERY_GROUP | Repair.ONE_LIFE | Repair.HOLES | Repair.VOTE
        chosen = Repair.NONE
        for name in self.Repairs:
            chosen |= Repair[name.upper()]
        return Repair.ALL & ~asked | chosen


@attrs.define
class StabilityStore(WorldStore):
    """Hold a store with its connections: messages to it, and answers to the source."""

    index: int = 0
    stream: list[int] = attrs.field(factory=list)
    back: list[Registered | StableAck] = attrs.field(factory=list)

    @property
    def life(self) -> int:
        """The life whose messages the repository holds, 0: none."""
        repository = self.repository
        return 0 if repository is None else repository.incarnation

    def granted(self, life: int) -> bool:
        """Return whether a grant is in flight."""
        return any(isinstance(answer, Registered) and answer.incarnation == life for answer in self.back)

    def feed(self, event: StoreInput) -> list[LateJoinRequest | RetransmitRequest]:
        """Pass an input to the store; return its requests to the source."""
        sent = messages(self.receive(event))
        self.answer(sent)
        return [message for message in sent if isinstance(message, LateJoinRequest | RetransmitRequest)]

    def answer(self, sent: Iterable[Message]) -> None:
        """Put the answers to the source on their way."""
        self.back += [message for message in sent if isinstance(message, Registered | StableAck)]

    def disconnect(self) -> None:
        """Break the connections and lose their messages."""
        self.stream, self.back = [], []

    def crash(self) -> None:
        self.disconnect()
        self.end()


def store_config(constants: StabilityConstants, index: int) -> StoreConfig:
    return disk_only(store_address(index), constants.repairs, constants.Memory)


def source_config(constants: StabilityConstants, life: int) -> SourceConfig:
    """Return the configuration of a life whose only timer is the registration interval."""
    sizes, groups = LAYOUTS[constants.Layout]
    config = SourceConfig(
        topic="topic",
        incarnation=life,
        reply_to="source:1",
        transport="stream:1",
        stores=tuple(StoreSpec(store_address(index), SOURCE_ID, group) for index, group in enumerate(groups)),
        groups=GroupRules(sizes, Intragroup[constants.Inside.upper()], Intergroup[constants.Between.upper()]),
        consensus=Consensus[constants.Consensus.upper()],
        flight_messages=constants.Flight,
        repairs=constants.repairs,
    )
    return untimed(config)
