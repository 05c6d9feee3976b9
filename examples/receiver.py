"""Receive 20 messages. A program that is started again continues where the last run stopped.

This is the guide's receiver, third stage. It names no store, because the source does. A RegID belongs to one source,
topic and store. The program keeps its RegID in a file of the current directory, with the store and the source, until
the last message has arrived.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from stablecast.client import Context, RegIdRequest
from stablecast.core.protocol.events import Event, RegistrationSuccess

TOPIC = "UME Example"
SAVED = Path("UME-example-rcv-RegID")
LAST = 19
"""Sequence number of the 20th message."""
INTERRUPTED = 130


class Registration:
    """The RegID of the receiver, with the store and the source that it belongs to."""

    def __init__(self) -> None:
        """Read the registration that an earlier run saved."""
        self.existing = SAVED.exists()
        self.store, self.source, self.reg_id = "", 0, 0
        if self.existing:
            self.store, source, reg_id = SAVED.read_text(encoding="utf-8").rsplit(":", 2)
            self.source, self.reg_id = int(source), int(reg_id)
            regids = f"RegIDs source {self.source}, receiver {self.reg_id}"
            print(f'read in saved RegID info from "{SAVED}" - {self.store} {regids}')

    def choose(self, request: RegIdRequest) -> int:
        """Return the saved RegID if it belongs to this source at this store, else 0: the store then chooses one."""
        reg_id = self.reg_id if (request.store, request.source_reg_id) == (self.store, self.source) else 0
        place = f"UME Store {request.store_index}: {request.store} [{request.source}][{request.source_reg_id}]"
        print(f"{place} Requesting RegID: {reg_id}")
        return reg_id

    def on_event(self, event: Event) -> None:
        """Save the RegID that a store granted, unless the program read it from the file."""
        if isinstance(event, RegistrationSuccess) and not self.existing:
            self.store, self.source, self.reg_id = event.store, event.source_reg_id, event.reg_id
            info = f"{self.store}:{self.source}:{self.reg_id}"
            print(f'saving RegID info to "{SAVED}" - {info}')
            SAVED.write_text(info, encoding="utf-8")

    @staticmethod
    def remove() -> None:
        """Remove the saved RegID, because all messages have arrived: the next run starts from the beginning."""
        print(f'removing saved RegID file "{SAVED}"')
        SAVED.unlink()


async def main(arguments: argparse.Namespace) -> None:
    """Receive until the last message has come."""
    registration = Registration()
    async with Context(resolver=[arguments.resolver]) as context:
        receiver = context.receiver(TOPIC, reg_id=registration.choose, on_event=registration.on_event)
        async for message in receiver:
            text = message.payload.rstrip(b"\0").decode()
            size, number = len(message.payload), message.sequence_number
            print(f"Received {size} bytes on topic {TOPIC} (sequence number {number}) '{text}'")
            message.consumed()
            if number == LAST:
                break
    registration.remove()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resolver", default="127.0.0.1:15380", help="ip:port of the lbmrd relay")
    try:
        asyncio.run(main(parser.parse_args()))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
