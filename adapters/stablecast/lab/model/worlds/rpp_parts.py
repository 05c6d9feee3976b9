"""Define the parts of the world of `tla/Rpp`: constants, receivers, requests and configurations."""

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.messages import Deregister, Incarnation, Pace, Register, Role
from stablecast.core.protocol.quorum import GroupRules
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import RepositoryConfig, SourceConfig, StoreConfig, StoreSpec
from stablecast.core.source import SourceEndpoint
from stablecast.lab.model.store_process import LONG_NS, SOURCE_ID, disk_only, registration

SOURCE, STORE = "source:1", "store:1"
RECEIVER_ID = 70
"""RegID of a receiver, less its number."""
NONE, UNKNOWN = -1, -2
DELAY_NS = 1
SILENCE_NS = SECOND


@attrs.frozen
class RppConstants:
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
        return Repair.ALL if self.Repaired else Repair.ALL & ~Repair.PACED


@attrs.define
class PacedReceiver:
    """Hold a receiver: OUT, ASKING or IN. `since` is the source's next number when it registered."""

    state: str = "OUT"
    consumed: int = NONE
    since: int = NONE


def receiver_request(number: int, life: Incarnation, pace: Pace) -> Register:
    return attrs.evolve(
        registration(life, f"receiver:{number}", ""),
        role=Role.RECEIVER,
        generation=1,
        reg_id=RECEIVER_ID + number,
        source_reg_id=SOURCE_ID,
        pace=pace,
    )


def farewell(number: int, life: Incarnation) -> Deregister:
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
    kept = RepositoryConfig(
        size_threshold=0,
        size_limit=0,
        disk_limit=constants.Capacity,
        allow_rpp=True,
        write_delay_ns=DELAY_NS if constants.Delay else 0,
        source_activity_ns=LONG_NS,
        receiver_activity_ns=SILENCE_NS,
        receiver_lifetime_ns=0,
    )
    return attrs.evolve(disk_only(STORE, constants.repairs), repository=kept, check_ns=1)
