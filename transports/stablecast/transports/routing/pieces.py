"""Parts of runs: the numbers that are new, and the messages that fit an exit."""

from collections.abc import Iterator

import attrs

from stablecast.core.machine import serial
from stablecast.transports.codec.lbttcp import Run, span
from stablecast.transports.wire import uniform_runs


def cut(run: Run, skip: int, count: int) -> Run:
    """Return `count` messages of a run, after the first `skip`."""
    start, stop = span(run.block, skip, count)
    block = memoryview(run.block)[start:stop]
    return attrs.evolve(run, first=serial.wire(run.first + skip), count=count, payload_bytes=0, block=block)


def fitting(run: Run, most: int) -> Iterator[Run]:
    """Yield the parts of a run whose messages have at most `most` bytes; 0: any length."""
    if not most or len(run.block) <= most:
        yield run
        return
    if run.count >= uniform_runs.MANY and (length := uniform_runs.size(run.block, run.count)):
        if length <= most:
            yield run
        return
    octets, at, begin = run.block, 0, 0
    for place in range(run.count):
        length = int.from_bytes(octets[at + 2 : at + 4])
        if length > most:
            if begin < place:
                yield cut(run, begin, place - begin)
            begin = place + 1
        at += length
    if begin < run.count:
        yield run if not begin else cut(run, begin, run.count - begin)
