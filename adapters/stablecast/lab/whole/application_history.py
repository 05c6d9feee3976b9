"""The histories that applications write of what they observe."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

import attrs

from stablecast.core.protocol.events import NotStable, Overtaken, RegistrationError, UnrecoverableLoss

RECORDED_EVENTS = (NotStable, Overtaken, RegistrationError, UnrecoverableLoss)


class ApplicationHistory(Protocol):
    """Keep what an application observes.

    Attributes:
        run: Name of this start of the application.
        finishing: Set when all faults are over.
    """

    run: str
    finishing: asyncio.Event

    def write(self, what: str, **fields: object) -> None:
        """Append a line with the time and the name of the run."""


Line = dict[str, Any]


@attrs.define
class WorldHistory:
    """The history of one start of an application; its lines survive the process."""

    run: str
    finishing: asyncio.Event
    lines: list[Line]
    now: Callable[[], int]

    def write(self, what: str, **fields: object) -> None:
        self.lines.append({"t": self.now(), "is": what, "run": self.run, **fields})
