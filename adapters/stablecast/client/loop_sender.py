"""A sender on an event loop: the times of its blocks, its stream and request port, and what its events change.

Beside the times of batching (`stablecast.core.source.outbox`), a block leaves on `flush`, before a caller waits for
credit or stability, and before a joiner is greeted.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from stablecast.client.callbacks import notify
from stablecast.client.errors import EndpointFailed, RegistrationTroubles
from stablecast.client.event_details import MessageTags
from stablecast.client.loop_ownership import check_loop
from stablecast.client.message_ids import SentIds
from stablecast.client.parcel import Annotation, Packing
from stablecast.client.sender import Sender
from stablecast.client.stability import Stability
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol import events, inputs
from stablecast.core.protocol.messages import Role
from stablecast.core.protocol.settings import SourceConfig
from stablecast.core.source.outbox import FULL, PLAN, PROMPT
from stablecast.evidence.trace import recorder
from stablecast.runtime import machine
from stablecast.runtime.connection_pool import ConnectionPool
from stablecast.runtime.driver import Driven, Driver, describe, report
from stablecast.runtime.stream import StreamServer
from stablecast.runtime.wakeup_latency import Courtesy
from stablecast.transports.wire.lbmc import DATA_HEADER, MAX_MESSAGE

if TYPE_CHECKING:
    from stablecast.client.message_spans import MessageSpans
    from stablecast.runtime.reliable_stream import ReliableStream
    from stablecast.transports.resolution.udp.settings import AdvertiseOptions

RESERVED = 64
"""Bytes of a datagram kept for headers: of the transport, of the message, and of its retransmission."""

MAX_PAYLOAD = MAX_MESSAGE - RESERVED - DATA_HEADER.size
"""Bytes of the largest message over TCP that is not cut."""

MAX_CUT = 32 * 1024 * 1024
"""Bytes of the largest message over TCP: half of the queue that a slow joiner may have."""

REPORT_SECONDS = 0.01
"""Seconds after which the machine gets a report of messages that left at once, if no other input comes before.

