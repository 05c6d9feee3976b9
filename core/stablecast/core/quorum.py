"""Quorum arithmetic: when enough stores have registered or hold a message, and where a source or receiver resumes.

Stores are bits of a mask, in the order of the source's configuration. A quorum is a simple majority of the *configured*
group size, not of the stores that happen to be alive (P-026, T2).
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import assert_never

import attrs


class Intragroup(IntEnum):
    """Which stores of a group must hold a message before it is stable there (P-513)."""

    QUORUM = 0
    ALL = 1


class Consensus(IntEnum):
    """How differing answers of stores become one number (P-415, P-418)."""

    LOWEST = 0
    MAJORITY = 1
    HIGHEST = 2


def quorum_of(size: int) -> int:
    """Simple majority of a group (P-026).

    >>> [quorum_of(size) for size in (1, 2, 3, 5)]
    [1, 2, 2, 3]
    """
    return size // 2 + 1


@attrs.frozen
class Group:
    """One quorum group: its configured size and the rule inside it."""

    size: int
    intragroup: Intragroup = Intragroup.QUORUM

    def registered(self, mask: int) -> bool:
        """Whether the stores in `mask` are enough to be registered with (P-217)."""
        return mask.bit_count() >= self.needed

    def stable(self, mask: int) -> bool:
        """Whether a message held by the stores in `mask` is stable in the group (P-023)."""
        return mask.bit_count() >= self.needed

    @property
    def needed(self) -> int:
        """How many stores the rule asks for."""
        return self.size if self.intragroup is Intragroup.ALL else quorum_of(self.size)


def agree(numbers: Sequence[int], behavior: Consensus, size: int) -> int:
    """The number that the answers of a group's stores amount to (T5).

    `majority` is the highest number that at least a quorum of the group reports or exceeds; with fewer answers than a
    quorum it is the lowest of them. Raises ValueError when there is no answer.
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
