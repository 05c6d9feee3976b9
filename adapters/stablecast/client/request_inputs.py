"""Input of a context's request port: control messages and retransmissions for its sources and receivers.

A message names the life of a source. The life's session is found by an index, because a context may have thousands of
receivers.
"""

from collections import Counter
from collections.abc import Mapping

import attrs

from stablecast.client.range_inquiry import RangeRoutes
from stablecast.client.receiver import Receiver
from stablecast.client.source import Source
from stablecast.core.protocol import messages
from stablecast.core.protocol.inputs import Arrived, Departed
from stablecast.core.protocol.stored_contents import StoredAnswer
from stablecast.runtime.request_port import Peer, decoded
from stablecast.runtime.stream import Item
from stablecast.transports import codec


@attrs.frozen
class RequestInputs:
    """Feeds input to sources and receivers, which it finds by the life of the source; `oddities` counts bad input."""

    sources: Mapping[int, Source]
    receivers: Mapping[int, Receiver]
    oddities: Counter[str]
    reads: RangeRoutes

    def on_left(self, peer: Peer) -> None:
        """Notify sources that the receivers behind a connection are gone (P-338)."""
        for context in peer.contexts:
            for source in list(self.sources.values()):
                source.receive(Departed(context))

    def on_items(self, items: list[Item], peer: Peer) -> None:
        """Feed what a connection received."""
        recovered: dict[int, list[codec.Recovered | codec.RecoveredRun]] = {}
        for found in decoded(items, self.oddities):
            if isinstance(found, codec.Recovered | codec.RecoveredRun):
                recovered.setdefault(found.session, []).append(found)
                continue
            if isinstance(found, messages.ReceiverAlive):
                peer.alive(found.context)
            self._route(found)
        for incarnation, again_sent in recovered.items():
            receiver = self.receivers.get(incarnation)
            if receiver is not None:
                receiver.on_recovered(incarnation, again_sent)
            if incarnation in self.reads.readings:
                self.reads.on_recovered(incarnation, again_sent)

    def _route(self, message: messages.Message) -> None:
        if isinstance(message, StoredAnswer):
            self.reads.on_answer(message)
            return
        role = addressee(message)
        source = self.sources.get(message.incarnation)
        if role is not messages.Role.RECEIVER and source is not None:
            source.receive(Arrived(message))
        receiver = self.receivers.get(message.incarnation)
        if role is not messages.Role.SOURCE and receiver is not None:
            receiver.on_control(message)
        consumer = self.reads.consumers.get(message.incarnation)
        if role is not messages.Role.SOURCE and consumer is not None:
            consumer.on_control(message)


def addressee(message: messages.Message) -> messages.Role | None:
    """Return whether a message to the request port is for a source or a receiver; None means either.

    A store's keepalive has only a RegID, which both may have.
    """
    match message:
        case messages.Registered() | messages.Refused() | messages.Deregistered():
            return message.role
        case messages.SourceInfo() | messages.LateJoinInfo():
            return messages.Role.RECEIVER
        case messages.Keepalive():
            return None
        case _:
            return messages.Role.SOURCE
