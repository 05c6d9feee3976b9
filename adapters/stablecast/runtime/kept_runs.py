"""Runs of messages that an endpoint keeps under a token while its machine decides about them."""

from collections.abc import Iterable, Iterator, Sequence

from stablecast.core.machine import serial
from stablecast.core.protocol.inputs import Data, Lost
from stablecast.core.protocol.messages import Incarnation
from stablecast.transports.codec import Recovered, RecoveredRun, split
from stablecast.transports.codec.lbttcp import Run, build, span

MAX_RECOVERED_RUN = 64
"""Retransmitted messages that are joined into one run at most."""


class Continuity:
    """The next expected number of each stream: over TCP a gap means messages sent while the stream was broken."""

    def __init__(self) -> None:
        """Expect nothing: a stream may begin at any number. `next` has the expected number by the source's life."""
        self.next: dict[Incarnation, int] = {}

    def check(self, incarnation: Incarnation, run: Run) -> Lost | None:
        """Return the loss right before a run of this life's stream, if there is one."""
        first = run.first
        expected = self.next.get(incarnation, first)
        self.next[incarnation] = (first + run.count) % serial.MODULUS
        if first == expected:
            return None
        missing = serial.wire(first - expected)
        return Lost(incarnation, expected, missing) if 0 < missing < serial.HALF else None

    def forget(self, incarnation: Incarnation) -> None:
        self.next.pop(incarnation, None)


class Tokens:
    """The runs that one endpoint keeps, each under a token that its machine knows it by."""

    def __init__(self) -> None:
        self._runs: dict[int, tuple[Run, Incarnation]] = {}
        self._last = 0

    def __len__(self) -> int:
        return len(self._runs)

    def keep(self, run: Run, incarnation: Incarnation) -> int:
        self._last += 1
        self._runs[self._last] = (run, incarnation)
        return self._last

    def use(self, token: int, done: bool) -> tuple[Run, Incarnation]:
        """Return the run of a token and the life that sent it; forget both if `done`."""
        return self._runs.pop(token) if done else self._runs[token]

    def drop(self, token: int) -> None:
        del self._runs[token]

    def block(self, token: int, skip: int, count: int, done: bool) -> bytes | memoryview:
        """Return `count` raw messages of a run, from index `skip` on; forget the run if `done`."""
        run, _ = self.use(token, done)
        if skip == 0 and count == run.count:
            return run.block
        start, stop = span(run.block, skip, count)
        return memoryview(run.block)[start:stop]

    def keep_recovered(self, messages: Iterable[Recovered | RecoveredRun]) -> Iterator[Data]:
        """Keep retransmitted messages, consecutive ones as one run, and yield an input for each run."""
        for some in _gathered(messages):
            if isinstance(some, RecoveredRun):
                index = split(some.incarnation)[1]
                contents = some.payloads
                yield self._recovered(some, build(index, some.wire_number, contents), contents)
            else:
                block = b"".join(message.data for message in some)
                yield self._recovered(some[0], block, [message.payload for message in some])

    def _recovered(self, first: Recovered | RecoveredRun, block: bytes, contents: Sequence[bytes]) -> Data:
        count, size, number = len(contents), sum(map(len, contents)), first.wire_number
        run = Run(split(first.incarnation)[1], number, count, size, block, chained=bool(block[1]))
        token = self.keep(run, first.incarnation)
        return Data(first.session, first.incarnation, number, count, size, True, token, first.proactive)


def _gathered(messages: Iterable[Recovered | RecoveredRun]) -> Iterator[list[Recovered] | RecoveredRun]:
    """Yield runs as they are, and consecutive single messages together."""
    pending: list[Recovered] = []
    for message in messages:
        if pending and (len(pending) >= MAX_RECOVERED_RUN or not _continues(pending[-1], message)):
            yield pending
            pending = []
        if isinstance(message, Recovered):
            pending.append(message)
        else:
            yield message
    if pending:
        yield pending


def _continues(before: Recovered, message: Recovered | RecoveredRun) -> bool:
    # Messages with and without headers need different blocks, so they never share a run.
    return (
        isinstance(message, Recovered)
        and before.session == message.session
        and before.incarnation == message.incarnation
        and before.proactive == message.proactive
        and bool(before.headers) == bool(message.headers)
        and serial.wire(before.wire_number + 1) == message.wire_number
    )
