"""Faults at boundaries that no world draws: exactly one, exactly the limit, a wrap, an order that a power cut shows."""

from typing import Final

from tools.mutants.mutant import Mutant, Test

_STORE = "core/store/test_boundaries.py"
_RECEIVER = "core/receiver/test_boundaries.py"
_HOT = "core/receiver/test_hot_failover.py"
_POWER = Test("adapters/store/journal/test_power_cuts.py::test_what_was_reported_survives_every_power_cut[thread]")


def _window(name: str, before: str, after: str, test: str) -> Mutant:
    return Mutant(name, "store/message_window", before, after, Test(f"{_STORE}::{test}"))


def _repository(name: str, before: str, after: str, test: str) -> Mutant:
    return Mutant(name, "store/repository", before, after, Test(f"{_STORE}::{test}"))


def _refill(name: str, before: str, after: str, test: str) -> Mutant:
    return Mutant(name, "store/refill", before, after, Test(f"{_STORE}::{test}"))


def _receiver(name: str, module: str, before: str, after: str, test: str) -> Mutant:
    return Mutant(name, f"receiver/{module}", before, after, Test(f"{_RECEIVER}::{test}"))


def _hot(name: str, before: str, after: str, test: str) -> Mutant:
    return Mutant(name, "receiver/hot_failover", before, after, Test(f"{_HOT}::{test}"))


def _journal(name: str, module: str, before: str, after: str) -> Mutant:
    return Mutant(name, f"adapters/store/journal/{module}", before, after, _POWER)


_WINDOWS: Final = (
    _window(
        "a-late-write-hides-what-is-on-disk",
        "max(complete, self.delayed[0].first - 1)",
        "self.delayed[0].first - 1",
        "test_what_was_given_to_the_disk_is_not_less_than_what_is_on_it",
    ),
    _window(
        "a-paced-disk-without-a-limit-is-full",
        "terms.written and 0 < terms.disk_limit <",
        "terms.written and 0 <= terms.disk_limit <",
        "test_a_paced_repository_without_a_limit_of_its_disk_takes_everything",
    ),
    _window(
        "a-reserve-empties-the-memory",
        "room = max(0, terms.size_limit - reserve)",
        "room = 0",
        "test_the_lower_of_threshold_and_reserve_bounds_the_memory",
    ),
    _window(
        "a-threshold-hides-the-reserve",
        "most = room if most is None else min(most, room)",
        "most = room if most is None else most",
        "test_the_lower_of_threshold_and_reserve_bounds_the_memory",
    ),
    _window(
        "a-reserve-hides-the-threshold",
        "most = room if most is None else min(most, room)",
        "most = room",
        "test_the_lower_of_threshold_and_reserve_bounds_the_memory",
    ),
    _window(
        "an-unwritten-message-keeps-too-wide-a-span",
        "return max(number, min(stop, reached))",
        "return min(stop, reached)",
        "test_a_span_that_is_too_wide_is_cut_although_its_end_is_not_on_disk",
    ),
    _window(
        "an-age-hides-a-delayed-write",
        "due = old if due is None else min(due, old)",
        "due = old",
        "test_the_earlier_of_a_write_and_an_age_is_due",
    ),
    _window(
        "a-delayed-write-hides-an-age",
        "due = old if due is None else min(due, old)",
        "due = old if due is None else due",
        "test_the_earlier_of_a_write_and_an_age_is_due",
    ),
    _window(
        "an-empty-write-follows-a-cut",
        "if wait.stop > first and wait.first < end",
        "if wait.stop > first and wait.first <= end",
        "test_a_delayed_write_that_nothing_is_left_of_is_cancelled",
    ),
    _window(
        "an-empty-part-is-kept",
        "        if count <= 0:\n",
        "        if count < 0:\n",
        "test_the_oldest_parts_that_fit_are_whole_numbers_of_the_run",
    ),
    _window(
        "a-part-ends-outside-of-its-run",
        "found.append((low, min(high, low + count)))",
        "found.append((low, low + count))",
        "test_the_oldest_parts_that_fit_are_whole_numbers_of_the_run",
    ),
    Mutant(
        "one-number-more-than-can-be-told-apart",
        "store/retention_terms",
        "MAX_NUMBERS = (1 << 31) - 1\n",
        "MAX_NUMBERS = 1 << 31\n",
        Test(f"{_STORE}::test_the_widest_span_can_be_told_apart"),
    ),
    Mutant(
        "a-cut-leaves-an-empty-extent",
        "store/extents",
        "            if run.first < number:\n                kept",
        "            if run.first <= number:\n                kept",
        Test(f"{_STORE}::test_extents_end_where_they_are_cut_and_begin_where_they_are_forgotten"),
    ),
    Mutant(
        "a-release-leaves-an-empty-extent",
        "store/extents",
        "            if run.stop > number:\n",
        "            if run.stop >= number:\n",
        Test(f"{_STORE}::test_extents_end_where_they_are_cut_and_begin_where_they_are_forgotten"),
    ),
)

