"""Fast replay of an intact frame: the recorder's own text, answered by the machine with that very text.

Effects are not decoded. The machine's effects are written as the recorder writes them and compared with the text. If
all records match, with their numbers, times and the state at the end, the rules schema, numbering, time and replay
cannot be broken. Otherwise `frame_judge` decodes the frame and finds the difference. Records come in batches, so each
is judged while it is in the cache.
"""

from collections.abc import Sequence
from typing import Any, Final

from stablecast.core.protocol.effects import Effect
from stablecast.core.protocol.inputs import Input
from stablecast.evidence.trace.converter import INPUTS
from stablecast.evidence.trace.frames import LIMIT, Head
from stablecast.evidence.trace.record_reader import reader
from stablecast.evidence.trace.writer import effects_text

BATCH: Final = 32 << 10
"""Bytes of records that are replayed before they are judged: they fit a core's cache with all their objects."""

Step = tuple[int, int, Input, Sequence[Effect]]
"""A decoded record: its number, the clock in ns, the input, and the effects that answered it."""


class _DoubtError(Exception):
    """The frame is not as it should be."""


class Answering:
    """A machine in replay: the number of the next record, and the clock of the last one."""

    def __init__(self, head: Head, machine: Any) -> None:
        self._machine = machine
        self._reader = reader(INPUTS[head.role])
        self.number = head.first
        self._now = head.time

    def to(self, lines: bytes) -> list[Step]:
        """Replay the records of these lines. Raise an error if a record is malformed or its effects differ."""
        records, inputs = self._reader.records(lines), self._reader.inputs
        receive, take_effects = self._machine.receive, self._machine.take_effects
        number, before, steps, texts = self.number, self._now, [], []
        for record in records:
            now, twin = record.t, record.event
            if record.n != number or not before <= now < LIMIT:
                raise _DoubtError
            event = inputs[twin.__class__](twin)
            receive(event, now)
            effects = take_effects()
            texts.append(effects_text(effects) if effects else "[]")
            steps.append((number, now, event, effects))
            number, before = number + 1, now
        # Each is one value of JSON, and no list is the beginning of another: they need not be compared one by one.
        if "".join(texts).encode() != b"".join([record.out for record in records]):
            raise _DoubtError
        self.number, self._now = number, before
        return steps
