"""The sources of a topic, as the answers of several stores show them.

Stores know a source under RegIDs of their own. Answers are about the same source if they name the same session id, or
have a life in common. The answer with the highest term has the newest history of lives. A store that missed lives of it
may hold numbers that those lives used again, so such numbers of that store do not count.

A message is stable if the stores that have it satisfy the rule of its source. That rule counts the stores that the
source is *configured* with, as its stores know them: silence of a store never lowers the number of stores needed.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.history import FORGOTTEN, divergence
from stablecast.core.protocol.messages import Address, Incarnation, Life
from stablecast.core.protocol.quorum import GroupRules, Intergroup, Intragroup, Quorums
from stablecast.core.protocol.stored_contents import StoredAnswer
from stablecast.core.receiver.range_progress import Holding, StoredNumbers, stable_numbers


@attrs.frozen
class StableRule:
    """The stores that must have a message of one source before it is stable.

    Attributes:
        quorums: The rule of the source. The first bits of its masks are the `stores`.
        stores: The stores that the reader was told.
        unnamed: The mask of configured stores that it was not told.
    """

    quorums: Quorums
    stores: tuple[Address, ...]
    unnamed: int = 0

    def mask(self, stores: Collection[Address]) -> int:
        """Return the mask of those of `stores` that the reader was told."""
        return sum(1 << bit for bit, store in enumerate(self.stores) if store in stores)

    def group(self, store: Address) -> int | None:
        """Return the index of the group of a store that the reader was told; None: it is not one of the source's."""
        here = self.mask([store])
        return next((group for group, members in enumerate(self.quorums.members) if members & here), None)

    def met(self, mask: int) -> bool:
        """Return whether something may be stable at the stores in a mask."""
        return self.quorums.stable(mask, mask)

    @property
    def whole(self) -> bool:
        """Return whether each store that the reader was told belongs to the source."""
        return sum(self.quorums.rules.sizes) >= len(self.stores)


def counting(stores: Sequence[Address], quorum: int) -> StableRule:
    """Return the rule that so many of the stores must have a message."""
    return StableRule(Quorums.of(GroupRules((2 * quorum - 1,)), [0] * len(stores)), tuple(stores))


