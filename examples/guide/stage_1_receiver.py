"""Receive 20 messages: the guide's receiver, first stage.

It names no store, because the source does. It goes on after every event.
"""

import argparse
import asyncio

from stablecast.client import Context
from stablecast.core.protocol.events import Event

TOPIC = "UME Example"
MESSAGES = 20


def on_event(event: Event) -> None:
    """Print an event, whatever it is."""
    print(f"event {type(event).__name__}")


async def main(arguments: argparse.Namespace) -> None:
    """Print messages until all have come."""
    received = 0
    async with Context(resolver=[arguments.resolver]) as context:
        async for message in context.receiver(TOPIC, on_event=on_event):
            received += 1
            text = message.payload.rstrip(b"\0").decode()
            print(f"Received {len(message.payload)} bytes on topic {TOPIC} '{text}'")
            if received == MESSAGES:
                message.consumed()
                return


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resolver", default="127.0.0.1:15380", help="ip:port of the lbmrd relay")
    asyncio.run(main(parser.parse_args()))
