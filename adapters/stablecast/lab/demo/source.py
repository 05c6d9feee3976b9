"""Run the demo's source: send numbered messages at a steady rate, and resume where the stores say."""

import argparse
import asyncio
import time

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


async def _main(arguments: argparse.Namespace) -> int:
    async with Context(resolver=arguments.resolver, session_id=SESSION_ID) as context:
        source = await context.source(arguments.topic, stores=arguments.store, within=None)
        say({"ready": True, "ports": context.ports(), "resumed": source.next_number})
        reporter = asyncio.get_running_loop().create_task(_report(source))
        started, first = time.monotonic(), source.next_number
        while source.next_number < arguments.messages:
            due = started + (source.next_number - first) / arguments.rate
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            try:
                await source.send(payload(source.next_number))
            except NotRegistered:
                await asyncio.sleep(RETRY_SECONDS)
        await source.wait_stable_through(arguments.messages - 1)
        reporter.cancel()
        say({"sent": source.next_number, "stable": arguments.messages, "done": True})
        await until_interrupted()
    return 0


async def _report(source: Source) -> None:
    while True:
        say({"sent": source.next_number, "stable": source.stable_through + 1})
        await asyncio.sleep(REPORT_SECONDS)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--store", action="append", default=[])
    parser.add_argument("--resolver", action="append", default=[])
    parser.add_argument("--messages", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(guarded(lambda: run_loop(_main(_arguments()))))
