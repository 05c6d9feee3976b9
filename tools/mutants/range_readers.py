"""Faults in reading a range of a topic from its stores."""

from typing import Final

from tools.mutants.mutant import Mutant, Test

_READING = "core/receiver/test_range_progress.py"
_STABLE = "adapters/client/test_range_stability.py"

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
        "if (self.away or (grows and over <= at)) and now",
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
    Mutant(
        "the-stores-that-answer-are-all-stores-of-a-source",
        "adapters/client/range_contents",
        "sizes = (len(stores),) if newest is None else newest.group_sizes",
        "sizes = (len(self.answers),)",
        Test(f"{_STABLE}::test_the_size_of_a_group_is_the_configured_one"),
    ),
    Mutant(
        "an-explicit-quorum-is-lowered",
        "adapters/client/range_contents",
        "GroupRules((2 * quorum - 1,))",
        "GroupRules((1,))",
        Test(f"{_STABLE}::test_a_store_that_never_heard_of_a_source_does_not_have_its_messages"),
    ),
    Mutant(
        "a-task-trusts-the-only-store-that-answers",
        "adapters/client/range_reader",
        "return self._options.stable or self._options.bounds.stop is not None",
        "return self._options.stable",
        Test(f"{_STABLE}::test_a_range_that_is_known_to_be_stable_is_read_from_the_newest_history"),
    ),
    Mutant(
        "a-store-tells-no-groups",
        "adapters/store/contents",
        "group_sizes=client.group_sizes,",
        "group_sizes=(),",
        Test(f"{_STABLE}::test_the_stores_that_a_reader_was_not_told_count_as_well"),
    ),
    Mutant(
        "a-store-that-forgot-a-source-counts-with-its-earlier-answer",
        "adapters/client/range_reader",
        "            reading.forget(store)\n",
        "            pass\n",
        Test(f"{_STABLE}::test_a_store_that_forgot_a_source_no_longer_counts_with_its_earlier_answer"),
    ),
    Mutant(
        "an-old-answer-passes-for-a-new-one",
        "adapters/client/range_source",
        "if store in silent and known is not None:",
        "if False:",
        Test(f"{_STABLE}::test_an_earlier_answer_of_a_store_that_is_away_does_not_pass_for_a_new_one"),
    ),
    Mutant(
        "a-store-that-refuses-is-asked-once",
        "adapters/client/range_inquiry",
        "            await asyncio.sleep(REPEAT_SECONDS)",
        "            return",
        Test(f"{_STABLE}::test_a_reader_waits_for_stores_that_refuse_connections"),
    ),
    Mutant(
        "a-store-that-goes-away-again-counts-with-its-answer",
        "adapters/client/range_inquiry",
        "                answers.pop(store, None)\n",
        "",
        Test(f"{_STABLE}::test_a_store_that_goes_away_again_does_not_count_with_its_answer"),
    ),
    Mutant(
        "a-dead-tail-that-a-limit-let-go-counts",
        "adapters/client/range_contents",
        "StoredNumbers(held, min(answer.trail, stop))",
        "StoredNumbers(held, answer.trail)",
        Test(f"{_STABLE}::test_a_store_with_a_hole_does_not_have_what_is_in_it"),
    ),
    Mutant(
        "the-time-of-a-slow-number-counts-against-the-next",
        "receiver/range_progress",
        "        self.fruitless = 0\n",
        "",
        Test(f"{_READING}::test_time_that_one_number_took_does_not_count_against_the_next"),
    ),
    Mutant(
        "the-wire-number-of-a-life-is-its-first-number",
        "adapters/client/stored_sources",
        "first = max(began, serial.extend(serial.wire(began), stop + MAX_AHEAD - serial.HALF))",
        "first = began",
        Test(f"{_STABLE}::test_a_life_that_begins_behind_the_wrap_is_announced_empty"),
    ),
    Mutant(
        "a-life-that-is-half-the-numbers-long-begins-in-the-future",
        "adapters/client/stored_sources",
        "first = max(began, serial.extend(serial.wire(began), stop + MAX_AHEAD - serial.HALF))",
        "first = serial.extend(began, stop)",
        Test(f"{_STABLE}::test_a_life_is_announced_with_the_numbers_that_it_used"),
    ),
    Mutant(
        "a-receiver-without-a-source-trusts-the-stores-that-answer",
        "adapters/client/stored_sources",
        "    if not rule.met(rule.mask(knowing)):\n        return None\n",
        "",
        Test(f"{_STABLE}::test_a_receiver_without_a_source_needs_as_many_stores_as_the_source"),
    ),
)
