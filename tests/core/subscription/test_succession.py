"""What the session with a life inherits from the sessions before: what it withholds, acknowledges, and begins with."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.errors import MisuseError
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.serial import FOREVER, HALF, MODULUS, wire
from stablecast.core.protocol.effects import AskLow, Deliver, Notify
from stablecast.core.protocol.events import Event, RegistrationComplete
from stablecast.core.protocol.inputs import Arrived, Consumed, Data, History, LowChosen, Start, Tick, Useless
from stablecast.core.protocol.messages import ConsumptionAck, Life
from stablecast.core.protocol.settings import AckMode, Ordering
from stablecast.core.subscription.succession import Inheritance, Succession
from tests.core.drivers import ACK_NS, INTERVAL_NS, ReceiverDriver
from tests.core.samples import LIFE as THIRD
from tests.core.samples import info


class Nothing:
    """A queue in which no message waits."""

    def unconsumed(self) -> list[tuple[Any, int, int]]:
        return []

    def drop(self, _: Callable[[Any], tuple[int, int] | None]) -> list[tuple[Any, int, int]]:
        return []


NOTHING = Nothing()


@pytest.mark.rows("P-349")
def test_messages_that_an_earlier_session_lost_are_withheld_and_not_consumed() -> None:
    """Consumed would be confirmed to the source."""
    inherited = Inheritance(lost=RangeSet([(3, 5)]), lives={1})
    assert inherited.deliver(1, 2, 6) == ([(2, 3), (5, 6)], [], [(3, 5)])
    assert inherited.deliver(1, 3, 5) == ([(3, 5)], [], [])


def test_messages_of_two_lives_are_withheld_until_all_of_them_came_again_or_never_will() -> None:
    inherited = Inheritance(lives={1, 2}, lost=RangeSet([(3, 5)]))
    inherited.add(1, 0, 3)
    inherited.add(2, 5, 10)
    assert [inherited.ahead(low, 12) for low in (0, 4, 10)] == [True, True, False]
    assert inherited.unconsumed
    assert inherited.consume(0, 3) == []
    inherited.begin(1)
    assert inherited.deliver(2, 5, 6) == ([], [], [])
    assert inherited.consume(4, 7) == [(5, 6)]
    inherited.drop(2, 9, 10)
    assert inherited.deliver(2, 9, 10) == ([(9, 10)], [], [])
    assert inherited.deliver(9, 3, 5) == ([(3, 5)], [], [])
    assert inherited.skip(1, 5) == [(3, 5)]
    assert inherited.deliver(1, 3, 5) == ([(3, 5)], [], [])
    assert inherited.deliver(2, 6, 8) == ([], [(6, 7)], [])
    assert (inherited.open, inherited.unconsumed) == (True, True)
    assert inherited.consume(7, 10) == [(7, 8)]
    assert (inherited.open, inherited.unconsumed) == (True, False)
    assert inherited.skip(8, 11) == [(9, 11)]
    assert not inherited.open


def test_a_machine_is_told_of_each_message_that_the_application_does_not_get_again_and_of_no_other() -> None:
    fed: list[Any] = []
    driver, _ = place()
    succession = Succession(driver.machine, fed.append, NOTHING)
    inherited = succession.inherited = Inheritance(lives={1}, lost=RangeSet([(3, 5)]))
    inherited.add(1, 0, 3)
    inherited.consume(0, 2)
    assert succession.fresh(1, 0, 6) == [(5, 6)]
    assert fed == [Consumed(0, 1), Useless(3, 4)]
    assert succession.lost(1, 8) == [(3, 8)]


def test_a_lost_message_keeps_the_machine_watched() -> None:
    inherited = Inheritance(lost=RangeSet([(0, 5)]), lives={1})
    inherited.begin(5)
    opened = [inherited.open]
    inherited.begin(0)
    assert [*opened, inherited.open] == [False, True]
    assert inherited.deliver(1, 0, 5) == ([], [], [(0, 5)])


LIVES = ((1, 0), (2, 5), (THIRD, 20))


def place(**changes: Any) -> tuple[ReceiverDriver, Succession]:
    """Return a session with the third life of a source, which goes on at 20."""
    driver = ReceiverDriver(**changes)
    driver.inform(1, low=20, high=29, lives=LIVES)
    return driver, Succession(driver.machine, lambda _: None, NOTHING)


def test_a_session_that_a_late_store_takes_back_reports_what_was_consumed_when_it_has_delivered_it() -> None:
    """Before, the machine had said that it begins above all of it (seed 406638: the machine refused the report)."""
    inherited = Inheritance(lives={1}, lost=RangeSet([(20, 22)]))
    inherited.add(1, 0, 20)
    inherited.add(1, 22, 57)
    inherited.begin(57)
    opened = [inherited.open]
    assert inherited.consume(50, 51) == [(50, 51)]
    inherited.begin(10)
    opened.append(inherited.open)
    assert inherited.consume(51, 52) == []
    assert inherited.deliver(1, 10, 57) == ([], [(50, 52)], [(20, 22)])
    assert [*opened, inherited.open] == [False, True, False]


def test_an_acknowledgement_is_told_again_to_a_session_that_a_late_store_takes_back() -> None:
    """It was told to a machine that had begun above the message, and forgotten there (P-346)."""
    driver = ReceiverDriver(ack_mode=AckMode.EXPLICIT)
    driver.inform(1, 1, 1, low=20, high=29, lives=LIVES)
    succession = Succession(driver.machine, lambda event: list.clear(driver.feed(event)), NOTHING)
    inherited = succession.inherited = Inheritance(lives={2})
    inherited.add(2, 10, 20)
    before = Succession(ReceiverDriver.active(high=29).machine, lambda _: None, NOTHING, heir=succession)

    def begin(told: list[Event]) -> None:
        [number] = [one.number for one in told if isinstance(one, RegistrationComplete)]
        succession.begin(number)

    driver.grant(0, 1, low=20, high=29)
    driver.feed(Tick(), INTERVAL_NS)
    begin(driver.feed(LowChosen(20), INTERVAL_NS))
    assert driver.machine.window.next == 20
    before.on_acknowledged(10, 14)
    assert driver.sent(ConsumptionAck) == []
    begin(driver.grant(2, now=INTERVAL_NS, low=10, high=29, old=True))
    assert driver.machine.window.next == 10
    driver.data(10, 10, life=2, recovered=True)
    succession.claim()
    assert {ack.number for _, ack in driver.sent(ConsumptionAck)} == {14}
    before.on_acknowledged(15, 16)
    assert {ack.number for _, ack in driver.sent(ConsumptionAck)} == {16}, "it is delivered, so nothing is waited for"


def test_an_acknowledgement_covers_no_number_that_the_next_life_used_again() -> None:
    """The application has not read the message that has the number now (P-346)."""
    _, succession = place(ack_mode=AckMode.EXPLICIT)
    inherited = succession.inherited = Inheritance(lives={2})
    before = ReceiverDriver.active(high=29)
    before.machine.config = attrs.evolve(before.machine.config, incarnation=2)
    place_before = Succession(before.machine, lambda _: None, NOTHING, heir=succession)
    place_before.on_acknowledged(10, 25)
    place_before.on_acknowledged(21, 29)
    assert inherited.claims == RangeSet([(10, 20)])
    with pytest.raises(MisuseError):
        place_before.on_acknowledged(10, 30)
    place_before.shift = 100
    place_before.on_acknowledged(-92, -91)
    assert inherited.claims == RangeSet([(8, 20)])


def test_all_that_the_application_consumes_of_an_earlier_session_is_told_to_its_heir() -> None:
    """Messages that the new machine did not deliver yet come later."""
    fed: list[Any] = []
    heir = Succession(ReceiverDriver().machine, fed.append, NOTHING, inherited=Inheritance())
    assert heir.inherited is not None
    for first, stop in ((0, 3), (5, 8), (9, 12)):
        heir.inherited.add(1, first, stop)
    heir.begin(10)
    Succession(ReceiverDriver().machine, fed.append, NOTHING, heir=heir).on_consumed(0, 12)
    assert fed == [Consumed(0, 2), Consumed(5, 7), Consumed(9, 9)]


def test_an_acknowledgement_has_the_number_that_each_heir_gave_to_its_message() -> None:
    """A later session may have met a wrap of the numbers that the one before it did not."""
    third = Succession(ReceiverDriver().machine, lambda _: None, NOTHING, inherited=Inheritance())
    second = Succession(ReceiverDriver().machine, lambda _: None, NOTHING, heir=third, shift=MODULUS)
    first = Succession(ReceiverDriver.active(high=29).machine, lambda _: None, NOTHING, heir=second)
    first.on_acknowledged(10, 14)
    assert third.inherited is not None
    assert third.inherited.claims == RangeSet([(MODULUS + 10, MODULUS + 15)])


def earlier_session(skipped: list[tuple[int, int]], consumed: list[tuple[int, int]]) -> Any:
    status = SimpleNamespace(seen=(), skipped=skipped)
    machine = SimpleNamespace(status=status, info=None, newest_number=0, config=SimpleNamespace(incarnation=1))
    return SimpleNamespace(machine=machine, consumed=lambda: {1: consumed})


def test_all_that_the_earlier_sessions_consumed_or_gave_up_is_inherited() -> None:
    driver, _ = place()
    fed: list[Any] = []
    succession = Succession(driver.machine, fed.append, NOTHING)
    succession.earlier = [
        earlier_session([(3, 5), (8, 9)], [(0, 3), (5, 8)]),
        earlier_session([(11, 12)], [(9, 11)]),
    ]
    succession.inherit()
    assert fed == [History(1, 0, 2), History(1, 5, 7), History(1, 9, 10)]
    assert succession.inherited is not None
    assert list(succession.inherited.lost) == [(3, 5), (8, 9), (11, 12)]


def test_each_run_that_waits_and_is_dead_is_dropped_and_those_of_other_sources_stay() -> None:
    driver, _ = place()
    dropped: list[int] = []
    stranger = Succession(ReceiverDriver().machine, lambda _: None, NOTHING)
    owner = SimpleNamespace(dropped=dropped.append, succession=stranger)
    batch = SimpleNamespace(owner=owner, incarnation=1)
    queue: Any = SimpleNamespace(drop=lambda _: [(batch, 20, 23), (batch, 25, 27)], unconsumed=lambda: [(batch, 0, 4)])
    succession = Succession(driver.machine, lambda _: None, queue)
    assert succession.inherit() == 5
    assert dropped == [3, 2]
    assert succession.inherited is not None
    assert not succession.inherited.unconsumed


def test_a_session_begins_no_lower_than_this_run_did() -> None:
    """D1: what is below is of an earlier run, and would come out of order. Wishes and the request maximum go first."""
    driver, succession = place()
    question = AskLow(29, 0, 0)
    assert succession.low(question, 0) == 0
    driver.feed(History(2, 7, 9))
    driver.feed(History(THIRD, 20, 25))
    assert succession.low(question, 0) == 7
    assert succession.low(question, 3) == 3
    assert succession.low(AskLow(29, 10, 0), 0) == 0
    assert succession.low(AskLow(3, 0, 0), 0) == 4
    inherited = succession.inherited = Inheritance()
    inherited.add(2, 6, 7)
    assert succession.low(question, 0) == 6


def test_the_messages_of_a_life_are_dead_from_where_later_lives_resumed() -> None:
    _, succession = place()
    assert [succession.parting(life) for life in (1, 2, THIRD)] == [5, 20, FOREVER]


def test_dead_messages_tell_that_a_run_began_no_lower_than_the_cut() -> None:
    """D1: number 6 is the second life's, which begins at 5. What the first life sent below came before its 6."""
    driver, succession = place()
    driver.feed(History(1, 6, 9))
    assert succession.low(AskLow(29, 0, 0), 0) == 5
    assert succession.low(AskLow(29, 0, 0), 3) == 3
    assert succession.low(AskLow(29, 7, 7), 7) == 7
    driver.feed(History(2, 7, 9))
    assert succession.low(AskLow(29, 0, 0), 0) == 7


