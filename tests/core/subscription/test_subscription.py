"""Which lives a receiver follows, when one hands over to the next, and what a new session is told."""

from typing import Any

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.messages import Life, SourceInfo, StoreEntry
from stablecast.core.subscription import effects as fx
from stablecast.core.subscription import inputs as ev
from stablecast.core.subscription.consumption import ReceiverMemory
from stablecast.core.subscription.inputs import Place
from stablecast.core.subscription.subscription import (
    DRAIN_NS,
    FAREWELL_NS,
    MAX_FINISHED,
    REJOIN_NS,
    RETRY_NS,
    Subscription,
)

ONE, TWO, THREE = Place("one", 1), Place("two", 2), Place("three", 3)
SHARED = Place("LBTRM:shared", 1, shared=True)


def told(term: int, *lives: Life) -> SourceInfo:
    """Return the announcement of the last of these lives."""
    return SourceInfo(lives[-1][0], "orders", 1, 0, 0xFFFF_FFFF, "", (1,), False, (), term, lives)


FIRST, SECOND_LIFE, THIRD = told(1, (1, 0)), told(2, (1, 0), (2, 5)), told(3, (1, 0), (2, 5), (3, 9))


@attrs.define
class Played:
    """A subscription whose driver makes a session, named by its life, for each life that begins.

    Attributes:
        done: The effects since the last look, those aside that are answered.
        consumed: What the application consumed of each life.
        vain: The sessions that end before they deliver.
    """

    machine: Subscription = attrs.field(factory=lambda: Subscription(ReceiverMemory()))
    now: int = 0
    done: list[Any] = attrs.field(factory=list)
    consumed: dict[int, list[tuple[int, int]]] = attrs.field(factory=dict)
    vain: set[int] = attrs.field(factory=set)
    known: list[SourceInfo] = attrs.field(factory=list)

    def feed(self, *events: ev.SubscriptionInput) -> list[Any]:
        """Feed inputs and answer effects; return the other effects."""
        for event in events:
            self.machine.receive(event, self.now)
            self._perform()
        return self.take()

    def wait(self, span: int) -> list[Any]:
        """Let time pass, and the timers fire."""
        end = self.now + span
        while (due := self.machine.next_timeout()) is not None and due <= end:
            self.now = due
            self.machine.handle_timeout(due)
            self._perform()
        self.now = end
        self.machine.handle_timeout(end)
        return self.take()

    def take(self) -> list[Any]:
        done, self.done = self.done, []
        return done

    def follow(self, place: Place, info: SourceInfo) -> list[Any]:
        """A source is found and announces itself."""
        return self.feed(ev.Found(place), ev.Announced(info, place))

    def report(self, info: SourceInfo) -> ev.Report:
        life = info.incarnation
        return ev.Report(life, life, info, {life: self.consumed.get(life, [])})

    def _perform(self) -> None:
        while effects := self.machine.take_effects():
            for effect in effects:
                match effect:
                    case fx.BeginSession():
                        reports = tuple(map(self.report, self.known))
                        self.known.append(effect.info)
                        life = effect.info.incarnation
                        self.machine.receive(ev.Begun(life, life, reports), self.now)
                    case fx.EndSession():
                        self.done.append(effect)
                        self.machine.receive(ev.SessionEnded(effect.session, effect.session in self.vain), self.now)
                    case fx.Inform():
                        pass
                    case _:
                        self.done.append(effect)

    @property
    def lives(self) -> list[int]:
        return list(self.machine.sessions)


def test_a_life_that_is_found_is_joined_and_followed() -> None:
    played = Played()
    assert played.feed(ev.Found(ONE)) == [fx.JoinStream(ONE)]
    assert played.feed(ev.Found(ONE)) == []
    assert played.feed(ev.Announced(FIRST, ONE)) == [fx.StartSession(1, {})]
    assert played.feed(ev.Announced(FIRST, ONE)) == []
    assert played.lives == [1]
    assert played.machine.next_timeout() is None


