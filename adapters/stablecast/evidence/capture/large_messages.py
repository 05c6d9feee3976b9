"""Large messages of a capture: reassembled where all their pieces were captured.

A message appears with the frame that completes it. If pieces were not captured, only the pieces appear.
"""

from collections import OrderedDict

import attrs

from stablecast.core.machine import serial
from stablecast.evidence.capture.ip import Endpoint
from stablecast.evidence.capture.layers import Large, Layer
from stablecast.transports.codec.chained_messages import ChainedPiece
from stablecast.transports.codec.fragments import FragmentReassembly, WholeMessage
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc, properties
from stablecast.transports.wire.errors import WireError

MAX_HELD = 64 * 1024 * 1024
"""Bytes of waiting pieces; beyond that the topic that was silent for longest is dropped."""

Key = tuple[Endpoint, Endpoint, int]
"""Key of a reassembly: sender, receiver or group, and the index of the topic."""


@attrs.define
class CapturedLargeMessages:
    """Waiting pieces by topic; `newest` are the full numbers near those of the wire."""

    topics: OrderedDict[Key, FragmentReassembly] = attrs.field(factory=OrderedDict)
    newest: dict[Key, int] = attrs.field(factory=dict)
    held: int = 0

    def reassemble(self, ends: tuple[Endpoint, Endpoint], layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
        """Return the layers of a frame, with a complete message after its last piece."""
        found: list[Layer] = []
        for layer in layers:
            found.append(layer)
            if isinstance(layer.record, lbmc.Message):
                fragment = next((header for header in layer.record.headers if isinstance(header, h.Fragment)), None)
                if fragment is not None:
                    found += self._piece((*ends, layer.record.topic_index), layer.record, fragment)
        return tuple(found)

    def _piece(self, key: Key, message: lbmc.Message, fragment: h.Fragment) -> list[Layer]:
        topic = self.topics.setdefault(key, FragmentReassembly())
        self.topics.move_to_end(key)
        near = self.newest.get(key, message.sequence + serial.MODULUS)  # The message may have begun before the wrap.
        number = self.newest[key] = serial.extend(message.sequence, near)
        before = topic.held
        whole = topic.add(number, ChainedPiece(message.payload, fragment, _properties_length(message)))
        topic.take_passed()
        self.held += topic.held - before
        while self.held > MAX_HELD:
            oldest, given_up = self.topics.popitem(last=False)
            self.held -= given_up.held
            del self.newest[oldest]
        return [] if whole is None else _layers(message.topic_index, whole)


def _properties_length(message: lbmc.Message) -> int:
    chain = next((header for header in message.headers if isinstance(header, h.ApplicationChain)), None)
    return 0 if chain is None else chain.properties_length()


def _layers(topic_index: int, whole: WholeMessage) -> list[Layer]:
    size = len(whole.payload) + len(whole.properties)
    first, last = serial.wire(whole.first), serial.wire(whole.last)
    found = [Layer("LBMC", "LARGE", Large(topic_index, first, last, size, whole.payload))]
    try:
        if whole.properties:
            found.append(Layer("PROPERTIES", "BLOCK", properties.decode(whole.properties)))
    except WireError:
        pass  # The bytes are the application's; each piece was judged by itself.
    return found
