"""Who looks at the records of a frame: the rules that stand, and who gathers facts for others.

Most of them are about a few kinds of records only, so each says which, and is asked about no other. What a record is
about is the message of what arrives or is sent, the event that an application is told, and else the record itself.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, Protocol

from stablecast.core.effects import Broadcast, Notify, Send
from stablecast.core.inputs import Arrived
from stablecast.trace.converter import encode_effect, encode_input
from stablecast.trace.facts import Book, Gatherer, Take
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


def unjudged(*_: object, **__: object) -> None:
    """Takes violations where no rule is asked."""


class Watch:
    """One pass over the records of a frame. `judged` counts those that were looked at."""

    def __init__(self, standing: Sequence[Rule], gatherer: Gatherer, book: Book, violate: Violate) -> None:
        """Of these rules, and of who gathers facts in this book; violations go to `violate`."""
        self._book = book
        self._violate = violate
        self._hearing = _by_class([(rule.hears, rule) for rule in standing], gatherer.hears)
        self._telling = _by_class([(rule.tells, rule) for rule in standing], gatherer.tells)
        self.judged = 0

    def judge(self, steps: Sequence[Step]) -> None:
        """Looks at the next records."""
        hearing, telling, within, book = self._hearing.get, self._telling.get, WITHIN.get, self._book
        for number, now, event, effects in steps:
            inner = within(event.__class__)
            heard = event if inner is None else inner(event)
            if (asked := hearing(heard.__class__)) is not None:
                rules, take = asked
                for rule in rules:
                    if (text := rule.on_input(heard)) is not None:
                        self._violate(number, rule.name, f"record {number}: {text}", None, encode_input(event))
                if take is not None:
                    book.record, book.time = number, now
                    take(heard, event, book)
            for effect in effects:
                inner = within(effect.__class__)
                told = effect if inner is None else inner(effect)
                if (asked := telling(told.__class__)) is not None:
                    rules, take = asked
                    for rule in rules:
                        if (text := rule.on_effect(told)) is not None:
                            self._violate(number, rule.name, f"record {number}: {text}", None, encode_effect(effect))
                    if take is not None:
                        book.record, book.time = number, now
                        take(told, effect, book)
        self.judged += len(steps)


def _by_class(
    watches: Iterable[tuple[Iterable[type], Rule]], takes: Mapping[type, Take]
) -> dict[type, tuple[list[Rule], Take | None]]:
    """Who is asked about a class: rules, and who gathers facts of it."""
    rules: dict[type, list[Rule]] = {}
    for kinds, rule in watches:
        for kind in kinds:
            rules.setdefault(kind, []).append(rule)
    return {kind: (rules.get(kind, []), takes.get(kind)) for kind in {*rules, *takes}}
