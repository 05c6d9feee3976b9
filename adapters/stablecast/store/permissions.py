"""Who may say what to a store: a message counts only from the process whose business it is (`runtime.origins`).

A client answers for its registration from the address that it registered. What another store or a source sends is an
answer, so it comes from a process that this store asked. While a proxy stands in for a source, the source may leave
from any address that is its own. With TLS the policy must also give it the role for the topic (`runtime.policy`).
"""

from collections.abc import Callable

import attrs

from stablecast.core.protocol import messages
from stablecast.core.protocol.stored_contents import StoredQuestion
from stablecast.core.store.status import StoreStatus
from stablecast.runtime import address
from stablecast.runtime.connection_pool import ConnectionPool
from stablecast.runtime.request_port import FarPeer, Found, Peer
from stablecast.transports import codec


@attrs.frozen
class Permissions:
    """Judge the messages to a store with this `status`, whose `pool` connected to its clients and to other stores.

    `everywhere`: the store listens at all addresses of its host, and answers from the one that was asked.
    `refuse` answers a registration that the policy does not allow.
    """

    status: Callable[[], StoreStatus]
    pool: ConnectionPool
    everywhere: bool
    refuse: Callable[[messages.Register], None]

    def may_say(self, message: Found, peer: Peer | FarPeer) -> bool:
        """Return whether a message comes from the process whose business it is, and the policy lets it say that."""
        origins = self.pool.origins
        if not self._is_theirs(message, peer):
            return False
        if origins.policy is None or origins.may_say(peer.origin, message, self._topic(message)):
            return True
        if isinstance(message, messages.Register):
            self.refuse(message)
        return False

    def _topic(self, message: Found) -> str | None:
        """Return the topic of a message; empty: all topics, None: that of nothing here."""
        holder = self.status().holder
        match message:
            case messages.Register() | StoredQuestion(reg_id=0):
                return message.topic
            case messages.ConsumptionAck():
                client = holder(message.receiver_reg_id)
            case messages.RetransmitRequest():
                client = holder(message.source_reg_id)
            case messages.Keepalive() | StoredQuestion():
                client = holder(message.reg_id)
            case codec.Recovered() | codec.RecoveredRun():
                client = holder(0, message.session)
            case _:
                client = holder(0, message.incarnation)
        return None if client is None else client.topic

    def _is_theirs(self, message: Found, peer: Peer | FarPeer) -> bool:
        origins = self.pool.origins
        match message:
            case messages.Register() | StoredQuestion() | messages.RetransmitRequest() | messages.LateJoinRequest():
                if not origins.speaks_for(peer.origin, [message.reply_to], message):
                    return False
                if self.everywhere and not peer.origin.far:
                    self.pool.answer_from(peer.own, address.parse(message.reply_to)[0])
                return True
            case messages.Deregister():
                # A store that lost its records may have given the RegID to another client, which this one does not end.
                leaver = self.status().leaver(message)
                proxy = leaver is not None and leaver.election is not None
                place = message.reply_to if leaver is None or proxy else leaver.reply_to
                return origins.speaks_for(peer.origin, [place], message)
            case messages.ConsumptionAck():
                holder = self.status().holder(message.receiver_reg_id)
            case messages.Keepalive():
                holder = self.status().holder(message.reg_id)
            case messages.SourceInfo():
                holder = self.status().holder(0, message.incarnation)
            case messages.LateJoinInfo() | codec.Recovered() | codec.RecoveredRun():
                return origins.answers(peer.origin, message)
            case _:
                return True  # The machine reports a message that is not for it.
        return origins.speaks_for(peer.origin, [] if holder is None else [holder.reply_to], message)