A receiver that the kernel has woken on this core need not wait for that report. A recorded source reports at the end of
the turn, because a receiver's trace should not run ahead of its source's trace for long."""


class LoopSender(Sender):
    """The part of a source that runs by itself."""

    def __init__(
        self,
        config: SourceConfig,
        pool: ConnectionPool,
        on_event: Callable[[events.Event], None] | None,
        trace: Path | None,
        annotations: Sequence[Annotation] = (),
        spans: "MessageSpans | None" = None,
    ) -> None:
        """Make a source that has not started. Raises TraceError, ConfigError.

        Each message gets the properties of `annotations`, and a span of `spans` if there are some.
        """
        self.topic = config.topic
        self.place = config.transport
        self.advertise: AdvertiseOptions | None = None
        self.on_close: Callable[[], None] | None = None
        self.on_forced_reclaim: Callable[[events.Reclaimed], None] | None = None
        self.on_receiver_gone: Callable[[events.ReceiverGone], None] | None = None
        self.stream: StreamServer | ReliableStream | None = None
        self.courtesy: Courtesy | None = None
        self._pool = pool
        self._on_event = on_event
        self._prepare(config)
        self._packing = Packing(config.topic, annotations, spans)
        self.fit(MAX_PAYLOAD, MAX_CUT)
        recording = recorder(Role.SOURCE, config.topic, self._machine, trace)
        driven: Driven[inputs.SourceInput, fx.SourceEffect] = Driven(self._machine, recording)
        self._driver = Driver(driven, self._perform, self.fail, self._report)
        self._feed = self._driver.feed
        self._reports_late = recording is None
        self._report_timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._ident = machine.threads.ident
        self._thread = self._ident()
        self._timer: asyncio.TimerHandle | None = None
        self._changed = asyncio.Event()
        self._closed = False
        self._whose = f"source '{config.topic}'"
        self._end_reason = f"{self._whose} was closed"
        self._stability = Stability.of(config, self._machine.status)
        self._ids = SentIds()
        self._tags = MessageTags(keeps_late=config.confirmations)
        self._troubles = RegistrationTroubles()
        self._failure: EndpointFailed | None = None

    @property
    def life(self) -> int:
        """Return the number of this life of the source, 64 bits; messages have it as `Message.life`."""
        return self.config.incarnation

    def disown(self) -> None:
        """Refuse every later call, because this is a forked process."""
        self._thread = -1
        self._out.collects, self._out.prompt = False, 0

    async def start(self, stream: "StreamServer | ReliableStream") -> None:
        """Let joiners in, and register with the stores."""
        self.stream = stream
        await stream.start()
        self._driver.feed(inputs.Start())

    def move(self, reply_to: str, place: str) -> None:
        """Go on at other addresses: those of the request port and of the stream."""
        self.config, self.place = attrs.evolve(self.config, reply_to=reply_to, transport=place), place
        self.receive(inputs.Moved(reply_to, place))

    @property
    def over(self) -> bool:
        """Return True if the source can send no more: closed, failed, deregistered, or replaced by another life."""
        return self._out.ended

    async def until_failed(self) -> EndpointFailed:
        """Wait until an effect of the machine failed and ended the source; return the failure. May wait for ever."""
        while self._failure is None:
            await self._change()
        return self._failure

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def fit(self, plain: int, largest: int) -> None:
        """Set the bytes of the largest message that is not cut, and of the largest one."""
        self.max_payload, self.max_message = plain, largest
        self._room = self._packing.room = plain + DATA_HEADER.size
        self._out.limit(-1 if self._packing.adds else plain)

    def collect(self, minimum_bytes: int, span_ns: int) -> None:
        """Set when a block leaves: at `minimum_bytes`, or after `span_ns` nanoseconds (0: when the turn ends)."""
        self._out.collect(minimum_bytes, span_ns)

    @property
    def next_number(self) -> int:
        """Return the extended number of the next message."""
        return self._out.next

    @property
    def stable_through(self) -> int:
        """Return the extended number up to which all messages of this life are stable."""
        return self._stability.through

    def flush(self) -> None:
        """Write all buffered messages to the stream now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._out.end_interval()
        super().flush()

    def hold(self, held: bool) -> None:
        """Stop or resume sending, because the transport is full or has room again (T13)."""
        if not self._reports_late:
            self._feed(inputs.Held(held))  # Only a trace needs it.
        if self._out.hold(held):
            self._on_notify(events.Wakeup())

    def _act(self, act: int) -> None:
        """Plan the end of the turn or of the interval, and let messages leave, as the outbox decided."""
        out = self._out
        if act & PLAN:
            if out.span_ns:
                self._timer = self._loop.call_later(out.span_ns / SECOND, self._planned_flush)
            else:
                try:
                    self._loop.call_soon(self._planned_flush)
                except RuntimeError:  # The loop is closed.
                    out.end_turn()
                    check_loop(self._loop, self._whose)
                    raise
        if act & PROMPT:
            self._emit_prompt()
            if out.calm and self.courtesy is not None:
                self.courtesy.give_way()  # A receiver that this wakes on our core runs first.
        elif act & FULL:
            self.flush()

    def _planned_flush(self) -> None:
        act = self._out.end_turn()
        if act == FULL or (act and not self._reports_late):
            self.flush()
        elif act and self._report_timer is None:
            self._report_timer = self._loop.call_later(REPORT_SECONDS, self._report_late)

    def _report_late(self) -> None:
        self._report_timer = None
        self._report()

    def _block(self, size: int) -> bool:
        """Ask the machine for a `Wakeup` when there is room; return True if there is room already."""
        question = self._out.refuse(size)
        if question is not None:
            self._feed(question)
        return self._out.fits(size)

    def receive(self, event: inputs.SourceInput) -> None:
        """Feed the machine; the context calls this."""
        self._report()
        self._feed(event)

    def stores_of(self, _: int, index: int | None = None) -> list[str]:
        """Return the addresses of the stores of the source, or of the store with an index."""
        return self._machine.status.stores(index)

    def registered_names(self) -> list[str]:
        """Return the names of the stores that have registered the source and are not silent."""
        known, stores = self._machine.status.registrations, self.config.stores
        return [stores[index].name for index, one in known.items() if one.present]

    def _write(self, octets: bytes) -> None:
        if self.stream is not None:
            self.stream.write(octets)

    def _send_to(self, address: str, octets: bytes) -> None:
        self._pool.send(address, octets)

    @property
    def _domain(self) -> int:
        return self._pool.routing.domain

    def _has_room(self, address: str) -> bool:
        return self._pool.room(address)

    def _released(self, number: int) -> None:
        if self._tags:
            self._tags.release(number)

    def fail(self, what: object, error: Exception) -> None:
        """End the source, because an effect failed; raise the reason for every caller that sends or waits.

        The machine counts on the effect. Going on would build promises on an act that did not happen. Messages that
        are stable stay stable at the stores.
        """
        if self._closed or self._failure is not None:
            return
        cause = f"{describe(what)} failed: {type(error).__name__}: {error}"
        text = f"{self._whose} ended: {cause}; make a new source"
        self._failure = EndpointFailed(text)
        self._failure.__cause__ = error
        report(text, error)
        self._driver.close()
        self._end(text)

    def _on_stable(self, first: int, last: int) -> None:
        self._stability.on_stable(first, last)
        self._changed.set()
        super()._on_stable(first, last)

    def _on_notify(self, event: events.Event) -> None:
        if self._closed:
            return
        event = self._pool.explained(event)
        match event:
            case events.NotStable():
                self._stability.on_lost_at_store(event.first, event.last)
                self._changed.set()
            case events.Reclaimed():
                self._stability.on_reclaimed(event.first, event.last)
                self._changed.set()
                if event.forced and self.on_forced_reclaim is not None:
                    notify(self.on_forced_reclaim, event, self._whose)
            case events.ReceiverGone():
                notify(self.on_receiver_gone, event, self._whose)
            case events.Wakeup():
                self._changed.set()
            case events.StoreUnresponsive() | events.RegistrationError():
                self._troubles.add(event)
            case events.RegistrationComplete():
                if not self._out.begun:  # The first registration fixes the first number.
                    self._stability.begin(event.number)
                self._troubles.clear()
                self._changed.set()
            case events.QuorumLost():
                self._changed.set()
            case events.Overtaken():
                self._end(f"another life of {self._whose} has taken its place: make a new source")
            case events.DeregistrationComplete():
                self._end(f"{self._whose} was deregistered")
        super()._on_notify(event)
        notify(self._on_event, event, self._whose)

    def _end(self, reason: str) -> None:
        """Send no more, and wake every caller that waits."""
        self._end_reason = reason
        self._stability.close(reason)
        self._out.ended = True
        self._out.renew()
        self._changed.set()