def test_each_announcement_reaches_its_session() -> None:
    machine = Subscription(ReceiverMemory())
    machine.receive(ev.Announced(FIRST, ONE), 0)
    machine.receive(ev.Announced(FIRST, ONE), 0)
    assert machine.take_effects() == [fx.BeginSession(FIRST, ONE)]
    machine.receive(ev.Begun(1, "session"), 0)
    newer = attrs.evolve(FIRST, version=2, term=2)
    machine.receive(ev.Announced(newer, ONE), 0)
    machine.receive(ev.Announced(FIRST, ONE), 0)
    informed = [effect for effect in machine.take_effects() if isinstance(effect, fx.Inform)]
    assert [effect.info for effect in informed] == [FIRST, newer, FIRST]
    assert machine.sessions[1].info == newer


def test_a_new_life_waits_until_the_ended_one_is_settled_but_not_for_ever() -> None:
    """T5."""
    played = Played()
    played.follow(ONE, FIRST)
    assert played.feed(ev.StreamEnded("one")) == [fx.EndSession(1), fx.Look("one", others=False)]
    assert played.feed(ev.Found(TWO)) == []
    assert played.wait(DRAIN_NS - 1) == []
    assert played.feed(ev.Settled((1,))) == [fx.CloseSession(1), fx.JoinStream(TWO)]
    played.feed(ev.Announced(SECOND_LIFE, TWO), ev.StreamEnded("two"))
    assert played.feed(ev.Found(THREE)) == []
    assert played.wait(DRAIN_NS) == [fx.JoinStream(THREE)]


def test_a_session_succeeds_those_of_its_source_only() -> None:
    """The history is that of the source; the others go on."""
    played = Played(consumed={1: [(0, 5)]})
    played.follow(ONE, FIRST)
    other = told(1, (9, 0))
    assert fx.StartSession(9, {}) in played.follow(Place("nine", 9), other)
    assert fx.StartSession(2, {1: [(0, 5)]}, (1,)) in played.follow(TWO, SECOND_LIFE)
    assert played.feed(ev.StreamEnded("two")) == [fx.EndSession(2), fx.Look("two", others=True)]
    assert played.lives == [1, 9]


def test_a_session_succeeds_each_of_the_sessions_before_it_and_remembers_what_all_consumed() -> None:
    """Of the lives that only stores knew none goes on beside a source that runs."""
    played = Played(consumed={1: [(0, 5)], 2: [(5, 8)]})
    for life in (told(1, (1, 0)), told(2, (2, 5))):
        played.follow(attrs.evolve(ONE, transport=f"stored:{life.incarnation}", stored=True), life)
    assert played.lives == [1, 2]
    done = played.follow(THREE, THIRD)
    assert [one.session for one in done if isinstance(one, fx.EndSession)] == [1, 2]
    [started] = [one for one in done if isinstance(one, fx.StartSession)]
    assert (started.session, started.history, started.earlier) == (3, {1: [(0, 5)], 2: [(5, 8)]}, (1, 2))
    assert played.lives == [3]


def test_all_lives_that_were_replaced_in_vain_are_followed_again() -> None:
    played = Played(vain={3})
    for place, life in ((ONE, FIRST), (TWO, SECOND_LIFE), (THREE, THIRD)):
        played.follow(place, life)
    done = played.feed(ev.StreamEnded("three"))
    assert [one.session for one in done if isinstance(one, fx.EndSession)] == [3, 1, 2]
    assert list(played.machine.passed_over.announcements) == [1, 2]


def test_each_of_the_lives_that_another_one_replaced_may_come_back() -> None:
    machine, places = Subscription(ReceiverMemory()), (ONE, TWO, THREE)
    reports: list[ev.Report] = []
    for info, place in zip((FIRST, SECOND_LIFE, THIRD), places, strict=True):
        machine.receive(ev.Announced(info, place), 0)
        machine.receive(ev.Begun(info.incarnation, place.transport, tuple(reports)), 0)
        reports.append(ev.Report(place.transport, info.incarnation, info, {}))
    machine.take_effects()
    for info, place in ((FIRST, ONE), (SECOND_LIFE, TWO)):
        machine.receive(ev.Announced(attrs.evolve(info, term=9), place), 0)
    assert [effect.place for effect in machine.take_effects() if isinstance(effect, fx.BeginSession)] == [ONE, TWO]


