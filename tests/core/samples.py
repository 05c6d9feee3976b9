"""Small records that many tests of the core need; every field has a value that is fine where it does not matter."""

from typing import Any

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import Event
from stablecast.core.protocol.messages import Message, Register, Registered, Role, SourceInfo, StoreEntry

LIFE = 7
"""Incarnation of the source under test."""
OLDER_LIFE = 6

_REGISTER = Register(
    role=Role.SOURCE,
    store_index=0,
    generation=1,
    reg_id=0,
    incarnation=LIFE,
    source_reg_id=0,
    topic="topic",
    session_id=0,
    reply_to="client:1",
    transport="stream:1",
    activity_timeout_ms=0,
    state_lifetime_ms=0,
)
_REGISTERED = Registered(
    role=Role.SOURCE,
    store_index=0,
    generation=1,
    reg_id=50,
    incarnation=LIFE,
    old=False,
    low=0,
    high=0xFFFF_FFFF,
    activity_timeout_ms=30_000,
    state_lifetime_ms=0,
)
_INFO = SourceInfo(
    incarnation=LIFE,
    topic="topic",
    version=1,
    low=0,
    high=0xFFFF_FFFF,
    request="source:1",
    group_sizes=(3,),
    confirmations=False,
    stores=(),
)


def register(**changes: Any) -> Register:
    """A source's request; a receiver's with role and source_reg_id."""
    return attrs.evolve(_REGISTER, **changes)


def registered(**changes: Any) -> Registered:
    """A grant of a store that holds nothing."""
    return attrs.evolve(_REGISTERED, **changes)


def info(*versions: int, **changes: Any) -> SourceInfo:
    """The SRI of a source that sent nothing, with a store for each of the versions."""
    stores = tuple(StoreEntry(index, 0, f"store{index}:1", 50, version) for index, version in enumerate(versions))
    return attrs.evolve(_INFO, **{"stores": stores, "group_sizes": (len(stores),), **changes})


def sends(effects: list[fx.Effect]) -> list[tuple[str, Message]]:
    """Return the messages that are sent, with their addresses."""
    return [(effect.to, effect.message) for effect in effects if isinstance(effect, fx.Send)]


def events(effects: list[fx.Effect]) -> list[Event]:
    return [effect.event for effect in effects if isinstance(effect, fx.Notify)]


def drain(out: list[fx.Effect]) -> list[fx.Effect]:
    """Return the effects in an outbox, and empty it."""
    effects, out[:] = out[:], []
    return effects


__all__ = ["LIFE", "MILLISECOND", "OLDER_LIFE", "SECOND", "drain", "events", "info", "register", "registered", "sends"]
