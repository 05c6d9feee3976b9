"""Replay of a frame that is as it should be: the recorder's own text, answered by the machine with that very text.

Effects are not decoded: the machine's are written as the recorder writes them and compared with what stands there. If
that holds for all records, for their numbers and times, and for the state at the end, then nothing is left that the
rules schema, numbering, time and replay could find. If anything does not, `judge` decodes all of it and says what is
wrong. Records come in batches, so that each is judged while it is still at hand.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from stablecast.core.effects import Effect
from stablecast.core.inputs import Input
from stablecast.trace.converter import INPUTS, TAG, snapshot
from stablecast.trace.frames import LIMIT, Frame, digest
from stablecast.trace.lines import effects_text, input_readers

_OUTPUT: Final = ',"out":'
"""What stands between a record's input and its effects; nowhere else, for texts of JSON have no bare quotes."""

_FIELDS: Final = ["n", "t", "in"]


BATCH: Final = 128
"""Records that are replayed before they are judged: what a core's cache holds."""

Step = tuple[int, int, Input, Sequence[Effect]]
"""A decoded record: its number, the clock in ns, the input, and the effects that answered it."""


def replayed(frame: Frame, machine: Any) -> Iterator[list[Step] | None]:
    """Yields the records of a frame while they are beyond doubt; behind them None if something is not.

    Args:
        frame: The frame.
        machine: A machine as the frame's snapshot says; after None it may be in any state.
    """
    try:
        yield from _batches(frame, machine)
    except Exception:  # noqa: BLE001 - a forged record may make a machine fail in any way
        yield None


def _batches(frame: Frame, machine: Any) -> Iterator[list[Step]]:
    lines = frame.body.decode("ascii").splitlines()
    if not len(lines) == frame.count == frame.foot.records:
        raise _DoubtError
    answering = Answering(frame, machine)
    for at in range(0, len(lines), BATCH):
        yield answering.to(lines[at : at + BATCH])
    if digest(snapshot(machine)) != frame.foot.digest:
        raise _DoubtError


class _DoubtError(Exception):
    """The frame is not as it should be."""


class Answering:
    """A machine that is asked again: the number of the next record, and the clock of the last."""

    def __init__(self, frame: Frame, machine: Any) -> None:
        self._machine = machine
        self._readers = input_readers(INPUTS[frame.head.role])
        self._number = frame.head.first
        self._now = frame.head.time

    def to(self, lines: list[str]) -> list[Step]:
        """The records of these lines. Raises if one is not as the recorder writes it, or is answered otherwise."""
        halves = [line.partition(_OUTPUT) for line in lines]
        heads = json.loads(f"[{'},'.join([half[0] for half in halves])}}}]")
        readers, receive, take_effects = self._readers, self._machine.receive, self._machine.take_effects
        number, before, steps = self._number, self._now, []
        for head, (_, _, output) in zip(heads, halves, strict=True):
            claimed, now, value = head.values()
            if [*head] != _FIELDS or claimed is True or claimed != number or type(now) is not int:
                raise _DoubtError
            event = readers[value[TAG]](value)
            receive(event, now)
            effects = take_effects()
            text = effects_text(effects)
            if not output.startswith(text) or output[len(text) :] != "}" or not before <= now < LIMIT:
                raise _DoubtError
            steps.append((number, now, event, effects))
            number, before = number + 1, now
        self._number, self._now = number, before
        return steps