def test_a_later_session_with_a_life_knows_what_earlier_ones_confirmed_to_it() -> None:
    """The stores offer nothing of it again, so nobody else can repeat a confirmation that the source never got."""
    played = Played()
    played.follow(ONE, FIRST)
    played.feed(ev.Remember(ev.Report(1, 1, FIRST, {1: [(0, 5)]}, confirmed=[(0, 2), (4, 5)])))
    played.follow(TWO, SECOND_LIFE)
    played.feed(ev.Remember(ev.Report(2, 2, SECOND_LIFE, {2: [(5, 6)]}, confirmed=[(5, 6)])))
    again = Subscription(played.machine.memory)
    again.receive(ev.Found(ONE), 0)
    again.receive(ev.Announced(FIRST, ONE), 0)
    again.receive(ev.Begun(1, "again"), 0)
    begun = [effect for effect in again.take_effects() if isinstance(effect, fx.StartSession)]
    assert [effect.confirmed for effect in begun] == [[(0, 2), (4, 5)]]


def test_a_session_tells_where_its_source_is_registered_by_now() -> None:
    """The next life is known by that place only."""
    played = Played()
    played.follow(ONE, FIRST)
    registered = attrs.evolve(FIRST, stores=(StoreEntry(0, 0, "store", 5, 1),))
    played.feed(ev.Remember(ev.Report(1, 1, registered, {1: [(0, 5)]})))
    played.follow(Place("nine", 9), told(1, (9, 0)))
    later = attrs.evolve(told(1, (4, 0)), stores=registered.stores)
    assert fx.StartSession(4, {1: [(0, 5)]}, (1,)) in played.follow(Place("four", 4), later)


def test_only_a_session_that_has_ended_and_is_settled_is_closed() -> None:
    machine = Subscription(ReceiverMemory())
    for life, place in ((1, ONE), (9, TWO)):
        machine.receive(ev.Announced(told(1, (life, 0)), place), 0)
        machine.receive(ev.Begun(life, life), 0)
        machine.receive(ev.StreamEnded(place.transport), 0)
    machine.take_effects()
    machine.receive(ev.Settled((1, 9)), 0)
    machine.receive(ev.SessionEnded(1, vain=False), 0)
    assert machine.take_effects() == []
    machine.receive(ev.SessionEnded(9, vain=False), 0)
    machine.take_effects()
    machine.receive(ev.Settled((9,)), 0)
    assert machine.take_effects() == [fx.CloseSession(9)]


def test_what_a_session_consumed_after_it_was_closed_is_remembered() -> None:
    played = Played()
    played.follow(ONE, FIRST)
    played.feed(ev.Leave(), ev.Remember(ev.Report(1, 1, FIRST, {1: [(0, 3)]})))
    assert played.machine.memory.consumption.history() == {1: [(0, 3)]}


def test_an_earlier_life_is_passed_over_until_the_later_one_ends() -> None:
    played = Played()
    played.follow(TWO, SECOND_LIFE)
    assert played.follow(ONE, FIRST) == [fx.JoinStream(ONE)]
    assert played.lives == [2]
    played.feed(ev.StreamEnded("two"))
    assert played.feed(ev.Announced(FIRST, ONE)) == []
    assert played.lives == []
    assert fx.StartSession(1, {2: []}, (2,)) in played.feed(ev.Settled((2,)))
    assert 1 not in played.machine.passed_over


def test_a_life_that_was_passed_over_and_is_gone_is_not_joined() -> None:
    played = Played()
    played.follow(TWO, SECOND_LIFE)
    played.follow(ONE, FIRST)
    played.feed(ev.StreamEnded("two"), ev.StreamEnded("one"))
    assert (played.machine.plans, played.machine.passed_over.places()) == ({}, {})
    assert played.feed(ev.Settled((2,))) == [fx.CloseSession(2)]


def test_a_life_that_was_replaced_in_vain_is_followed_again() -> None:
    """Nothing tells which of two lives without a common past is the later one; the stores refuse the wrong one."""
    played = Played(vain={9})
    played.follow(TWO, SECOND_LIFE)
    played.machine.memory.identity.learn(SECOND_LIFE, [9])
    stranger = Place("nine", 9)
    other = Place("other", 8)
    played.follow(other, told(1, (8, 0)))
    assert fx.StartSession(9, {2: []}, (2,)) in played.follow(stranger, told(1, (9, 0)))
    assert played.feed(ev.Announced(SECOND_LIFE, TWO)) == []
    effects = played.feed(ev.StreamEnded("nine"))
    assert effects == [fx.EndSession(9), fx.EndSession(2), fx.Look("nine", others=True)]
    assert played.feed(ev.Settled((9, 2)))[:2] == [fx.CloseSession(9), fx.CloseSession(2)]
    assert played.lives == [8, 2]


