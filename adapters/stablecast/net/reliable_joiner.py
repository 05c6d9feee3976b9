"""Joining a source's session over LBT-RM or LBT-RU: what `Joiner` is to a TCP stream."""

from collections.abc import Callable

from stablecast.core.inputs import Lost
from stablecast.net.reliable_receivers import ReliableReceivers
from stablecast.net.stream import Item
from stablecast.net.where import Where
from stablecast.transports import codec
from stablecast.transports.reliable import effects as fx
from stablecast.transports.reliable.settings import ReceiverSettings


class ReliableJoiner:
    """One session. `on_items` gets its ID and what arrives, in the order of arrival.

    `on_lost` gets what the topic of a life lost; `on_end(True)` says that it is over. Callbacks may call the joiner.
    """

    def __init__(
        self,
        receivers: ReliableReceivers,
        where: Where,
        settings: ReceiverSettings,
        on_items: Callable[[int, list[Item]], None],
        on_lost: Callable[[Lost], None],
        on_end: Callable[[bool], None],
    ) -> None:
        """Join. Raises PortError; AddressError if the context has joined the session already."""
        self._session_id = where.session_id
        self._on_items = on_items
        self._on_lost = on_lost
        self._on_end = on_end
        self._over = False
        self._joined = receivers.join(where, self._perform, settings)

    def pause(self) -> None:
        """Read no more for now; the kernel keeps some, and what it drops is asked for again."""
        self._joined.pause()

    def resume(self) -> None:
        """Read on."""
        self._joined.resume()

    async def close(self) -> None:
        """Leave."""
        self.abandon()

    def abandon(self) -> None:
        """Leave; no callback is called any more."""
        if not self._over:
            self._over = True
            self._joined.close()

    def _perform(self, effect: fx.ReceiverEffect) -> None:
        if self._over:
            return
        match effect:
            case fx.Received(items):
                self._on_items(self._session_id, items)
            case fx.TopicLost(topic, first, count):
                self._on_lost(Lost(codec.join(self._session_id, topic), first, count))
            case fx.SessionEnded():
                self.abandon()
                self._on_end(True)
            case _:  # Began; datagrams that are lost are none of the application's.
                pass
