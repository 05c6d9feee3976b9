"""Calls of the application's callbacks, and what they are asked. Drivers go on, whatever a callback raises."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import attrs

from stablecast.client.batch import Batch
from stablecast.client.inbox import Inbox
from stablecast.client.iteration import TURN_SECONDS
from stablecast.client.message import Message
from stablecast.core.protocol.events import Event
from stablecast.runtime import machine
from stablecast.runtime.driver import report

EventT = TypeVar("EventT", bound=Event)

STRIDE = 8
"""Calls between two readings of the clock, while calls are short."""

LONG_SECONDS = 0.001
"""Seconds for one stride. After a longer stride the clock is read after each call."""


@attrs.frozen
class RegIdRequest:
    """The question for the RegID of a receiver at one store (P-249).

    Attributes:
        store_index: The index of the store in the source's list.
        store: Its address `ip:port`.
        source_reg_id: The RegID of the source there.
        source: The source's transport, as `TCP:ip:port` or a source string.
    """

    store_index: int
    store: str
    source_reg_id: int
    source: str


def notify(on_event: Callable[[EventT], None] | None, event: EventT, whose: str) -> None:
    """Report an event to the application. An exception of its callback goes to the event loop's exception handler."""
    if on_event is None:
        return
    try:
        on_event(event)
    except Exception as error:  # noqa: BLE001  # the application raised it; it is reported
        report(f"the on_event callback of {whose} failed", error)


class CallbackDelivery:
    """Delivery of each message to a callback. A message is consumed when its call has returned.

    The calls of one turn of the event loop take `TURN_SECONDS` plus one call, or plus `STRIDE` short calls. Other
    batches wait in the inbox for the next turn. If calls kept the loop for longer than `patience`, consumed messages
    are acknowledged before the next call. When a call raises, deliveries end.
    """

    def __init__(
        self, on_message: Callable[[Message], object], whose: str, inbox: Inbox[Batch], patience: float
    ) -> None:
        """Call `on_message`.

        Args:
            on_message: The application's callback.
            whose: The name of the receiver in reports.
            inbox: The queue for batches that must wait.
            patience: The interval of acknowledgements, in seconds.
        """
        self._on_message = on_message
        self._whose = whose
        self._inbox = inbox
        self._patience = patience
        self._stride = 1
        self._spent = 0.0
        self._waits = self._refused = False

    def deliver_queued(self, batch: Batch) -> None:
        """Deliver a batch through the inbox, which may hold some of its messages back."""
        if self._refused:
            return
        self._inbox.put(batch)
        if not self._waits:
            self._waits = True
            self._call_waiting()

    def deliver(self, batch: Batch) -> None:
        """Deliver a batch now, or queue it if a call is running or the turn of the event loop is over."""
        if self._refused:
            return
        if self._waits:
            self._inbox.put(batch)
            return
        self._waits = True
        self._call(batch)
        if self._inbox or self._spent > TURN_SECONDS:
            self._call_waiting()
        else:
            self._waits = False

    def _call(self, batch: Batch) -> None:
        index, stop, count, payloads = 0, 0, batch.count, batch.payloads()
        on_message, spent = self._on_message, self._spent
        monotonic = machine.clock.monotonic
        started = now = monotonic()
        try:
            while stop < count and spent <= TURN_SECONDS:
                for index in range(stop, min(stop + self._stride, count)):  # `index` is needed below if a call raises
                    on_message(Message(payloads[index], batch, index))
                stop = index + 1
                before, now = now, monotonic()
                self._stride = STRIDE if now - before < LONG_SECONDS else 1
                spent = self._spent + now - started
        except Exception as error:  # noqa: BLE001  # the application raised it; it is reported
            self._refused = True
            batch.settle(index)
            self._inbox.clear()
            report(f"the on_message callback of {self._whose} failed", error)
            return
        self._spent = spent
        batch.settle(stop)
        if now - started > self._patience:
            batch.owner.acknowledge_now()
        if stop < count:
            self._inbox.put_back(batch.part(stop, count))
            batch.cut(stop)

    def _call_waiting(self) -> None:
        """Deliver waiting batches while this turn of the event loop has time."""
        while self._inbox and self._spent <= TURN_SECONDS:
            batch = self._inbox.next_batch()
            if batch is not None:
                self._call(batch)
        self._waits = bool(self._inbox) or self._spent > TURN_SECONDS
        if self._waits:
            asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._spent = 0.0
        self._call_waiting()