def test_a_life_that_comes_back_gets_a_new_session() -> None:
    """A process that was cut off lives on. The session that it had delivers no more, and acknowledges first."""
    machine = Subscription(ReceiverMemory())

    def announced(info: SourceInfo, place: Place) -> list[Any]:
        machine.receive(ev.Announced(info, place), 0)
        return [effect for effect in machine.take_effects() if not isinstance(effect, fx.Inform)]

    started: Any = None
    for info, place in ((FIRST, ONE), (SECOND_LIFE, TWO)):
        assert announced(info, place) == [fx.BeginSession(info, place)]
        reports = (ev.Report("first", 1, FIRST, {1: [(0, 5)]}),) if place is TWO else ()
        machine.receive(ev.Begun(info.incarnation, "second" if place is TWO else "first", reports), 0)
        started = machine.take_effects()[0]
    assert started == fx.StartSession("second", {1: [(0, 5)]}, ("first",))
    assert announced(FIRST, ONE) == []
    renewed = attrs.evolve(FIRST, term=3)
    assert announced(renewed, ONE) == [fx.BeginSession(renewed, ONE)]
    machine.receive(ev.Begun(1, None), 0)
    assert machine.sessions[1].session == "first"
    assert announced(renewed, ONE) == [fx.BeginSession(renewed, ONE)]
    heirless = ev.Report("second", 2, SECOND_LIFE, {2: [(5, 7)]})
    machine.receive(ev.Begun(1, "third", (ev.Report("first", 1, FIRST, {1: [(0, 6)]}, answers=False), heirless)), 0)
    closed, again, _ = machine.take_effects()
    assert closed == fx.CloseSession("first")
    assert again == fx.StartSession("third", {1: [(0, 6)], 2: [(5, 7)]}, ("second",))
    assert announced(SECOND_LIFE, TWO) == []


def test_too_many_ended_sessions_are_given_up() -> None:
    played, closed = Played(), list[Any]()
    for life in range(MAX_FINISHED + 1):
        place = Place(str(life), life)
        played.feed(ev.Found(place))
        played.wait(DRAIN_NS)
        played.feed(ev.Announced(told(1, (life, 0)), place))
        closed = played.feed(ev.StreamEnded(str(life)))
    assert fx.CloseSession(0) in closed
    assert len(played.machine.finished) == MAX_FINISHED


def test_a_source_that_said_farewell_is_left_when_it_is_silent() -> None:
    played = Played()
    played.feed(ev.Found(SHARED, 1), ev.Announced(FIRST, SHARED), ev.Withdrawn(SHARED.transport, 1))
    played.wait(FAREWELL_NS - 1)
    played.feed(ev.Announced(FIRST, SHARED))
    assert played.wait(FAREWELL_NS - 1) == []
    left = [fx.LeaveStream(SHARED.transport), fx.EndSession(1), fx.Look(SHARED.transport, others=False)]
    assert played.wait(1) == left
    unheard = [fx.CloseSession(1), fx.JoinStream(SHARED, (2,))]
    assert played.feed(ev.Found(SHARED, 2), ev.Withdrawn(SHARED.transport, 1), ev.Settled((1,))) == unheard
    played.feed(ev.Withdrawn(SHARED.transport, 2))
    assert played.wait(FAREWELL_NS) == [left[0], left[2]]


def test_a_wait_counts_from_its_input() -> None:
    played = Played()
    played.follow(SHARED, FIRST)
    played.now = 7 * SECOND  # No timer was due meanwhile.
    played.feed(ev.Withdrawn(SHARED.transport, 1))
    assert played.machine.next_timeout() == 7 * SECOND + FAREWELL_NS


def test_a_stream_that_ended_before_its_farewell_is_not_left() -> None:
    played = Played()
    played.feed(ev.Found(SHARED, 1), ev.Announced(FIRST, SHARED), ev.Withdrawn(SHARED.transport, 1))
    played.feed(ev.StreamEnded(SHARED.transport), ev.Settled((1,)))
    assert played.wait(FAREWELL_NS) == []
    played.feed(ev.Found(SHARED, 2), ev.StreamEnded(SHARED.transport))
    assert played.feed(ev.Found(SHARED, 3)) == [fx.JoinStream(SHARED, (3,))]


