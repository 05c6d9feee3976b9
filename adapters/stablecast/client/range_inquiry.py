"""Questions of readers to stores, and the routes of the answers and of the messages that readers request.

A context has one `RangeRoutes`. A question is repeated until all its answers are there, because a store may drop one,
and pages of answers are fetched one after the other.
"""

import asyncio
from typing import Any, Protocol

import attrs

from stablecast.config.stores import store_spec
from stablecast.core.errors import StablecastError
from stablecast.core.protocol.messages import Message
from stablecast.core.protocol.stored_contents import StoredAnswer, StoredQuestion
from stablecast.runtime import machine
from stablecast.runtime.connection_pool import ConnectionPool
from stablecast.runtime.interfaces import resolved_place
from stablecast.transports import codec

REPEAT_SECONDS = 1.0
"""Time after which an unanswered question is repeated."""

MAX_PAGES = 4096
"""Pages of answers to one question; a store has at most 100,000 clients."""


class StoreAway(StablecastError):  # noqa: N818  # a state of affairs
    """The connection to a store is broken or refused."""


class RangeConsumer(Protocol):
    """A reader, as the routes use it."""

    def on_broken(self, address: str) -> None:
        """Note that the connection to a store is broken."""

    async def close(self) -> None:
        """Request nothing any more."""


class ControlConsumer(Protocol):
    """A consumer that is registered with stores, as the routes use it."""

    def on_control(self, message: Message) -> None:
        """Process an answer or a keepalive of a store."""

    def stores_of(self, incarnation: int, index: int | None = None) -> list[str]:
        """Return the addresses of the stores of a life of a source, or of the store with an index."""


class RecoveredConsumer(Protocol):
    """The reading of one source, as the routes use it."""

    def on_recovered(self, messages: list[codec.Recovered | codec.RecoveredRun]) -> None:
        """Process requested messages."""


@attrs.define(eq=False)
class OpenQuestion:
    """A question under way, and the answers to its page so far."""

    store: str
    page: asyncio.Future[list[StoredAnswer]]
    answers: list[StoredAnswer] = attrs.field(factory=list)


@attrs.define(eq=False)
class RangeRoutes:
    """The readers of a context.

    Attributes:
        reply_to: The request port of the context.
        readers: The open readers.
        readings: The readings of the sources with a life.
        consumers: The registered consumer of the source with a life.
    """

    reply_to: str = ""
    readers: dict[RangeConsumer, None] = attrs.field(factory=dict)
    readings: dict[int, list[RecoveredConsumer]] = attrs.field(factory=dict)
    consumers: dict[int, ControlConsumer] = attrs.field(factory=dict)
    _questions: dict[int, OpenQuestion] = attrs.field(factory=dict)
    _pool: ConnectionPool | None = None
    _last: int = attrs.field(factory=lambda: machine.entropy.bits(31))

    def open(self, pool: ConnectionPool, reply_to: str) -> None:
        """Use the connections of an open context, whose request port is `reply_to`."""
        self._pool, self.reply_to = pool, reply_to

    async def ask(self, store: str, **asked: Any) -> list[StoredAnswer]:
        """Return what a store holds, one answer for each source. The arguments are those of `StoredQuestion`.

        A store that never answers is asked for ever: limit the time.

        Raises:
            StoreAway: The store refuses connections, or broke the connection.
        """
        found: list[StoredAnswer] = []
        for _ in range(MAX_PAGES):
            page = await self._page(store, asked | {"after": found[-1].reg_id if found else 0})
            found += [answer for answer in page if answer.reg_id]
            if page[-1].whole or not page[-1].reg_id:
                break
        return found

    async def _page(self, store: str, asked: dict[str, Any]) -> list[StoredAnswer]:
        while True:
            self._last = (self._last + 1) & 0xFFFF_FFFF
            number = self._last
            loop = asyncio.get_running_loop()
            question = self._questions[number] = OpenQuestion(store, loop.create_future())
            try:
                self.send(store, codec.encode(StoredQuestion(request=number, reply_to=self.reply_to, **asked)))
                async with asyncio.timeout(REPEAT_SECONDS):
                    return await question.page
            except TimeoutError:
                continue
            finally:
                del self._questions[number]

    def send(self, store: str, data: bytes) -> None:
        """Send an encoded message to the port of a store."""
        if self._pool is not None:
            self._pool.send(store, data)

    def on_answer(self, answer: StoredAnswer) -> None:
        """Complete the question that the answer names. Answers to no open question are late."""
        question = self._questions.get(answer.answered)
        if question is None or question.page.done():
            return
        question.answers.append(answer)
        if not answer.more:
            question.page.set_result(question.answers)

    def on_recovered(self, incarnation: int, messages: list[codec.Recovered | codec.RecoveredRun]) -> None:
        """Pass requested messages to the readings of their source."""
        for reading in tuple(self.readings.get(incarnation, ())):
            reading.on_recovered(messages)

    def on_broken(self, address: str) -> None:
        """Note that the connection to a store is broken."""
        for question in tuple(self._questions.values()):
            if question.store == address and not question.page.done():
                question.page.set_exception(StoreAway(f"store {address} cannot be reached"))
        for reader in tuple(self.readers):
            reader.on_broken(address)


def placed(text: str) -> str:
    """Return the address `ip:port` of a store, written as sources write it. Raises AddressError, StoreListError."""
    store = store_spec(text)
    return store.address or resolved_place(store.name)
