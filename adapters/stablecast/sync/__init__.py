"""The client for programs without an event loop: the names of `stablecast.client`, with calls that block.

with Context(resolver=["127.0.0.1:15380"]) as context:
    source = context.source("orders", stores=["127.0.0.1:14567"])
    source.send(b"one").stable()
    for message in context.receiver("orders", session_id=7):
        print(message.payload)

A context has an event loop in a thread of its own. Every thread may call every method. Callbacks run in that thread:
they must not block, and a blocking call inside one raises MisuseError.
"""

from stablecast.sync.context import Context, GroupReceiver, Receiver, Sent, Source, WildcardReceiver
from stablecast.sync.reader import Message

__all__ = ["Context", "GroupReceiver", "Message", "Receiver", "Sent", "Source", "WildcardReceiver"]