def test_messages_of_no_known_life_or_without_order_do_not_tell_where_a_run_began() -> None:
    """Nobody knows what came before those of a life that the source does not name; in arrival order all may follow."""
    driver, succession = place()
    driver.feed(History(9, 6, 9))
    assert succession.low(AskLow(29, 0, 0), 0) == 0
    driver, succession = place(ordering=Ordering.ARRIVAL)
    driver.feed(History(2, 7, 9))
    assert succession.low(AskLow(29, 0, 0), 0) == 0
    unheard = ReceiverDriver()
    assert Succession(unheard.machine, lambda _: None, NOTHING).low(AskLow(29, 0, 0), 0) == 0


@attrs.define(eq=False)
class Waiting:
    """Messages [first, stop) of one life, the first of which the application has in hand."""

    owner: "Session"
    incarnation: int
    first: int
    stop: int
    handed: int = 0


@attrs.define
class Queue:
    batches: list[Waiting] = attrs.field(factory=list)

    def unconsumed(self) -> Iterator[tuple[Waiting, int, int]]:
        yield from ((batch, batch.first, batch.stop) for batch in self.batches)

    def drop(self, bounds: Callable[[Waiting], tuple[int, int] | None]) -> list[tuple[Waiting, int, int]]:
        dropped, kept = [], []
        for batch in self.batches:
            low, high = bounds(batch) or (0, 0)
            low, high = max(low, batch.first + batch.handed), min(high, batch.stop)
            if low >= high:
                kept.append(batch)
                continue
            dropped.append((batch, low, high))
            parts = ((batch.first, low, batch.handed), (high, batch.stop, 0))
            kept += [Waiting(batch.owner, batch.incarnation, *part) for part in parts if part[0] < part[1]]
        self.batches = kept
        return dropped


