"""Questions of readers to stores, the routes of the answers and of requested messages, and what all answers tell.

A context has one `RangeRoutes`. A question is repeated until all its answers are there, because a store may drop one,
and pages of answers are fetched one after the other. A reader waits for the answers of all stores within its patience.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import attrs

from stablecast.client.range_contents import SourceContents, sources_of, stop_of
from stablecast.config.stores import store_spec
from stablecast.core.errors import StablecastError
from stablecast.core.protocol.messages import Message
from stablecast.core.protocol.quorum import GroupRules
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

    def on_recovered(self, messages: list[codec.Recovered | codec.RecoveredRun]) -> None: ...


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
        for question in tuple(self._questions.values()):
            if question.store == address and not question.page.done():
                question.page.set_exception(StoreAway(f"store {address} cannot be reached"))
        for reader in tuple(self.readers):
            reader.on_broken(address)


def placed(text: str) -> str:
    """Return the address `ip:port` of a store, written as sources write it. Raises AddressError, StoreListError."""
    store = store_spec(text)
    return store.address or resolved_place(store.name)


Answers = dict[str, list[StoredAnswer]]
"""The sources of each store that answered."""


async def ask_all(
    routes: RangeRoutes,
    stores: Sequence[str],
    patience: float,
    enough: Callable[[Answers], bool] | None = None,
    **asked: object,
) -> Answers:
    """Return the answers of the stores that answer within `patience` seconds.

    Once the answers are `enough`, by default those of a majority, the others have a tenth of the patience, and those
    that cannot be reached none. Until then each store is asked again and again.
    """
    loop = asyncio.get_running_loop()
    answers: Answers = {}
    away: set[str] = set()
    changed = asyncio.Event()

    async def ask(store: str) -> None:
        while True:
            try:
                answers[store] = await _asked(routes, store, asked)
                away.discard(store)
            except StoreAway:
                answers.pop(store, None)
                away.add(store)
            changed.set()
            await asyncio.sleep(REPEAT_SECONDS)

    tasks = [loop.create_task(ask(store)) for store in stores]
    for task in tasks:
        task.add_done_callback(lambda _: changed.set())
    deadline = loop.time() + patience
    try:
        while len(answers) < len(stores):
            for task in tasks:
                if task.done():
                    task.result()
            if len(answers) > len(stores) // 2 if enough is None else enough(answers):
                if len(away | answers.keys()) == len(stores):
                    break
                deadline = min(deadline, loop.time() + patience / 10)
            changed.clear()
            try:
                async with asyncio.timeout_at(deadline):
                    await changed.wait()
            except TimeoutError:
                break
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return {store: answers[store] for store in stores if store in answers}


async def _asked(routes: RangeRoutes, store: str, asked: Mapping[str, object]) -> list[StoredAnswer]:
    """Return the answers of a store, with all ranges. Raises StoreAway."""
    return [await _completed(routes, store, one) for one in await routes.ask(store, **asked)]


async def _completed(routes: RangeRoutes, store: str, answer: StoredAnswer) -> StoredAnswer:
    """Ask for the ranges that did not fit into an answer. Raises StoreAway."""
    for _ in range(MAX_PAGES):
        if answer.reach >= stop_of(answer):
            break
        found = await routes.ask(store, topic=answer.topic, reg_id=answer.reg_id, first=answer.reach)
        more = next((one for one in found if one.incarnation == answer.incarnation and one.lives == answer.lives), None)
        if more is None or more.reach <= answer.reach:
            break
        answer = attrs.evolve(answer, ranges=answer.ranges + more.ranges, reach=more.reach, high=more.high)
    return answer


@attrs.frozen
class StoredTopics:
    """The sources that `stores` hold, of those that were `asked`.

    `groups` has the behaviours of the sources' groups.
    """

    stores: tuple[str, ...]
    sources: list[SourceContents]
    asked: tuple[str, ...]
    groups: GroupRules

    def stable_stop(self, source: SourceContents) -> int | None:
        """Return the number after the newest stable one of a source; None: too few stores answered."""
        rule = source.rule(self.asked, self.groups)
        silent = [store for store in self.asked if store not in self.stores]
        if source.is_open(rule, silent):
            return None
        last = source.judge(rule, source.first(), silent)[0].last
        return source.first() if last is None else last + 1


async def stored(
    routes: RangeRoutes, topic: str, stores: Sequence[str], patience: float, groups: GroupRules
) -> tuple[StoredTopics, list[str]]:
    """Return what stores hold of a topic, empty: of all, and the stores that do not answer."""
    answers = await ask_all(routes, stores, patience, topic=topic)
    silent = [store for store in stores if store not in answers]
    return StoredTopics(tuple(answers), sources_of(answers), tuple(stores), groups), silent
