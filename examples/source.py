"""Send 20 messages. A program that is started again continues where the last run stopped.

This is the guide's source, third stage. The store chooses the RegID. The program keeps it in a file of the current
directory until the last message is stable. Try it: start the program, interrupt it, and start it again.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from stablecast.client import Context, NotRegistered
from stablecast.core.protocol.events import Event, RegistrationSuccess, StoreUnresponsive

TOPIC = "UME Example"
SAVED = Path("UME-example-src-RegID")
MESSAGES = 20
INTERRUPTED = 130


def read() -> str:
    """Return the store and the RegID that an earlier run saved, or an empty string."""
    if not SAVED.exists():
        return ""
    info = SAVED.read_text(encoding="utf-8")
    print(f'read in saved RegID info from "{SAVED}" - {info}')
    return info


def remove() -> None:
    """Remove the saved RegID, because all messages are stable: the next run starts from the beginning."""
    print(f'removing saved RegID file "{SAVED}"')
    SAVED.unlink()


async def main(arguments: argparse.Namespace) -> int:
    """Send the remaining messages; return the exit status."""
    existing = read()

    def on_event(event: Event) -> None:
        match event:
            case RegistrationSuccess() if not existing:
                info = f"{event.store}:{event.reg_id}"
                print(f'saving RegID info to "{SAVED}" - {info}')
                SAVED.write_text(info, encoding="utf-8")
            case StoreUnresponsive():
                print(f"Store unresponsive: {event.text}")

    async with Context(resolver=[arguments.resolver]) as context:
        store = existing or arguments.store
        source = await context.source(TOPIC, stores=[store], on_event=on_event, within=None)
        first = source.next_number + 1  # sequence numbers begin at 0, messages at 1
        if existing:
            print(f"will start with message number {first}")
        for number in range(first, MESSAGES + 1):
            try:
                await source.send(b"UME Message %02d\0" % number, wait=False)
            except NotRegistered as error:
                line = error.__traceback__.tb_lineno if error.__traceback__ else 0
                print(f"line {line}: {error}")
                return 1
            await asyncio.sleep(arguments.interval)
        await source.wait_stable_through(MESSAGES - 1)
    remove()
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", default="127.0.0.1:14567", help="ip:port of the store")
    parser.add_argument("--resolver", default="127.0.0.1:15380", help="ip:port of the lbmrd relay")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between messages")
    try:
        sys.exit(asyncio.run(main(parser.parse_args())))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
