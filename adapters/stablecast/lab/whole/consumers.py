"""The habits with which receivers of simulated worlds read, each as an application would have it.

A consumer writes a line when it is handed a message, and another one when it lets go of messages. `member` names the
program in a group, whose members are one receiver together. `unordered` says that the application did not ask for an
order, and `read` that a reader returned the message, which registers nowhere.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from random import Random
from typing import Any

import attrs

from stablecast import sync
from stablecast.client import AckHandle, Context, Message, MissingRange, ReadFailed, Receiver, Redelivery
from stablecast.core.protocol.events import Event, RegistrationSuccess, UnrecoverableLoss
from stablecast.lab.whole.application_history import RECORDED_EVENTS, ApplicationHistory
from stablecast.runtime import machine

ACKNOWLEDGING_SECONDS = 0.15
"""Time between two explicit acknowledgements."""

SETTLING_SECONDS = 0.05
"""Time between two moments at which an application settles some of its messages."""

REFUSED_SHARE = 0.2
"""Share of the messages that an application does not acknowledge at first; they come again after `AGAIN_SECONDS`."""

AGAIN_SECONDS = 0.3

LEAVING_SHARE = 0.2
"""Share of the messages after which a fickle consumer leaves its loop, for `AWAY_SECONDS` at most."""

PROCESSED_SHARE = 0.5
"""Share of the messages with which a fickle consumer left its loop that it processes before it goes on."""

AWAY_SECONDS = 0.3

IMPATIENT_SECONDS = 0.03
"""Time after which an impatient consumer cancels the wait for its next message, to do something else."""

READING_PATIENCE_SECONDS = 600.0
"""Time that readers wait for stores: longer than a world, so that they leave no message out."""

BEGINNINGS: Mapping[str, Any] = {"earliest": "earliest", "number": 0, "time": datetime(1970, 1, 1, tzinfo=UTC)}
"""Places to begin, below which no message is: a receiver gets everything from each of them."""

GROUP = "workers"
SHARES = 4

UNORDERED = frozenset({"arrival", "settled", "group"})
"""The habits whose applications do not process messages in the order of their numbers. Hot numbers have none either."""


@attrs.define
class Consumer:
    history: ApplicationHistory
    job: Mapping[str, Any]
    topic: str
    random: Random

    @property
    def habit(self) -> str:
        """Return how the application reads."""
        habit: str = "group" if self.job.get("group") else self.job["mode"]
        return habit

    @property
    def finishing(self) -> bool:
        """Return whether all faults are over, and nobody delays anything any more."""
        return self.history.finishing.is_set()

    def on_event(self, event: Event) -> None:
        if isinstance(event, RegistrationSuccess):
            who, where = {"receiver": self.job["owner"], "reg_id": event.reg_id}, {"store": event.store_index}
            self.history.write("reg-id", topic=self.topic, **who, **where)
        elif isinstance(event, RECORDED_EVENTS):
            lost: dict[str, object] = {}
            if isinstance(event, UnrecoverableLoss):
                lost = {"receiver": self.job["owner"], "first": event.first, "last": event.last}
            self.history.write("event", topic=self.topic, name=type(event).__name__, text=str(event), **lost)

    def deliver(self, message: Message | sync.Message) -> str:
        """Write that the application was handed a message; return its name."""
        payload = message.payload
        begin, _, rest = payload.partition(b".." if b".." in payload else b"\0")
        name = begin.rstrip(b".").decode("ascii", "backslashreplace")
        unordered = self.habit in UNORDERED or self.job.get("hot")
        marks: dict[str, object] = {"unordered": True} if unordered else {}
        if self.habit == "group":
            marks["member"] = self.job["member"]
        if self.habit == "reader":
            marks["read"] = True
        self.history.write(
            "delivered",
            receiver=self.job["owner"],
            topic=self.topic,
            first=message.numbers[0],
            number=message.sequence_number,
            life=message.incarnation,
            id=name,
            whole=rest == b"." * len(rest),
            **marks,
        )
        return name

    def consumed(self, *names: str, kept: float = 0.0) -> None:
        """Write that the application lets go of messages now. It kept the event loop for `kept` seconds before."""
        self.history.write("consumed", receiver=self.job["owner"], ids=names, kept=kept)

    def receiver(self, context: Context | sync.Context) -> Any:
        options, job = dict(self.job.get("options", {})), self.job
        more: dict[str, Any] = {"on_event": self.on_event}
        if job.get("start"):
            more["start"] = BEGINNINGS[job["start"]]
        if job.get("stored"):
            more["stores"] = job["addresses"]
        if self.habit == "group":
            return context.receiver(self.topic, group=GROUP, shares=SHARES, options=options, **more)
        if self.habit == "explicit":
            options["ume_explicit_ack_only"] = 1
        if self.habit == "arrival":
            options["ordered_delivery"] = 0
        if self.habit == "callback":
            more["on_message"] = lambda message: self.consumed(self.deliver(message))
        if self.habit == "settled":
            more |= {"auto_ack": False, "redelivery": Redelivery(delay=AGAIN_SECONDS)}
        pattern = bool(job.get("pattern"))
        if "reg_id" in job:
            more["reg_id"] = lambda *_: job["reg_id"]
        if pattern:
            more["on_event"] = lambda _, event: self.on_event(event)
            return context.receiver(pattern=f"^{self.topic}$", options=options, **more)
        return context.receiver(self.topic, options=options, hot_failover=bool(job.get("hot")), **more)

    async def one_by_one(self, receiver: Receiver) -> None:
        """Process each message, perhaps slowly."""
        delay = self.job.get("delay", 0.0)
        async for message in receiver:
            name, kept = self.deliver(message), 0.0
            if delay and not self.finishing:
                if self.habit == "blocking":
                    time.sleep(delay)  # noqa: ASYNC251  # this consumer blocks the loop on purpose
                    kept = delay
                else:
                    await asyncio.sleep(delay)
            self.consumed(name, kept=kept)

    async def batches(self, receiver: Receiver) -> None:
        """Process the messages of whole batches."""
        async for batch in receiver.batches():
            self.consumed(*[self.deliver(Message(payload, batch, at)) for at, payload in enumerate(batch.payloads())])

    async def explicitly(self, receiver: Receiver) -> None:
        """Acknowledge from another task, so that the newest messages stay without acknowledgement for a while."""
        handles: list[tuple[AckHandle, str]] = []

        async def acknowledge() -> None:
            while True:
                await asyncio.sleep(ACKNOWLEDGING_SECONDS)
                for handle, name in handles:
                    self.consumed(name)
                    handle.ack()
                handles.clear()

        acknowledging = asyncio.create_task(acknowledge())
        try:
            async for message in receiver:
                name = self.deliver(message)
                handles.append((message.ack_handle(), name))
        finally:
            acknowledging.cancel()

    async def settled(self, receiver: Receiver) -> None:
        """Settle messages later and in any order; some are refused first, and come again."""
        held: list[Message] = []

        def settle() -> None:
            self.random.shuffle(held)
            for _ in range(len(held) if self.finishing else self.random.randint(0, len(held))):
                message = held.pop()
                if not self.finishing and self.random.random() < REFUSED_SHARE:
                    message.nack()
                else:
                    self.consumed(self.deliver(message))
                    message.ack()

        async def later() -> None:
            while True:
                await asyncio.sleep(SETTLING_SECONDS)
                settle()

        settling = asyncio.create_task(later())
        try:
            async for message in receiver:
                held.append(message)  # noqa: PERF401  # `settle` empties the list meanwhile
        finally:
            settling.cancel()

    async def fickle(self, receiver: Receiver) -> None:
        """Leave the loop with a message in hand, and come back: it was processed meanwhile, or it must come again."""
        left: Message | None = None
        while True:
            async for message in receiver:
                if self.random.random() < LEAVING_SHARE:
                    left = message
                    break
                self.consumed(self.deliver(message))
            await asyncio.sleep(0 if self.finishing else self.random.random() * AWAY_SECONDS)
            if left is not None and self.random.random() < PROCESSED_SHARE:
                self.consumed(self.deliver(left))
                left.ack()
            left = None

    async def impatient(self, receiver: Receiver) -> None:
        """Wait for each message for a short time only."""
        while True:
            try:
                message = await asyncio.wait_for(anext(receiver), IMPATIENT_SECONDS)
            except TimeoutError:
                continue
            self.consumed(self.deliver(message))

    async def in_a_group(self, receiver: Receiver) -> None:
        """Process shares. A member needs time for some messages, and closes in order."""
        try:
            async for message in receiver:
                name = self.deliver(message)
                if self.random.random() < LEAVING_SHARE and not self.finishing:
                    await asyncio.sleep(self.random.random() * SETTLING_SECONDS)
                self.consumed(name)
        finally:
            await receiver.close()

    async def reading(self, context: Context) -> None:
        """Read what becomes stable, from the beginning on and without a registration."""

        def on_hole(hole: MissingRange) -> None:
            self.history.write("hole", topic=self.topic, first=hole.first, last=hole.last, text=str(hole))

        options: dict[str, Any] = {"follow": True, "patience": READING_PATIENCE_SECONDS, "on_hole": on_hole}
        while True:
            try:
                async with context.reader(self.topic, stores=self.job["addresses"], **options) as reader:
                    async for message in reader:
                        self.deliver(message)
            except ReadFailed as error:
                self.history.write("event", topic=self.topic, name="ReadFailed", text=str(error))


WAYS: Mapping[str, Callable[[Consumer, Any], Any]] = {
    "explicit": Consumer.explicitly,
    "batches": Consumer.batches,
    "settled": Consumer.settled,
    "fickle": Consumer.fickle,
    "impatient": Consumer.impatient,
    "group": Consumer.in_a_group,
}
"""The way to read of each habit; without one, message by message."""


async def consume(history: ApplicationHistory, context: Context, job: Mapping[str, Any], topic: str) -> None:
    random = Random(f"{history.run} {topic}")  # noqa: S311 - not a secret
    consumer = Consumer(history, job, topic, random)
    if consumer.habit == "reader":
        await consumer.reading(context)
        return
    receiver = consumer.receiver(context)
    job.get("members", []).append(receiver)
    if consumer.habit == "callback":
        await asyncio.Event().wait()
    else:
        await WAYS.get(consumer.habit, Consumer.one_by_one)(consumer, receiver)


async def in_a_thread(history: ApplicationHistory, job: Mapping[str, Any]) -> None:
    """Receive messages of every topic in a thread that blocks, until this task is cancelled."""
    ends = False

    def work() -> None:
        with sync.Context(**job["resolution"], interface=job["interface"], session_id=job["session"]) as context:
            history.write("begin", role="receiver", owner=job["owner"])
            consumers = [Consumer(history, job, topic, Random(0)) for topic in job["topics"]]  # noqa: S311
            receivers = [consumer.receiver(context) for consumer in consumers]
            while not ends:
                for consumer, receiver in zip(consumers, receivers, strict=True):
                    with suppress(TimeoutError):
                        consumer.consumed(consumer.deliver(receiver.next(IMPATIENT_SECONDS)))

    working = asyncio.ensure_future(machine.threads.call(work))
    try:
        await asyncio.shield(working)
    finally:
        ends = True
        await working
