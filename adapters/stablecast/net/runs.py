"""Runs of messages kept by token while a machine decides what becomes of them."""

from collections.abc import Iterable, Iterator

from stablecast.core import serial
from stablecast.core.inputs import Data, Lost
from stablecast.core.messages import Incarnation
from stablecast.transports.codec import Recovered, split
from stablecast.transports.lbttcp import Run, span

MAX_RECOVERED_RUN = 64
"""Retransmitted messages put together into one run."""


class Continuity:
    """Which number comes next on each stream. A stream over TCP loses nothing but what is sent while it is broken."""

    def __init__(self) -> None:
        """Nothing was heard yet: a stream may begin anywhere."""
        self._next: dict[Incarnation, int] = {}

    def check(self, incarnation: Incarnation, run: Run) -> Lost | None:
        """What was lost right before a run of this life's stream, if anything."""
        expected = self._next.get(incarnation, run.first)
        self._next[incarnation] = serial.wire(run.first + run.count)
        missing = serial.wire(run.first - expected)
        return Lost(incarnation, expected, missing) if 0 < missing < serial.HALF else None

    def forget(self, incarnation: Incarnation) -> None:
        """Its stream is over."""
        self._next.pop(incarnation, None)


class Tokens:
    """The bytes behind the tokens of one endpoint."""

    def __init__(self) -> None:
        """Nothing is kept."""
        self._runs: dict[int, tuple[Run, Incarnation]] = {}
        self._last = 0

    def __len__(self) -> int:
        """How many runs are kept."""
        return len(self._runs)

    def keep(self, run: Run, incarnation: Incarnation) -> int:
        """Keep a run and who sent it; returns its token."""
        self._last += 1
        self._runs[self._last] = (run, incarnation)
        return self._last

    def use(self, token: int, done: bool) -> tuple[Run, Incarnation]:
        """The run behind a token and who sent it, forgotten if `done`."""
        return self._runs.pop(token) if done else self._runs[token]

    def drop(self, token: int) -> None:
        """Forget a run."""
        del self._runs[token]

    def block(self, token: int, skip: int, count: int, done: bool) -> bytes | memoryview:
        """The raw messages of a run from the `skip`th on."""
        run, _ = self.use(token, done)
        if skip == 0 and count == run.count:
            return run.block
        start, stop = span(run.block, skip, count)
        return memoryview(run.block)[start:stop]

    def keep_recovered(self, messages: Iterable[Recovered]) -> Iterator[Data]:
        """Keep retransmitted messages, neighbours together, and say so as inputs."""
        pending: list[Recovered] = []
        for message in messages:
            if pending and (not _continues(pending[-1], message) or len(pending) >= MAX_RECOVERED_RUN):
                yield self._recovered(pending)
                pending = []
            pending.append(message)
        if pending:
            yield self._recovered(pending)

    def _recovered(self, messages: list[Recovered]) -> Data:
        first = messages[0]
        _, topic_index = split(first.incarnation)
        size = sum(len(message.payload) for message in messages)
        run = Run(topic_index, first.wire_number, len(messages), size, b"".join(message.data for message in messages))
        token = self.keep(run, first.incarnation)
        return Data(
            first.session, first.incarnation, first.wire_number, len(messages), size, True, token, first.proactive
        )


def _continues(before: Recovered, message: Recovered) -> bool:
    return (
        before.session == message.session
        and before.incarnation == message.incarnation
        and before.proactive == message.proactive
        and bool(before.headers) == bool(message.headers)
        and serial.wire(before.wire_number + 1) == message.wire_number
    )
