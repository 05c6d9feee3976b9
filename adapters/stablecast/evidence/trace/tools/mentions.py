"""Frames that may state something about a number: a search in their text, 100 times as fast as decoding.

The search looks for the raw form of facts (`evidence.trace.facts`), as recorders write it. It may find a frame too
many, but none too few. Numbers stand there with full width, or as on the wire, with 32 bits.
"""

import re
from collections.abc import Iterator
from typing import Final

from stablecast.core.machine import serial
from stablecast.core.protocol.messages import Incarnation, Role
from stablecast.evidence.trace.frames import TraceFrame
from stablecast.evidence.trace.quorums import extended

_DIGITS: Final = 4
"""Runs of a count with more digits may begin anywhere, those with fewer near the number."""

_WRAPPED: Final = r'[2-4]\d{9},"last":(?:1\d{9}|\d{1,9})'
"""A range of wire numbers that begins below 0 and ends above it."""

_RUN: Final = r'(?=\d++,"count":)'
"""A lookahead that passes over most text without runs before numbers are compared."""

_CUT: Final = b'{"_":"Cut",'

_CONSUMED: Final = r'"message":\{"_":"ConsumptionAck","incarnation":(\d+),"source_reg_id":\d+,"receiver_reg_id":(\d+)'

_ACKS: Final = {
    Role.STORE: re.compile(rf'"Arrived",{_CONSUMED},"number":(\d+)'.encode()),
    Role.RECEIVER: re.compile(rf'"to":"([^"]*)",{_CONSUMED},"number":(\d+)'.encode()),
}
"""Acknowledgements of everything up to a number: peer if it is sent, life, RegID and number."""


class Mentions:
    """Search patterns for a number in the text of frames."""

    def __init__(self, number: int) -> None:
        """Make the patterns for this number, at least 0."""
        forms = sorted({number, serial.wire(number)})
        ranges = [f'{_at_most(form)},"last":{_at_least(form)}' for form in forms]
        runs = [(rf"\d{{{size}}}", _near(form, size)) for form in forms for size in range(1, _DIGITS + 1)]
        runs.append((rf"\d{{{_DIGITS + 1},}}+", r"\d++"))
        begins = "|".join(f'{first},"count":{count}' for count, first in runs)
        counts = "|".join(f'{count},"first":{first}' for count, first in runs)
        self._number = number
        self._first = re.compile(f'"first":(?:{"|".join([*ranges, _WRAPPED])}|{_RUN}(?:{begins}))[,}}]'.encode())
        self._count = re.compile(f'"count":(?:{counts})[,}}]'.encode())

    def ranges_in(self, frame: TraceFrame) -> bool:
        """Return whether the frame may have a range with the number."""
        role, body = frame.head.role, frame.body
        if role is not Role.RECEIVER and self._first.search(body):
            return True
        return role is not Role.SOURCE and (self._count.search(body) is not None or _CUT in body)

    def acks_in(self, frame: TraceFrame) -> Iterator[tuple[Incarnation, str]]:
        """Yield life and receiver, or store, of each acknowledgement of the number."""
        if frame.head.role in _ACKS:
            for *to, life, reg_id, upto in _ACKS[frame.head.role].findall(frame.body):
                if extended(int(upto), self._number) >= self._number:
                    yield int(life), b"/".join([*to, reg_id]).decode()


def _at_most(number: int) -> str:
    r"""Return an expression for the numbers up to this one.

    >>> _at_most(307)
    '(?:307|[0-2]\\d{2}|30[0-6]\\d{0}|\\d{1,2}+)'
    """
    digits = str(number)
    below = [_from(digits, at, f"[0-{int(digit) - 1}]") for at, digit in enumerate(digits) if digit != "0"]
    shorter = [rf"\d{{1,{len(digits) - 1}}}+"] if len(digits) > 1 else []
    return f"(?:{'|'.join([digits, *below, *shorter])})"


def _at_least(number: int) -> str:
    r"""Return an expression for the numbers from this one on.

    >>> _at_least(97)
    '(?:97|9[8-9]\\d{0}|\\d{3,})'
    """
    digits = str(number)
    above = [_from(digits, at, f"[{int(digit) + 1}-9]") for at, digit in enumerate(digits) if digit != "9"]
    longer = rf"\d{{{len(digits) + 1},}}"
    return f"(?:{'|'.join([digits, *above, longer])})"


def _from(digits: str, at: int, digit: str) -> str:
    """Return the numbers of this length with these first digits and another digit there."""
    return rf"{digits[:at]}{digit}\d{{{len(digits) - at - 1}}}"


def _near(number: int, size: int) -> str:
    r"""Return the first numbers of runs with a count of `size` digits that can reach this one, and some more.

    >>> _near(1234, 2), _near(1234, 3), _near(1234, 4)
    ('(?:12|11)\\d{2}', '(?:1\\d{3}|\\d{1,3})', '\\d{1,4}')
    """
    block = number // 10**size
    if block > 1:
        return rf"(?:{block}|{block - 1})\d{{{size}}}"
    return rf"(?:1\d{{{size}}}|\d{{1,{size}}})" if block else rf"\d{{1,{size}}}"
