"""`stablecast receive`: messages out, one a line."""

import asyncio
import sys

import attrs

from stablecast.cli.client_options import Joining
from stablecast.client import Message, Receiver
from stablecast.core.protocol.events import Event, RegistrationError, StoreUnresponsive, UnrecoverableLoss
from stablecast.runtime.event_loop import on_ending, run_loop
from stablecast.text.console import note, say

HINT_SECONDS = 10.0
"""Whoever hears nothing for so long is told what may be wrong; a resolver over UDP cannot say that it is not there."""


@attrs.frozen
class Job:
    """What is to be received, and from where."""

    topic: str
    joining: Joining
    source: str | None
    count: int
    as_json: bool
    statistics: bool = False


def run(job: Job) -> int:
    """Print messages until interrupted or the count is reached; returns the exit status."""
    return run_loop(_receive(job))


async def _receive(job: Job) -> int:
    async with job.joining.context() as context:
        hint = asyncio.get_running_loop().call_later(HINT_SECONDS, note, _unheard(job))

        def tell(event: Event) -> None:
            hint.cancel()
            _tell(event)

        receiver = context.receiver(job.topic, source=job.source, on_event=tell, options=job.joining.options())
        task = asyncio.current_task()
        assert task is not None
        on_ending(task.cancel)
        try:
            await _print(receiver, job, hint)
        except asyncio.CancelledError:
            task.uncancel()
        finally:
            hint.cancel()
        if job.statistics:
            say({"statistics": context.transports.statistics()})
    return 0


def _unheard(job: Job) -> str:
    if job.source is not None:
        return f"nothing has come from a source at {job.source} yet: start it, or correct --source"
    return f"no source of '{job.topic}' was heard yet: is one running, and does it use a resolver that is used here?"


async def _print(receiver: Receiver, job: Job, hint: asyncio.TimerHandle) -> None:
    left = job.count
    async for message in receiver:
        hint.cancel()
        _show(message, job.as_json)
        message.consumed()
        left -= 1
        if left == 0:
            return


def _show(message: Message, as_json: bool) -> None:
    if as_json:
        text = message.payload.decode("utf-8", "backslashreplace")
        say({"number": message.sequence_number, "payload": text, "recovered": message.recovered})
    else:
        sys.stdout.buffer.write(message.payload + b"\n")
        sys.stdout.buffer.flush()


def _tell(event: Event) -> None:
    match event:
        case StoreUnresponsive() | RegistrationError():
            note(event.text)
        case UnrecoverableLoss():
            note(f"lost for good: {event.first}..{event.last}")
        case _:
            pass
