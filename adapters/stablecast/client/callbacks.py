"""Calling the application from inside the machines' drivers, which must go on whatever it raises."""

from collections.abc import Callable

from stablecast.client.message import Batch, Message
from stablecast.core.events import Event
from stablecast.net.execution import report


def tell(on_event: Callable[[Event], None] | None, event: Event, whose: str) -> None:
    """Tell the application; what its callback raises goes to the event loop's exception handler."""
    if on_event is None:
        return
    try:
        on_event(event)
    except Exception as error:  # noqa: BLE001  # it is the application's, and reported
        report(f"the on_event callback of {whose} failed", error)


def handing_over(on_message: Callable[[Message], object], whose: str) -> Callable[[Batch], None]:
    """Calls the application with each message of a batch, which is consumed when its call has returned.

    What a call raises ends that: nothing is handed over any more.
    """
    refused = False

    def deliver(batch: Batch) -> None:
        nonlocal refused
        if refused:
            return
        index = 0
        try:
            for index, payload in enumerate(batch.payloads()):  # how far it came is told to `consumed`
                on_message(Message(payload, batch, index))
        except Exception as error:  # noqa: BLE001  # it is the application's, and reported
            refused = True
            batch.consumed(index)
            report(f"the on_message callback of {whose} failed", error)
        else:
            batch.consumed()

    return deliver
