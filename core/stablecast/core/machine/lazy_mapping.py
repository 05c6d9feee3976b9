"""A read-only mapping that shows each value of another mapping through a function, when it is asked for."""

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

import attrs

K = TypeVar("K")
V = TypeVar("V")
W = TypeVar("W")


@attrs.frozen
class LazyMapping(Mapping[K, W], Generic[K, V, W]):
    """`values_of` with `show` applied to each value on access. It follows later changes of `values_of`.

    >>> LazyMapping({1: "a"}, str.upper)[1]
    'A'
    """

    values_of: Mapping[K, V]
    show: Callable[[V], W]

    def __getitem__(self, key: K) -> W:
        return self.show(self.values_of[key])

    def __iter__(self) -> Iterator[K]:
        return iter(self.values_of)

    def __len__(self) -> int:
        return len(self.values_of)
