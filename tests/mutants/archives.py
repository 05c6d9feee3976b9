"""Faults in archives of topics, and in the acknowledgements of consumers that read elsewhere."""

from typing import Final

from tests.mutants.mutant import Mutant, Test

_ARCHIVE = "adapters/archive/test_archive.py"
_WHOLE = Test(f"{_ARCHIVE}::test_a_query_begins_in_the_archive_and_continues_in_the_stores")
_CONSUMER = Test("adapters/spark/test_consumption_acks.py::test_a_paced_store_keeps_what_the_query_has_not_processed")

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
)
