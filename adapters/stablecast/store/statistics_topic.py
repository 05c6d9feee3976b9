"""Statistics of the daemon on a topic of their own, as documented (`daemon-monitor`, deprecated there).

Configuration is published at every interval of its group. Statistics are published only if they have changed. The
source is a streaming one, so a missing listener does not hold it up. The values are views of the `observatory`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from importlib.metadata import version

import attrs

from stablecast.client import Context
from stablecast.config.plan import GROUPS, Plan
from stablecast.core.machine.units import SECOND
from stablecast.runtime import machine
from stablecast.store import statistics
from stablecast.store.observatory import SourceView, WatchedStore
from stablecast.store.statistics import StatKind

MAX_TOPICS = 1_000_000
"""Topics that have a number. Beyond that, topics are numbered anew."""
Message = tuple[StatKind, bytes]


def interval(plan: Plan, index: int, group: str) -> int:
    """Return the seconds between statistics of a group; 0 means never. A store's values override the daemon's."""
    wanted = plan.daemon.statistics
    daemon: Mapping[str, int] = {} if wanted is None else wanted.intervals
    own: Mapping[str, int] = plan.stores[index].intervals if group != "memory" else {}
    for configured in (own, daemon):
        if group in configured or "default" in configured:
            return configured.get(group, configured.get("default", 0))
    return 0


@attrs.define
class Publisher:
    """Publishes until it is cancelled.

    Attributes:
        last: The last messages of each group of each store.
        topics: The number of each topic of each store.
    """

    plan: Plan
    watched: Sequence[WatchedStore]
    context: Callable[[], Context]
    last: dict[tuple[int, str], frozenset[Message]] = attrs.field(factory=dict)
    topics: dict[tuple[int, str], int] = attrs.field(factory=dict)
    next_topic: int = 0

    async def run(self) -> None:
        """Publish for ever. Raises as `Context` and `Context.source` do when they start."""
        wanted = self.plan.daemon.statistics
        due = dict.fromkeys(self._rounds(), 0.0)
        if wanted is None or not due:
            return
        async with self.context() as context:
            source = await context.source(wanted.topic)
            while True:
                now = machine.clock.monotonic()
                for index, group in [one for one, at in due.items() if at <= now]:
                    for kind, body in await self.news(index, group):
                        await source.send(statistics.framed(kind, body, machine.clock.wall_ns()))
                    due[index, group] = now + interval(self.plan, index, group)
                await asyncio.sleep(max(0.0, min(due.values()) - machine.clock.monotonic()))

    async def news(self, index: int, group: str) -> list[Message]:
        """Return the messages of a group to send now: all of the configuration, or statistics that have changed."""
        found = [one async for one in self._all(index, group)]
        before, self.last[index, group] = self.last.get((index, group), frozenset()), frozenset(found)
        return found if group == "config" else [one for one in found if one not in before]

    def _rounds(self) -> Iterator[tuple[int, str]]:
        """Yield the groups with an interval; the process is published with the first store."""
        for index in range(len(self.plan.stores)):
            yield from (
                (index, group)
                for group in GROUPS
                if interval(self.plan, index, group) and (index == 0 or group != "memory")
            )

    async def _all(self, index: int, group: str) -> AsyncIterator[Message]:
        if group == "memory":
            yield (StatKind.MEMORY, statistics.memory(machine.process.resident_bytes(), version("stablecast")))
        elif group == "store":
            yield (StatKind.STORE, statistics.store(index, await self._counts(index)))
        elif group == "config":
            view = await self.watched[index].view()
            yield (StatKind.STORE_CONFIG, statistics.store_config(view, index))
            for pattern in self.plan.stores[index].topics:
                yield (StatKind.PATTERN_CONFIG, statistics.pattern_config(pattern, index))
        if group in ("source", "disk", "receiver", "config"):
            for source in await self.watched[index].sources():
                for one in self._of_source(source, index, group):
                    yield one

    def _of_source(self, view: SourceView, index: int, group: str) -> Iterator[Message]:
        topic = self._number(index, view.topic)
        plan = self.plan.stores[index].of_topic(view.topic)
        if group == "source":
            yield (StatKind.SOURCE, statistics.source(view, index, topic, plan))
        elif group == "disk" and view.repository in ("disk", "reduced-fd"):
            yield (StatKind.DISK, statistics.disk(view, index, topic))
        elif group == "receiver":
            yield from ((StatKind.RECEIVER, statistics.receiver(one, index, topic)) for one in view.receivers)
        if group != "config":
            return
        yield (StatKind.TOPIC_CONFIG, statistics.topic_config(view.topic, index, topic))
        if plan is not None:
            yield (StatKind.SOURCE_CONFIG, statistics.source_config(view, index, topic, plan))
        yield from ((StatKind.RECEIVER_CONFIG, statistics.receiver_config(one, index, topic)) for one in view.receivers)

    def _number(self, index: int, topic: str) -> int:
        if (index, topic) not in self.topics:
            if len(self.topics) >= MAX_TOPICS:
                self.topics.clear()
            self.topics[index, topic] = self.next_topic
            self.next_topic += 1
        return self.topics[index, topic]

    async def _counts(self, index: int) -> tuple[int, int, int, int, int]:
        store = self.watched[index].store

        def counts() -> tuple[int, int, int, int, int]:
            service = store.machine.status.service
            since = (machine.clock.monotonic_ns() - (service.reset_at or store.started_at)) // SECOND
            return (service.received, service.served, service.dropped, since, service.dropped_since_start)

        return await self.watched[index].call(counts)
