"""Calling the application from inside the machines' drivers, which must go on whatever it raises."""

import asyncio
from collections.abc import Callable
from time import monotonic

from stablecast.client.inbox import Inbox
from stablecast.client.iteration import TURN_SECONDS
from stablecast.client.message import Batch, Message
from stablecast.core.protocol.events import Event
from stablecast.runtime.effect_execution import report

STRIDE = 8
"""Calls between two looks at the clock, where calls are short."""

LONG_SECONDS = 0.001
"""Calls that take longer, together, are long: then the clock is looked at after each of them."""


def tell(on_event: Callable[[Event], None] | None, event: Event, whose: str) -> None:
    """Tell the application; what its callback raises goes to the event loop's exception handler."""
    if on_event is None:
        return
    try:
        on_event(event)
    except Exception as error:  # noqa: BLE001  # it is the application's, and reported
        report(f"the on_event callback of {whose} failed", error)


class Handover:
    """Calls the application with each message, which is consumed when its call has returned.

    The calls of one turn of the event loop take `TURN_SECONDS` and one call, or `STRIDE` where calls were short; other
    batches wait in the inbox for the next turn. If calls kept the loop for longer than `patience`, the interval of
    acknowledgements in seconds, all that was consumed is acknowledged before the next call. When a call raises, nothing
    is handed over any more.
    """

    def __init__(
        self, on_message: Callable[[Message], object], whose: str, inbox: Inbox[Batch], patience: float
    ) -> None:
        """Call `on_message`; `whose` it is stands in reports."""
        self._on_message = on_message
        self._whose = whose
        self._inbox = inbox
        self._patience = patience
        self._stride = 1
        self._spent = 0.0
        self._waits = self._refused = False

    def deliver(self, batch: Batch) -> None:
        """Hand a batch over now, or as soon as the calls before it have returned and their turn is over."""
        if self._refused:
            return
        if self._waits:
            self._inbox.put(batch)
            return
        self._waits = True
        self._hand_over(batch)
        if self._inbox or self._spent > TURN_SECONDS:
            self._go_on()
        else:
            self._waits = False

    def _hand_over(self, batch: Batch) -> None:
        index, stop, count, payloads = 0, 0, batch.count, batch.payloads()
        on_message, spent = self._on_message, self._spent
        started = now = monotonic()
        try:
            while stop < count and spent <= TURN_SECONDS:
                for index in range(stop, min(stop + self._stride, count)):  # how far it came is needed below
                    on_message(Message(payloads[index], batch, index))
                stop = index + 1
                before, now = now, monotonic()
                self._stride = STRIDE if now - before < LONG_SECONDS else 1
                spent = self._spent + now - started
        except Exception as error:  # noqa: BLE001  # it is the application's, and reported
            self._refused = True
            self._inbox.clear()
            batch.settle(index)
            report(f"the on_message callback of {self._whose} failed", error)
            return
        self._spent = spent
        batch.settle(stop)
        if now - started > self._patience:
            batch.owner.acknowledge_now()
        if stop < count:
            self._inbox.put_back(batch.part(stop, count))
            batch.cut(stop)

    def _go_on(self) -> None:
        """Hand over what waits, as long as this turn of the event loop has time for it."""
        while self._inbox and self._spent <= TURN_SECONDS:
            batch = self._inbox.take()
            if batch is not None:
                self._hand_over(batch)
        self._waits = bool(self._inbox) or self._spent > TURN_SECONDS
        if self._waits:
            asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._spent = 0.0
        self._go_on()
