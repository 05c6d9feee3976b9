"""Topics with typed payloads: `Topic("orders", Order)` sends and receives objects of one type."""

from stablecast.typed.payload_codec import PayloadCodec, PayloadFormat
from stablecast.typed.topic import Topic, TypedMessage, TypedReceiver, TypedSource

__all__ = ["PayloadCodec", "PayloadFormat", "Topic", "TypedMessage", "TypedReceiver", "TypedSource"]
