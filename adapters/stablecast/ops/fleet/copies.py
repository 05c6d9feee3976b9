"""The copies of each source at the surveyed stores, and what they say together."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.quorum import quorum_of
from stablecast.ops.fleet.survey import Survey, SurveyedStore

Life = tuple[str, int, int]
"""A life of a source: topic, session and topic index of its transport."""


@attrs.frozen
class SourceCopy:
    store: SurveyedStore
    record: dict[str, Any]

    @property
    def serving(self) -> bool:
        return bool(self.record["active"]) and not self.store.record["failure"]

    @property
    def synced(self) -> int:
        """Return the extended number through which the store has synced all messages, -1 for none."""
        return int(self.record["sync"][2])

    @property
    def lacks(self) -> list[tuple[int, int]]:
        """Return the ranges of messages, first and last number, that it lacks, as far as the monitor shows them."""
        return [(int(first), int(last)) for first, last in self.record.get("lacks", ())]


@attrs.frozen
class CopyGroup:
    """The copies of a source in one group of its stores.

    Attributes:
        size: The configured number of stores of the group.
        copies: The copies at its surveyed stores.
    """

    size: int
    copies: list[SourceCopy]

    @property
    def needed(self) -> int:
        """Return how many stores make a message stable in the group by a majority, the default rule."""
        return quorum_of(self.size)

    @property
    def serving(self) -> int:
        """Return how many of its surveyed stores take messages of the source."""
        return sum(copy.serving for copy in self.copies)

    @property
    def spare(self) -> int:
        """Return how many stores the group can lose and keep its quorum; negative if it has none."""
        return self.serving - self.needed

    @property
    def safe_through(self) -> int:
        """Return the number through which a quorum of its stores has synced everything; -1 if too few have it."""
        synced = sorted((copy.synced for copy in self.copies), reverse=True)
        return synced[self.needed - 1] if len(synced) >= self.needed else -1

    def as_json(self) -> dict[str, Any]:
        return {"size": self.size, "needed": self.needed, "serving": self.serving, "safe_through": self.safe_through}


@attrs.frozen
class FleetSource:
    life: Life
    copies: list[SourceCopy]

    @property
    def topic(self) -> str:
        return self.life[0]

    @property
    def replicas(self) -> int:
        """Return the number of stores that the source names; if no store knows it, the stores that have it."""
        return max([len(self.copies), *(int(copy.record["replicas"]) for copy in self.copies)])

    @cached_property
    def groups(self) -> list[CopyGroup]:
        """Return its groups by index; none if no store knows the groups of the copies.

        The sizes are those that the furthest copy knows, because a store that was away may know an older configuration.
        """
        known = [copy for copy in self.copies if copy.record.get("groups")]
        sizes = max(known, key=lambda copy: copy.record["window"][2]).record["groups"] if known else []
        groups = [CopyGroup(size, []) for size in sizes]
        for copy in self.copies:
            index = 0 if len(groups) == 1 else int(copy.record.get("group", -1))
            if not 0 <= index < len(groups):
                return []
            groups[index].copies.append(copy)
        return groups

    @property
    def needed(self) -> int | None:
        """Return how many stores give each group a quorum; None if the groups are not known."""
        return sum(group.needed for group in self.groups) or None

    @property
    def spare(self) -> int | None:
        """Return how many stores its weakest group can lose and keep its quorum; None if the groups are not known."""
        return min((group.spare for group in self.groups), default=None)

    @property
    def serving(self) -> int:
        """Return how many of the surveyed stores take its messages."""
        return sum(copy.serving for copy in self.copies)

    def served(self, of: str) -> str:
        """Return for people how many stores of each group take its messages, or that it is not active."""
        if not self.active:
            return "ended" if all(copy.record.get("ended") for copy in self.copies) else "silent"
        known = (f"{group.serving}{of}{group.size}" for group in self.groups)
        return " + ".join(known) or f"{self.serving}{of}?"

    @property
    def unknown(self) -> int:
        """Return how many of its stores were not surveyed, or do not have it."""
        return self.replicas - len(self.copies)

    @property
    def active(self) -> bool:
        return any(copy.record["active"] for copy in self.copies)

    @property
    def newest(self) -> int:
        """Return the newest extended number that a store has."""
        return max(int(copy.record["window"][2]) for copy in self.copies)

    @property
    def safe_through(self) -> int | None:
        """Return the number through which a quorum of each group has synced everything; None if that is not known."""
        return min((group.safe_through for group in self.groups), default=None)

    @property
    def missing(self) -> int:
        """Return the sum of the messages that stores lack and still want."""
        return sum(int(copy.record["holes"]) for copy in self.copies)

    @property
    def nowhere(self) -> int:
        """Return how many messages all of its stores lack: no store has them any more, whichever of them goes."""
        if len(self.copies) < self.replicas:
            return 0
        common, *others = (RangeSet([(first, last + 1) for first, last in copy.lacks]) for copy in self.copies)
        for other in others:
            common = RangeSet([part for first, stop in common for part in other.within(first, stop)])
        return common.total()

    @property
    def lag(self) -> int:
        """Return how many messages its slowest receiver has not acknowledged at the store where it is furthest."""
        acknowledged: dict[tuple[str, int], int] = {}
        for copy in self.copies:
            for receiver in copy.record["receivers"]:
                key = receiver["address"], receiver["session_id"]
                acknowledged[key] = max(acknowledged.get(key, -1), int(receiver["acknowledged"]))
        return max((self.newest - number for number in acknowledged.values()), default=0)

    def as_json(self) -> dict[str, Any]:
        topic, session_index, topic_index = self.life
        return {
            "topic": topic,
            "session_index": session_index,
            "topic_index": topic_index,
            "active": self.active,
            "stores": [copy.store.name for copy in self.copies],
            "replicas": self.replicas,
            "groups": [group.as_json() for group in self.groups],
            "needed": self.needed,
            "serving": self.serving,
            "newest": self.newest,
            "safe_through": self.safe_through,
            "missing": self.missing,
            "lag": self.lag,
        }


def joined(surveyed: Survey) -> list[FleetSource]:
    found: dict[Life, list[SourceCopy]] = {}
    for store, record in _records(surveyed.stores):
        life = record["topic"], record["session_index"], record["topic_index"]
        found.setdefault(life, []).append(SourceCopy(store, record))
    return [FleetSource(life, copies) for life, copies in sorted(found.items())]


def _records(stores: Sequence[SurveyedStore]) -> Iterator[tuple[SurveyedStore, dict[str, Any]]]:
    for store in stores:
        for record in store.sources:
            yield store, record
