"""Faults in reading a range of a topic from its stores."""

from typing import Final

from tests.mutants.mutant import Mutant, Test

_READING = "core/receiver/test_range_progress.py"

RANGE_READERS: Final = (
    Mutant(
        "the-stable-end-of-a-range-needs-one-store-only",
        "receiver/range_progress",
        "return highest[quorum - 1] if",
        "return highest[0] if",
        Test(f"{_READING}::test_the_stable_end_needs_a_quorum"),
    ),
    Mutant(
        "a-range-takes-what-was-not-requested",
        "receiver/range_progress",
        "wanted = [part for low, high in new for part in self._requested(low, high)]",
        "wanted = new",
        Test(f"{_READING}::test_messages_that_were_not_requested_are_dropped"),
    ),
    Mutant(
        "a-hole-is-named-before-the-stores-are-asked-again",
        "receiver/range_progress",
        "        if any(self._unsure(store) for store in reachable):\n            return None\n",
        "",
        Test(f"{_READING}::test_each_number_is_settled_once_and_holes_are_exact"),
    ),
    Mutant(
        "a-store-that-sends-nothing-is-asked-for-ever",
        "receiver/range_progress",
        "self.failed.setdefault(request.store, RangeSet()).add(request.start, request.stop)",
        "pass",
        Test(f"{_READING}::test_a_request_without_progress_goes_to_another_store"),
    ),
)
