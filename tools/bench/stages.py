"""The cost of the single stages of the data path: processor time per message, in µs.

    python -m tools.bench.stages [SIZE]

The blocks are those of a source, once with messages of one size and once with sizes that change from message to
message. The benchmark sends nothing. The remaining cost of a process is the kernel's: reading, writing and waking.
"""

import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

from stablecast.core.source.outbox import FLUSH_BYTES
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import StreamDecoder, build, payloads
from stablecast.transports.wire.lbmc import DATA_HEADER

REPEATS: Final = 300
LIFE: Final = codec.join(1, 7)
SIZE: Final = 100


def _us(call: Callable[[], object], messages: int, repeats: int) -> float:
    """Return the cost of the fastest of several calls, because other processes can only slow a call down."""
    best = float("inf")
    for _ in range(repeats):
        started = time.process_time_ns()
        call()
        best = min(best, time.process_time_ns() - started)
    return best / 1e3 / messages


def stages(contents: Sequence[bytes], repeats: int = REPEATS) -> dict[str, float]:
    """Return the cost of each stage for messages with these payloads."""
    count, block = len(contents), build(7, 0, contents)
    again = codec.encode_again(LIFE, LIFE, block, 0, count)
    calls: dict[str, Callable[[], object]] = {
        "source: a block of a list": lambda: build(7, 0, contents),
        "store, receiver: the walk of a block": lambda: StreamDecoder().feed(block),
        "receiver: the payloads of a batch": lambda: payloads(block, 0, count),
        "store: retransmissions": lambda: codec.encode_again(LIFE, LIFE, block, 0, count),
        "receiver: reading retransmissions": lambda: StreamDecoder(series=True).feed(again),
    }
    return {name: _us(call, count, repeats) for name, call in calls.items()}


def main(arguments: Sequence[str]) -> None:
    """Print the costs for equal and for changing sizes."""
    size = int(arguments[0]) if arguments else SIZE
    count = FLUSH_BYTES // (DATA_HEADER.size + size) + 1
    equal = stages([bytes(size)] * count)
    mixed = stages([bytes(size - 1 + at % 3) for at in range(count)])
    print(f"{count} messages of {size} B in a block, µs a message: equal sizes, changing sizes")
    for name, cost in equal.items():
        print(f"{name:40} {cost:7.3f} {mixed[name]:7.3f}")


if __name__ == "__main__":
    main(sys.argv[1:])
