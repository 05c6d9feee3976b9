"""Sources that only stores know: a receiver gets their messages though no source and no proxy runs.

The context asks the named stores what they hold, and announces each source to the receiver as the source itself would.
The receiver registers with those stores, recovers, and acknowledges as ever, so they remember how far it is. A source
that runs is found by resolution and announces itself; its next life replaces what the stores said.
"""

import asyncio
from collections.abc import Callable, Sequence

from stablecast.client.range_contents import SourceContents, sources_of
from stablecast.client.range_inquiry import RangeRoutes
from stablecast.client.range_reader import ask_all
from stablecast.core.machine import serial
from stablecast.core.protocol.messages import Incarnation, SourceInfo, StoreEntry
from stablecast.core.protocol.stored_contents import StoredAnswer

LIVE_SECONDS = 1.0
"""Time that a source has to announce itself before the stores are asked."""

ASK_SECONDS = 5.0
"""Time between two questions while too few stores answer, and the time that the stores have for an answer."""

STORED = "stored:"
"""The begin of the place of a source that only stores know."""


def announcement(source: SourceContents, stores: Sequence[str]) -> SourceInfo | None:
    """Return what a source would announce; None while too few of its stores know where its newest life resumes.

    A session takes the numbers of the life from the first announcement, so none may be made up before.
    """
    newest = source.newest
    entries = tuple(
        StoreEntry(index, 0, store, source.answers[store].reg_id, 1)
        for index, store in enumerate(stores)
        if store in source.answers and _knows(source.answers[store], newest)
    )
    quorum = len(source.answers) // 2 + 1
    stop = source.stable_stop(quorum)
    if stop is None or len(entries) < quorum:
        return None
    first = serial.extend(source.lives[-1][1], stop) if source.lives else source.begin()
    return SourceInfo(
        newest.incarnation,
        source.topic,
        0,
        serial.wire(first),
        serial.wire(max(stop, first) - 1),
        newest.request,
        (len(entries),),
        False,
        entries,
        newest.term,
        newest.lives,
        late_join=True,
    )


def _knows(answer: StoredAnswer, newest: StoredAnswer) -> bool:
    """Return whether a store serves the messages of the newest life."""
    return answer.readable and answer.incarnation == newest.incarnation


class StoredSources:
    """Looks for the sources of one receiver at its stores, until a majority of the stores can tell about each."""

    def __init__(
        self, routes: RangeRoutes, topic: str, stores: Sequence[str], announce: Callable[[SourceInfo], None]
    ) -> None:
        """Begin to look; `announce` gets what each source would announce."""
        self._routes = routes
        self._topic = topic
        self._stores = stores
        self._announce = announce
        self._announced: set[Incarnation] = set()
        self._task = asyncio.get_running_loop().create_task(self._look())

    async def close(self) -> None:
        """End the search, and wait until it has ended."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _look(self) -> None:
        await asyncio.sleep(LIVE_SECONDS)
        while True:
            # From a number above 0 on, so that the stores need not look up times on their disks.
            answers = await ask_all(self._routes, self._stores, ASK_SECONDS, topic=self._topic, first=1)
            if len(answers) > len(self._stores) // 2 and self._tell(sources_of(answers)):
                return
            await asyncio.sleep(ASK_SECONDS)

    def _tell(self, sources: Sequence[SourceContents]) -> bool:
        """Announce the sources that can be announced, each life once; return whether none is left."""
        found = [announcement(source, self._stores) for source in sources]
        for info in found:
            if info is not None and info.incarnation not in self._announced:
                self._announced.add(info.incarnation)
                self._announce(info)
        return None not in found