class Session:
    """A session with one life, as a driver makes it: `waiting` delivered messages are not consumed."""

    def __init__(self, life: int, queue: Queue, *earlier: "Session", **changes: Any) -> None:
        self.life, self.queue, self.waiting, self.acked = life, queue, 0, -1
        self.driver = ReceiverDriver(incarnation=life, **changes)
        self.senders: list[int] = []
        self.succession = Succession(self.driver.machine, self.feed, queue)
        self.succession.earlier = [session.succession for session in earlier]
        self.feed(Start())

    def begin(self, first: int, stop: int, low: int, lives: tuple[Life, ...]) -> None:
        """The source announces that it resumes at `first`, and stores that hold up to `stop` know the receiver."""
        told = {"incarnation": self.life, "high": wire(stop - 1)}
        lives = tuple((life, wire(at)) for life, at in lives)
        self.feed(Arrived(info(1, 1, 1, low=wire(first), lives=lives, term=len(lives), **told)))
        if self.succession.due:
            self.succession.inherit()
        for store in range(3):
            self.driver.grant(store, low=wire(low), old=True, **told)
            self._perform()

    def arrive(self, life: int, first: int, count: int, recovered: bool = False) -> None:
        self.senders.append(life)
        self.feed(Data(self.life, life, wire(first), count, 0, recovered, len(self.senders) - 1))

    def feed(self, event: Any, now: int = 0) -> None:
        self.driver.feed(event, now)
        self._perform()

    def consumed(self, first: int, stop: int) -> None:
        self.waiting -= stop - first
        self.feed(Consumed(first, stop - 1))
        self.succession.on_consumed(first, stop)

    def dropped(self, count: int) -> None:
        self.waiting -= count

    def _perform(self) -> None:
        for _, ack in self.driver.sent(ConsumptionAck):
            self.acked = ack.number
        for effect in self.driver.effects:
            match effect:
                case Deliver():
                    life = self.senders[effect.token]
                    for first, stop in self.succession.fresh(life, effect.first, effect.first + effect.count):
                        self.queue.batches.append(Waiting(self, life, first, stop))
                        self.waiting += stop - first
                    self.succession.claim()
                case AskLow():
                    self.feed(LowChosen(self.succession.low(effect, effect.low)))
                case Notify(event=RegistrationComplete(number=number)):
                    self.succession.begin(number)


