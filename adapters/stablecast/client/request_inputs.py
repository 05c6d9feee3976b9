"""Input of a context's request port: control messages and retransmissions for its sources and receivers.

A message names the life of a source. The life's session is found by an index, because a context may have thousands of
receivers.
"""

from collections import Counter
from collections.abc import Mapping

import attrs

from stablecast.client.range_inquiry import ControlConsumer, RangeRoutes
from stablecast.client.receiver import Receiver
from stablecast.client.source import Source
from stablecast.core.protocol import messages
from stablecast.core.protocol.inputs import Arrived, Departed
from stablecast.core.protocol.stored_contents import StoredAnswer
from stablecast.runtime.origins import Origin, Origins
from stablecast.runtime.request_port import FarPeer, Found, Peer, decoded
from stablecast.runtime.routing import Routing
from stablecast.runtime.stream import Item
from stablecast.transports import codec

MAX_VOICES = 65_536
"""Receivers and contexts of which the connection is remembered that speaks for them."""


@attrs.frozen
class RequestInputs:
    """Feeds input to sources and receivers, which it finds by the life of the source; `oddities` counts bad input.

    A message that decides something counts only from the process that may say it (`routing.origins`).
    """

    sources: Mapping[int, Source]
    receivers: Mapping[int, Receiver]
    oddities: Counter[str]
    reads: RangeRoutes
    routing: Routing
    _voices: dict[tuple[int, ...], Peer | FarPeer] = attrs.field(factory=dict)

    @property
    def origins(self) -> Origins:
        """The processes that this one connected to."""
        return self.routing.origins

    def on_left(self, peer: Peer) -> None:
        """Notify sources that the receivers behind a connection are gone (P-338)."""
        for context in peer.contexts:
            for source in list(self.sources.values()):
                source.receive(Departed(context))

    def on_items(self, items: list[Item], peer: Peer) -> None:
        recovered: dict[int, list[codec.Recovered | codec.RecoveredRun]] = {}
        believed: dict[tuple[Origin, int], bool] = {}
        for found, sender in decoded(items, peer, self.oddities, self.routing):
            if not isinstance(found, codec.Recovered | codec.RecoveredRun):
                self._route(found, sender)
                continue
            key = sender.origin, found.session
            if key not in believed:
                receiver = self.receivers.get(found.session)
                topic = None if receiver is None else receiver.topic
                believed[key] = self._answers(sender, found, topic)
            if believed[key]:
                recovered.setdefault(found.session, []).append(found)
        for incarnation, again_sent in recovered.items():
            receiver = self.receivers.get(incarnation)
            if receiver is not None:
                receiver.on_recovered(incarnation, again_sent)
            if incarnation in self.reads.readings:
                self.reads.on_recovered(incarnation, again_sent)

    def _route(self, message: messages.Message, peer: Peer | FarPeer) -> None:
        if isinstance(message, StoredAnswer):
            if self._answers(peer, message, None):
                self.reads.on_answer(message)
            return
        role = addressee(message)
        source = self.sources.get(message.incarnation)
        if role is not messages.Role.RECEIVER and source is not None and self._may_say(message, source, peer):
            if isinstance(message, messages.ReceiverAlive):
                peer.alive(message.context)
            source.receive(Arrived(message))
        receiver = self.receivers.get(message.incarnation)
        if role is not messages.Role.SOURCE and receiver is not None and self._may_say(message, receiver, peer):
            receiver.on_control(message)
        consumer = self.reads.consumers.get(message.incarnation)
        if role is not messages.Role.SOURCE and consumer is not None and self._may_say(message, consumer, peer):
            consumer.on_control(message)

    def _may_say(
        self, message: messages.Message, client: Source | Receiver | ControlConsumer, peer: Peer | FarPeer
    ) -> bool:
        """Return whether a message comes from the process whose business it is, and the policy lets it say that."""
        topic = client.topic if isinstance(client, Source | Receiver) else None
        if not self.origins.may_say(peer.origin, message, topic):
            return False
        match message:
            case messages.ConsumptionAck():
                return self._is_voice(message, peer)
            case messages.ReceiverAlive():
                # The end of this connection will end all receivers of the context, so it must be the context's.
                return self._is_voice(message, peer) and self._is_first(
                    (message.incarnation, message.context), peer, message
                )
            case messages.RetransmitRequest() | messages.LateJoinRequest():
                # A store forwards requests of receivers, and the answer goes to the receiver (P-404).
                stores = client.stores_of(message.incarnation)
                return self.origins.speaks_for(peer.origin, [message.reply_to, *stores], message)
            case messages.SourceInfoRequest():
                return True
            case messages.SourceInfo() | messages.LateJoinInfo() | messages.Keepalive(store_index=messages.ANY_STORE):
                return self.origins.answers(peer.origin, message)
            case (
                messages.StableAck()
                | messages.Keepalive()
                | messages.Registered()
                | messages.Refused()
                | messages.Deregistered()
            ):
                stores = client.stores_of(message.incarnation, message.store_index)
                return self.origins.speaks_for(peer.origin, stores, message)
            case _:
                return True  # A machine reports a message that is not for it.

    def _answers(self, peer: Peer | FarPeer, found: Found | StoredAnswer, topic: str | None) -> bool:
        """Return whether an answer about a topic comes from a process that was asked, and may have the answer."""
        return self.origins.may_say(peer.origin, found, topic) and self.origins.answers(peer.origin, found)

    def _is_voice(self, message: messages.ConsumptionAck | messages.ReceiverAlive, peer: Peer | FarPeer) -> bool:
        return self._is_first((message.incarnation, message.receiver_reg_id, message.session_id), peer, message)

    def _is_first(self, whom: tuple[int, ...], peer: Peer | FarPeer, message: messages.Message) -> bool:
        """Return whether a peer may speak for somebody: while the first that did is connected, no other one may."""
        first = self._voices.get(whom)
        if first is not None and not first.ended.is_set():
            return self.origins.agree(peer.origin, first.origin, message)
        self._voices[whom] = peer
        if len(self._voices) > MAX_VOICES:
            del self._voices[next(iter(self._voices))]
        return True


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
