"""Decide whether enough stores hold a message: the documented rules, written a second time with sets of names.

The module uses nothing of `core.protocol.quorum` but the names of the rules, so that it does not repeat a mistake made
there.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import assert_never

import attrs

from stablecast.core.protocol.quorum import GroupRules, Intergroup, Intragroup

Names = frozenset[str]


@attrs.frozen
class Judge:
    """Judge one source.

    `groups` are the configured stores of each group. With `turns` one store at a time is in charge.
    """

    rules: GroupRules
    groups: tuple[Names, ...]
    turns: bool = False

    def stable(self, held: Iterable[str], active: Iterable[str]) -> bool:
        """Return whether a message on the stores `held` is stable while the stores `active` are registered (P-023)."""
        return _stable(self, frozenset(held), frozenset(active))

    def recoverable(self, held: Iterable[str]) -> bool:
        """Return whether a receiver that follows the rules can recover a message from these stores."""
        stores = frozenset(held)
        return _stable(self, stores, stores)

    def everywhere(self, held: Iterable[str]) -> bool:
        stores = frozenset(held)
        return all(_majority(stores & group, group) for group in self.groups)

    def registered(self, stores: Iterable[str]) -> bool:
        """Return whether a source is registered with these stores: they suffice to make a message stable (P-217)."""
        return self.recoverable(stores)


@lru_cache(1024)
def _stable(judge: Judge, held: Names, active: Names) -> bool:
    """Apply the rules within the groups, then between them (P-515)."""
    if judge.turns:
        return bool(held) and active <= held  # The store whose turn it is decides alone (P-502).
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
    """Return whether a message is stable within a group (P-513)."""
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
    """Return whether these are more than half of the configured stores (P-026)."""
    return 2 * len(some) > len(group)
