"""Quorum arithmetic: the stores that suffice to register, and to make a message stable.

Stores are bits of a mask, in the order of the source's configuration. Every store belongs to a group. A quorum is a
simple majority of the *configured* group size, not of the stores that happen to be alive (P-026, T2). A rule inside
each group must be met, then one between the groups (P-515).
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import assert_never

import attrs

from stablecast.core.protocol.repairs import Repair


class Intragroup(IntEnum):
    """The stores of a group that must hold a message before it is stable there (P-513)."""

    QUORUM = 0
    ALL = 1
    ALL_ACTIVE = 2
    """Every registered store, and at least a quorum."""


class Intergroup(IntEnum):
    """The groups in which a message must be stable before it is stable (P-514)."""

    ANY = 0
    MAJORITY = 1
    """A majority of the configured groups (C-23)."""
    ALL = 2
    ALL_ACTIVE = 3
    """Every group with a quorum of registered stores, and at least one group (P-523, C-24)."""


class Consensus(IntEnum):
    """The number chosen from differing answers of stores (P-415, P-418)."""

    LOWEST = 0
    MAJORITY = 1
    HIGHEST = 2


def quorum_of(size: int) -> int:
    """Return the simple majority of a group (P-026).

    >>> [quorum_of(size) for size in (1, 2, 3, 5)]
    [1, 2, 2, 3]
    """
    return size // 2 + 1


@attrs.frozen
class GroupRules:
    """The configured size of each group, by group index, and the rules inside and between groups."""

    sizes: tuple[int, ...] = ()
    intragroup: Intragroup = Intragroup.QUORUM
    intergroup: Intergroup = Intergroup.ANY

    @property
    def depends_on_active(self) -> bool:
        """True if stability depends on which stores are active."""
        return self.intragroup is Intragroup.ALL_ACTIVE or self.intergroup is Intergroup.ALL_ACTIVE


@attrs.frozen
class Quorums:
    """The rules over the configured stores: `members` is the mask of each group's stores, by group index."""

    rules: GroupRules
    members: tuple[int, ...]

    @classmethod
    def of(cls, rules: GroupRules, groups: Sequence[int]) -> "Quorums":
        """Return the rules for stores whose group indices are `groups`, in the order of the stores. Raises IndexError.

        >>> Quorums.of(GroupRules((2, 1)), [0, 0, 1]).members
        (3, 4)
        """
        members = [0] * len(rules.sizes)
        for store, group in enumerate(groups):
            members[group] |= 1 << store
        return cls(rules, tuple(members))

    def registered(self, mask: int) -> bool:
        """Return whether the stores in `mask` suffice to be registered (P-217); always true without groups."""
        return not self.members or self._between([self._registered(g, mask) for g in self._groups], mask)

    @property
    def needed(self) -> int:
        """The least number of stores that can suffice to be registered."""
        all_stores = self.rules.intragroup is Intragroup.ALL
        least = sorted(size if all_stores else quorum_of(size) for size in self.rules.sizes)
        match self.rules.intergroup:
            case Intergroup.ANY | Intergroup.ALL_ACTIVE:
                return sum(least[:1])
            case Intergroup.MAJORITY:
                return sum(least[: quorum_of(len(least))])
            case Intergroup.ALL:
                return sum(least)
            case _:
                assert_never(self.rules.intergroup)

    @property
    def any_group(self) -> bool:
        """True if one group of several may suffice to go on (formal design, 7.2)."""
        return len(self.members) > 1 and self.rules.intergroup in (Intergroup.ANY, Intergroup.ALL_ACTIVE)

    def group_of(self, store: int) -> int:
        """Return the group index of a store."""
        group = 0
        while not self.members[group] >> store & 1:
            group += 1
        return group

    def every_group(self, mask: int) -> bool:
        """Return whether `mask` has a quorum of every group, which a returning source needs (formal design, 7.2)."""
        return all(self._quorum(group, mask) for group in self._groups)

    def voters(self, answered: int, forgetful: int, new: int, listed: int, *, all_named: bool = True) -> int:
        """Return the stores in mask `answered` that have a vote about older lives (formal design, 7.11).

        A group whose quorum kept its memory needs no others. Otherwise a store without memory (mask `forgetful`) has a
        vote only when nobody knows better: every store that is `listed` answered, or all that answered in the group are
        declared `new`. A store of another group may know what was stable in both, so it must have answered as well,
        unless a quorum of its group kept its memory. Unless `all_named`, a group may have more stores than are listed.
        """
        found = answered & ~forgetful
        knowing = [self._quorum(group, found) for group in range(len(self.members))]
        least = [0] * len(self.members) if all_named else self.rules.sizes
        whole = [
            members & listed & ~answered == 0 and members.bit_count() >= size
            for members, size in zip(self.members, least, strict=True)
        ]
        everybody = all(one or other for one, other in zip(knowing, whole, strict=True))
        for group, members in enumerate(self.members):
            here = answered & members
            if not knowing[group] and ((everybody and whole[group]) or not here & ~new):
                found |= here
        return found

    def seconded(self, voters: int, answered: int) -> int:
        """Return the stores in mask `voters`, and those in `answered` of groups in which the voters are a quorum.

        A quorum knows all that was stable in its group, so the other stores need no vote to count. Where the rule asks
        for all stores of a group, a store with an empty disk would block the source for ever.
        """
        for group, members in enumerate(self.members):
            if self._quorum(group, voters):
                voters |= answered & members
        return voters

    def may_give_up(self, asked: int, repairs: Repair) -> bool:
        """Return whether a receiver may give up what none of the stores in mask `asked` has (formal design, 7.2).

        The documented receiver is content with the stores that completed its registration.
        """
        return self.every_group(asked) if Repair.EVERY_GROUP in repairs else self.registered(asked)

    def active(self, registered: int) -> list[int]:
        """Return the groups with a quorum of registered stores (P-523)."""
        return [group for group in self._groups if self._quorum(group, registered)]

    def intragroup(self, group: int, held: int, registered: int) -> bool:
        """Return whether a message that the stores in `held` hold is stable in a group (P-513)."""
        ours = held & self.members[group]
        match self.rules.intragroup:
            case Intragroup.QUORUM:
                return self._quorum(group, ours)
            case Intragroup.ALL:
                return ours.bit_count() >= self.rules.sizes[group]
            case Intragroup.ALL_ACTIVE:
                return self._quorum(group, ours) and not registered & self.members[group] & ~held
            case _:
                assert_never(self.rules.intragroup)

    def stable(self, held: int, registered: int) -> bool:
        """Return whether a message that the stores in `held` hold is stable (P-023)."""
        return self.judge(held, registered)[1]

    def judge(self, held: int, registered: int) -> tuple[list[bool], bool]:
        """Return by group whether such a message is stable there, and whether it is stable."""
        # This runs for each piece of each acknowledgement, and most sources have one group.
        if len(self.members) == 1 and self.rules.intergroup is not Intergroup.ALL_ACTIVE:
            met = self.intragroup(0, held, registered)
            return [met], met
        inside = [self.intragroup(group, held, registered) for group in self._groups]
        return inside, self._between(inside, registered)

    @property
    def _groups(self) -> range:
        return range(len(self.members))

    def _between(self, met: list[bool], registered: int) -> bool:
        match self.rules.intergroup:
            case Intergroup.ANY:
                return any(met)
            case Intergroup.MAJORITY:
                return sum(met) >= quorum_of(len(met))
            case Intergroup.ALL:
                return all(met)
            case Intergroup.ALL_ACTIVE:
                active = self.active(registered)
                # `all` of no groups is true, but without an active group nothing is stable (C-24).
                return bool(active) and all(met[group] for group in active)
            case _:
                assert_never(self.rules.intergroup)

    def _quorum(self, group: int, mask: int) -> bool:
        # Any two quorums share a store, because the configured size counts, not the stores that are alive (P-026, T2).
        return (mask & self.members[group]).bit_count() >= quorum_of(self.rules.sizes[group])

    def _registered(self, group: int, mask: int) -> bool:
        if self.rules.intragroup is Intragroup.ALL:
            return (mask & self.members[group]).bit_count() >= self.rules.sizes[group]
        return self._quorum(group, mask)


def agree(numbers: Sequence[int], behavior: Consensus, size: int) -> int:
    """Return the number that the answers of a group's stores amount to (T5). Raises ValueError without an answer.

    `majority` is the highest number that at least a quorum of the group reports or exceeds. With fewer answers than a
    quorum it is the lowest of them.
    """
    if not numbers:
        raise ValueError("consensus needs at least one answer")
    ordered = sorted(numbers, reverse=True)
    match behavior:
        case Consensus.LOWEST:
            return ordered[-1]
        case Consensus.HIGHEST:
            return ordered[0]
        case Consensus.MAJORITY:
            return ordered[min(quorum_of(size), len(ordered)) - 1]
        case _:
            assert_never(behavior)
