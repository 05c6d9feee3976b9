"""Faults in archives of topics, and in the acknowledgements of consumers that read elsewhere."""

from typing import Final

from tools.mutants.mutant import Mutant, Test

_ARCHIVE = "adapters/archive/test_archive.py"
_WHOLE = Test(f"{_ARCHIVE}::test_a_query_begins_in_the_archive_and_continues_in_the_stores")
_CONSUMER = Test("adapters/spark/test_consumption_acks.py::test_a_paced_store_keeps_what_the_query_has_not_processed")

_STORED = "adapters/client/test_stored_sources.py"
_START = "adapters/client/test_range_start.py"

ARCHIVES: Final = (
    Mutant(
        "two-runs-write-one-archive",
        "adapters/archive/archiver",
        "        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "",
        Test(f"{_ARCHIVE}::test_a_second_run_of_an_archive_is_refused"),
    ),
    Mutant(
        "an-archive-keeps-the-files-of-a-killed-run",
        "adapters/archive/archiver",
        "            path.unlink()\n",
        "            pass\n",
        _WHOLE,
    ),
    Mutant(
        "an-archive-begins-again",
        "adapters/archive/archiver",
        "            since=known.stop,\n",
        "            since=known.first,\n",
        _WHOLE,
    ),
    Mutant(
        "what-is-archived-is-not-acknowledged",
        "adapters/archive/archiver",
        "            self.consumer.acknowledge(name, known.stop)\n",
        "            pass\n",
        _WHOLE,
    ),
    Mutant(
        "an-archive-forgets-its-holes",
        "adapters/archive/archiver",
        "        known.missing += [",
        "        _ = [",
        Test(f"{_ARCHIVE}::test_what_a_limit_let_go_is_a_hole_of_the_archive"),
    ),
    Mutant(
        "numbers-of-several-days-are-not-sorted",
        "adapters/archive/archived_rows",
        'table.sort_by("number").select',
        "table.select",
        Test(f"{_ARCHIVE}::test_numbers_ascend_over_files_of_several_days"),
    ),
    Mutant(
        "a-consumer-acknowledges-the-number-after-the-last",
        "adapters/client/stored_consumer",
        "serial.wire(source.stop - 1)",
        "serial.wire(source.stop)",
        _CONSUMER,
    ),
    Mutant(
        "a-session-begins-on-what-is-not-readable",
        "adapters/client/stored_sources",
        "return answer.readable and answer.incarnation",
        "return answer.incarnation",
        Test(f"{_STORED}::test_the_answer_of_a_store_is_about_one_life"),
    ),
    Mutant(
        "a-waiting-life-has-the-numbers-before-it",
        "adapters/store/contents",
        "named = kept.incarnation if readable or not kept.lives else kept.lives[-1][0]",
        "named = kept.incarnation",
        Test(f"{_STORED}::test_the_answer_of_a_store_is_about_one_life"),
    ),
    Mutant(
        "one-store-tells-where-a-time-begins",
        "adapters/client/range_bounds",
        "enough = sum(map(bool, found)) > sum(info.group_sizes) // 2",
        "enough = any(found)",
        Test(f"{_START}::test_whose_numbers_of_a_time_count[too-few]"),
    ),
    Mutant(
        "a-memory-has-nothing-since-any-time",
        "adapters/store/contents",
        "if not kept.terms.written:",
        "if not kept.terms:",
        Test(f"{_START}::test_a_time_before_all_messages_is_the_earliest_one"),
    ),
)
