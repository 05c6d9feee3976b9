"""Print received messages, for `stablecast receive`."""

import asyncio
from collections.abc import Callable

import attrs

from stablecast.cli.client_options import Participant
from stablecast.cli.interrupts import until_interrupted
from stablecast.client import Context, GroupReceiver, Message, Receiver, WildcardReceiver
from stablecast.core.protocol.events import (
    Event,
    RegistrationError,
    SharesChanged,
    StoreUnresponsive,
    UnrecoverableLoss,
)
from stablecast.runtime import machine
from stablecast.runtime.event_loop import run_loop
from stablecast.text.console import note, say

HINT_SECONDS = 10.0
"""Time without a message or event until a hint is printed, in seconds.

A resolver over UDP cannot report that it is absent.
"""

AnyReceiver = Receiver | WildcardReceiver | GroupReceiver


@attrs.frozen
class ReceiveJob:
    """Hold the arguments of `stablecast receive`; `topic` is empty if there is a `pattern`, `group` if it is alone."""

    topic: str
    participant: Participant
    source: str | None
    count: int
    as_json: bool
    statistics: bool = False
    pattern: str = ""
    group: str = ""


def run(job: ReceiveJob) -> int:
    """Print messages until interrupted or until the count is reached; return the exit status."""
    return run_loop(_receive(job))


async def _receive(job: ReceiveJob) -> int:
    async with job.participant.context() as context:
        hint = asyncio.get_running_loop().call_later(HINT_SECONDS, note, _silence_hint(job))

        def report(event: Event) -> None:
            hint.cancel()
            _report(event)

        receiver = _receiver(context, job, report)
        try:
            with until_interrupted():
                await _print(receiver, job, hint)
        finally:
            hint.cancel()
        if job.statistics:
            say({"statistics": context.transports.statistics()})
    return 0


def _receiver(context: Context, job: ReceiveJob, report: Callable[[Event], None]) -> AnyReceiver:
    options = job.participant.options()
    if job.group:
        return context.receiver(job.topic, group=job.group, source=job.source, on_event=report, options=options)
    if job.pattern:
        return context.receiver(pattern=job.pattern, on_event=lambda _, event: report(event), options=options)
    return context.receiver(job.topic, source=job.source, on_event=report, options=options)


def _silence_hint(job: ReceiveJob) -> str:
    if job.pattern:
        return f"no topic matches '{job.pattern}' yet: start a source that uses the same resolver, or correct --pattern"
    if job.source is not None:
        return f"no message from a source at {job.source} yet: start the source, or correct --source"
    return f"no source of '{job.topic}' found yet: start one that uses the same resolver, or correct --resolver"


async def _print(receiver: AnyReceiver, job: ReceiveJob, hint: asyncio.TimerHandle) -> None:
    left = job.count
    async for message in receiver:
        hint.cancel()
        _show(message, job)
        message.consumed()
        left -= 1
        if left == 0:
            return


def _show(message: Message, job: ReceiveJob) -> None:
    if job.as_json:
        text = message.payload.decode("utf-8", "backslashreplace")
        topic = {"topic": message.topic} if job.pattern else {}
        say({**topic, "number": message.sequence_number, "payload": text, "recovered": message.recovered})
    else:
        topic_column = message.topic.encode() + b"\t" if job.pattern else b""
        machine.process.output().buffer.write(topic_column + message.payload + b"\n")
        machine.process.output().buffer.flush()


def _report(event: Event) -> None:
    match event:
        case StoreUnresponsive() | RegistrationError():
            note(event.text)
        case SharesChanged():
            note(f"{len(event.shares)} shares of '{event.topic}', {event.members} members of '{event.group}'")
        case UnrecoverableLoss():
            note(f"lost, unrecoverable: {event.first}..{event.last}")