def test_who_was_found_at_the_address_of_a_process_is_joined_when_that_one_ends() -> None:
    """The resolver finds both for as long as it remembers the first, and names that one first."""
    played, successor = Played(), Place("one", 4)
    assert played.feed(ev.Found(ONE, 1)) == [fx.JoinStream(ONE, (1,))]
    assert played.feed(ev.Found(successor, 2)) == [fx.JoinStream(successor, (2,))]
    assert played.feed(ev.Found(successor, 3)) == [fx.JoinStream(successor, (3,))]
    assert played.feed(ev.StreamEnded("one")) == [fx.JoinStream(successor, (2, 3))]
    assert played.feed(ev.StreamEnded("one")) == [fx.Look("one", False)]
    assert played.machine.others == {}


def test_who_was_found_at_an_address_is_joined_before_the_process_that_ended_there_is_found_again() -> None:
    played, successor = Played(), Place("one", 4)
    played.follow(ONE, FIRST)
    played.feed(ev.StreamEnded("one"))
    assert played.feed(ev.Found(ONE, 1), ev.Found(successor, 2)) == []
    assert played.wait(DRAIN_NS) == [fx.JoinStream(ONE, (1, 2))]
    assert played.feed(ev.StreamEnded("one")) == []
    assert played.feed(ev.Found(ONE, 1)) == []
    assert played.wait(DRAIN_NS) == [fx.JoinStream(successor, (1, 2))]


def test_sources_on_one_shared_stream_are_no_successors() -> None:
    played = Played()
    played.feed(ev.Found(SHARED, 1), ev.Found(attrs.evolve(SHARED, session_id=2), 2))
    assert played.feed(ev.StreamEnded(SHARED.transport)) == [fx.Look(SHARED.transport, False)]


def test_a_successor_is_forgotten_with_the_plan_that_is_dropped() -> None:
    played = Played()
    played.follow(ONE, FIRST)
    played.feed(ev.StreamEnded("one"))
    played.feed(ev.Found(TWO, 2), ev.Found(attrs.evolve(TWO, session_id=4), 3))
    played.feed(ev.Withdrawn("two", 2), ev.Withdrawn("two", 3))
    assert (played.machine.plans, played.machine.others) == ({}, {})


def test_a_stream_with_another_source_stays_joined() -> None:
    played = Played()
    played.feed(ev.Found(SHARED, 1), ev.Announced(FIRST, SHARED))
    assert played.feed(ev.Found(SHARED, 9)) == [fx.JoinStream(SHARED, (9,))]
    played.feed(ev.Announced(told(1, (9, 0)), SHARED), ev.Withdrawn(SHARED.transport, 1))
    assert played.wait(FAREWELL_NS) == [fx.EndSession(1)]
    assert played.lives == [9]


def test_a_stream_with_a_source_that_is_only_expected_or_only_heard_stays_joined() -> None:
    for expected in (True, False):
        played = Played()
        played.feed(ev.Found(SHARED, 1), ev.Announced(FIRST, SHARED))
        played.feed(ev.Found(SHARED, 9) if expected else ev.Announced(told(1, (9, 0)), SHARED))
        played.feed(ev.Withdrawn(SHARED.transport, 1))
        assert played.wait(FAREWELL_NS) == [fx.EndSession(1)]


def test_a_life_that_was_passed_over_is_followed_when_the_later_one_said_farewell() -> None:
    """Another source keeps the stream joined, so no stream ends."""
    played = Played()
    played.feed(ev.Found(SHARED, 2), ev.Announced(SECOND_LIFE, SHARED), ev.Announced(told(1, (9, 0)), SHARED))
    played.follow(ONE, FIRST)
    assert played.lives == [2, 9]
    played.feed(ev.Withdrawn(SHARED.transport, 2))
    assert played.wait(FAREWELL_NS) == [fx.EndSession(2)]
    assert fx.StartSession(1, {2: []}, (2,)) in played.feed(ev.Announced(FIRST, ONE))
    assert 1 not in played.machine.passed_over