_REPOSITORIES: Final = (
    _repository(
        "a-dead-tail-of-one-message-stays",
        "            if self.newest >= cut:\n",
        "            if self.newest > cut:\n",
        "test_a_dead_tail_of_one_message_is_cut",
    ),
    _repository(
        "a-gap-is-a-burst-one-number-early",
        "        if first - end > filling.burst:\n",
        "        if first - end >= filling.burst:\n",
        "test_a_gap_is_a_burst_from_one_number_more_on",
    ),
    _repository(
        "a-gap-counts-the-newest-number",
        "self._keep(data, first, stop, lead + 1, tickets, now, out)",
        "self._keep(data, first, stop, lead, tickets, now, out)",
        "test_a_gap_is_a_burst_from_one_number_more_on",
    ),
    _repository(
        "a-reported-loss-is-a-burst-one-number-early",
        "if lost.burst or lost.count > self.filling.burst:",
        "if lost.burst or lost.count >= self.filling.burst:",
        "test_a_gap_is_a_burst_from_one_number_more_on",
    ),
    _repository(
        "a-burst-reaches-below-the-trail",
        "self._lose_burst(max(first, self._bottom), stop, now, out)",
        "self._lose_burst(first, stop, now, out)",
        "test_what_lies_below_the_trail_is_in_no_burst",
    ),
    _repository(
        "an-old-life-is-synced-up-to-the-new-one",
        "min(stop, self.resume_point))\n        self._ask_again",
        "self.resume_point)\n        self._ask_again",
        "test_an_old_life_is_synced_as_far_as_its_ticket_says_and_not_up_to_the_new_one",
    ),
    _repository(
        "an-old-ticket-syncs-the-new-life",
        "start, stop if self.resume_point is None else min(stop, self.resume_point))",
        "start, stop)",
        "test_an_old_life_is_synced_as_far_as_its_ticket_says_and_not_up_to_the_new_one",
    ),
    _repository(
        "a-run-that-comes-twice-is-acknowledged-in-spite-of-the-pace",
        "start, stop = max(start, resumed), min(stop, acked)",
        "start = max(start, resumed)",
        "test_a_withheld_acknowledgement_is_withheld_for_a_run_that_comes_twice",
    ),
    _repository(
        "damage-makes-older-holes-lacking",
        "self.held.missing(max(low, bottom), min(high, end))",
        "self.held.missing(bottom, min(high, end))",
        "test_damage_makes_nothing_else_lacking",
    ),
    _repository(
        "a-refill-keeps-numbers-that-are-not-in-the-run",
        "refill.lacks(max(first, bottom), stop)",
        "refill.lacks(bottom, stop)",
        "test_only_the_numbers_of_a_run_are_kept_of_it",
    ),
    _repository(
        "a-refill-raises-the-trail",
        "window.trail = min(window.trail, parts[0][0])",
        "window.trail = parts[0][0]",
        "test_only_the_numbers_of_a_run_are_kept_of_it",
    ),
    _repository(
        "what-a-limit-released-is-lacking-for-ever",
        "        if self.refill:\n            self.refill.forget(self.window.released, number)\n",
        "",
        "test_what_a_limit_released_is_lacking_no_more",
    ),
    _repository(
        "a-store-that-hears-late-of-a-source-forgets-its-messages",
        "self.life.near(info, self.newest)",
        "self.newest",
        "test_a_store_that_hears_late_of_a_source_keeps_its_messages_over_a_restart",
    ),
    Mutant(
        "the-history-before-the-wrap-is-negative",
        "store/source_history",
        "return info.low if oldest >= 0 else info.low + serial.MODULUS",
        "return info.low",
        Test(f"{_STORE}::test_a_store_that_hears_late_of_a_source_keeps_its_messages_over_a_restart"),
    ),
    _window(
        "a-paced-store-takes-half-of-all-numbers-for-older-ones",
        "lowest = number - MAX_NUMBERS // 2 if self.terms.paced else number",
        "lowest = self.trail if self.terms.paced else number",
        "test_a_store_that_hears_late_of_a_source_keeps_its_messages_over_a_restart",
    ),
    Mutant(
        "a-message-that-was-read-is-reported-unread",
        "store/registry",
        "if record.client.acknowledged + 1 < trail and",
        "if record.client.acknowledged < trail and",
        Test(f"{_STORE}::test_one_unread_message_that_is_released_is_reported"),
    ),
    Mutant(
        "nothing-unread-is-reported-unread",
        "store/registry",
        "if record.client.acknowledged + 1 < trail and",
        "if record.client.acknowledged + 1 <= trail and",
        Test(f"{_STORE}::test_one_unread_message_that_is_released_is_reported"),
    ),
    _refill(
        "two-causes-are-not-in-order",
        "return parts if len(parts) < 2 else sorted(parts)",
        "return parts if len(parts) <= 2 else sorted(parts)",
        "test_what_is_lacking_for_two_reasons_is_one_number_each",
    ),
    _refill(
        "a-round-begins-a-nanosecond-late",
        "if self.again_at is not None and now >= self.again_at:",
        "if self.again_at is not None and now > self.again_at:",
        "test_a_round_begins_at_its_time_and_not_a_nanosecond_later",
    ),
    _refill(
        "the-second-round-begins-at-twice-its-time",
        "AGAIN_NS * 2 ** (self.rounds - 1)",
        "AGAIN_NS * 2**self.rounds",
        "test_a_round_begins_at_its_time_and_not_a_nanosecond_later",
    ),
    _refill(
        "a-report-names-one-number-too-many",
        "ranges.ranges[0][0], ranges.ranges[-1][1] - 1",
        "ranges.ranges[0][0], ranges.ranges[-1][1]",
        "test_a_round_begins_at_its_time_and_not_a_nanosecond_later",
    ),
)

