"""Messages that the application settles one by one: it acknowledges them, or they come again.

A message that is *taken* leaves the order of consumption: later messages may be consumed before it. Stores and source
learn of consumption up to the first message that is not consumed, so they count it as unread until it is settled. A
crash before that delivers it again, with all messages after it.

A message that is not acknowledged (`nack`) waits here for its delay, then it is delivered again. After `attempts`
deliveries it goes to the dead letters, and is consumed once it is stable there.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import attrs

from stablecast.client.batch import Batch
from stablecast.client.errors import NotProcessed
from stablecast.client.inbox import Inbox
from stablecast.client.message import Message
from stablecast.core.errors import MisuseError, StablecastError
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import AckMode, Ordering, ReceiverConfig
from stablecast.runtime.driver import report

if TYPE_CHECKING:
    from stablecast.client.source import Source

logger = logging.getLogger("stablecast")

DELAY_SECONDS: Final = 1.0
"""Seconds before a message is delivered again by default."""

MAX_ERROR: Final = 500
"""Longest reason in a dead letter, in characters."""


@attrs.frozen
class Redelivery:
    """The way of messages that the application could not process.

    Attributes:
        delay: Seconds before such a message is delivered again.
        attempts: Deliveries in all; None has no limit.
        dead_letters: The source to which the message goes after the last attempt. Without it reading ends with
            NotProcessed, and the message stays unacknowledged.
    """

    delay: float = attrs.field(default=DELAY_SECONDS, validator=attrs.validators.ge(0))
    attempts: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    dead_letters: "Source | None" = None


class Redeliverer:
    """The messages of one delivery that were taken and are not settled.

    Attributes:
        policy: What happens to messages that were not acknowledged; None if the application gave no policy.
        explicit: The receiver acknowledges as the application asks, and all messages before, too.
    """

    def __init__(
        self,
        inbox: Inbox[Batch],
        deliver: Callable[[Batch], None],
        policy: Redelivery | None,
        refusal: str,
        fail: Callable[[StablecastError, Exception], None],
        *,
        explicit: bool = False,
        reads: bool = True,
    ) -> None:
        """Start without messages.

        Args:
            inbox: The queue of the delivery.
            deliver: Delivers a batch to the application.
            policy: What happens to messages that were not acknowledged.
            refusal: The reason why messages cannot be taken; empty if they can.
            fail: Ends reading with an error, and its cause.
            explicit: The receiver acknowledges as the application asks.
            reads: The application iterates, so it has one message in hand. A callback has the whole batch.
        """
        self.policy = policy
        self.explicit = explicit
        self._reads = reads
        self._inbox = inbox
        self._deliver = deliver
        self._refusal = refusal
        self._fail = fail
        self._refused: set[Batch] = set()
        self._timers: dict[Batch, asyncio.TimerHandle] = {}
        self._burials: set[asyncio.Task[None]] = set()
        self._closed = False

    def holds(self, batch: Batch) -> bool:
        return batch in self._inbox.held

    def in_work(self, batch: Batch) -> bool:
        return batch in self._inbox.held and batch not in self._refused

    def take(self, batch: Batch, index: int) -> Batch:
        """Take a message in hand; return the batch that has it alone. Raises MisuseError if it was consumed before."""
        if self.holds(batch):
            if batch in self._refused:
                raise MisuseError(f"{_name(batch, index)} comes again later: settle it then")
            return batch
        if self._refusal:
            raise MisuseError(self._refusal)
        inbox = self._inbox
        passed = self._reads and batch is inbox.current and index < inbox.handed - 1
        if batch.reported > index or passed:
            raise MisuseError(
                f"{_name(batch, index)} was consumed before, when the next one was asked for: use 'async with "
                "message', or make the receiver with auto_ack=False"
            )
        part = batch.take_out(index)
        inbox.hold(part)
        return part

    def settle(self, part: Batch) -> None:
        """Consume a message that was taken. A second call does nothing."""
        if self._inbox.release(part):
            self._refused.discard(part)
            part.settle(1)

    def left(self) -> None:
        """Count the message in hand, in whose middle a loop was left, as delivered once more.

        The next loop begins with it. After the last attempt it goes where messages go that were not acknowledged, so
        that one which makes each loop fail does not stop the receiver for ever.
        """
        inbox, policy = self._inbox, self.policy
        batch = inbox.current
        if self._refusal or batch is None:
            return
        inbox.handed += 1
        inbox.return_rest()
        part = batch.take_out(batch.count - 1)
        if policy is not None and policy.attempts is not None and part.refusals + 1 >= policy.attempts:
            inbox.current = None
            inbox.hold(part)
            self.refuse(part, None, None)
        else:
            part.refusals += 1
            inbox.current = part
        inbox.handed = 0

    def give_back(self, part: Batch) -> None:
        """Deliver a message that was taken again soon, and do not count this delivery."""
        if self._inbox.release(part) and not self._closed:
            self._deliver(part)

    def refuse(self, part: Batch, delay: float | None, error: BaseException | None) -> None:
        """Deliver a message that was taken again later, or send it to the dead letters after the last attempt.

        Raises MisuseError if it was settled before.
        """
        if not self.in_work(part):
            raise MisuseError(f"{_name(part, 0)} was settled before: call ack or nack once")
        policy = self.policy or Redelivery()
        part.refusals = count = part.refusals + 1
        self._refused.add(part)
        if self._closed:
            return
        if policy.attempts is None or count < policy.attempts:
            self._plan(part, policy.delay if delay is None else delay)
        elif policy.dead_letters is None:
            text = f"{_name(part, 0)} was not processed in {count} attempts; give Redelivery(dead_letters=source)"
            self._fail(NotProcessed(text), error if isinstance(error, Exception) else NotProcessed(text))
        else:
            burial = asyncio.get_running_loop().create_task(self._bury(part, policy.dead_letters, count, error))
            self._burials.add(burial)
            burial.add_done_callback(self._burials.discard)

    def close(self) -> None:
        """Deliver nothing again. Messages that are not settled stay unacknowledged."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for burial in self._burials:
            burial.cancel()

    def _plan(self, part: Batch, delay: float) -> None:
        self._timers[part] = asyncio.get_running_loop().call_later(delay, self._again, part)

    def _again(self, part: Batch) -> None:
        del self._timers[part]
        self._refused.discard(part)
        self.give_back(part)

    async def _bury(self, part: Batch, source: "Source", count: int, error: BaseException | None) -> None:
        """Send a message to the dead letters, and consume it once it is stable there."""
        message = Message(part.payloads()[0], part, 0)
        try:
            await bury(message, source, _reason(error, count), count)
        except StablecastError as failure:
            text = f"{_name(part, 0)} cannot go to the dead letters '{source.topic}': {failure}"
            report(text, failure)
            self._fail(NotProcessed(text), failure)
            return
        self.settle(part)


