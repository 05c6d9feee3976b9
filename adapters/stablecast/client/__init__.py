"""The asyncio client: a `Context` makes each `Source` and `Receiver`.

async with Context(resolver=["127.0.0.1:15380"]) as context:
    source = await context.source("orders", stores=["127.0.0.1:14567"])
    sent = await source.send(b"one")
    await sent.stable()
    async for message in context.receiver("orders", session_id=7):
        print(message.payload)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stablecast.client.argument_checks import Payload
    from stablecast.client.batch import AckHandle, Batch
    from stablecast.client.callbacks import RegIdRequest
    from stablecast.client.context import Context
    from stablecast.client.errors import (
        Closed,
        EndpointFailed,
        MessageTooLarge,
        NoRoom,
        NotProcessed,
        NotRegistered,
        NotStable,
        NotStableYet,
        PayloadError,
        RegistrationFailed,
    )
    from stablecast.client.event_details import EventDetails
    from stablecast.client.group_receiver import GroupReceiver
    from stablecast.client.message import Message
    from stablecast.client.range_bounds import last
    from stablecast.client.range_reader import MissingRange, RangeReader, ReadFailed, TopicUnknown
    from stablecast.client.receiver import Receiver
    from stablecast.client.redelivery import Redelivery
    from stablecast.client.source import Sent, Source
    from stablecast.client.source_discovery import resolution
    from stablecast.client.wildcard import WildcardReceiver
    from stablecast.config.findings import ConfigFileError
    from stablecast.config.option_kinds import OptionError
    from stablecast.config.stores import StoreListError
    from stablecast.config.topic_patterns import PatternError
    from stablecast.core.errors import ConfigError, MisuseError, StablecastError
    from stablecast.core.protocol import events
    from stablecast.core.protocol.events import Event
    from stablecast.evidence.trace import TraceError
    from stablecast.runtime.address import AddressError
    from stablecast.runtime.interfaces import InterfaceError
    from stablecast.runtime.ports import PortError
    from stablecast.runtime.tls import TlsError
    from stablecast.runtime.tls import use as use_certificates
    from stablecast.text.open_metrics import OPEN_METRICS as METRICS_TYPE
    from stablecast.transports.wire.properties import Value as PropertyValue

__all__ = [
    "METRICS_TYPE",
    "AckHandle",
    "AddressError",
    "Batch",
    "Closed",
    "ConfigError",
    "ConfigFileError",
    "Context",
    "EndpointFailed",
    "Event",
    "EventDetails",
    "GroupReceiver",
    "InterfaceError",
    "Message",
    "MessageTooLarge",
    "MissingRange",
    "MisuseError",
    "NoRoom",
    "NotProcessed",
    "NotRegistered",
    "NotStable",
    "NotStableYet",
    "OptionError",
    "PatternError",
    "Payload",
    "PayloadError",
    "PortError",
    "PropertyValue",
    "RangeReader",
    "ReadFailed",
    "Receiver",
    "Redelivery",
    "RegIdRequest",
    "RegistrationFailed",
    "Sent",
    "Source",
    "StablecastError",
    "StoreListError",
    "TlsError",
    "TopicUnknown",
    "TraceError",
    "WildcardReceiver",
    "events",
    "last",
    "resolution",
    "use_certificates",
]

_PLACES = {
    "AckHandle": "stablecast.client.batch",
    "AddressError": "stablecast.runtime.address",
    "Batch": "stablecast.client.batch",
    "Closed": "stablecast.client.errors",
    "ConfigError": "stablecast.core.errors",
    "ConfigFileError": "stablecast.config.findings",
    "Context": "stablecast.client.context",
    "EndpointFailed": "stablecast.client.errors",
    "Event": "stablecast.core.protocol.events",
    "EventDetails": "stablecast.client.event_details",
    "GroupReceiver": "stablecast.client.group_receiver",
    "InterfaceError": "stablecast.runtime.interfaces",
    "METRICS_TYPE": "stablecast.text.open_metrics:OPEN_METRICS",
    "Message": "stablecast.client.message",
    "MessageTooLarge": "stablecast.client.errors",
    "MissingRange": "stablecast.client.range_reader",
    "MisuseError": "stablecast.core.errors",
    "NoRoom": "stablecast.client.errors",
    "NotProcessed": "stablecast.client.errors",
    "NotRegistered": "stablecast.client.errors",
    "NotStable": "stablecast.client.errors",
    "NotStableYet": "stablecast.client.errors",
    "OptionError": "stablecast.config.option_kinds",
    "PatternError": "stablecast.config.topic_patterns",
    "Payload": "stablecast.client.argument_checks",
    "PayloadError": "stablecast.client.errors",
    "PortError": "stablecast.runtime.ports",
    "PropertyValue": "stablecast.transports.wire.properties:Value",
    "RangeReader": "stablecast.client.range_reader",
    "ReadFailed": "stablecast.client.range_reader",
    "Receiver": "stablecast.client.receiver",
    "Redelivery": "stablecast.client.redelivery",
    "RegIdRequest": "stablecast.client.callbacks",
    "RegistrationFailed": "stablecast.client.errors",
    "Sent": "stablecast.client.source",
    "Source": "stablecast.client.source",
    "StablecastError": "stablecast.core.errors",
    "StoreListError": "stablecast.config.stores",
    "TlsError": "stablecast.runtime.tls",
    "TopicUnknown": "stablecast.client.range_reader",
    "TraceError": "stablecast.evidence.trace",
    "WildcardReceiver": "stablecast.client.wildcard",
    "events": "stablecast.core.protocol.events:*",
    "last": "stablecast.client.range_bounds",
    "resolution": "stablecast.client.source_discovery",
    "use_certificates": "stablecast.runtime.tls:use",
}
"""The module of each public name, with its name there if that is another one; `*` is the module itself.

A name is imported when it is first used, because most programs use few of them.
"""


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, other = _PLACES[name].partition(":")
    found = import_module(module)
    if other != "*":
        found = getattr(found, other or name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
