"""Send 20 messages under the fixed RegID 1000: the guide's source, second stage.

Kill it and start it again: it continues after the last message that the store has. No other program may use this RegID
at the same time.
"""

import argparse
import asyncio
import sys

from stablecast.client import Context, RegistrationFailed

TOPIC = "UME Example"
REG_ID = 1000
MESSAGES = 20


async def main(arguments: argparse.Namespace) -> int:
    """Send the remaining messages; return the exit status."""
    async with Context(resolver=[arguments.resolver]) as context:
        try:
            source = await context.source(TOPIC, stores=[f"{arguments.store}:{REG_ID}"], within=arguments.within)
        except RegistrationFailed as error:
            print(error)
            return 1
        first = source.next_number + 1  # sequence numbers begin at 0, messages at 1
        print(f"begins with message {first}")
        for number in range(first, MESSAGES + 1):
            await asyncio.sleep(arguments.interval)
            await source.send(b"UME Message %02d\0" % number)
        await source.wait_stable_through(MESSAGES - 1)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", default="127.0.0.1:14567", help="ip:port of the store")
    parser.add_argument("--resolver", default="127.0.0.1:15380", help="ip:port of the lbmrd relay")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds before each message")
    parser.add_argument("--within", type=float, default=30.0, help="seconds to wait for the registration")
    sys.exit(asyncio.run(main(parser.parse_args())))
