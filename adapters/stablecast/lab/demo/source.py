"""Run the demo's source: send numbered messages at a steady rate, and resume where the stores say.

The argument of the process is a JSON object of its settings.
"""

import asyncio
import json
import sys
import time
from typing import Any

from stablecast.client import Context, NotRegistered, Source
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
        source = await context.source(settings["topic"], stores=settings["stores"], within=None)
        say({"ready": True, "ports": context.ports(), "resumed": source.next_number})
        reporter = asyncio.get_running_loop().create_task(_report(source))
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


async def _report(source: Source) -> None:
    while True:
        registered = source.registered_names()
        say({"sent": source.next_number, "stable": source.stable_through + 1, "registered": registered})
        await asyncio.sleep(REPORT_SECONDS)


if __name__ == "__main__":
    raise SystemExit(guarded(lambda: run_loop(_main(json.loads(sys.argv[1])))))
