"""Source and receiver applications, written with `stablecast.client` only, as its users write them.

    python -m tests.torture.applications source|receiver JSON

The JSON holds the addresses of relays and stores, and what to do. Each application appends to its history: one JSON
object a line. A `kill -9` loses no line, because each line is one write to the kernel. SIGUSR1 means that all faults
are over. Then a source stops sending, waits until everything is stable, and stays; a slow consumer hurries.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import uvloop

from stablecast.client import Closed, Context, Message, NotRegistered, NotStable, Receiver, RegistrationFailed, Source
from stablecast.core.protocol.events import (
    Confirmed,
    Event,
    Overtaken,
    Reclaimed,
    RegistrationError,
    RegistrationSuccess,
    Stable,
    StableFlag,
    UnrecoverableLoss,
)
from stablecast.core.protocol.events import NotStable as NotStableEvent

TOLD_EVENTS = (NotStableEvent, Overtaken, RegistrationError, UnrecoverableLoss)
PAUSE_SECONDS = 0.2
"""Before an application tries again what was refused."""

BUSY_AFTER_SECONDS = 0.1
"""When an application that has other work to do begins with it: its connections are just being made."""


class History:
    """The file, and what all applications have in common."""

    def __init__(self, path: str, run: str, finishing: asyncio.Event) -> None:
        """Append to `path` in the name of `run`; `finishing` is set when all faults are over."""
        self.run = run
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.finishing = finishing

    def write(self, what: str, **fields: object) -> None:
        """Add a line."""
        line = {"t": time.monotonic_ns(), "is": what, "run": self.run, **fields}
        os.write(self._descriptor, json.dumps(line, separators=(",", ":")).encode() + b"\n")


class Publisher:
    """One source object of an application."""

    def __init__(self, history: History, job: Mapping[str, Any], topic: str, handle: int) -> None:
        """Send on `topic`; `handle` tells several objects of one topic apart."""
        self._history = history
        self._job = job
        self._topic = topic
        self._handle = f"{history.run}/{topic}/{handle}"
        self._lives = 0
        self._count = 0
        self._sent: list[tuple[int, str]] = []

    @property
    def _stream(self) -> str:
        """One name for each source object that the library made: each has numbers of its own."""
        return f"{self._handle}.{self._lives}"

    def write(self, what: str, **fields: object) -> None:
        """Add a line about this object."""
        self._history.write(what, stream=self._stream, topic=self._topic, owner=self._job["owner"], **fields)

    async def run(self, context: Context) -> None:
        """Send until all is over, with a new source whenever the one before ended."""
        while True:
            self._lives += 1
            try:
                source = await context.source(
                    self._topic,
                    stores=self._job["stores"],
                    on_event=self.on_event,
                    options=self._job.get("options", {}),
                )
            except RegistrationFailed as error:
                self.write("refused", text=str(error))
                continue
            except Exception as error:  # noqa: BLE001  # which rule forbids a second source is the library's business
                self.write("forbidden", text=f"{type(error).__name__}: {error}")
                return
            self.write("registered", number=source.next_number)
            try:
                await self.publish(source)
                await asyncio.Event().wait()
            except Closed as error:
                self.flush()
                self.write("closed", text=str(error))
                if not self._job.get("again"):
                    return
            finally:
                await source.close()

    async def publish(self, source: Source) -> None:
        """Send at the job's pace until the end is asked for, and wait until everything is stable."""
        last = None
        while not self._history.finishing.is_set() and self._count < self._job.get("messages", 1 << 60):
            started = time.monotonic()
            for _ in range(self._job.get("burst", 1)):
                last = await self.send(source)
            self.flush()
            await asyncio.sleep(max(0.0, self._job["pause"] - (time.monotonic() - started)))
        await self._history.finishing.wait()
        last = await self.send(source)  # one more, so that those who missed the end of the stream notice
        self.flush()
        try:
            await source.wait_stable_through(last)
        except NotStable as error:
            self.write("given-up", text=str(error))
        self.write("quiet", last=last)

    async def send(self, source: Source) -> int:
        """Send one message; wait while too few stores are registered."""
        name = f"{self._stream}:{self._count}"
        payload = name.encode().ljust(self._job.get("size", 100), b".")
        while True:
            try:
                sent = await source.send(payload)
            except NotRegistered:
                self.flush()
                await source.registered()
                continue
            self._count += 1
            self._sent.append((sent.number, name))
            return sent.number

    def flush(self) -> None:
        """Write what was sent."""
        if self._sent:
            self.write("sent", items=self._sent)
            self._sent = []

    def on_event(self, event: Event) -> None:
        """Write what the library reports."""
        match event:
            case Stable() if event.flags & StableFlag.STABLE:
                self.flush()
                self.write("stable", first=event.first, last=event.last)
            case Confirmed():
                self.write("confirmed", first=event.first, last=event.last, reg_id=event.receiver_reg_id)
            case Reclaimed() if event.forced:
                self.write("event", name="Reclaimed", text=str(event))
            case _ if isinstance(event, TOLD_EVENTS):
                self.write("event", name=type(event).__name__, text=str(event))