def test_a_plan_for_a_source_that_is_gone_is_dropped() -> None:
    played = Played()
    played.follow(ONE, FIRST)
    played.feed(ev.StreamEnded("one"), ev.Found(SHARED, 7), ev.Withdrawn(SHARED.transport, 7))
    assert played.machine.plans == {}
    assert played.feed(ev.Withdrawn("unknown", 7)) == []
    played.feed(ev.Found(SHARED, 7), ev.Found(SHARED, 8), ev.Withdrawn(SHARED.transport, 7))
    assert played.feed(ev.Settled((1,))) == [fx.CloseSession(1), fx.JoinStream(SHARED, (8,))]


def test_a_stream_of_one_source_has_no_second_one() -> None:
    played = Played()
    played.follow(ONE, FIRST)
    assert played.feed(ev.Announced(told(1, (9, 0)), ONE)) == [fx.Foreign()]


def test_a_life_that_moves_is_followed() -> None:
    """Its farewell was to its last place."""
    played = Played()
    played.feed(ev.Found(SHARED, 1), ev.Announced(FIRST, SHARED), ev.Withdrawn(SHARED.transport, 1), ev.Found(ONE))
    assert played.feed(ev.Announced(FIRST, ONE)) == [fx.LeaveStream(SHARED.transport)]
    assert (played.machine.farewells, played.machine.sessions[1].place) == ({}, ONE)
    assert played.feed(ev.Found(SHARED)) == [fx.JoinStream(SHARED)]
    played.feed(ev.Announced(told(1, (9, 0)), SHARED))
    assert played.feed(ev.Announced(FIRST, SHARED)) == [fx.LeaveStream("one")]
    assert played.feed(ev.Announced(FIRST, ONE)) == []
    assert played.feed(ev.StreamEnded("one", failed=True), ev.Found(TWO)) == [fx.JoinStream(TWO)]
    assert played.feed(ev.Announced(FIRST, TWO)) == []
    assert played.lives == [1, 9]


def test_the_place_that_a_life_leaves_is_kept_for_another_one_that_was_found_there() -> None:
    """A router repeats two sources of a topic in one session, and one of them is found at a better place."""
    played = Played()
    played.feed(ev.Found(SHARED, 1), ev.Found(SHARED, 9), ev.Announced(FIRST, SHARED), ev.Found(ONE, 1))
    assert played.feed(ev.Announced(FIRST, ONE)) == []
    assert played.feed(ev.Announced(told(1, (9, 0)), SHARED)) == [fx.StartSession(9, {})]
    assert played.lives == [1, 9]


def test_two_lives_that_change_places_are_both_joined() -> None:
    """A router starts again and repeats both sources, each at the address of the other one."""
    played, other = Played(), told(1, (9, 0))
    first, second = attrs.evolve(ONE, session_id=5), attrs.evolve(TWO, session_id=6)
    played.feed(ev.Found(ONE, 1), ev.Found(TWO, 9), ev.Announced(FIRST, ONE), ev.Announced(other, TWO))
    played.feed(ev.Found(first, 9), ev.Found(second, 1))
    assert fx.JoinStream(first, (9,)) in played.feed(ev.StreamEnded("one"), ev.Settled((1,)))
    assert played.feed(ev.Announced(other, first)) == [fx.LeaveStream("two"), fx.JoinStream(second, (1,))]


def test_a_place_that_was_given_by_hand_is_joined_again() -> None:
    """Nobody looks for it elsewhere."""
    static = Place("static", static=True)
    played = Played()
    assert played.feed(ev.Found(static)) == [fx.JoinStream(static)]
    assert played.feed(ev.StreamEnded("static")) == []
    assert played.wait(REJOIN_NS - 1) == []
    assert played.feed(ev.Withdrawn("static", 1)) == []
    assert played.wait(1) == [fx.JoinStream(static)]
    unknown = [fx.Look("unknown", others=False)]
    assert played.feed(ev.StreamEnded("unknown", failed=True), ev.StreamEnded("unknown")) == unknown


def test_what_only_stores_know_is_followed_until_a_source_announces_itself() -> None:
    played = Played()
    stored = Place("stored:1", stored=True)
    assert played.feed(ev.Announced(FIRST, stored)) == [fx.Look("stored:1", others=False), fx.StartSession(1, {})]
    assert played.lives == [1]
    assert fx.EndSession(1) in played.follow(TWO, SECOND_LIFE)
    assert played.lives == [2]
    assert played.feed(ev.Announced(THIRD, stored)) == []


