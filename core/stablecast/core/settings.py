"""What an endpoint is told at its creation.

Spans in ns, sizes in bytes; the option table of spec/ names the same values.
"""

from enum import IntEnum

import attrs

from stablecast.core.messages import Address, Incarnation, Register, Role
from stablecast.core.quorum import Consensus, Group
from stablecast.core.registration import RegistrationTimes
from stablecast.core.stability import Retention
from stablecast.core.units import MILLISECOND, SECOND


class FlightBehavior(IntEnum):
    """What a send beyond the flight size does (P-309, P-310)."""

    BLOCK = 0
    NOTIFY = 1


@attrs.frozen
class StoreSpec:
    """A store of the source's configuration: its address and the RegID to ask for there (0: its choice)."""

    address: Address
    reg_id: int = 0


@attrs.frozen
class SourceConfig:
    """Everything a source endpoint is told. Spans in ns, sizes in bytes, `flight_bytes` 0 means no byte limit."""

    topic: str
    incarnation: Incarnation
    reply_to: Address
    transport: Address
    stores: tuple[StoreSpec, ...] = ()
    group: Group = Group(0)
    consensus: Consensus = Consensus.HIGHEST
    session_id: int = 0
    context: int = 0
    times: RegistrationTimes = RegistrationTimes()
    activity_timeout_ns: int = 0
    state_lifetime_ns: int = 0
    flight_messages: int = 1000
    flight_bytes: int = 0
    flight_behavior: FlightBehavior = FlightBehavior.BLOCK
    retention: Retention = Retention()
    confirmations: bool = False
    sri_interval_ns: int = 100 * MILLISECOND
    sri_maximum: int = 10


class AckMode(IntEnum):
    """When consumption is acknowledged: at once, or in contiguous runs at an interval (P-343)."""

    IMMEDIATE = 0
    BATCHED = 1


@attrs.frozen
class ReceiverConfig:
    """Everything one receiver's session with one source is told.

    `source_request` may be empty when the source's request address is not known (then no SRI is asked for).
    `request_maximum` 0 recovers everything; `window` and `proximity` count messages.
    """

    topic: str
    incarnation: Incarnation
    reply_to: Address
    source_request: Address = ""
    session_id: int = 0
    context: int = 0
    times: RegistrationTimes = RegistrationTimes()
    activity_timeout_ns: int = 0
    state_lifetime_ns: int = 0
    consensus: Consensus = Consensus.HIGHEST
    request_maximum: int = 0
    window: int = 200
    retry_ns: int = 500 * MILLISECOND
    give_up_ns: int = 10 * SECOND
    proximity: int = 5000
    ack_mode: AckMode = AckMode.BATCHED
    ack_interval_ns: int = 100 * MILLISECOND
    sri_request_interval_ns: int = 1 * SECOND
    sri_request_maximum: int = 60


ROLLBACK_ALL = 2_147_483_647
"""receiver-new-registration-rollback: a new receiver starts at the oldest message the store holds."""


@attrs.frozen
class StoreConfig:
    """Everything a store endpoint is told. Client timeouts of 0 ns: lifetime not set (P-535).

    `rollback`: how many messages back a new receiver may start (P-837).
    """

    address: Address
    seed: int
    source_activity_ns: int = 30 * SECOND
    source_lifetime_ns: int = 0
    receiver_activity_ns: int = 30 * SECOND
    receiver_lifetime_ns: int = 0
    check_ns: int = 100 * MILLISECOND
    rollback: int = ROLLBACK_ALL
    window: int = 200
    retry_ns: int = 500 * MILLISECOND
    give_up_ns: int = 10 * SECOND


def register_request(
    role: Role,
    index: int,
    config: SourceConfig | ReceiverConfig,
    *,
    reg_id: int,
    source_reg_id: int,
    transport: Address,
) -> Register:
    """The PREG with which a client of this configuration asks store `index`."""
    return Register(
        role=role,
        store_index=index,
        generation=0,
        reg_id=reg_id,
        incarnation=config.incarnation,
        source_reg_id=source_reg_id,
        topic=config.topic,
        session_id=config.session_id,
        reply_to=config.reply_to,
        transport=transport,
        activity_timeout_ms=config.activity_timeout_ns // MILLISECOND,
        state_lifetime_ms=config.state_lifetime_ns // MILLISECOND,
        context=config.context,
    )
