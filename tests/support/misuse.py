"""Ways to hold the client wrong, and what happens: a sentence, or the right thing."""

import re
from collections.abc import Callable, Coroutine
from typing import Any, Final

import attrs
import pytest

from stablecast.core.errors import StablecastError
from tests.support.network import Network

Body = Callable[[Network], Coroutine[Any, Any, object]]
GAP: Final = "…"
"""A part of a sentence that differs from run to run."""


@attrs.frozen
class Misuse:
    """One way.

    Attributes:
        way: The way, for people.
        outcome: The sentence, with `GAP` for its variable parts; or what happens instead.
        body: Does it.
        error: The exception with that sentence; None if the right thing happens, which the body asserts.
    """

    way: str
    outcome: str
    body: Body
    error: type[Exception] | None = None

    async def check(self, net: Network) -> None:
        """Do it. Raises AssertionError unless that happens which the table says."""
        if self.error is None:
            await self.body(net)
            return
        sentence = ".*".join(map(re.escape, self.outcome.split(GAP)))
        with pytest.raises(self.error, match=re.compile(f"^{sentence}$", re.DOTALL)):
            await self.body(net)

    def row(self) -> str:
        what = self.outcome if self.error is None else f"`{self.error.__name__}`: {self.outcome}"
        return f"| {self.way} | {what} |"


@attrs.define
class Misuses:
    """All ways, in the order of the table."""

    ways: list[Misuse] = attrs.field(factory=list)

    def refused(self, way: str, sentence: str, error: type[Exception] = StablecastError) -> Callable[[Body], Body]:
        """Return a decorator: the way is refused with this sentence."""

        def added(body: Body) -> Body:
            self.ways.append(Misuse(way, sentence, body, error))
            return body

        return added

    def right(self, way: str, outcome: str) -> Callable[[Body], Body]:
        """Return a decorator: the right thing happens, which the body asserts."""

        def added(body: Body) -> Body:
            self.ways.append(Misuse(way, outcome, body))
            return body

        return added
