"""Faults in what a receiver of a topic decides: which lives it follows, and what their sessions inherit."""

from typing import Final

from tools.mutants.mutant import Mutant, Test

_MACHINE: Final = "core/subscription/test_subscription.py"

SUBSCRIPTION: Final = (
    Mutant(
        "messages-of-two-lives-get-no-new-place",
        "subscription/succession",
        "place.heir, place.shift = self, serial.extend(serial.wire(known), self.machine.newest_number) - known",
        "place.heir, place.shift = None, 0",
        Test("adapters/client/test_succession.py::test_each_message_once_and_in_order_over_three_lives[each]"),
    ),
    Mutant(
        "lives-without-a-common-past-are-compared",
        "subscription/precedence",
        "known.term > other.term and any(life in named for life, _ in other.lives)",
        "known.term > other.term",
        Test("core/subscription/test_precedence.py::test_the_higher_term_is_later_among_lives_with_a_common_past"),
    ),
    Mutant(
        "sources-that-turn-out-to-be-one-stay-two",
        "subscription/source_identity",
        "        self.sources |= {life: source for life, one in self.sources.items() if one in same}\n",
        "",
        Test("core/subscription/test_source_identity.py::test_sources_that_turn_out_to_be_one_are_united"),
    ),
    Mutant(
        "a-later-report-removes-what-was-consumed",
        "subscription/consumption",
        "self.lives.pop(life, None) or RangeSet()",
        "RangeSet()",
        Test("core/subscription/test_consumption.py::test_reports_of_parts_are_united"),
    ),
    Mutant(
        "a-new-life-waits-for-ever",
        "subscription/subscription",
        "(place, self.now + DRAIN_NS)",
        "(place, self.now + 1000 * DRAIN_NS)",
        Test(f"{_MACHINE}::test_a_new_life_waits_until_the_ended_one_is_settled_but_not_for_ever"),
    ),
    Mutant(
        "a-new-life-does-not-wait",
        "subscription/subscription",
        "        for transport in list(self.plans) if not self.finished else ():\n",
        "        for transport in list(self.plans):\n",
        Test(f"{_MACHINE}::test_a_new_life_waits_until_the_ended_one_is_settled_but_not_for_ever"),
    ),
    Mutant(
        "an-earlier-life-that-is-met-later-is-followed",
        "subscription/subscription",
        "if waits or any(outranks(followed.info, info) for followed in self.sessions.values()):",
        "if waits:",
        Test(f"{_MACHINE}::test_an_earlier_life_is_passed_over_until_the_later_one_ends"),
    ),
    Mutant(
        "a-life-that-was-passed-over-is-forgotten",
        "subscription/subscription",
        "        for other in self.passed_over.places().values():\n            self._plan(other)\n",
        "",
        Test(f"{_MACHINE}::test_an_earlier_life_is_passed_over_until_the_later_one_ends"),
    ),
    Mutant(
        "a-life-that-was-replaced-in-vain-is-forgotten",
        "subscription/subscription",
        "                self.passed_over.add(other.info, other.place)\n",
        "                pass\n",
        Test(f"{_MACHINE}::test_a_life_that_was_replaced_in_vain_is_followed_again"),
    ),
    Mutant(
        "sessions-that-are-never-consumed-are-kept",
        "subscription/subscription",
        "max(0, len(self.finished) - MAX_FINISHED)",
        "0",
        Test(f"{_MACHINE}::test_too_many_ended_sessions_are_given_up"),
    ),
    Mutant(
        "a-farewell-counts-although-the-source-announced-itself",
        "subscription/subscription",
        "        if life in self.farewells:\n            self._delay_farewell(life, transport)\n",
        "",
        Test(f"{_MACHINE}::test_a_source_that_said_farewell_is_left_when_it_is_silent"),
    ),
    Mutant(
        "a-stream-is-left-while-another-source-sends-there",
        "subscription/subscription",
        "if not expected and all(one is followed for one in self._on(transport)):",
        "if True:",
        Test(f"{_MACHINE}::test_a_stream_with_another_source_stays_joined"),
    ),
    Mutant(
        "what-stores-said-goes-on-beside-a-source",
        "subscription/subscription",
        "        if not begun.place.stored:\n",
        "        if begun.place.stored:\n",
        Test(f"{_MACHINE}::test_what_only_stores_know_is_followed_until_a_source_announces_itself"),
    ),
    Mutant(
        "a-place-that-was-given-by-hand-is-not-joined-again",
        "subscription/subscription",
        "            self.rejoins[place] = self.now + REJOIN_NS\n",
        "            pass\n",
        Test(f"{_MACHINE}::test_a_place_that_was_given_by_hand_is_joined_again"),
    ),
    Mutant(
        "a-topic-is-left-before-its-messages-are-consumed",
        "subscription/subscription",
        "if self.retiring and not (self.finished or self.joined or self.sessions):",
        "if self.retiring and not (self.joined or self.sessions):",
        Test(f"{_MACHINE}::test_a_topic_without_sources_retires_once_all_is_consumed"),
    ),
    Mutant(
        "what-was-consumed-after-the-end-is-forgotten",
        "subscription/subscription",
        "if isinstance(event, ev.Remember):",
        "if isinstance(event, ev.Remember) and not self.closed:",
        Test(f"{_MACHINE}::test_what_a_session_consumed_after_it_was_closed_is_remembered"),
    ),
    Mutant(
        "a-receiver-forgets-what-waits-when-a-life-returns",
        "subscription/subscription",
        "report.session for report in heirless if identity.same(report.life, event.life)",
        "()",
        Test(f"{_MACHINE}::test_a_session_succeeds_those_of_its_source_only"),
    ),
    Mutant(
        "a-new-session-learns-no-history",
        "subscription/subscription",
        "history = self.memory.consumption.history(related)",
        "history = self.memory.consumption.history(())",
        Test(f"{_MACHINE}::test_a_session_succeeds_those_of_its_source_only"),
    ),
    Mutant(
        "who-was-found-at-a-place-that-is-left-is-forgotten",
        "subscription/subscription",
        "            self.outbox.append(fx.LeaveStream(transport))\n            self._plan_other(transport)\n",
        "            self.outbox.append(fx.LeaveStream(transport))\n            self.others.pop(transport, None)\n",
        Test(f"{_MACHINE}::test_two_lives_that_change_places_are_both_joined"),
    ),
    Mutant(
        "what-a-session-confirms-as-it-closes-is-not-remembered",
        "adapters/client/subscriber",
        "session.close()  # It confirms its last messages, and the next session of the life repeats them.\n"
        "                self._feed_machine(ev.Remember(_report(session)))\n",
        "self._feed_machine(ev.Remember(_report(session)))\n                session.close()\n",
        Test("adapters/lab/whole/test_found.py::test_a_schedule_that_found_a_defect_is_clean[confirmed_as_it_closed]"),
    ),
)
