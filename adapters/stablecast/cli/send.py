"""Send words or lines as messages, for `stablecast send`."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import attrs

from stablecast.cli.client_options import Participant
from stablecast.cli.input_lines import lines
from stablecast.core.protocol.events import Event, QuorumLost, RegistrationError, StoreUnresponsive
from stablecast.runtime import machine
from stablecast.runtime.event_loop import run_loop
from stablecast.runtime.source_strings import is_source_string
from stablecast.runtime.stream import StreamServer
from stablecast.text import plural
from stablecast.text.console import note, say


@attrs.frozen
class SendJob:
    """Hold the arguments of `stablecast send`; without `messages` the lines of `file` or standard input are sent."""

    topic: str
    stores: Sequence[str]
    participant: Participant
    messages: Sequence[str]
    file: Path | None
    timeout: float
    linger: float
    as_json: bool
    statistics: bool = False


def run(job: SendJob) -> int:
    """Send every message; return the exit status."""
    if job.messages:
        return run_loop(_send(job, _given(job.messages)))
    if job.file is None:
        return run_loop(_send(job, lines(machine.process.input_descriptor())))
    descriptor = machine.files.open(job.file, os.O_RDONLY)
    try:
        return run_loop(_send(job, lines(descriptor)))
    finally:
        machine.files.close(descriptor)


async def _given(messages: Sequence[str]) -> AsyncIterator[bytes]:
    for message in messages:
        yield os.fsencode(message)


async def _send(job: SendJob, contents: AsyncIterator[bytes]) -> int:
    started = machine.clock.monotonic()
    sent = 0
    async with job.participant.context() as context:
        source = await context.source(
            job.topic, stores=job.stores, within=job.timeout, on_event=_report, options=job.participant.options()
        )
        if is_source_string(source.place):
            note(f"receivers join at {source.place}")
        first, last = source.next_number, None
        async for content in contents:
            last = (await source.send(content)).number
            sent += 1
        source.flush()
        stores = bool(source.config.stores)
        if last is not None and stores:
            await source.wait_stable_through(last)
        await asyncio.sleep(job.linger)
        alone = bool(sent) and not stores and isinstance(source.stream, StreamServer) and not source.stream.met
        counters = context.transports.statistics()
    summary = {"topic": job.topic, "sent": sent, "first": first, "last": last, "stable": sent if stores else 0}
    if job.statistics:
        say({"statistics": counters})
    if job.as_json:
        say({**summary, "seconds": round(machine.clock.monotonic() - started, 3)})
    else:
        note(f"{plural(sent, 'message')} sent, {summary['stable']:,} stable")
    if alone:
        note(f"nobody received '{job.topic}': no receiver joined, no store keeps it. Start receivers, or give --store")
    return 1 if alone else 0


def _report(event: Event) -> None:
    match event:
        case StoreUnresponsive() | RegistrationError():
            note(event.text)
        case QuorumLost():
            note(f"registered with {plural(event.registered, 'store')}, {event.needed} needed: waiting")
