"""Source and receiver programs that use `stablecast.client` as its users do, and write down what they observe.

The history checker judges what they write. `stablecast sim` runs them in worlds, and the torture runs them as
processes. A job is a mapping: the addresses of relays and stores, topics and pace.

When all faults are over, a source stops sending, waits until everything is stable, and stays. A slow consumer stops
waiting between messages.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from stablecast.client import Closed, Context, GroupReceiver, NotRegistered, NotStable, RegistrationFailed, Source
from stablecast.core.protocol.events import Confirmed, Event, Reclaimed, Stable, StableFlag
from stablecast.lab.whole.application_history import RECORDED_EVENTS, ApplicationHistory
from stablecast.lab.whole.consumers import consume, in_a_thread
from stablecast.lab.whole.history_checker import HOT

BUSY_AFTER_SECONDS = 0.1
"""Delay until a busy application blocks its event loop, which is while its connections are being made."""


class TopicPublisher:
    """One source object of an application."""

    def __init__(self, history: ApplicationHistory, job: Mapping[str, Any], topic: str, handle: int) -> None:
        """Send on `topic`. `handle` distinguishes several objects of one topic."""
        self._history = history
        self._job = job
        self._topic = topic
        self._handle = f"{history.run}/{topic}/{handle}"
        self._session = job["sessions"][handle] if "sessions" in job else None
        self._owner = f"{job['owner']}/{handle}" if "sessions" in job else job["owner"]
        self._lives = 0
        self._count = 0
        self._hot = -1
        self._sent: list[tuple[int, str]] = []

    @property
    def _stream(self) -> str:
        """The name of the current source object of the library. Each object numbers its own messages."""
        return f"{self._handle}.{self._lives}"

    def write(self, what: str, **fields: object) -> None:
        """Append a line about this object."""
        self._history.write(what, stream=self._stream, topic=self._topic, owner=self._owner, **fields)

    async def run(self, context: Context) -> None:
        """Send until the history is over. Make a new source whenever the last one ended."""
        while True:
            self._lives += 1
            try:
                source = await context.source(
                    self._topic,
                    stores=self._job["stores"],
                    session_id=self._session,
                    on_event=self.on_event,
                    options=self._job.get("options", {}),
                )
            except RegistrationFailed as error:
                self.write("refused", text=str(error))
                continue
            except Exception as error:  # noqa: BLE001  # the library decides which error forbids a second source
                self.write("forbidden", text=f"{type(error).__name__}: {error}")
                return
            self.write("registered", number=source.next_number)
            self._job.get("members", []).append(source)
            try:
                await self.publish(source)
                await asyncio.Event().wait()
            except Closed as error:
                self.flush()
                self.write("closed", text=str(error))
                if not self._job.get("again") or self._job.get("leaving"):
                    return
            finally:
                await source.close()

    async def publish(self, source: Source) -> None:
        """Send at the job's pace until all faults are over, and wait until everything is stable."""
        last = None
        while not self._history.finishing.is_set() and self._count < self._job.get("messages", 1 << 60):
            started = asyncio.get_running_loop().time()
            for _ in range(self._job.get("burst", 1)):
                last = await self.send(source)
            self.flush()
            await asyncio.sleep(max(0.0, self._job["pause"] - (asyncio.get_running_loop().time() - started)))
        await self._history.finishing.wait()
        last = await self.send(source)  # one more message, so that receivers notice a gap at the end of the stream
        self.flush()
        try:
            await source.wait_stable_through(last)
        except NotStable as error:
            self.write("given-up", text=str(error))
            with suppress(NotStable):  # Later messages are still on their way.
                await source.wait_stable(last)
        self.write("quiet", last=last)

    async def send(self, source: Source) -> int:
        """Send one message, and return its number. Wait while too few stores are registered."""
        name, hot = f"{self._stream}:{self._count}", None
        if self._job.get("tick"):
            hot = self._hot = max(self._hot + 1, self._job["tick"]())
            name = f"{HOT}{self._topic}:{hot}"
        payload = name.encode().ljust(self._job.get("size", 100), b".")
        patience: Any = self._job.get("patience")
        while True:
            try:
                async with asyncio.timeout(patience):
                    sent = await source.send(payload, hot_number=hot)
            except TimeoutError:
                patience *= 2  # A source may wait for seconds, and each attempt costs as much as a message.
                continue
            except NotRegistered:
                self.flush()
                await source.registered()
                continue
            self._count += 1
            self._sent.append((sent.number, name))
            return sent.number

    def flush(self) -> None:
        """Write the numbers and names of the sent messages."""
        if self._sent:
            self.write("sent", items=self._sent)
            self._sent = []

    def on_event(self, event: Event) -> None:
        match event:
            case Stable() if event.flags & StableFlag.STABLE:
                self.flush()
                self.write("stable", first=event.first, last=event.last, large=self._job.get("large", False))
            case Confirmed():
                self.write("confirmed", first=event.first, last=event.last, reg_id=event.receiver_reg_id)
            case Reclaimed() if event.forced:
                self.write("event", name="Reclaimed", text=str(event))
            case _ if isinstance(event, RECORDED_EVENTS):
                self.write("event", name=type(event).__name__, text=str(event))


async def source(history: ApplicationHistory, context: Context, job: Mapping[str, Any]) -> None:
    """Publish on every topic with `handles` source objects each."""
    async with asyncio.TaskGroup() as tasks:
        for topic in job["topics"]:
            for handle in range(job.get("handles", 1)):
                tasks.create_task(TopicPublisher(history, job, topic, handle).run(context))


async def receiver(history: ApplicationHistory, context: Context, job: Mapping[str, Any]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for topic in job["topics"]:
            tasks.create_task(consume(history, context, job, topic))


ROLES: Mapping[str, Callable[[ApplicationHistory, Context, Mapping[str, Any]], Awaitable[None]]] = {
    "source": source,
    "receiver": receiver,
}


async def run(role: str, history: ApplicationHistory, job: Mapping[str, Any]) -> None:
    try:
        if job.get("mode") == "threads":
            await in_a_thread(history, job)
        async with Context(**job["resolution"], interface=job["interface"], session_id=job["session"]) as context:
            history.write("begin", role=role, owner=job["owner"])
            if job.get("busy"):
                asyncio.get_running_loop().call_later(BUSY_AFTER_SECONDS, time.sleep, job["busy"])
            await ROLES[role](history, context, job)
            history.write("over")
            await asyncio.Event().wait()
    except asyncio.CancelledError:
        history.write("end")


async def leave(members: Sequence[Any], task: "asyncio.Task[Any]") -> None:
    """Deregister all sources and receivers of an application, and end its task. Members of a group only end."""
    for member in tuple(members):
        if isinstance(member, GroupReceiver):
            continue
        if not isinstance(member, Source) or not member.over:
            with suppress(Closed):  # An earlier failure ended the source.
                await member.deregister()
    task.cancel()
