"""Receives 20 messages and goes on where it stopped when it is started again: the guide's receiver, third stage.

It names no store: the source does. RegIDs are per source, topic and store; the program keeps the one that it was given
in a file of the current directory, with the store and the source it is good for, until the last message has come.
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
    """The RegID that the receiver has, and at which store for which source."""

    def __init__(self) -> None:
        """Read what an earlier run saved."""
        self.existing = SAVED.exists()
        self.store, self.source, self.reg_id = "", 0, 0
        if self.existing:
            self.store, source, reg_id = SAVED.read_text(encoding="utf-8").rsplit(":", 2)
            self.source, self.reg_id = int(source), int(reg_id)
            regids = f"RegIDs source {self.source}, receiver {self.reg_id}"
            print(f'read in saved RegID info from "{SAVED}" - {self.store} {regids}')

    def choose(self, asked: RegIdRequest) -> int:
        """The RegID to ask for: the one that is saved if it is this source's at this store, else the store's choice."""
        reg_id = self.reg_id if (asked.store, asked.source_reg_id) == (self.store, self.source) else 0
        place = f"UME Store {asked.store_index}: {asked.store} [{asked.source}][{asked.source_reg_id}]"
        print(f"{place} Requesting RegID: {reg_id}")
        return reg_id

    def on_event(self, event: Event) -> None:
        """Save what a store gave, unless it is what was read from the file."""
        if isinstance(event, RegistrationSuccess) and not self.existing:
            self.store, self.source, self.reg_id = event.store, event.source_reg_id, event.reg_id
            info = f"{self.store}:{self.source}:{self.reg_id}"
            print(f'saving RegID info to "{SAVED}" - {info}')
            SAVED.write_text(info, encoding="utf-8")

    @staticmethod
    def remove() -> None:
        """Everything has come: the next run begins anew."""
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
