"""Handles and timers of a simulated event loop, which are made in fewer steps than asyncio's.

There are thousands in a world.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any


class SoonHandle(asyncio.Handle):
    """A handle that is made in fewer steps; there are thousands in a world."""

    __slots__ = ()

    def __init__(
        self, callback: Callable[..., object], args: Any, loop: asyncio.AbstractEventLoop, context: Context | None
    ) -> None:
        """Make the handle of a callback of a loop that does not debug."""
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = self._source_traceback = None


class SoonTimer(asyncio.TimerHandle):
    """A timer that is made and cancelled in fewer steps. Its loop orders it, so nothing compares timers."""

    __slots__ = ()

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: Any,
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
    ) -> None:
        """Make the timer of a callback of a loop that does not debug."""
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = self._source_traceback = None
        self._when = when
        self._scheduled = True

    def cancel(self) -> None:
        if not self._cancelled:
            self._loop._timer_handle_cancelled(self)  # type: ignore[attr-defined]
            self._cancelled = True
            self._callback = self._args = None  # type: ignore[assignment]  # as asyncio does
