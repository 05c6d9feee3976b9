"""The answers of all stores to one question of a reader within its patience, and what they tell of topics."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

import attrs

from stablecast.client.range_contents import SourceContents, sources_of, stop_of
from stablecast.client.range_inquiry import MAX_PAGES, REPEAT_SECONDS, RangeRoutes, StoreAway
from stablecast.core.protocol.quorum import GroupRules
from stablecast.core.protocol.stored_contents import StoredAnswer

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
