"""The environment of a recorded source: the sends of its application, and the delay of each store's answers."""

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

import attrs

from stablecast.core.errors import StablecastError
from stablecast.core.protocol.inputs import Arrived, Blocked, Held, Input, Sent, Start, Tick
from stablecast.core.protocol.messages import Role, StableAck
from stablecast.core.protocol.settings import SourceConfig
from stablecast.core.source import SourceEndpoint
from stablecast.evidence.trace.converter import decode_input, restore
from stablecast.evidence.trace.file_names import find, traces_of
from stablecast.evidence.trace.frames import frames_from
from stablecast.evidence.trace.quorums import extended


class WhatIfError(StablecastError):
    """A trace cannot be replayed under another configuration."""


@attrs.frozen
class Answer:
    """An acknowledgement of numbers `first` to `last` of one wish, `delay` ns after they were sent."""

    store_index: int
    first: int
    last: int
    delay: int


@attrs.frozen
class Wish:
    """A send of the application at `time` (ns): `count` numbers from `first` on, `payload_bytes` in all.

    Each number is a message, or all are the pieces of one that was `cut`.
    """

    time: int
    first: int
    count: int
    payload_bytes: int
    answers: tuple[Answer, ...] = ()
    cut: bool = False


@attrs.frozen
class Recording:
    """A life of a source, as its trace shows it.

    Attributes:
        path: The first file of its trace.
        config: As it was.
        first: The number of its first message.
        wishes: What the application sent, and what the stores acknowledged of it.
        others: Everything else that came, with its time.
        ended: The time of the last record, ns.
    """

    path: Path
    config: SourceConfig
    first: int
    wishes: tuple[Wish, ...]
    others: tuple[tuple[int, Input], ...]
    ended: int


def recordings(paths: list[Path]) -> list[Recording]:
    """Return the sources that sent anything.

    Raises:
        TraceError: If a trace cannot be read.
        WhatIfError: If there is none that can be replayed.
    """
    found = [one for parts in traces_of(find(paths)) if (one := _recording(parts)) is not None]
    if not found:
        raise WhatIfError("none of these is the trace of a source from its start on, with messages that were sent")
    return found


def _recording(parts: list[Path]) -> Recording | None:
    config: SourceConfig | None = None
    wishes: list[Wish] = []
    acks: list[tuple[int, StableAck]] = []
    others: list[tuple[int, Input]] = []
    ended = 0
    for machine, time, event in _inputs(parts):
        if config is None:
            if not isinstance(event, Start):
                return None
            config = machine.config
        ended = time
        match event:
            case Sent():
                wishes += _wished(time, event)
            case Arrived(StableAck(nack=False) as ack) if ack.incarnation == config.incarnation:
                acks.append((time, ack))
            case Tick() | Blocked() | Held():
                pass  # These times depend on the configuration, so the machine's own clock and credit decide.
            case _:
                others.append((time, event))
    if config is None or not wishes:
        return None
    return Recording(parts[0], config, wishes[0].first, tuple(_answered(wishes, acks)), tuple(others), ended)


def _inputs(parts: list[Path]) -> Iterator[tuple[SourceEndpoint, int, Input]]:
    """Yield every input of a source's trace, with its time and the machine at the beginning of its frame."""
    for path in parts:
        for frame, _ in frames_from(path):
            if frame.head.role is not Role.SOURCE:
                return
            machine = restore(Role.SOURCE, frame.head.snapshot)
            assert isinstance(machine, SourceEndpoint)
            for line in frame.records:
                yield machine, line["t"], decode_input(Role.SOURCE, line["in"])


def _wished(time: int, event: Sent) -> Iterator[Wish]:
    """Yield the wishes of a run: one for each message that was cut, and one for the plain messages between two."""
    at, stop, told = event.first, event.first + event.count, 0
    parts: list[tuple[int, bool]] = []
    for first, last in event.large:
        parts += [(first, False), (last + 1, True)]
    for end, cut in (*parts, (stop, False)):
        if at < end:
            # The trace has the bytes of the run only.
            upto = event.payload_bytes * (end - event.first) // event.count
            yield Wish(time, at, end - at, upto - told, cut=cut)
            at, told = end, upto


def _answered(wishes: list[Wish], acks: list[tuple[int, StableAck]]) -> Iterator[Wish]:
    """Yield the wishes with their acknowledgements; one acknowledgement may cover many wishes."""
    firsts, times = [wish.first for wish in wishes], [wish.time for wish in wishes]
    answers: list[list[Answer]] = [[] for _ in wishes]
    for time, ack in acks:
        newest = wishes[max(0, bisect_right(times, time) - 1)]
        last = extended(ack.last, newest.first + newest.count)
        first = extended(ack.first, last)
        for at in range(max(0, bisect_right(firsts, first) - 1), bisect_right(firsts, last)):
            wish = wishes[at]
            low, high = max(first, wish.first), min(last, wish.first + wish.count - 1)
            if low <= high:
                answers[at].append(Answer(ack.store_index, low, high, max(0, time - wish.time)))
    for wish, told in zip(wishes, answers, strict=True):
        yield attrs.evolve(wish, answers=tuple(told))