async def source(history: History, context: Context, job: Mapping[str, Any]) -> None:
    """Publish on every topic, `handles` times."""
    async with asyncio.TaskGroup() as tasks:
        for topic in job["topics"]:
            for handle in range(job.get("handles", 1)):
                tasks.create_task(Publisher(history, job, topic, handle).run(context))


async def receiver(history: History, context: Context, job: Mapping[str, Any]) -> None:
    """Consume every topic."""
    async with asyncio.TaskGroup() as tasks:
        for topic in job["topics"]:
            tasks.create_task(consume(history, context, job, topic))


async def consume(history: History, context: Context, job: Mapping[str, Any], topic: str) -> None:
    """Take messages of one topic in the job's way."""
    delay = job.get("delay", 0.0)

    def on_event(event: Event) -> None:
        if isinstance(event, RegistrationSuccess):
            history.write("reg-id", topic=topic, receiver=job["owner"], reg_id=event.reg_id)
        elif isinstance(event, TOLD_EVENTS):
            history.write("event", topic=topic, name=type(event).__name__, text=str(event))

    def deliver(message: Message) -> None:
        payload = message.payload
        name, _, rest = payload.partition(b".." if b".." in payload else b"\0")
        name = name.rstrip(b".")
        history.write(
            "delivered",
            receiver=job["owner"],
            topic=topic,
            first=message.numbers[0],
            number=message.sequence_number,
            life=message.incarnation,
            id=name.decode("ascii", "backslashreplace"),
            whole=not rest.strip(b"."),
        )

    options = job.get("options", {})
    if job["mode"] == "callback":
        context.receiver(topic, on_event=on_event, on_message=deliver, options=options)
        await asyncio.Event().wait()
    taken: Receiver = context.receiver(topic, on_event=on_event, options=options)
    if job["mode"] == "batches":
        await _batches(taken, deliver)
        return
    async for message in taken:
        deliver(message)
        if delay and not history.finishing.is_set():
            if job["mode"] == "blocking":
                time.sleep(delay)  # noqa: ASYNC251  # that it holds up the loop is what this consumer is for
            else:
                await asyncio.sleep(delay)


async def _batches(taken: Receiver, deliver: Callable[[Message], None]) -> None:
    async for batch in taken.batches():
        for index, payload in enumerate(batch.payloads()):
            deliver(Message(payload, batch, index))


ROLES: Mapping[str, Callable[[History, Context, Mapping[str, Any]], Awaitable[None]]] = {
    "source": source,
    "receiver": receiver,
}


async def main(role: str, job: Mapping[str, Any]) -> None:
    """Run one application until it is ended."""
    finishing, loop, task = asyncio.Event(), asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    loop.add_signal_handler(signal.SIGUSR1, finishing.set)
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    history = History(job["history"], job["run"], finishing)  # its file says that signals may come
    context = Context(**job["resolution"], interface=job["interface"], session_id=job["session"])
    try:
        async with context:
            history.write("begin", role=role, owner=job["owner"])
            if job.get("busy"):
                loop.call_later(BUSY_AFTER_SECONDS, time.sleep, job["busy"])
            await ROLES[role](history, context, job)
            history.write("over")
            await asyncio.Event().wait()
    except asyncio.CancelledError:
        history.write("end")


def run(role: str, job: Mapping[str, Any]) -> None:
    """Run one application in this process until it is ended."""
    factory = uvloop.new_event_loop if job.get("uvloop") else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main(role, job))


if __name__ == "__main__":
    run(sys.argv[1], json.loads(sys.argv[2]))
