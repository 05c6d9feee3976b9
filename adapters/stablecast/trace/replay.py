"""Replay of a frame that is as it should be: the recorder's own text, answered by the machine with that very text.

Effects are not decoded: the machine's are written as the recorder writes them and compared with what stands there. If
that holds for all records, for their numbers and times, and for the state at the end, then nothing is left that the
rules schema, numbering, time and replay could find. If anything does not, `judge` begins anew, decodes all of it and
says what is wrong.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final

import attrs

from stablecast.core.effects import Effect
from stablecast.core.inputs import Input
from stablecast.trace.converter import INPUTS, TAG, snapshot
from stablecast.trace.frames import LIMIT, Frame, digest
from stablecast.trace.lines import effects_text, input_readers

_RECORD: Final = re.compile(rb'^\{"n":(\d+),"t":(-?\d+),"in":(\{.*?\}),"out":(\[.*\])\}$', re.MULTILINE)


@attrs.define
class Step:
    """A decoded record; its input was answered with these effects."""

    number: int
    now: int
    event: Input
    effects: Sequence[Effect]


def replayed(frame: Frame, machine: Any) -> list[Step] | None:
    """The records of a frame that is beyond doubt; None if it is not, and the machine may be in any state.

    Args:
        frame: The frame.
        machine: A machine as the frame's snapshot says.
    """
    try:
        steps = _answered(frame, machine)
    except Exception:  # noqa: BLE001 - a forged record may make a machine fail in any way
        return None
    return steps if steps is not None and digest(snapshot(machine)) == frame.foot.digest else None


def _answered(frame: Frame, machine: Any) -> list[Step] | None:
    found = _RECORD.findall(frame.body)
    if not len(found) == frame.count == frame.foot.records:
        return None
    readers = input_readers(INPUTS[frame.head.role])
    inputs = json.loads(b"[%b]" % b",".join([event for _, _, event, _ in found]))
    before, steps = frame.head.time, []
    for number, ((digits, time, _, effects), value) in enumerate(zip(found, inputs, strict=True), frame.head.first):
        event, now = readers[value[TAG]](value), int(time)
        machine.receive(event, now)
        answer = machine.take_effects()
        if int(digits) != number or not before <= now < LIMIT or effects_text(answer).encode() != effects:
            return None
        steps.append(Step(number, now, event, answer))
        before = now
    return steps
