"""Faults on Spark: in the identity of rows, offsets and commits."""

from typing import Final

from tools.mutants.mutant import Mutant, Test

_RULES = "adapters/spark/test_row_identity.py"
_SINK = "adapters/spark/test_message_sink.py"
_TOPICS = "adapters/spark/test_topics.py"
_DIVISION = Test(f"{_RULES}::test_each_row_is_written_once_in_any_division")
_AGAIN = Test(f"{_SINK}::test_a_batch_that_is_repeated_in_another_division_has_each_row_once")
_DIFFERS = Test(f"{_SINK}::test_rows_that_differ_from_those_before_are_refused")

SPARK: Final = (
    Mutant(
        "rows-of-other-attempts-are-sent-again",
        "adapters/spark/row_identity",
        "        if self.others[digest]:\n",
        "        if False:\n",
        _DIVISION,
    ),
    Mutant(
        "equal-rows-of-one-partition-count-once",
        "adapters/spark/row_identity",
        "            self.withheld[digest] += 1\n",
        "            self.withheld[digest] = 1\n",
        _DIVISION,
    ),
    Mutant(
        "a-task-of-an-earlier-attempt-keeps-its-lane",
        "adapters/spark/row_identity",
        "lane != own and lane in seen and seen[lane].life == life",
        "lane != own and lane in seen and seen[lane].life != life",
        _DIVISION,
    ),
    Mutant(
        "the-driver-leaves-equal-rows-missing",
        "adapters/spark/row_identity",
        "    missing = left - others\n",
        "    missing = left - left\n",
        Test(f"{_RULES}::test_the_driver_sends_equal_rows_that_are_missing_and_refuses_what_is_too_much"),
    ),
    Mutant(
        "rows-too-many-are-not-told",
        "adapters/spark/row_identity",
        "    surplus = (others - left).total()\n",
        "    surplus = 0\n",
        _DIFFERS,
    ),
    Mutant(
        "an-identity-forgets-the-properties",
        "adapters/spark/row_identity",
        "    if properties:\n",
        "    if False:\n",
        Test(f"{_RULES}::test_identities_differ_where_rows_do"),
    ),
    Mutant(
        "an-attempt-at-the-same-time-is-not-seen",
        "adapters/spark/row_identity",
        "number < self.stop or life == self.life",
        "number < self.stop or life >= self.life",
        Test(f"{_RULES}::test_an_attempt_that_writes_now_is_refused"),
    ),
    Mutant(
        "a-batch-before-a-later-one-is-written",
        "adapters/spark/message_sink",
        "one.batch > self._place.batch), default=None",
        "one.batch > self._place.batch + 9), default=None",
        _DIFFERS,
    ),
    Mutant(
        "a-task-does-not-look-at-other-lanes",
        "adapters/spark/message_sink",
        "newest[own].epoch == self._place.epoch and newest[own].batch < self._place.batch",
        "newest[own].batch <= self._place.batch",
        _AGAIN,
    ),
    Mutant(
        "the-driver-compares-nothing",
        "adapters/spark/message_sink",
        "    if any(one.looked for one in done):\n",
        "    if False:\n",
        Test(f"{_SINK}::test_equal_rows_of_several_partitions_count"),
    ),
    Mutant(
        "a-retried-task-sends-its-rows-again",
        "adapters/spark/message_sink",
        "choice.add(mark, own=here and peer, before=known)",
        "choice.add(mark, own=False, before=known)",
        Test(f"{_SINK}::test_a_task_that_is_repeated_in_its_attempt_goes_on"),
    ),
    Mutant(
        "pieces-begin-where-the-source-begins",
        "adapters/spark/message_ranges",
        "        first = number_of(start, source) or 0\n",
        "        first = 0\n",
        Test("adapters/spark/test_message_source.py::test_offsets_become_pieces_and_limits_are_shared"),
    ),
    Mutant(
        "offsets-of-several-topics-are-mixed-up",
        "adapters/spark/message_ranges",
        'return f"{source.topic}/{name_of(source)}" if terms.several else name_of(source)',
        "return name_of(source)",
        Test(f"{_TOPICS}::test_several_topics_are_one_table"),
    ),
    Mutant(
        "a-bound-of-one-source-is-for-all",
        "adapters/spark/message_ranges",
        "            if terms.starts.get(one.name) == bound:\n",
        "            if True:\n",
        Test(f"{_TOPICS}::test_sources_begin_and_end_where_each_is_told"),
    ),
    Mutant(
        "a-limit-of-bytes-hides-one-of-rows",
        "adapters/spark/message_source",
        "            most, size = self.terms.max_rows, self.terms.max_bytes\n",
        "            pass\n",
        Test(f"{_TOPICS}::test_a_batch_is_within_both_limits_and_the_newest_offset_is_told"),
    ),
)
