"""The receiver's side of a source's session over LBT-RM or LBT-RU, as `StreamJoiner` is of a TCP stream."""

import asyncio
from collections.abc import Callable

import attrs

from stablecast.core.protocol.inputs import Lost
from stablecast.runtime.reliable_receivers import Joined, ReliableReceivers
from stablecast.runtime.source_strings import Where
from stablecast.runtime.stream import RETRY_SECONDS, Item
from stablecast.transports import codec
from stablecast.transports.reliable import effects as fx
from stablecast.transports.reliable.settings import ReceiverSettings


@attrs.define(eq=False)
class ReliableJoiner:
    """One joined session. `on_items` gets its ID and the items of all topics, in the order of arrival.

    `on_lost` gets the losses of one topic of the session; `on_end(True)` reports the end of the session. A `patient`
    joiner reports `on_end(False)` and joins again, because silence is no proof that the source is gone. Callbacks may
    call the joiner. LBT-RU uses the first free port of `ports`, (0, 0): of the documented range.

    Raises:
        PortError: The session cannot be joined, because no port is free.
    """

    _receivers: ReliableReceivers
    _where: Where
    _settings: ReceiverSettings
    _on_items: Callable[[int, list[Item]], None]
    _on_lost: Callable[[Lost], None]
    _on_end: Callable[[bool], None]
    _patient: bool = False
    _ports: tuple[int, int] = (0, 0)
    _paused: bool = False
    _claims: set[int] = attrs.field(init=False, factory=set)
    _again: asyncio.TimerHandle | None = None
    _joined: Joined | None = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Join."""
        self._joined = self._receivers.join(self._where, self._perform, self._settings, self._ports)

    def repairs(self) -> tuple[int, int]:
        """Return the numbers that the session requested by NAKs, and those that arrived twice."""
        return (0, 0) if self._joined is None else self._joined.repairs()

    def claim(self, topic: int) -> None:
        """Get the items of this topic index and of others that are claimed, instead of all (`Joined.claim`)."""
        self._claims.add(topic)
        if self._joined is not None:
            self._joined.claim(topic)

    def pause(self) -> None:
        """Stop reading; the kernel keeps some datagrams, and the protocol requests the others again."""
        self._paused = True
        if self._joined is not None:
            self._joined.pause()

    def resume(self) -> None:
        """Continue to read after `pause`."""
        self._paused = False
        if self._joined is not None:
            self._joined.resume()

    async def close(self) -> None:
        """Leave the session, like `abandon`."""
        self.abandon()

    def abandon(self) -> None:
        """Leave the session; no callback is called afterwards."""
        # The timer exists only between a silence and the next attempt.
        if self._again is not None:
            self._again.cancel()
        self._leave()

    def _leave(self) -> None:
        joined, self._joined = self._joined, None
        if joined is not None:
            joined.close()

    def _perform(self, effect: fx.ReceiverEffect) -> None:
        if self._joined is None:
            return
        match effect:
            case fx.Received(items):
                self._on_items(self._where.session_id, items)
            case fx.TopicLost(topic, first, count):
                self._on_lost(Lost(codec.join(self._where.session_id, topic), first, count))
            case fx.SessionEnded():
                self._leave()
                if self._patient:  # Before `on_end`, which may abandon this joiner and cancel the timer.
                    self._again = asyncio.get_running_loop().call_later(RETRY_SECONDS, self._join_again)
                self._on_end(not self._patient)
            # Began, and lost datagrams: only lost messages concern the application.

    def _join_again(self) -> None:
        self._joined = self._receivers.join(self._where, self._perform, self._settings, self._ports)
        for topic in self._claims:
            self._joined.claim(topic)
        if self._paused:
            self._joined.pause()
