"""Define the parts of the world of `tla/Rpp`: constants, the journal, receivers, requests and configurations."""

from collections.abc import Sequence

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.effects import (
    Client,
    Effect,
    Forget,
    PersistCached,
    PersistClient,
    PersistMessages,
    Reclaim,
)
from stablecast.core.protocol.messages import Deregister, Incarnation, Pace, Register, Role
from stablecast.core.protocol.quorum import GroupRules
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import RepositoryConfig, SourceConfig, StoreConfig, StoreSpec
from stablecast.core.source import SourceEndpoint

SOURCE, STORE = "source:1", "store:1"
SOURCE_ID, RECEIVER_ID = 50, 70
"""RegIDs; receiver i has the second one plus i."""
NONE, UNKNOWN = -1, -2
NEVER_NS = 10**15
"""A span in ns that no timer reaches."""
DELAY_NS = 1
SILENCE_NS = SECOND


@attrs.frozen
class RppConstants:
    """Hold the model's constants."""

    Receivers: int
    Patient: frozenset[int]
    Messages: int
    Capacity: int
    Flight: int
    Delay: bool
    Lives: int
    Faults: frozenset[str]
    Repaired: bool

    @property
    def repairs(self) -> Repair:
        """The rules in force."""
        return Repair.ALL if self.Repaired else Repair.ALL & ~Repair.PACED


@attrs.frozen
class PacedJournal:
    """Hold what the store's disk keeps: its clients, the messages of its one source, and the trail."""

    clients: tuple[Client, ...] = ()
    messages: frozenset[int] = frozenset()
    trail: int = 0

    def of(self, reg_id: int) -> Client | None:
        """Return a client's newest state."""
        return next((client for client in self.clients if client.reg_id == reg_id), None)

    def after(self, effects: Sequence[Effect]) -> "PacedJournal":
        """Return the journal after these effects. Only effects that write change it."""
        clients = {client.reg_id: client for client in self.clients}
        messages, trail = set(self.messages), self.trail
        for effect in effects:
            match effect:
                case PersistClient():
                    clients[effect.client.reg_id] = effect.client
                case Forget():
                    clients.pop(effect.reg_id, None)
                case PersistMessages():
                    messages.update(range(effect.first, effect.first + effect.count))
                case PersistCached():
                    messages.update(range(effect.first, effect.last + 1))
                case Reclaim():
                    trail = effect.number
                    messages = {number for number in messages if number >= trail}
        return PacedJournal(tuple(clients[reg_id] for reg_id in sorted(clients)), frozenset(messages), trail)


@attrs.define
class PacedReceiver:
    """Hold a receiver: OUT, ASKING or IN. `since` is the source's next number when it registered."""

    state: str = "OUT"
    consumed: int = NONE
    since: int = NONE


def receiver_request(number: int, life: Incarnation, pace: Pace) -> Register:
    """Return the registration of receiver `number` for a life of the source."""
    return Register(
        role=Role.RECEIVER,
        store_index=0,
        generation=1,
        reg_id=RECEIVER_ID + number,
        incarnation=life,
        source_reg_id=SOURCE_ID,
        topic="topic",
        session_id=0,
        reply_to=f"receiver:{number}",
        transport="",
        activity_timeout_ms=0,
        state_lifetime_ms=0,
        pace=pace,
    )


def farewell(number: int, life: Incarnation) -> Deregister:
    """Return the deregistration of receiver `number`."""
    return Deregister(Role.RECEIVER, 0, 1, RECEIVER_ID + number, life, SOURCE_ID, f"receiver:{number}")


def new_source(constants: RppConstants, life: int) -> SourceEndpoint:
    """Return a life of the source that has not started."""
    config = SourceConfig(
        "topic",
        life,
        SOURCE,
        f"stream:{life}",
        (StoreSpec(STORE, SOURCE_ID),),
        GroupRules((1,)),
        flight_messages=0,
        flight_bytes=constants.Flight,
        stability_timeout_ns=0,
        sri_maximum=1,
        pace=Pace.RECEIVERS,
        repairs=constants.repairs,
    )
    return SourceEndpoint.create(config)


def store_config(constants: RppConstants) -> StoreConfig:
    """Return the configuration of the store."""
    kept = RepositoryConfig(
        size_threshold=0,
        size_limit=0,
        disk_limit=constants.Capacity,
        allow_rpp=True,
        write_delay_ns=DELAY_NS if constants.Delay else 0,
        source_activity_ns=NEVER_NS,
        receiver_activity_ns=SILENCE_NS,
        receiver_lifetime_ns=0,
    )
    return StoreConfig(
        STORE,
        1,
        repository=kept,
        check_ns=1,
        keepalive_ns=0,
        retry_ns=NEVER_NS,
        give_up_ns=NEVER_NS,
        repairs=constants.repairs,
    )
