"""Sources that a receiver is going to join."""

import asyncio

import attrs


@attrs.frozen
class Plan:
    """A stream to join, at the latest when `timer` fires."""

    transport: str
    session_id: int | None
    request: str
    timer: asyncio.TimerHandle