_RECEIVERS: Final = (
    _receiver(
        "a-late-store-misses-one-acknowledged-message",
        "consumption_acks",
        "        behind = window.acked >= window.start\n",
        "        behind = window.acked > window.start\n",
        "test_a_store_that_grants_late_hears_of_the_first_message_that_was_acknowledged",
    ),
    _receiver(
        "a-confirmation-of-one-message-is-not-repeated",
        "delivery_window",
        "if self.next is not None and self.acked >= self.start:",
        "if self.next is not None and self.acked > self.start:",
        "test_a_confirmation_of_one_message_is_repeated",
    ),
    _receiver(
        "one-number-that-is-used-again-is-not-reported",
        "arrival",
        "if received is not None and received >= self.resume_point:",
        "if received is not None and received > self.resume_point:",
        "test_a_life_that_uses_one_number_again_steps_back",
    ),
    _receiver(
        "a-burst-takes-the-newest-announced-number",
        "arrival",
        "self._burst(high + 1, first, out)",
        "self._burst(high, first, out)",
        "test_a_burst_begins_above_the_newest_number_that_was_announced",
    ),
    _receiver(
        "history-ends-one-number-early",
        "delivery_window",
        "self.origin = low if self.high is None else max(low, self.high + 1)",
        "self.origin = low if self.high is None else max(low, self.high)",
        "test_history_ends_with_the_newest_number_that_was_sent_before_the_start",
    ),
    _receiver(
        "one-run-less-is-held-before-the-start",
        "delivery_window",
        "return stop - base <= self.proximity",
        "return stop - base < self.proximity",
        "test_runs_are_held_as_far_as_the_proximity_reaches",
    ),
    _receiver(
        "what-was-acknowledged-is-consumed-again",
        "delivery_window",
        "start if start > self.acked else self.acked + 1, stop",
        "start if start >= self.acked else self.acked + 1, stop",
        "test_a_message_that_is_consumed_twice_or_passed_over_below_an_acknowledgement_counts_nothing",
    ),
    _receiver(
        "an-acknowledged-number-is-passed-over",
        "delivery_window",
        "self.skipped.add(max(start, self.acked + 1), stop)",
        "self.skipped.add(max(start, self.acked), stop)",
        "test_a_message_that_is_consumed_twice_or_passed_over_below_an_acknowledgement_counts_nothing",
    ),
    _receiver(
        "an-own-acknowledgement-covers-an-old-number",
        "delivery_window",
        "self.claimed.add(self.acked + 1, min(number + 1, self.next))\n            return",
        "self.claimed.add(self.acked, min(number + 1, self.next))\n            return",
        "test_an_own_acknowledgement_covers_exactly_up_to_its_number",
    ),
    _hot(
        "there-is-no-room-below-the-first-hot-number",
        "return serial.MODULUS + wire if",
        "return wire if",
        "test_a_source_that_is_behind_brings_each_number_once_wherever_the_wrap_is",
    ),
    _hot(
        "a-late-hot-number-is-the-newest",
        "self.newest = number if self.newest is None else max(self.newest, number)",
        "self.newest = number",
        "test_a_late_number_lowers_neither_the_newest_nor_what_its_source_has_passed",
    ),
    _hot(
        "the-first-hot-number-stays-the-newest",
        "self.newest = number if self.newest is None else max(self.newest, number)",
        "self.newest = number if self.newest is None else self.newest",
        "test_a_late_number_lowers_neither_the_newest_nor_what_its_source_has_passed",
    ),
    _hot(
        "one-gap-less-is-remembered",
        "if len(self.taken) > MAX_GAPS:",
        "if len(self.taken) >= MAX_GAPS:",
        "test_gaps_are_bounded",
    ),
    _hot(
        "forgotten-hot-numbers-are-missed",
        "self.floor = max(self.floor, self.taken.ranges[0][0])",
        "pass",
        "test_gaps_are_bounded",
    ),
    _hot(
        "missed-hot-numbers-are-reported-again",
        "self.floor = max(self.floor, self.taken.ranges[0][0])",
        "self.floor = self.taken.ranges[0][0]",
        "test_what_was_reported_missed_is_not_again_when_gaps_are_forgotten",
    ),
    _hot(
        "a-hot-number-that-was-put-back-leaves-no-gap",
        "            self.passed[source] = min(known, number)\n        self._review()\n",
        "            self.passed[source] = min(known, number)\n",
        "test_a_number_that_was_put_back_leaves_a_gap_until_it_comes_again",
    ),
)

_JOURNALS: Final = (
    _journal(
        "a-summary-is-written-before-its-records-are-synced",
        "journal",
        "while self._ended and self._ended[0][1] <= self._pending.synced:",
        "while self._ended:",
    ),
)

BOUNDARIES: Final = (*_WINDOWS, *_REPOSITORIES, *_RECEIVERS, *_JOURNALS)
