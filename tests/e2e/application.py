"""An application for tests of the hand-over: it prints what it is handed, and may be slow, wait, or crash.

Arguments: the resolver, the form (each, batches, callback), seconds of work a message, and after how many messages it
crashes, 0 for never. The work keeps the event loop. In the form `wait` it waits with the first message in hand until
a line is typed; a number says with which message after that it waits again. Events of registration are printed as
`begun`. The form `source` sends so many messages that say their number to the store that is named last, until they are
stable.
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
    """Print that a session begins."""
    if isinstance(event, RegistrationComplete):
        print("begun", flush=True)


def handle(payload: bytes) -> None:
    """Work on a message."""
    global handled  # noqa: PLW0603  # this is a small program
    time.sleep(SECONDS)
    print(int(payload), flush=True)
    handled += 1
    if handled == CRASH_AFTER:
        os._exit(7)


async def send(store: str) -> None:
    """Send."""
    async with Context(resolver=[RESOLVER], session_id=1) as context:
        source = await context.source("orders", stores=[store])
        for _ in range(CRASH_AFTER):
            await source.send(b"%d" % source.next_number)
        await source.wait_stable_through(source.next_number - 1)
        print("stable", flush=True)
        await asyncio.Event().wait()


async def main() -> None:
    """Receive."""
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
    """Handle a message."""
    global waits_at  # noqa: PLW0603  # this is a small program
    handle(message.payload)
    if FORM == "wait" and handled == waits_at:
        waits_at = handled + int((await asyncio.to_thread(sys.stdin.readline)).strip() or 0)


if __name__ == "__main__":
    RESOLVER, FORM, SECONDS, CRASH_AFTER = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
    asyncio.run(send(sys.argv[5]) if FORM == "source" else main())
