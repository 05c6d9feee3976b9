"""Receive from several sources of one topic, and keep the RegIDs of all of them in a file.

The receiver of the third stage keeps one RegID. A RegID belongs to one source at one store, so a receiver of several
sources keeps one line for each: the store, the RegID of the source, and its own RegID.
"""

import argparse
import asyncio
from pathlib import Path

from stablecast.client import Context, RegIdRequest
from stablecast.core.protocol.events import Event, RegistrationSuccess

TOPIC = "UME Example"
SAVED = Path("UME-example-rcv-RegIDs")


class Registrations:
    """The RegIDs of the receiver by store and by RegID of the source."""

    def __init__(self) -> None:
        """Read the registrations that earlier runs saved."""
        self.known: dict[tuple[str, int], int] = {}
        for line in SAVED.read_text(encoding="utf-8").splitlines() if SAVED.exists() else ():
            store, source, reg_id = line.rsplit(":", 2)
            self.known[store, int(source)] = int(reg_id)

    def choose(self, request: RegIdRequest) -> int:
        """Return the saved RegID for this source at this store, else 0: the store then chooses one."""
        reg_id = self.known.get((request.store, request.source_reg_id), 0)
        print(f"source {request.source_reg_id} at {request.store}: requesting RegID {reg_id}")
        return reg_id

    def on_event(self, event: Event) -> None:
        """Save each RegID that a store granted."""
        if isinstance(event, RegistrationSuccess):
            self.known[event.store, event.source_reg_id] = event.reg_id
            lines = [f"{store}:{source}:{reg_id}\n" for (store, source), reg_id in self.known.items()]
            SAVED.write_text("".join(lines), encoding="utf-8")


async def main(arguments: argparse.Namespace) -> None:
    """Print and acknowledge this number of messages."""
    registrations, received = Registrations(), 0
    async with Context(resolver=[arguments.resolver]) as context:
        receiver = context.receiver(TOPIC, reg_id=registrations.choose, on_event=registrations.on_event)
        async for message in receiver:
            print(f"{message.sequence_number}: {message.payload.decode()}")
            message.consumed()
            received += 1
            if received == arguments.count:
                return


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resolver", default="127.0.0.1:15380", help="ip:port of the lbmrd relay")
    parser.add_argument("--count", type=int, default=40, help="messages after which the program ends")
    asyncio.run(main(parser.parse_args()))
