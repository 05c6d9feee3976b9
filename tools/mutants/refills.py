"""Faults in refill: what a store lacks, whom it asks, what it keeps of the answers, and its budget."""

from typing import Final

from tools.mutants.mutant import Mutant, Test

_TESTS = "core/store/test_refill.py"


def _mutant(name: str, module: str, before: str, after: str, test: str) -> Mutant:
    return Mutant(name, f"store/{module}", before, after, Test(f"{_TESTS}::{test}"))


REFILLS: Final = (
    _mutant(
        "a-live-message-that-comes-late-stays-lacking",
        "repository",
        "            if self.refill is not None and self.refill.lacking:  # Live messages may come late, too.\n",
        "            if data.recovered and self.refill is not None and self.refill.lacking:\n",
        "test_a_live_message_that_comes_late_is_not_lacking_any_more",
    ),
    _mutant(
        "a-refill-takes-numbers-of-any-life",
        "refill",
        "        return [part for part in pairwise(bounds) if owner(history, part[0]) in own]\n",
        "        return [*pairwise(bounds)]\n",
        "test_a_message_of_a_life_that_does_not_own_its_number_is_refused",
    ),
    _mutant(
        "a-refill-asks-the-store-itself",
        "refill",
        "tuple(one for one in stores if one.index != own[0] and one.address != own[1])",
        "tuple(stores)",
        "test_a_store_asks_its_peers_for_the_lives_that_it_missed",
    ),
    _mutant(
        "what-came-back-counts-before-it-is-synced",
        "refill",
        "            self.unsynced.update(self.lacks(first, stop))\n",
        "            pass\n",
        "test_what_comes_back_is_kept_and_reported_once_it_is_synced",
    ),
    _mutant(
        "a-refill-asks-for-the-oldest-numbers-first",
        "refill",
        "            first, stop = self.waiting.ranges[-1]\n            first = max(first, stop - room)\n",
        "            first, stop = self.waiting.ranges[0]\n            stop = min(stop, first + room)\n",
        "test_the_newest_slice_is_asked_for_first",
    ),
    _mutant(
        "a-refill-without-success-never-ends",
        "refill",
        "            self.again_at = _NEVER\n",
        "            self.again_at, self.rounds = now + AGAIN_NS, 0\n",
        "test_each_peer_is_asked_twice_and_then_the_round_ends",
    ),
    _mutant(
        "a-store-that-came-is-not-asked",
        "refill",
        "            self.rounds = 0\n            self._begin_round()\n",
        "            self.rounds = 0\n",
        "test_each_peer_is_asked_twice_and_then_the_round_ends",
    ),
    _mutant(
        "a-lacking-number-is-not-asked-for",
        "refill",
        "                self.waiting.add(low, high)\n                new += high - low\n",
        "                new += high - low\n",
        "test_a_damaged_record_is_asked_for_at_once",
    ),
    _mutant(
        "a-refill-has-no-budget",
        "refill_service",
        "            room = min(room, self.credit // SECOND)\n",
        "            pass\n",
        "test_the_budget_limits_what_is_asked_for",
    ),
    _mutant(
        "a-large-message-costs-the-budget-no-more",
        "refill_service",
        "            self.byte_credit -= payload_bytes * SECOND\n",
        "            self.byte_credit -= messages * SECOND\n",
        "test_a_large_message_costs_more_of_the_budget",
    ),
    _mutant(
        "a-limited-memory-is-no-limit-of-a-refill",
        "refill_service",
        "        if not terms.size_limit:\n            return MAX_SLICE_MESSAGES\n        return max",
        "        return MAX_SLICE_MESSAGES\n        return max",
        "test_a_limited_memory_limits_what_is_asked_for",
    ),
    _mutant(
        "a-run-that-fits-in-part-is-dropped",
        "message_window",
        "            parts = _oldest(parts, sum(high - low for low, high in parts) // 2)\n",
        "            parts = []\n",
        "test_the_part_of_a_run_that_fits_is_kept",
    ),
    _mutant(
        "a-live-message-that-a-refill-displaced-is-given-up",
        "refill",
        "        self.yields_until = now + YIELD_NS\n        return True\n",
        "        return False\n",
        "test_a_live_message_that_a_refill_displaced_comes_again",
    ),
    _mutant(
        "a-refill-takes-the-room-again",
        "refill",
        "        self.yields_until = now + YIELD_NS\n",
        "",
        "test_a_refill_yields_to_the_live_message_that_it_displaced",
    ),
    _mutant(
        "a-store-denies-what-it-may-get-back",
        "retransmission",
        "repository.refill.awaited(first, stop)",
        "stop",
        "test_what_a_store_may_get_back_is_not_denied",
    ),
    _mutant(
        "stores-are-served-before-receivers",
        "retransmission",
        "        while (queue := self.queue or self.refills)",
        "        while (queue := self.refills or self.queue)",
        "test_receivers_are_served_before_stores",
    ),
)
