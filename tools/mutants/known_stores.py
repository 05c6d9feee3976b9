"""Faults in what outlives a run beside the journals: which stores there were, and the small files that say so."""

from typing import Final

from tools.mutants.mutant import Mutant, Test

KNOWN_STORES: Final = (
    Mutant(
        "each-run-has-new-stores",
        "adapters/cli/cluster",
        " and one.known_as not in known else []",
        " else []",
        Test("adapters/cli/test_config_files.py::test_up_runs_the_daemons_that_a_file_names[address]"),
    ),
    Mutant(
        "a-damaged-list-has-no-stores",
        "adapters/cli/known_stores",
        "        names = None\n",
        "        names = []\n",
        Test("adapters/cli/test_config_files.py::test_up_refuses_a_damaged_list_of_the_stores_that_it_had"),
    ),
    Mutant(
        "a-small-file-is-renamed-before-its-sync",
        "adapters/runtime/durable_files",
        "        machine.files.sync(file.fileno())\n",
        "",
        Test("adapters/runtime/test_durable_files.py"),
    ),
    Mutant(
        "a-renamed-file-may-have-its-old-name",
        "adapters/runtime/durable_files",
        "    machine.files.sync_directory(path.parent)\n",
        "",
        Test("adapters/runtime/test_durable_files.py::test_what_was_written_survives_a_loss_of_power"),
    ),
    Mutant(
        "the-tenth-trace-comes-before-the-second",
        "adapters/evidence/trace/file_names",
        "return (stem, int(number), part)",
        "return (first, 0, part)",
        Test("adapters/evidence/trace/test_file_names.py"),
    ),
)