BASES = pytest.mark.parametrize("base", [5, HALF - 3], ids=["plain", "half"])
"""The first number of a life. Beyond half of the wire's numbers the next session extends them to others."""


@BASES
@pytest.mark.parametrize("ordering", [Ordering.ORDERED, Ordering.ARRIVAL])
def test_a_message_below_what_waits_comes_before_it_in_order(ordering: Ordering, base: int) -> None:
    """What waited comes after it, once the machine delivers that again. In arrival order it stays where it is."""
    queue = Queue()
    first = Session(2, queue, ordering=ordering)
    first.begin(base, base + 3, base + 3, ((2, base),))
    first.arrive(2, base + 3, 4)
    second = Session(3, queue, first, ordering=ordering)
    second.begin(base + 7, base + 7, base + 3, ((2, base), (3, base + 7)))
    waits = second.driver.machine.start_number
    assert second.succession.fresh(2, waits - 3, waits) == [(waits - 3, waits)]
    again = [(waits, waits + 4)] if ordering is Ordering.ORDERED else []
    assert [first.waiting, bool(queue.batches)] == ([0, False] if again else [4, True])
    assert second.succession.fresh(2, waits, waits + 4) == again


@BASES
@pytest.mark.rows("P-349")
def test_what_an_earlier_session_gave_up_does_not_come_with_the_next(base: int) -> None:
    """The application has had later messages, and was told that this one is lost."""
    queue = Queue()
    first = Session(2, queue, ordering=Ordering.ARRIVAL)
    first.begin(base, base, base, ((2, base),))
    first.arrive(2, base, 7)
    begun = first.driver.machine.start_number
    first.feed(Useless(begun + 1, begun + 1))
    second = Session(3, queue, first, ordering=Ordering.ARRIVAL)
    second.begin(base + 7, base + 7, base, ((2, base), (3, base + 7)))
    again = second.driver.machine.start_number
    second.arrive(2, again, 7, recovered=True)
    assert [(batch.owner, batch.first, batch.stop) for batch in queue.batches] == [(first, begun, begun + 7)]
    assert list(second.driver.machine.status.skipped) == [(again + 1, again + 2)]


