"""An application for tests of delivery. It prints each message, and may be slow, wait, or crash.

    application.py RESOLVER each|batches|callback|wait SECONDS CRASH_AFTER
    application.py RESOLVER source 0 COUNT STORE

A receiver works SECONDS on each message without yielding to the event loop. It crashes after CRASH_AFTER messages, or
never with 0. It prints `begun` when a registration is complete. In the form `wait` it keeps the first message until it
reads a line; the number in the line is the distance to the next message with which it waits.

The source sends COUNT messages with their numbers as payloads, and prints `stable` when all of them are stable.
"""

import asyncio
import os
import sys
import time

from stablecast.client import Context, Message
from stablecast.core.protocol.events import Event, RegistrationComplete

RESOLVER, FORM, SECONDS, CRASH_AFTER = "", "", 0.0, 0
handled = 0
waits_at = 1


def on_event(event: Event) -> None:
    """Print `begun` when a registration is complete."""
    if isinstance(event, RegistrationComplete):
        print("begun", flush=True)


def handle(payload: bytes) -> None:
    """Work on a message and print it."""
    global handled  # noqa: PLW0603  # this is a small program
    time.sleep(SECONDS)
    print(int(payload), flush=True)
    handled += 1
    if handled == CRASH_AFTER:
        os._exit(7)


async def send(store: str) -> None:
    """Send the messages, wait until they are stable, and stay."""
    async with Context(resolver=[RESOLVER], session_id=1) as context:
        source = await context.source("orders", stores=[store])
        for _ in range(CRASH_AFTER):
            await source.send(b"%d" % source.next_number)
        await source.wait_stable_through(source.next_number - 1)
        print("stable", flush=True)
        await asyncio.Event().wait()


async def main() -> None:
    """Receive messages in the form that was asked for."""
    async with Context(resolver=[RESOLVER], session_id=2) as context:
        if FORM == "callback":
            context.receiver("orders", on_event=on_event, on_message=lambda message: handle(message.payload))
            await asyncio.Event().wait()
        receiver = context.receiver("orders", on_event=on_event)
        if FORM == "batches":
            async for batch in receiver.batches():
                for payload in batch.payloads():
                    handle(payload)
        async for message in receiver:
            await one(message)


async def one(message: Message) -> None:
    """Handle a message, and wait for a line if it is time to."""
    global waits_at  # noqa: PLW0603  # this is a small program
    handle(message.payload)
    if FORM == "wait" and handled == waits_at:
        waits_at = handled + int((await asyncio.to_thread(sys.stdin.readline)).strip() or 0)


if __name__ == "__main__":
    RESOLVER, FORM, SECONDS, CRASH_AFTER = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
    asyncio.run(send(sys.argv[5]) if FORM == "source" else main())
