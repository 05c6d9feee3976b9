"""List the quorums of the groups of a model, which are elements of sorts in the system of `tla/Stability`."""

from itertools import combinations
from typing import Any


def quorums(
    sizes: tuple[int, ...], groups: tuple[int, ...], inside: str, between: str
) -> dict[str, tuple[frozenset[int], ...]]:
    """Return the least sets of stores with which a life begins, goes on, and that keep a stable message."""
    inside_all = inside == "all"

    def most(group: int, stores: frozenset[int]) -> bool:
        return 2 * sum(groups[one] == group for one in stores) > sizes[group]

    def met(group: int, stores: frozenset[int]) -> bool:
        every = sum(groups[one] == group for one in stores) >= sizes[group]
        return every if inside_all else most(group, stores)

    def enough(stores: frozenset[int]) -> bool:
        count = sum(met(group, stores) for group in range(len(sizes)))
        if between == "majority":
            return 2 * count > len(sizes)
        return count == len(sizes) if between == "all" else count > 0

    def begins(stores: frozenset[int]) -> bool:
        several = len(sizes) > 1 and between in ("any", "all_active")
        return enough(stores) and (not several or all(most(group, stores) for group in range(len(sizes))))

    return {"r": _least(len(groups), begins), "c": _least(len(groups), enough), "k": _least(len(groups), enough)}


def _least(stores: int, suffices: Any) -> tuple[frozenset[int], ...]:
    found: list[frozenset[int]] = []
    for size in range(stores + 1):
        for chosen in map(frozenset, combinations(range(stores), size)):
            if suffices(chosen) and not any(one <= chosen for one in found):
                found.append(chosen)
    return tuple(found)
