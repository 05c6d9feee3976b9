"""Faults in reading a range of a topic from its stores."""

from typing import Final

from tests.mutants.mutant import Mutant, Test

_READING = "core/receiver/test_range_progress.py"

RANGE_READERS: Final = (
    Mutant(
        "the-stable-end-of-a-range-needs-one-store-only",
        "receiver/range_progress",
        "if quorums.stable(had, active):",
        "if had:",
        Test(f"{_READING}::test_a_number_is_stable_at_a_quorum_of_the_configured_stores"),
    ),
    Mutant(
        "a-reader-passes-a-number-that-too-few-stores-have",
        "receiver/range_progress",
        "elif doubt is None and (holding or open_to):",
        "elif doubt is None and open_to:",
        Test(f"{_READING}::test_numbers_are_judged_one_by_one"),
    ),
    Mutant(
        "a-number-that-a-limit-let-go-was-never-there",
        "receiver/range_progress",
        "had = holding | sum(1 << one for trail, one in trails if trail > at)",
        "had = holding",
        Test(f"{_READING}::test_a_number_is_stable_at_a_quorum_of_the_configured_stores"),
    ),
    Mutant(
        "a-reader-that-follows-names-what-was-just-sent-as-missing",
        "receiver/range_progress",
        "if (self.away or (self.grows and trail <= at)) and now",
        "if self.away and now",
        Test(f"{_READING}::test_a_reader_that_follows_waits_for_numbers_that_were_sent_just_now"),
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
