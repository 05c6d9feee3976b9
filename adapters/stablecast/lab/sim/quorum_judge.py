"""When enough stores have a message: the documented rules, written down once more, in sets of names.

Nothing of `core.protocol.quorum` is used but what the rules are called, so that a mistake there is not made here too.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import assert_never

import attrs

from stablecast.core.protocol.quorum import GroupRules, Intergroup, Intragroup

Names = frozenset[str]


@attrs.frozen
class Judge:
    """Of one source. `groups` are the configured stores of each group. In `turns` one store at a time has its turn."""

    rules: GroupRules
    groups: tuple[Names, ...]
    turns: bool = False

    def stable(self, held: Iterable[str], active: Iterable[str]) -> bool:
        """Whether a message that the stores `held` have is stable while the stores `active` are registered (P-023)."""
        return _stable(self, frozenset(held), frozenset(active))

    def recoverable(self, held: Iterable[str]) -> bool:
        """Whether it can be had again from these stores by whoever asks as the rules say."""
        stores = frozenset(held)
        return _stable(self, stores, stores)

    def registered(self, stores: Iterable[str]) -> bool:
        """Whether these stores are enough to be registered with: enough for something to become stable (P-217)."""
        return self.recoverable(stores)


@lru_cache(1024)
def _stable(judge: Judge, held: Names, active: Names) -> bool:
    """First within the groups, then between them (P-515)."""
    if judge.turns:
        return bool(held) and active <= held  # P-502: the store whose turn it is decides alone.
    good = [group for group in judge.groups if _good(judge.rules.intragroup, group, held, active)]
    match judge.rules.intergroup:
        case Intergroup.ANY:
            return len(good) > 0
        case Intergroup.MAJORITY:
            return 2 * len(good) > len(judge.groups)
        case Intergroup.ALL:
            return len(good) == len(judge.groups)
        case Intergroup.ALL_ACTIVE:
            needed = [group for group in judge.groups if _majority(group & active, group)]
            return len(needed) > 0 and all(group in good for group in needed)
        case _:
            assert_never(judge.rules.intergroup)


def _good(rule: Intragroup, group: Names, held: Names, active: Names) -> bool:
    """Whether a message is stable within a group (P-513)."""
    match rule:
        case Intragroup.QUORUM:
            return _majority(held & group, group)
        case Intragroup.ALL:
            return group <= held
        case Intragroup.ALL_ACTIVE:
            return _majority(held & group, group) and active & group <= held
        case _:
            assert_never(rule)


def _majority(some: Names, group: Names) -> bool:
    """More than half of those that are configured, whoever of them is there (P-026)."""
    return 2 * len(some) > len(group)
