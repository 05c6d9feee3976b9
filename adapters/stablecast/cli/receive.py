"""`stablecast receive`: messages out, one a line."""

import asyncio
import signal
import sys

import attrs

from stablecast.cli.common import note, run_loop, say
from stablecast.cli.joining import Joining
from stablecast.client import Message, Receiver
from stablecast.core.events import Event, RegistrationError, StoreUnresponsive, UnrecoverableLoss


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
        receiver = context.receiver(job.topic, source=job.source, on_event=_tell, options=job.joining.options())
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
        try:
            await _print(receiver, job)
        except asyncio.CancelledError:
            task.uncancel()
        if job.statistics:
            say({"statistics": context.transports.statistics()})
    return 0


async def _print(receiver: Receiver, job: Job) -> None:
    left = job.count
    async for message in receiver:
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
