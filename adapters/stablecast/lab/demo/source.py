"""Run the demo's source: send numbered messages at a steady rate, and resume where the stores say.

The argument of the process is a JSON object of its settings.
"""

import asyncio
import json
import sys
import time
from functools import partial
from typing import Any

from stablecast.client import Context, NotRegistered, Source
from stablecast.core.protocol.events import Event, RegistrationSuccess, StoreUnresponsive
from stablecast.runtime.event_loop import run_loop, until_interrupted
from stablecast.text.console import say
from stablecast.text.exit_status import guarded

RETRY_SECONDS = 0.05
REPORT_SECONDS = 0.05
SESSION_ID = 4711


def payload(number: int) -> bytes:
    """Return the payload of message `number`; the receiver compares it with the sequence number."""
    return b"message %d" % number


async def _main(settings: dict[str, Any]) -> int:
    async with Context(resolver=settings["resolver"], session_id=SESSION_ID) as context:
        registered: set[str] = set()
        topic, stores, note = settings["topic"], settings["stores"], partial(_note, registered)
        source = await context.source(topic, stores=stores, within=None, on_event=note)
        say({"ready": True, "ports": context.ports(), "resumed": source.next_number})
        reporter = asyncio.get_running_loop().create_task(_report(source, registered))
        started, first = time.monotonic(), source.next_number
        while source.next_number < settings["messages"]:
            due = started + (source.next_number - first) / settings["rate"]
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            try:
                await source.send(payload(source.next_number))
            except NotRegistered:
                await asyncio.sleep(RETRY_SECONDS)
        await source.wait_stable_through(settings["messages"] - 1)
        reporter.cancel()
        say({"sent": source.next_number, "stable": settings["messages"], "done": True})
        await until_interrupted()
    return 0


def _note(registered: set[str], event: Event) -> None:
    if isinstance(event, RegistrationSuccess):
        registered.add(event.store)
    elif isinstance(event, StoreUnresponsive):
        registered.discard(event.store)


async def _report(source: Source, registered: set[str]) -> None:
    while True:
        stable = source.stable_through + 1
        say({"sent": source.next_number, "stable": stable, "registered": sorted(registered)})
        await asyncio.sleep(REPORT_SECONDS)


if __name__ == "__main__":
    raise SystemExit(guarded(lambda: run_loop(_main(json.loads(sys.argv[1])))))
