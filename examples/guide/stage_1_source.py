"""Send 20 messages, one a second: the guide's source, first stage. With `--store` a store keeps them.

The program shows the messages of the library on standard output. With a store, one of them tells that late join is set.
"""

import argparse
import asyncio
import logging
import sys

from stablecast.client import Context

TOPIC = "UME Example"
MESSAGES = 20


async def main(arguments: argparse.Namespace) -> None:
    """Send all messages."""
    stores = [arguments.store] if arguments.store else []
    async with Context(resolver=[arguments.resolver]) as context:
        source = await context.source(TOPIC, stores=stores)
        for number in range(1, MESSAGES + 1):
            await asyncio.sleep(arguments.interval)
            await source.send(b"UME Message %02d\0" % number)
        if stores:
            await source.wait_stable_through(source.next_number - 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", help="ip:port of the store; default: none")
    parser.add_argument("--resolver", default="127.0.0.1:15380", help="ip:port of the lbmrd relay")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds before each message")
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(levelname)s: %(message)s")
    asyncio.run(main(parser.parse_args()))