def read(queue: Queue, count: int, got: list[tuple[int, int]]) -> None:
    """Consume messages one by one, those in hand first."""
    for _ in range(count):
        if not queue.batches:
            return
        batch = queue.batches[0]
        number = batch.first
        if not batch.handed:
            got.append((batch.incarnation, wire(number)))
        batch.first, batch.handed = number + 1, max(batch.handed - 1, 0)
        if batch.first == batch.stop:
            del queue.batches[0]
        batch.owner.consumed(number, number + 1)


@given(
    base=st.sampled_from([5, MODULUS - 3, HALF - 3]),
    sent=st.integers(1, 8),
    consumed=st.integers(0, 8),
    handed=st.integers(0, 3),
    cut=st.integers(0, 8),
    later=st.integers(0, 5),
    between=st.integers(0, 12),
    step=st.integers(1, 4),
)
def test_an_application_gets_each_message_of_two_lives_once_and_in_order(
    base: int, sent: int, consumed: int, handed: int, cut: int, later: int, between: int, step: int
) -> None:
    """The second life uses numbers again; what was not handed over of them is gone. All is acknowledged in the end."""
    queue, got = Queue(), list[tuple[int, int]]()
    first = Session(2, queue)
    first.begin(base, base, base, ((2, base),))
    first.arrive(2, base, sent)
    read(queue, consumed, got)
    if queue.batches:
        queue.batches[0].handed = handed = min(handed, queue.batches[0].stop - queue.batches[0].first)
        got += [(2, wire(queue.batches[0].first + place)) for place in range(handed)]
    told = len(got)
    resumed = max(base, base + sent - cut)
    second = Session(3, queue, first)
    lives = ((2, base), (3, resumed))
    second.begin(resumed, resumed, base + min(consumed, sent, resumed - base), lives)
    assert not second.succession.due
    assert first.succession.shift_to(second.succession) == first.succession.shift
    assert second.succession.shift_to(first.succession) is None
    assert first.succession.end is second.succession
    begins = second.driver.machine.start_number
    again = wire(resumed - begins)
    for place in range(0, again, step):
        second.arrive(2, begins + place, min(step, again - place), recovered=True)
    read(queue, between, got)
    if later:
        second.arrive(3, resumed, later)
    assert second.succession.settled is all(batch.owner is second for batch in queue.batches)
    read(queue, 100, got)
    old = [(2, wire(number)) for number in range(base, max(resumed, base + told))]
    assert got == [*old, *((3, wire(number)) for number in range(resumed, resumed + later))]
    assert (first.waiting, second.waiting) == (0, 0)
    dead_in_hand = told > min(consumed, sent) and base + told > resumed
    assert first.succession.plain
    assert second.succession.plain is not dead_in_hand
    assert second.succession.settled
    known = second.succession.consumed().items()
    assert {(life, wire(number)) for life, ranges in known for part in ranges for number in range(*part)} == set(got)
    second.feed(Tick(), ACK_NS)
    if later:
        assert second.acked == wire(resumed + later - 1)