@attrs.define
class SourceContents:
    """The messages that the stores hold of one source.

    Attributes:
        topic: Its topic.
        session_id: 0 if it has none.
        answers: The newest answer of each store that knows the source.
        unstable: Numbers that must not be read, although a store has them.
        past: What the source was, once no store knows it any more: it deregistered.
    """

    topic: str
    session_id: int
    answers: dict[Address, StoredAnswer] = attrs.field(factory=dict)
    unstable: RangeSet = attrs.field(factory=RangeSet)
    past: StoredAnswer | None = None

    def forget(self, store: Address) -> None:
        """Forget the answer of a store that does not know the source any more."""
        self.past = self.newest
        self.answers.pop(store, None)

    @property
    def newest(self) -> StoredAnswer:
        """Return the answer with the newest history."""
        known = self.answers.values() or [one for one in (self.past,) if one is not None]
        return max(known, key=lambda answer: (answer.term, stop_of(answer)))

    @property
    def incarnation(self) -> Incarnation:
        """Return the newest life of the source."""
        return self.newest.incarnation

    @property
    def lives(self) -> tuple[Life, ...]:
        """Return the lives of the source and the first number of each, oldest first."""
        return self.newest.lives

    @property
    def names(self) -> set[Incarnation]:
        """Return all lives that an answer names."""
        lives = {life for answer in self.answers.values() for life, _ in answer.lives if life != FORGOTTEN}
        return lives | {answer.incarnation for answer in self.answers.values()}

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """Return the numbers [first, stop) that at least one store holds."""
        held = RangeSet()
        for answer in self.answers.values():
            held.update(self.held(answer))
        return held.ranges

    def held(self, answer: StoredAnswer) -> RangeSet:
        """Return the numbers of an answer that may be read: they belong to the newest history."""
        if not answer.readable:
            return RangeSet()
        held, parting = RangeSet(list(answer.ranges)), divergence(answer.lives, self.lives)
        if parting is not None and held:
            held.remove(parting, max(parting, held.ranges[-1][1]))
        for first, stop in self.unstable:
            held.remove(first, stop)
        return held

    def stop(self, answer: StoredAnswer) -> int:
        """Return one above the newest number that the store of an answer has."""
        parting = divergence(answer.lives, self.lives)
        return stop_of(answer) if parting is None else min(parting, stop_of(answer))

    def holding(self, answer: StoredAnswer, asked_at: int, first: int = 0) -> Holding:
        """Return the answer to a question about numbers from `first` on, as the machine of a reader uses it."""
        stop = self.stop(answer)
        return Holding(
            answer.reg_id,
            answer.incarnation,
            self.held(answer),
            first,
            min(answer.reach, stop),
            stop,
            answer.trail,
            asked_at,
            dict(answer.lives).get(answer.incarnation, 0),
        )

    def first(self) -> int:
        """Return the first number that a store holds; without any, the first that may come."""
        ranges = self.ranges
        return ranges[0][0] if ranges else max((one.trail for one in self.answers.values()), default=self.newest.trail)

    def begin(self) -> int:
        """Return the first number that the source ever used, as far as its history tells."""
        return self.lives[0][1] if self.lives else 0

    def rule(self, stores: Sequence[Address], wish: GroupRules) -> StableRule:
        """Return the rule of the source. Its stores tell the sizes of its groups, and `wish` tells its behaviours.

        Of a source whose groups no store knows, a majority of the `stores` must have a message.
        """
        telling = [answer for answer in self.answers.values() if all(answer.group_sizes) and answer.group_sizes]
        newest = max(telling, key=lambda answer: (answer.term, stop_of(answer)), default=None)
        sizes = (len(stores),) if newest is None else newest.group_sizes
        groups: list[int | None] = [0] * len(stores)
        if newest is not None and len(sizes) > 1:
            places = {entry.address: entry.group for answer in telling for entry in answer.stores}
            places |= {entry.address: entry.group for entry in newest.stores}
            groups = [places.get(store) for store in stores]
            if not any(group is not None for group in groups):
                # Nobody tells the groups of these stores. A majority of all stores has one of some group.
                sizes, groups = (max(sum(sizes), len(stores)),), [0] * len(stores)
                if wish.intergroup in (Intergroup.MAJORITY, Intergroup.ALL):
                    wish = attrs.evolve(wish, intragroup=Intragroup.ALL)
        members, used = [0] * len(sizes), len(stores)
        for bit, place in enumerate(groups):
            if place is not None and place < len(sizes):
                members[place] |= 1 << bit
        for group, size in enumerate(sizes):
            missing = max(0, size - members[group].bit_count())
            members[group] |= (1 << missing) - 1 << used
            used += missing
        rules = GroupRules(tuple(sizes), wish.intragroup, wish.intergroup)
        return StableRule(Quorums(rules, tuple(members)), tuple(stores), (1 << used) - (1 << len(stores)))

    def is_open(self, rule: StableRule, silent: Collection[Address]) -> bool:
        """Return whether too few stores know the source to tell what is stable.

        One of them has messages, which others may have lost, or stores that are `silent` may have some.
        """
        known = rule.mask(self.answers)
        possible = known | rule.mask(silent) | rule.unnamed
        return not rule.met(known) and (bool(self.ranges) or rule.met(possible))

    def judge(
        self, rule: StableRule, first: int, silent: Collection[Address], among: Collection[Address] | None = None
    ) -> tuple[RangeSet, int]:
        """Return the numbers from `first` on that are stable, and the first one that is in doubt.

        Answers of stores `among` count, by default all. Nothing is known of `silent` stores.
        """
        counted = {
            store: answer
            for store, answer in self.answers.items()
            if store in (rule.stores if among is None else among)
        }
        # A store that knows only an earlier life is none of the source's active stores.
        active = rule.mask([store for store, answer in counted.items() if answer.incarnation == self.incarnation])
        stores = [self._numbers(counted.get(store)) for store in rule.stores]
        return stable_numbers(stores, first, rule.quorums, active, rule.mask(silent) | rule.unnamed)

    def stable_stop(
        self, rule: StableRule, first: int, silent: Collection[Address], among: Collection[Address] | None = None
    ) -> int:
        """Return the number after the last one from `first` on that is stable, below the first one in doubt."""
        stable, doubt = self.judge(rule, first, silent, among)
        parts = stable.within(first, doubt)
        return parts[-1][1] if parts else first

    def holds(self, number: int) -> bool:
        """Return whether a store has a number, be it stable or not."""
        return any(low <= number < high for answer in self.answers.values() for low, high in answer.ranges)

    def refuse(
        self, rule: StableRule, silent: Collection[Address], first: int | None = None, stop: int | None = None
    ) -> int:
        """Refuse to read what is not stable; return the number after the last one that is stable.

        `first` and `stop` limit what is judged.
        """
        first = self.first() if first is None else first
        stable, _ = self.judge(rule, first, silent)
        last = stable.last
        end = first if last is None else last + 1
        self.unstable = RangeSet(stable.missing(first, end if stop is None else stop))
        return end

    def _numbers(self, answer: StoredAnswer | None) -> StoredNumbers:
        """Return the numbers of the newest history that the store of an answer has, and those that it let go."""
        if answer is None:
            return StoredNumbers()
        stop, held = self.stop(answer), RangeSet()
        held.update((low, min(high, stop)) for low, high in answer.ranges)
        return StoredNumbers(held, min(answer.trail, stop))

    @property
    def is_announced(self) -> bool:
        """Return whether a store knows the history of the source, or has messages.

        Before, nobody knows whether it goes on for a life that is read already.
        """
        return any(answer.lives or answer.ranges for answer in self.answers.values())

    def same(self, later: "SourceContents") -> bool:
        """Return whether stores that were asked later told about the same source."""
        return any(self.goes_on(answer) for answer in later.answers.values())

    def goes_on(self, answer: StoredAnswer) -> bool:
        """Return whether a later answer is about this source, and not about one that took its session id.

        Stores forget a source that deregistered, with its lives. The next one with its session id begins at 0 again.
        """
        if not self.is_about(answer):
            return False
        lives = {answer.incarnation, *(life for life, _ in answer.lives)}
        forgotten = FORGOTTEN in lives or any(life == FORGOTTEN for life, _ in self.lives)
        return forgotten or not lives.isdisjoint(self.names)

    def is_about(self, answer: StoredAnswer) -> bool:
        """Return whether an answer is about this source, if it was asked for together with the others."""
        if self.topic != answer.topic or self.session_id != answer.session_id:
            return False
        if self.session_id:
            return True
        return answer.incarnation in self.names or any(life in self.names for life, _ in answer.lives)


def stop_of(answer: StoredAnswer) -> int:
    """Return one above the newest number that the store has."""
    return serial.extend(answer.high, answer.reach) + 1


def sources_of(answers: Mapping[Address, Iterable[StoredAnswer]]) -> list[SourceContents]:
    """Return the sources that the answers of each store are about, by topic and in the order of the answers."""
    found: list[SourceContents] = []
    near: dict[tuple[str, int], list[SourceContents]] = {}
    for store, some in answers.items():
        for answer in some:
            candidates = near.setdefault((answer.topic, answer.session_id), [])
            source = next((known for known in candidates if known.is_about(answer)), None)
            if source is None:
                source = SourceContents(answer.topic, answer.session_id)
                found.append(source)
                candidates.append(source)
            source.answers[store] = answer
    return sorted(found, key=lambda source: source.topic)