async def bury(message: Message, source: "Source", reason: str, attempts: int) -> None:
    """Send a message to the dead letters of `source`, and wait until it is stable there if it has stores.

    The letter has the payload and the properties of the message. Its properties `error`, `topic`, `key` and `attempts`
    say why it is there. Raises as `Source.send` and `Sent.stable` do.
    """
    told = {"error": reason[:MAX_ERROR].replace("\0", " "), "topic": message.topic, "key": message.key}
    sent = await source.send(message.payload, {**message.properties, **told, "attempts": attempts})
    if source.config.stores:
        await sent.stable()


def _reason(error: BaseException | None, count: int) -> str:
    return f"not acknowledged {count} times" if error is None else f"{type(error).__name__}: {error}"


def _name(batch: Batch, index: int) -> str:
    return f"message {batch.numbers(index)[1]} of '{batch.topic}'"


def why_unsettled(config: ReceiverConfig) -> str:
    """Return the reason why messages of such a receiver cannot be settled one by one; empty if they can."""
    if config.ack_mode is AckMode.EXPLICIT:
        return f"receiver '{config.topic}' has ume_explicit_ack_only: use auto_ack=False instead"
    leaps = config.ordering is Ordering.ARRIVAL or config.ack_mode is AckMode.IMMEDIATE
    if leaps and Repair.PREFIX not in config.repairs:
        return f"receiver '{config.topic}' acknowledges past messages in between, as documented: use the profile 'safe'"
    return ""
