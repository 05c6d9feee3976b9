"""A broker for FastStream: handlers of messages that stores keep until they are processed.

    broker = StablecastBroker(resolver=["127.0.0.1:15380"], stores=["127.0.0.1:14567"], session_id=7)

    @broker.subscriber("orders")
    @broker.publisher("bookings")
    async def book(order: Order) -> Booking:
        return Booking(order.item)

    app = FastStream(broker)

A message is acknowledged when its handler has returned and what the handler published is stable. A handler that raises
gets its message again.
"""

from stablecast.faststream.broker import StablecastBroker
from stablecast.faststream.message import StablecastBatchMessage, StablecastMessage
from stablecast.faststream.publish_command import StablecastPublishCommand, StablecastResponse
from stablecast.faststream.router import StablecastPublisher, StablecastRoute, StablecastRouter
from stablecast.faststream.tested_broker import TestStablecastBroker

__all__ = [
    "StablecastBatchMessage",
    "StablecastBroker",
    "StablecastMessage",
    "StablecastPublishCommand",
    "StablecastPublisher",
    "StablecastResponse",
    "StablecastRoute",
    "StablecastRouter",
    "TestStablecastBroker",
]