def test_a_life_that_stores_knew_ends_with_the_stream_on_which_it_announced_itself() -> None:
    played = Played()
    played.feed(ev.Announced(FIRST, Place("stored:1", stored=True)))
    assert played.follow(ONE, FIRST) == [fx.JoinStream(ONE)]
    assert played.feed(ev.StreamEnded("one")) == [fx.EndSession(1), fx.Look("one", others=False)]


def test_a_stream_or_a_session_that_cannot_be_had_is_tried_again() -> None:
    machine = Subscription(ReceiverMemory())
    machine.receive(ev.Found(ONE), 0)
    machine.receive(ev.StreamEnded("one", failed=True), 0)
    machine.receive(ev.Found(ONE), 0)
    assert machine.take_effects() == [fx.JoinStream(ONE)] * 2
    machine.receive(ev.Announced(FIRST, ONE), 0)
    machine.receive(ev.Begun(1, None), 0)
    machine.receive(ev.Announced(FIRST, ONE), 0)
    assert machine.take_effects() == [fx.BeginSession(FIRST, ONE)] * 2


def test_a_stream_that_cannot_be_joined_is_tried_again_without_the_resolver() -> None:
    """The resolver reports a source once, and descriptors may be scarce just then."""
    machine = Subscription(ReceiverMemory())
    for now in (0, RETRY_NS):
        machine.receive(ev.Found(ONE), now) if not now else machine.handle_timeout(now)
        assert machine.take_effects() == [fx.JoinStream(ONE)]
        machine.receive(ev.StreamEnded("one", failed=True), now)
        assert machine.next_timeout() == now + RETRY_NS
    machine.receive(ev.Found(TWO), 2 * RETRY_NS - 1)
    machine.receive(ev.StreamEnded("two", failed=True), 2 * RETRY_NS - 1)
    assert machine.next_timeout() == 2 * RETRY_NS
    machine.receive(ev.Withdrawn("two", 2), 2 * RETRY_NS - 1)
    assert machine.next_timeout() == 2 * RETRY_NS
    machine.receive(ev.Withdrawn("one", 1), RETRY_NS)
    assert machine.next_timeout() is None
    static = Place("given", static=True)
    machine.receive(ev.Found(static), RETRY_NS)
    machine.receive(ev.StreamEnded("given", failed=True), RETRY_NS)
    assert machine.next_timeout() is None


def test_a_topic_without_sources_retires_once_all_is_consumed() -> None:
    played = Played()
    played.follow(ONE, FIRST)
    played.feed(ev.StreamEnded("one"))
    assert played.feed(ev.Retire()) == []
    assert played.feed(ev.Settled((1,))) == [fx.CloseSession(1), fx.Retired()]
    assert played.feed(ev.Settled(())) == []
    assert played.feed(ev.Found(ONE)) == [fx.JoinStream(ONE)]
    played.feed(ev.Announced(SECOND_LIFE, ONE), ev.StreamEnded("one"), ev.Retire(), ev.Found(TWO), ev.Settled((2,)))
    assert played.feed(ev.StreamEnded("two")) == [fx.Look("two", others=False)]


def test_a_topic_does_not_retire_while_a_source_may_still_announce_itself() -> None:
    played = Played()
    played.feed(ev.Found(ONE))
    assert fx.Retired() not in played.feed(ev.Retire())
    assert fx.Retired() in played.feed(ev.StreamEnded(ONE.transport))


def test_who_leaves_closes_everything_and_hears_nothing_more() -> None:
    played = Played()
    played.follow(ONE, FIRST)
    played.follow(TWO, SECOND_LIFE)
    played.feed(ev.StreamEnded("one"), ev.Found(THREE))
    effects = played.feed(ev.Leave())
    assert effects == [fx.LeaveStream("two"), fx.CloseSession(2), fx.CloseSession(1)]
    retiring = Played()
    retiring.follow(ONE, FIRST)
    assert retiring.feed(ev.StreamEnded("one"), ev.Retire(), ev.Leave())[2:] == [fx.CloseSession(1)]
    assert played.machine.next_timeout() is None
    assert played.feed(ev.Found(ONE), ev.Announced(THIRD, THREE), ev.Retire()) == []


def test_late_and_early_ticks_do_nothing() -> None:
    played = Played()
    played.follow(ONE, FIRST)
    played.machine.handle_timeout(10 * SECOND)
    assert played.machine.take_effects() == []
