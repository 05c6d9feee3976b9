"""The succession of sessions with one source: a session with a new life inherits from those with earlier lives.

The application of one run gets each message once. Messages that an earlier session delivered wait in the inbox, or the
application has them in hand. The machine of the new session does not know them: stores send them again, and it
delivers them again. The session withholds those copies from the application. When the application consumes a message
that waited, the session reports that to the new machine once the machine has delivered its copy. From then on the new
session acknowledges it.

The stores cut messages of an earlier life whose numbers the new life uses again. If they still wait, the new session
drops them.

Stores that do not know the receiver offer all messages that they have. In order, messages below the first one that the
application got in this run would come too late. So the new session begins no lower, unless the application wishes it.

Numbers are extended; lives are incarnations.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

import attrs

from stablecast.core.errors import MisuseError
from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.serial import FOREVER
from stablecast.core.protocol.effects import AskLow
from stablecast.core.protocol.history import owner, unfold
from stablecast.core.protocol.inputs import Acknowledge, Consumed, History, ReceiverInput, Useless
from stablecast.core.protocol.settings import Ordering
from stablecast.core.receiver import ReceiverSession

Ranges = list[tuple[int, int]]
"""Numbers as [first, stop), ascending."""


@attrs.define
class Inheritance:
    """The messages that were delivered before the session began, by the life that sent them.

    Attributes:
        delivered: Messages that waited or were in hand when the session began, and were not dropped since.
        consumed: Messages of `delivered` that the application consumed since.
        passed: Messages that the new machine has delivered again, or will not deliver.
        lost: Messages that an earlier session reported lost. The application had later ones, so they must not come now.
        lives: The lives that earlier sessions knew.
        claims: Messages that the application acknowledged itself, and the new machine has not delivered yet.
        told: Messages of `claims` that the new machine was told of. It knows nothing of those below its start.
        below: Messages of `lost` below the number at which the new machine begins.
    """

    delivered: dict[int, RangeSet] = attrs.field(factory=dict)
    consumed: dict[int, RangeSet] = attrs.field(factory=dict)
    passed: RangeSet = attrs.field(factory=RangeSet)
    lost: RangeSet = attrs.field(factory=RangeSet)
    lives: set[int] = attrs.field(factory=set)
    claims: RangeSet = attrs.field(factory=RangeSet)
    told: RangeSet = attrs.field(factory=RangeSet)
    below: RangeSet = attrs.field(factory=RangeSet)

    def add(self, life: int, first: int, stop: int) -> None:
        """Note that messages [first, stop) of this life wait, or are in hand."""
        self.delivered.setdefault(life, RangeSet()).add(first, stop)

    def drop(self, life: int, first: int, stop: int) -> None:
        """Note that messages [first, stop) wait no more. If the machine delivers them, the application gets them."""
        self.delivered[life].remove(first, stop)

    @property
    def unconsumed(self) -> bool:
        """Return True until the application has consumed all inherited messages."""
        nothing = RangeSet()
        return any(
            self.consumed.get(life, nothing).missing(first, stop)
            for life, held in self.delivered.items()
            for first, stop in held
        )

    @property
    def open(self) -> bool:
        """Return True while the machine may still deliver messages that the application must not get."""
        return bool(self.lost) or any(
            self.passed.missing(first, stop) for held in self.delivered.values() for first, stop in held
        )

    def ahead(self, first: int, stop: int) -> bool:
        """Return True if an inherited message has a number in [first, stop)."""
        return any(held.within(first, stop) for held in self.delivered.values())

    def deliver(self, life: int, first: int, stop: int) -> tuple[Ranges, Ranges, Ranges]:
        """Sort messages [first, stop) of a life, which the machine delivers.

        Returns:
            The ranges for the application, those it has consumed already, and those that are lost. The caller reports
            the latter two to the machine.
        """
        held = self.delivered.get(life, RangeSet())
        fresh, done, lost = held.missing(first, stop), [], []
        consumed = self.consumed.get(life, RangeSet())
        for low, high in held.within(first, stop):
            self.passed.add(low, high)
            done += consumed.within(low, high)
        if life in self.lives:
            for low, high in self.lost.remove(first, stop):
                fresh = [rest for start, end in fresh for rest in RangeSet([(low, high)]).missing(start, end)]
                lost.append((low, high))
        return fresh, done, lost

    def skip(self, first: int, stop: int) -> Ranges:
        """Note that the machine gives up [first, stop); return the ranges that the application has not got either."""
        self.lost.remove(first, stop)
        parts = [(first, stop)]
        for held in self.delivered.values():
            self.passed.update(held.within(first, stop))
            parts = [rest for start, end in parts for rest in held.missing(start, end)]
        return parts

    def begin(self, number: int) -> None:
        """Note that the machine delivers from `number` on.

        Before it has delivered anything, a store that grants late may take it back to a lower number.
        """
        self.lost.update(self.below)
        self.below = RangeSet(self.lost.within(0, number))
        self.lost.forget(number)
        self.claims.update(self.told)
        self.passed = RangeSet()
        for held in self.delivered.values():
            self.passed.update(held.within(0, number))

    def consume(self, first: int, stop: int) -> Ranges:
        """Note that the application consumed [first, stop); return the ranges to report to the machine now."""
        due: Ranges = []
        for life, held in self.delivered.items():
            for low, high in held.within(first, stop):
                self.consumed.setdefault(life, RangeSet()).add(low, high)
                due += self.passed.within(low, high)
        return due


class Waiting(Protocol):
    """The queue of batches, each delivered by the session that is its `owner`; numbers are [first, stop)."""

    def unconsumed(self) -> Iterable[tuple[Any, int, int]]:
        """Yield the messages that are not consumed: each batch with its numbers."""

    def drop(self, bounds: Callable[[Any], tuple[int, int] | None]) -> list[tuple[Any, int, int]]:
        """Drop the messages in `bounds` that were not handed over yet; return them as `unconsumed` does."""


@attrs.define(eq=False)
class Succession:
    """One session's place among the sessions with a source.

    Attributes:
        machine: The session's machine.
        feed: Feeds the machine.
        inbox: The queue to which all sessions of the receiver deliver.
        heir: The place of the session that answers for the messages of this one; None if this session does.
        shift: The difference between the heir's number of a message and the number in this session.
        earlier: The places of sessions whose heir this session will be.
        inherited: The messages of others that this session answers for, None if there are none.
    """

    machine: ReceiverSession
    feed: Callable[[ReceiverInput], None]
    inbox: Waiting
    heir: "Succession | None" = None
    shift: int = 0
    earlier: list["Succession"] = attrs.field(factory=list)
    inherited: Inheritance | None = None

    @property
    def due(self) -> bool:
        """Return True if `inherit` must be called, because the source has announced its numbers."""
        return bool(self.earlier) and self.machine.info is not None

    @property
    def end(self) -> "Succession":
        """Return the place of the session that answers for the messages of this one: itself, or its last heir."""
        return self if self.heir is None else self.heir.end

    @property
    def settled(self) -> bool:
        """Return True if no inherited message is unconsumed. Once there is an heir, that one answers for them."""
        return self.inherited is None or not self.inherited.unconsumed

    @property
    def plain(self) -> bool:
        """Return True if the application gets everything that the machine delivers."""
        return self.inherited is None or not self.inherited.open

    def consumed(self) -> dict[int, list[tuple[int, int]]]:
        """Return what the application consumed in this session and those before, by the life that sent it."""
        lives = self.machine.status.lives
        for life, ranges in self.inherited.consumed.items() if self.inherited is not None else ():
            known = lives.setdefault(life, RangeSet())
            known.update(ranges)
        return {life: list(ranges) for life, ranges in lives.items()}

    def shift_to(self, heir: "Succession") -> int | None:
        """Return what is added to a number of this session for `heir`; None if that does not answer for this one."""
        place, shift = self, 0
        while place is not heir:
            if place.heir is None:
                return None
            place, shift = place.heir, shift + place.shift
        return shift

    def inherit(self) -> int:
        """Answer from now on for the unconsumed messages of the `earlier` sessions.

        Returns:
            The count of numbers that were dropped, because this life uses them again for other messages.
        """
        inherited = Inheritance()
        for place in self.earlier:
            status = place.machine.status
            known = 0 if place.machine.info is None else place.machine.newest_number
            place.heir, place.shift = self, serial.extend(serial.wire(known), self.machine.newest_number) - known
            inherited.lives |= {place.machine.config.incarnation, *status.seen}
            for first, stop in status.skipped:
                inherited.lost.add(first + place.shift, stop + place.shift)
            for life, ranges in place.consumed().items():
                for first, stop in ranges:
                    self.feed(History(life, first, stop - 1))
        self.earlier = []
        cut = self._drop(self.parting, FOREVER)
        for batch, first, stop in self.inbox.unconsumed():
            shift = batch.owner.succession.shift_to(self)
            if shift is not None:
                inherited.add(batch.incarnation, first + shift, stop + shift)
        self.inherited = inherited
        return cut

    def fresh(self, sender: int, first: int, stop: int) -> list[tuple[int, int]]:
        """Return the ranges that the application gets of messages [first, stop), which the machine delivers.

        In order, waiting messages above a new one must come after it, or they are dead. They are dropped, and the
        machine delivers them again if they are not dead. In arrival order only messages with the same numbers go.
        """
        if self.inherited is None:
            return [(first, stop)]
        fresh, done, lost = self.inherited.deliver(sender, first, stop)
        for low, high in done:
            self.feed(Consumed(low, high - 1))
        for low, high in lost:
            self.feed(Useless(low, high - 1))
        for low, high in fresh:
            end = FOREVER if self.machine.config.ordering is Ordering.ORDERED else high
            if self.inherited.ahead(low, end):
                self._drop(partial(_always, low), end)
        return fresh

    def lost(self, first: int, stop: int) -> list[tuple[int, int]]:
        """Return the ranges that the application loses of messages [first, stop), which the machine gives up."""
        return [(first, stop)] if self.inherited is None else self.inherited.skip(first, stop)

    def low(self, question: AskLow, wish: int) -> int:
        """Return the first number of the session: the application's wish, else no number before this run began."""
        begun = self._begun()
        if begun is None or wish != question.low:
            return wish
        begun = min(begun, question.high + 1)
        return begun if begun > question.low_by_maximum else wish

    def begin(self, number: int) -> None:
        """Note that the machine delivers from `number` on."""
        if self.inherited is not None:
            self.inherited.begin(number)

    def on_consumed(self, first: int, stop: int) -> None:
        """Report to the heirs that the application consumed messages [first, stop) of this session."""
        heir, shift = self.heir, self.shift
        while heir is not None:
            first, stop = first + shift, stop + shift
            for low, high in heir.inherited.consume(first, stop) if heir.inherited is not None else ():
                heir.feed(Consumed(low, high - 1))
            shift, heir = heir.shift, heir.heir

    def on_acknowledged(self, first: int, number: int) -> None:
        """Report to the last heir that the application acknowledged messages `first` to `number` of this session.

        Raises MisuseError if they were not delivered.
        """
        if number > self.machine.newest_number:
            raise MisuseError(f"acknowledged {number}, which is not delivered yet")
        place, heir = self, self.heir
        while heir is not None:
            first, number = first + place.shift, number + place.shift
            if heir.machine.config.incarnation != place.machine.config.incarnation:
                # From its resume point on the heir's life has other messages: these numbers were cut.
                number = min(number, heir.machine.resume_point - 1)
            place, heir = heir, heir.heir
        assert place.inherited is not None
        if first <= number:
            place.inherited.claims.add(first, number + 1)
            place.claim()

    def claim(self) -> None:
        """Feed the acknowledgements of the application for messages that the machine has delivered by now.

        Call this whenever the machine may have delivered more.
        """
        if self.inherited is None or not self.inherited.claims:
            return
        for first, stop in list(self.inherited.claims):
            if self.machine.delivered(first, stop):
                self.inherited.claims.remove(first, stop)
                self.inherited.told.add(first, stop)
                self.feed(Acknowledge(stop - 1, first))

    def _begun(self) -> int | None:
        """Return the lowest number that the application consumed in this run or that waits for it; None without one.

        Numbers count only while they still belong to the life that sent them. If all of them were cut, what is left of
        their lives was sent before them, and the session begins no lower than the cut. Out of order, lower ones may
        follow.
        """
        info = self.machine.info
        if info is None or self.machine.config.ordering is not Ordering.ORDERED:
            return None
        known = [*self.machine.status.lives.items()]
        if self.inherited is not None:
            known += self.inherited.delivered.items()
        lives = unfold(info.lives, self.machine.newest_number)
        firsts = [(life, ranges.first) for life, ranges in known if ranges.first is not None]
        kept = [first for life, first in firsts if owner(lives, first) == life]
        earlier = {life for life, _ in lives} - {self.machine.config.incarnation}
        return min(kept or [self.parting(life) for life, _ in firsts if life in earlier], default=None)

    def parting(self, life: int) -> int:
        """Return the number from which on messages of a life are dead: later lives used their numbers again."""
        resumed, info = self.machine.resume_point, self.machine.info
        if life == self.machine.config.incarnation:
            return FOREVER
        lives = [] if info is None else unfold(info.lives, resumed)
        begun = next((first for other, first in lives if other == life), -1)
        return min([resumed, *(first for other, first in lives if other != life and first > begun)])

    def _drop(self, least: Callable[[int], int], stop: int) -> int:
        """Drop waiting messages of earlier sessions, from the `least` number of their life on and below `stop`.

        Return the count of dropped numbers.
        """

        def bounds(batch: Any) -> tuple[int, int] | None:
            shift = batch.owner.succession.shift_to(self)
            first = least(batch.incarnation)
            if shift is None or batch.owner.succession is self or first >= stop:
                return None
            return first - shift, stop - shift

        count = 0
        for batch, low, high in self.inbox.drop(bounds):
            batch.owner.dropped(high - low)
            count += high - low
            if self.inherited is not None:
                shift = batch.owner.succession.shift_to(self) or 0
                self.inherited.drop(batch.incarnation, low + shift, high + shift)
        return count


def _always(number: int, _: int) -> int:
    return number
