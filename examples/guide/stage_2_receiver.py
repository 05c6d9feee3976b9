"""Receive 20 messages under the fixed RegID 1100: the guide's receiver, second stage.

A callback returns the RegID. Kill the receiver and start it again before the source ends: it continues after the last
message that it acknowledged. No other program may use this RegID at the same time.
"""

import argparse
import asyncio

from stablecast.client import Context, RegIdRequest

TOPIC = "UME Example"
REG_ID = 1100
LAST = 19
"""Sequence number of the 20th message."""


def choose(_: RegIdRequest) -> int:
    """Return the RegID for every store and every source."""
    return REG_ID


async def main(arguments: argparse.Namespace) -> None:
    """Print messages until the last one has come."""
    async with Context(resolver=[arguments.resolver]) as context:
        async for message in context.receiver(TOPIC, reg_id=choose):
            text = message.payload.rstrip(b"\0").decode()
            size, number = len(message.payload), message.sequence_number
            print(f"Received {size} bytes on topic {TOPIC} (sequence number {number}) '{text}'")
            message.consumed()
            if number == LAST:
                return


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resolver", default="127.0.0.1:15380", help="ip:port of the lbmrd relay")
    asyncio.run(main(parser.parse_args()))
