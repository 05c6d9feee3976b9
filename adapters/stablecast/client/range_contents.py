"""The sources of a topic, as the answers of several stores show them.

Stores know a source under RegIDs of their own. Answers are about the same source if they name the same session id, or
have a life in common. The answer with the highest term has the newest history of lives. A store that missed lives of it
may hold numbers that those lives used again, so such numbers of that store do not count.
"""

from collections.abc import Iterable, Mapping

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.history import FORGOTTEN, divergence
from stablecast.core.protocol.messages import Address, Incarnation, Life
from stablecast.core.protocol.stored_contents import StoredAnswer
from stablecast.core.receiver.range_progress import Holding, stable_stop


@attrs.define
class SourceContents:
    """The messages that the stores hold of one source.

    Attributes:
        topic: Its topic.
        session_id: 0 if it has none.
        answers: The newest answer of each store that knows the source.
    """

    topic: str
    session_id: int
    answers: dict[Address, StoredAnswer] = attrs.field(factory=dict)

    @property
    def newest(self) -> StoredAnswer:
        """Return the answer with the newest history."""
        return max(self.answers.values(), key=lambda answer: (answer.term, stop_of(answer)))

    @property
    def incarnation(self) -> Incarnation:
        """Return the newest life of the source."""
        return self.newest.incarnation

    @property
    def lives(self) -> tuple[Life, ...]:
        """Return the lives of the source and the first number of each, oldest first."""
        return self.newest.lives

    @property
    def names(self) -> set[Incarnation]:
        """Return all lives that an answer names."""
        lives = {life for answer in self.answers.values() for life, _ in answer.lives if life != FORGOTTEN}
        return lives | {answer.incarnation for answer in self.answers.values()}

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """Return the numbers [first, stop) that at least one store holds."""
        held = RangeSet()
        for answer in self.answers.values():
            held.update(self.held(answer))
        return held.ranges

    def held(self, answer: StoredAnswer) -> RangeSet:
        """Return the numbers of an answer that belong to the newest history."""
        held = RangeSet(list(answer.ranges)) if answer.readable else RangeSet()
        parting = divergence(answer.lives, self.lives)
        if parting is not None and held:
            held.remove(parting, max(parting, held.ranges[-1][1]))
        return held

    def stop(self, answer: StoredAnswer) -> int:
        """Return one above the newest number that the store of an answer has."""
        parting = divergence(answer.lives, self.lives)
        return stop_of(answer) if parting is None else min(parting, stop_of(answer))

    def holding(self, answer: StoredAnswer, asked_at: int, first: int = 0) -> Holding:
        """Return the answer to a question about numbers from `first` on, as the machine of a reader uses it."""
        stop = self.stop(answer)
        return Holding(
            answer.reg_id,
            answer.incarnation,
            self.held(answer),
            first,
            min(answer.reach, stop),
            stop,
            answer.trail,
            asked_at,
        )

    def first(self) -> int:
        """Return the first number that a store holds; without any, the first that may come."""
        ranges = self.ranges
        return ranges[0][0] if ranges else max(answer.trail for answer in self.answers.values())

    def begin(self) -> int:
        """Return the first number that the source ever used, as far as its history tells."""
        return self.lives[0][1] if self.lives else 0

    def stable_stop(self, quorum: int) -> int | None:
        """Return the number below which `quorum` stores have everything; None: too few answered."""
        return stable_stop((self.stop(answer) for answer in self.answers.values()), quorum)

    def is_about(self, answer: StoredAnswer) -> bool:
        """Return whether an answer is about this source."""
        if self.topic != answer.topic or self.session_id != answer.session_id:
            return False
        if self.session_id:
            return True
        return answer.incarnation in self.names or any(life in self.names for life, _ in answer.lives)


def stop_of(answer: StoredAnswer) -> int:
    """Return one above the newest number that the store has."""
    return serial.extend(answer.high, answer.reach) + 1


def sources_of(answers: Mapping[Address, Iterable[StoredAnswer]]) -> list[SourceContents]:
    """Return the sources that the answers of each store are about, by topic and in the order of the answers."""
    found: list[SourceContents] = []
    for store, some in answers.items():
        for answer in some:
            source = next((known for known in found if known.is_about(answer)), None)
            if source is None:
                source = SourceContents(answer.topic, answer.session_id)
                found.append(source)
            source.answers[store] = answer
    return sorted(found, key=lambda source: source.topic)
