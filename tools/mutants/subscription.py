"""Faults in what a receiver of a topic decides: which lives it follows, and what their sessions inherit."""

from typing import Final

from tools.mutants.mutant import Mutant, Test

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
)
