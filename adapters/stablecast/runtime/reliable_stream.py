"""A source's data over LBT-RM or LBT-RU, from both sides: its stream on a session that it may share, and the joiner.

While the rate limit is reached, the source is held, and the blocks that it wrote before wait here. A TCP stream greets
each joiner; this stream repeats its greeting at intervals instead, with the number below which nothing can be missing.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from stablecast.core.protocol.inputs import Lost
from stablecast.runtime.driver import report
from stablecast.runtime.ports import PortError
from stablecast.runtime.source_strings import Where
from stablecast.runtime.stream import RETRY_SECONDS, Item
from stablecast.transports import codec
from stablecast.transports.reliable import effects as fx
from stablecast.transports.reliable.batches import BatchMark
from stablecast.transports.reliable.settings import ReceiverSettings
from stablecast.transports.wire.lbmc import MessageKind

if TYPE_CHECKING:  # A joiner needs no sources, and a stream no receivers.
    from stablecast.runtime.reliable_receivers import Joined, ReliableReceivers
    from stablecast.runtime.reliable_sources import ReliableSources

STANDING_SECONDS = 0.5
"""Interval of the greeting, and so the longest wait of a receiver that joins."""

STANDINGS_PER_SECOND = 1000
"""Greetings of all sources of a context; with more sources, the interval of each grows."""

MAX_WAITING = 64
"""Blocks that wait for the rate limit; beyond that control messages are dropped, because the source repeats them.

Data is never dropped: a held source sends none, so at most the data of one turn of its loop waits.
"""

CLOSE_SECONDS = 2.0
"""Time that closing waits until the rate limit allows to send the waiting blocks."""

LOOK_SECONDS = 0.01
"""Interval at which closing checks that."""


@attrs.define(eq=False, slots=False)  # Tests replace its methods.
class ReliableStream:
    """The sending side of one source, with the same methods as `StreamServer`.

    `standing` returns the greeting; `hold` gets whether the source must wait; `on_close` is called when the source has
    left the session. `on_failed` gets exceptions that no caller of `write` can catch.
    """

    _sources: "ReliableSources"
    _session: int
    _standing: Callable[[], bytes]
    _hold: Callable[[bool], None]
    _on_close: Callable[[], None] | None
    _on_failed: Callable[[Exception], None] | None = None
    _waiting: deque[bytes] = attrs.field(factory=deque)
    _timer: asyncio.TimerHandle | None = None
    _held: bool = False
    _wants: bool = False

    @property
    def place(self) -> str:
        """Return the source string of the session."""
        return str(self._sources.where(self._session))

    async def start(self) -> None:
        """Begin to send the greeting at its interval."""
        self._sources.streams += 1
        self._say_standing()

    def write(self, block: bytes) -> None:
        """Send to all receivers. Raises MisuseError for messages that can never be sent."""
        if len(self._waiting) >= MAX_WAITING and block[0] == MessageKind.CONTROL:
            return
        self._waiting.append(block)
        self._push()

    async def close(self) -> None:
        """Leave the session after the waiting blocks are sent, or after `CLOSE_SECONDS`.

        The session still retransmits lost datagrams for a while, until the context is closed.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._sources.streams -= 1
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                while self._on_close is not None and (self._waiting or self._sources.waits(self._session)):  # noqa: ASYNC110
                    await asyncio.sleep(LOOK_SECONDS)  # Nothing reports that the last datagram has left.
        except TimeoutError:
            pass  # The rate limit is too low for the last messages: those that are not stable stay unstable.
        finally:
            left, self._on_close = self._on_close, None
            if left is not None:
                left()

    def _push(self) -> None:
        sources = self._sources
        while self._waiting and not sources.blocked:
            block = self._waiting.popleft()
            if block[0] == MessageKind.CONTROL:
                sources.say(self._session, block)
            elif not sources.offer(self._session, block, BatchMark.END):
                self._waiting.appendleft(block)
                break
        held = sources.blocked
        if held and not self._wants:
            self._wants = True
            sources.when_room(self._go_on)
        if held != self._held:
            self._held = held
            self._hold(held)

    def _go_on(self) -> None:
        """Send waiting blocks again; no caller is there to catch an exception."""
        self._wants = False
        if self._on_close is None:
            return
        try:
            self._push()
        except Exception as error:
            if self._on_failed is None:
                raise
            self._on_failed(error)

    def _say_standing(self) -> None:
        wait = max(STANDING_SECONDS, self._sources.streams / STANDINGS_PER_SECOND)
        self._timer = asyncio.get_running_loop().call_later(wait, self._say_standing)
        block = b"" if self._waiting else self._standing()
        if block:
            self.write(block)


@attrs.define(eq=False)
class ReliableJoiner:
    """One joined session. `on_items` gets its ID and the items of all topics, in the order of arrival.

    `on_lost` gets the losses of one topic of the session; `on_end(True)` reports the end of the session. A `patient`
    joiner reports `on_end(False)` and joins again, because silence is no proof that the source is gone. Callbacks may
    call the joiner. LBT-RU uses the first free port of `ports`, (0, 0): of the documented range.

    Raises:
        PortError: The session cannot be joined, because no port is free.
    """

    _receivers: "ReliableReceivers"
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
    _joined: "Joined | None" = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
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
        try:
            self._joined = self._receivers.join(self._where, self._perform, self._settings, self._ports)
        except PortError as error:  # No descriptor or no port is free. That passes, and nobody else tries again.
            report(f"the session {self._where} cannot be joined again yet", error)
            self._again = asyncio.get_running_loop().call_later(RETRY_SECONDS, self._join_again)
            return
        for topic in self._claims:
            self._joined.claim(topic)
        if self._paused:
            self._joined.pause()
