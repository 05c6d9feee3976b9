"""The asyncio client: a `Context` makes each `Source` and `Receiver`.

async with Context(resolver=["127.0.0.1:15380"]) as context:
    source = await context.source("orders", stores=["127.0.0.1:14567"])
    sent = await source.send(b"one")
    await sent.stable()
    async for message in context.receiver("orders", session_id=7):
        print(message.payload)
"""

from stablecast.client.context import Context
from stablecast.client.errors import (
    Closed,
    EndpointFailed,
    MessageTooLarge,
    NotRegistered,
    NotStable,
    PayloadError,
    RegistrationFailed,
)
from stablecast.client.event_details import EventDetails
from stablecast.client.message import AckHandle, Batch, Message
from stablecast.client.range_bounds import last
from stablecast.client.range_reader import MissingRange, RangeReader, ReadFailed
from stablecast.client.receiver import Receiver
from stablecast.client.reg_id_request import RegIdRequest
from stablecast.client.source import Sent, Source
from stablecast.client.source_discovery import resolution
from stablecast.client.wildcard import WildcardReceiver
from stablecast.runtime.tls import use as use_certificates

__all__ = [
    "AckHandle",
    "Batch",
    "Closed",
    "Context",
    "EndpointFailed",
    "EventDetails",
    "Message",
    "MessageTooLarge",
    "MissingRange",
    "NotRegistered",
    "NotStable",
    "PayloadError",
    "RangeReader",
    "ReadFailed",
    "Receiver",
    "RegIdRequest",
    "RegistrationFailed",
    "Sent",
    "Source",
    "WildcardReceiver",
    "last",
    "resolution",
    "use_certificates",
]
