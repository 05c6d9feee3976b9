"""Feed the records of a frame to the rules and to the collector of facts.

Most of them judge a few classes of records only, so each has handlers by class. The subject of a record is the message
that arrives or is sent, the event that the application gets, and else the record itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from stablecast.core.protocol.effects import Broadcast, Notify, Send
from stablecast.core.protocol.inputs import Arrived
from stablecast.evidence.trace.converter import encode_effect, encode_input
from stablecast.evidence.trace.facts import Book, Gatherer, Take
from stablecast.evidence.trace.frame_replay import Step
from stablecast.evidence.trace.rule_protocol import Ask, EndpointRule, at_of

_MESSAGES: Final = (Send, Broadcast)


class Violate(Protocol):
    """Callback that takes a violation."""

    def __call__(self, record: int, rule: str, text: str, expected: Any = None, found: Any = None) -> None:
        """Take record, rule, sentence, expected and found value."""


def unjudged(*_: object, **__: object) -> None:
    """Ignore violations where no rule is asked."""


class RecordWatch:
    """A pass over the records of a frame; `judged` counts the records so far."""

    def __init__(self, standing: Sequence[EndpointRule], gatherer: Gatherer, book: Book, violate: Violate) -> None:
        """Watch for these rules and this collector of facts; report violations to `violate`."""
        self._book = book
        self._violate = violate
        rules, facts = [(rule.name, rule.handlers()) for rule in standing], gatherer.handlers()
        self._inputs = _by_class([(name, handlers[0]) for name, handlers in rules], facts[0])
        self._effects = _by_class([(name, handlers[1]) for name, handlers in rules], facts[1])
        self._timed = [(rule.name, at) for rule in standing if (at := at_of(rule)) is not None]
        self.judged = 0

    def judge(self, steps: Sequence[Step]) -> None:
        """Judge the next records and gather their facts."""
        on_input, on_effect, book = self._inputs.get, self._effects.get, self._book
        number: int
        event: Any
        effect: Any
        for number, now, event, effects in steps:
            book.record, book.time = number, now
            for name, at in self._timed:
                if (text := at(number, now)) is not None:
                    self._violate(number, name, f"record {number}: {text}")
            came = event.message if event.__class__ is Arrived else event
            if (asked := on_input(came.__class__)) is not None:
                rules, take = asked
                for name, ask in rules:
                    if (text := ask(came)) is not None:
                        self._violate(number, name, f"record {number}: {text}", None, encode_input(event))
                if take is not None:
                    take(came, event, book)
            for effect in effects:
                kind = effect.__class__
                went = effect.event if kind is Notify else effect.message if kind in _MESSAGES else effect
                if (asked := on_effect(went.__class__)) is not None:
                    rules, take = asked
                    for name, ask in rules:
                        if (text := ask(went)) is not None:
                            self._violate(number, name, f"record {number}: {text}", None, encode_effect(effect))
                    if take is not None:
                        take(went, effect, book)
        self.judged += len(steps)


def _by_class(
    rules: Iterable[tuple[str, Mapping[type, Ask]]], takes: Mapping[type, Take]
) -> dict[type, tuple[list[tuple[str, Ask]], Take | None]]:
    """Return the rules, by name, and the collector that handle each class."""
    asks: dict[type, list[tuple[str, Ask]]] = {}
    for name, by_class in rules:
        for kind, ask in by_class.items():
            asks.setdefault(kind, []).append((name, ask))
    return {kind: (asks.get(kind, []), takes.get(kind)) for kind in {*asks, *takes}}
