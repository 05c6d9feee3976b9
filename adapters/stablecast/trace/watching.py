"""Who looks at the records of a frame: the rules that stand, and who gathers facts for others.

Most of them are about a few kinds of records only, so each says which, and is asked about no other. What a record is
about is the message of what arrives or is sent, the event that an application is told, and else the record itself.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Final, Protocol

from stablecast.core.effects import Broadcast, Notify, Send
from stablecast.core.inputs import Arrived
from stablecast.trace.converter import encode_effect, encode_input
from stablecast.trace.facts import Book, Gatherer
from stablecast.trace.replay import Step
from stablecast.trace.rules import Rule

WITHIN: Final[dict[type, Callable[[Any], Any]]] = {
    kind: attrgetter("message") for kind in (Arrived, Send, Broadcast)
} | {Notify: attrgetter("event")}
"""What a record is about, where it is not the record itself."""


class Violate(Protocol):
    """Takes a violation."""

    def __call__(self, record: int, rule: str, text: str, expected: Any = None, found: Any = None) -> None:
        """Record, rule, sentence, what was expected and what was found."""


class Watch:
    """One pass over the records of a frame. `judged` counts those that were looked at."""

    def __init__(self, standing: Sequence[Rule], gatherer: Gatherer, book: Book, violate: Violate) -> None:
        """Of these rules, and of who gathers facts in this book; violations go to `violate`."""
        self._gatherer = gatherer
        self._book = book
        self._violate = violate
        self._hearing = _by_class((rule.hears, rule) for rule in standing)
        self._telling = _by_class((rule.tells, rule) for rule in standing)
        self.judged = 0

    def judge(self, steps: Sequence[Step]) -> None:
        """Looks at the next records."""
        hearing, telling, watched, book = self._hearing, self._telling, self._gatherer.watches, self._book
        for number, now, event, effects in steps:
            inner = WITHIN.get(type(event))
            heard = event if inner is None else inner(event)
            kind = type(heard)
            for rule in hearing.get(kind, ()):
                if (text := rule.on_input(heard)) is not None:
                    self._violate(number, rule.name, f"record {number}: {text}", None, encode_input(event))
            facts = kind in watched
            for effect in effects:
                inner = WITHIN.get(type(effect))
                told = effect if inner is None else inner(effect)
                kind = type(told)
                facts = facts or kind in watched
                for rule in telling.get(kind, ()):
                    if (text := rule.on_effect(told)) is not None:
                        self._violate(number, rule.name, f"record {number}: {text}", None, encode_effect(effect))
            if facts:
                book.record, book.time = number, now
                self._gatherer.take(event, effects, book)
        self.judged += len(steps)


def _by_class(watches: Iterable[tuple[Iterable[type], Rule]]) -> dict[type, list[Rule]]:
    table: dict[type, list[Rule]] = {}
    for kinds, rule in watches:
        for kind in kinds:
            table.setdefault(kind, []).append(rule)
    return table
