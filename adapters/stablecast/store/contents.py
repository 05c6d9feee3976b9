"""Answers to readers that ask what the store holds of a topic (spec/stored_messages.md).

The machine knows the numbers, and the journal the times. A question changes neither, so the machine is not fed, and
traces do not have it. Searches by time wait for the disk in tasks, whose number is bounded: a reader asks again.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress

import attrs

from stablecast.core.machine import serial
from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import Role
from stablecast.core.protocol.stored_contents import MAX_RANGES, MAX_TIMES, PAGE, StoredAnswer, StoredQuestion
from stablecast.core.store import StoreEndpoint
from stablecast.core.store.status import RepositoryStatus
from stablecast.store.journal import Journal
from stablecast.transports import codec

MAX_QUESTIONS = 256
"""Questions that are answered at one time; one more is dropped and counted."""


@attrs.define(eq=False)
class StoreContents:
    """Answers questions about the contents of one store.

    Attributes:
        machine: The store.
        journal: Its disk.
        address: Where the store is reached.
        send: Sends bytes to an address.
        oddities: Counts dropped questions.
    """

    _machine: StoreEndpoint
    _journal: Journal
    _address: str
    _send: Callable[[str, bytes], None]
    _oddities: Counter[str]
    _tasks: dict[asyncio.Task[None], None] = attrs.field(factory=dict)

    def answer(self, question: StoredQuestion) -> None:
        if len(self._tasks) >= MAX_QUESTIONS:
            self._oddities["questions-dropped"] += 1
            return
        task = asyncio.get_running_loop().create_task(self._answer(question))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def close(self) -> None:
        """End the answers that are under way."""
        for task in tuple(self._tasks):
            task.cancel()
        for task in tuple(self._tasks):
            with suppress(asyncio.CancelledError):
                await task

    async def _answer(self, question: StoredQuestion) -> None:
        sources = list(self._sources(question))
        page, whole = sources[:PAGE], len(sources) <= PAGE
        answers = [await self._answered(question, reg_id, client) for reg_id, client in page]
        kept = [answer for answer in answers if answer is not None] or [self._nothing(question)]
        for place, answer in enumerate(kept):
            more = len(kept) - 1 - place
            self._send(question.reply_to, codec.encode(attrs.evolve(answer, more=more, whole=whole)))

    def _sources(self, question: StoredQuestion) -> Iterator[tuple[int, Client]]:
        """Yield the sources of the question by RegID, one more than a page."""
        status = self._machine.status
        found = (
            (reg_id, shown.client)
            for reg_id, shown in status.clients.items()
            if shown.client.role is Role.SOURCE
            and reg_id > question.after
            and question.reg_id in (0, reg_id)
            and question.topic in ("", shown.client.topic)
            and reg_id in status.repositories
        )
        yield from sorted(found)[: PAGE + 1]

    def _nothing(self, question: StoredQuestion) -> StoredAnswer:
        return StoredAnswer(
            incarnation=0,
            topic=question.topic,
            version=0,
            low=0,
            high=0,
            request=self._address,
            group_sizes=(),
            confirmations=False,
            stores=(),
            answered=question.request,
        )

    async def _answered(self, question: StoredQuestion, reg_id: int, client: Client) -> StoredAnswer | None:
        """Return what the store holds of one source; None if the source went meanwhile."""
        kept = self._machine.status.repositories.get(reg_id)
        if kept is None:
            return None
        known = self._contents(question, reg_id, client, kept)
        synced = kept.synced.ranges
        if not synced:
            return known
        low, stop = synced[0][0], synced[-1][1]
        if not kept.terms.written:  # Only the disk has times, so a range by time has all messages.
            begin = None if question.since is None else low
            return attrs.evolve(known, since=begin, until=None if question.until is None else stop)
        times = self._journal.times(reg_id)
        if question.since is not None:
            known = attrs.evolve(known, since=await times.first_since(low, stop, question.since))
        if question.until is not None:
            known = attrs.evolve(known, until=await times.first_since(low, stop, question.until))
        if question.timed > question.first:
            found, reach = await times.times(question.first, question.timed, MAX_TIMES)
            known = attrs.evolve(known, times=tuple(found), reach=reach)
        elif not question.first:
            oldest, newest = await times.ends(low, stop)
            known = attrs.evolve(known, oldest=oldest, newest=newest)
        return known

    def _contents(self, question: StoredQuestion, reg_id: int, client: Client, kept: RepositoryStatus) -> StoredAnswer:
        synced = kept.synced
        stop = synced.ranges[-1][1] if synced.ranges else kept.trail
        ranges = synced.within(question.first, stop)
        shown = tuple(ranges[:MAX_RANGES])
        readable = kept.resume_point is not None
        # A life that has not announced where it resumes has no numbers yet. Those here belong to the life before it.
        named = kept.incarnation if readable or not kept.lives else kept.lives[-1][0]
        return StoredAnswer(
            incarnation=named,
            topic=client.topic,
            version=0,
            low=serial.wire(synced.ranges[0][0] if synced.ranges else kept.trail),
            high=serial.wire(stop - 1),
            request=self._address,
            group_sizes=client.group_sizes,
            confirmations=False,
            stores=client.stores,
            term=kept.lives_term,
            lives=tuple(kept.lives),
            answered=question.request,
            reg_id=reg_id,
            session_id=client.session_id,
            trail=kept.trail,
            ranges=shown,
            reach=shown[-1][1] if len(ranges) > MAX_RANGES else stop,
            stored_bytes=kept.disk_bytes or kept.memory[2],
            readable=readable,
        )
