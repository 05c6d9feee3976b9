"""Sources that only stores know: a receiver gets their messages though no source and no proxy runs.

The context asks the named stores what they hold, and announces each source to the receiver as the source itself would.
The receiver registers with those stores, recovers, and acknowledges as ever, so they remember how far it is. A source
that runs is found by resolution and announces itself; its next life replaces what the stores said.
"""

import asyncio
from collections.abc import Callable, Sequence

from stablecast.client.range_contents import SourceContents, StableRule, counting, sources_of
from stablecast.client.range_inquiry import RangeRoutes, ask_all
from stablecast.core.machine import serial
from stablecast.core.protocol.history import fold
from stablecast.core.protocol.messages import Incarnation, SourceInfo, StoreEntry
from stablecast.core.protocol.quorum import GroupRules, quorum_of
from stablecast.core.protocol.stored_contents import StoredAnswer
from stablecast.runtime.driver import report

LIVE_SECONDS = 1.0
"""Time that a source has to announce itself before the stores are asked."""

ASK_SECONDS = 5.0
"""Time between two questions while too few stores answer, and the time that the stores have for an answer."""

MAX_AHEAD = 1 << 24
"""Numbers that the stores of the newest life may lack below it. Numbers further above what they hold are old ones."""


def announcement(source: SourceContents, stores: Sequence[str]) -> SourceInfo | None:
    """Return what a source would announce; None while too few of its stores know where its newest life resumes.

    A session takes the numbers of the life from the first announcement, so none may be made up before.
    """
    newest = source.newest
    rule = announced_rule(source, stores)
    knowing = [store for store, answer in source.answers.items() if _knows(answer, newest)]
    if not rule.met(rule.mask(knowing)):
        return None
    entries = tuple(
        StoreEntry(index, group, store, source.answers[store].reg_id, 1)
        for index, store in enumerate(stores)
        if store in knowing and (group := rule.group(store)) is not None
    )
    stop = source.stable_stop(rule, source.first(), ())
    began = source.lives[-1][1] if source.lives else source.begin()
    # The life may have sent most of the numbers that the wire can tell apart, and has no negative ones.
    first = max(began, serial.extend(serial.wire(began), stop + MAX_AHEAD - serial.HALF))
    return SourceInfo(
        newest.incarnation,
        source.topic,
        0,
        serial.wire(first),
        serial.wire(max(stop, first) - 1),
        newest.request,
        rule.quorums.rules.sizes,
        False,
        entries,
        newest.term,
        fold(newest.lives),
        late_join=True,
    )


def announced_rule(source: SourceContents, stores: Sequence[str]) -> StableRule:
    """Return the rule of a source; if a receiver was told only some of its stores, that of a majority of them."""
    rule = source.rule(stores, GroupRules())
    return counting(stores, quorum_of(len(stores))) if rule.unnamed else rule


def _knows(answer: StoredAnswer, newest: StoredAnswer) -> bool:
    """Return whether a store serves the messages of the newest life."""
    return answer.readable and answer.incarnation == newest.incarnation


class StoredSources:
    """Looks for the sources of one receiver at its stores, until enough of the stores of each source can tell."""

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
        while not await self._ask():  # noqa: ASYNC110  # stores tell no event to a client that asks
            await asyncio.sleep(ASK_SECONDS)

    async def _ask(self) -> bool:
        """Ask the stores once; return whether the search is over. Report what goes wrong, and go on."""
        try:
            # From a number above 0 on, so that the stores need not look up times on their disks.
            answers = await ask_all(self._routes, self._stores, ASK_SECONDS, topic=self._topic, first=1)
            left = self._tell(sources_of(answers), [store for store in self._stores if store not in answers])
        except Exception as error:  # noqa: BLE001  # the task has no other owner, and the stores may answer later
            report(f"asking the stores for sources of '{self._topic or 'all topics'}' failed: {error}", error)
            return False
        return len(answers) > len(self._stores) // 2 and not left

    def _tell(self, sources: Sequence[SourceContents], silent: Sequence[str]) -> bool:
        """Announce the sources that can be announced, each life once; return whether others may be later."""
        left = False
        for source in sources:
            info = announcement(source, self._stores)
            if info is None:
                rule = announced_rule(source, self._stores)
                possible = rule.mask([*source.answers, *silent]) | rule.unnamed
                left |= bool(source.ranges) or rule.met(possible)
            elif info.incarnation not in self._announced:
                self._announced.add(info.incarnation)
                self._announce(info)
        return left
