"""The core of stablecast: pure state machines, no I/O.

Everything that an embedder needs is importable from here: the endpoints `SourceEndpoint`, `ReceiverSession` and
`StoreEndpoint`, their configurations, and the modules `inputs`, `effects`, `events` and `messages`. Each endpoint is
driven the same way:

    machine.receive(event, now)      one input of `inputs`; `now` in ns, never falling
    machine.handle_timeout(now)      at or after `next_timeout()`; spurious and late calls are harmless
    machine.next_timeout()           ns on the clock of `now`, or None
    machine.take_effects()           what to do, in order (`effects`); empties the outbox

After every `receive` or `handle_timeout` take the effects, perform them in order, and re-arm one timer if
`next_timeout()` moved. What waits for the disk waits for a `Persisted` input, never for its place in the list. A
peer's bad message never raises; it comes back as an `Oddity` event. `MisuseError` means that the driver broke the
contract.

Endpoints are asked through their properties and their `status`, a read-only view; their other fields are parts that may
change with any version.

The machine counts on every effect that it returned. If one cannot be performed, perform the others; then feed what
happened instead (a message that was not sent is a `Reset` of that peer), or end the endpoint and report why.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stablecast.core.protocol import effects, events, inputs, messages
    from stablecast.core.protocol.quorum import GroupRules
    from stablecast.core.protocol.settings import ReceiverConfig, SourceConfig, StoreConfig, StoreSpec
    from stablecast.core.receiver import ReceiverSession
    from stablecast.core.source import SourceEndpoint
    from stablecast.core.store import StoreEndpoint

__all__ = [
    "GroupRules",
    "ReceiverConfig",
    "ReceiverSession",
    "SourceConfig",
    "SourceEndpoint",
    "StoreConfig",
    "StoreEndpoint",
    "StoreSpec",
    "effects",
    "events",
    "inputs",
    "messages",
]

_MODULES = frozenset({"effects", "events", "inputs", "messages"})
_NAMES = {
    "GroupRules": "protocol.quorum",
    "ReceiverConfig": "protocol.settings",
    "ReceiverSession": "receiver",
    "SourceConfig": "protocol.settings",
    "SourceEndpoint": "source",
    "StoreConfig": "protocol.settings",
    "StoreEndpoint": "store",
    "StoreSpec": "protocol.settings",
}
"""The module of each public name, loaded on first use: a receiver's process needs no store."""


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"{__name__}.protocol.{name}")
    if name in _NAMES:
        return getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
