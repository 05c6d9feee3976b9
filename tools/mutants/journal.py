"""Faults in the journal: deletion of segments, detection of damage, and syncs."""

from typing import Final

from tools.mutants.mutant import Mutant, Test

_DELETION = "adapters/store/journal/test_deletion.py"
_NAMES = "adapters/store/journal/test_names.py"
_RECOVERY = "adapters/store/journal/test_recovery.py"

JOURNAL: Final = (
    Mutant(
        "a-segment-is-deleted-one-record-before-the-sync",
        "adapters/store/journal/journal",
        "if due > self._pending.synced or segment.number >= self._pending.root:",
        "if due > self._pending.synced + 1 or segment.number >= self._pending.root:",
        Test(f"{_DELETION}::test_a_segment_stays_until_the_very_record_that_killed_it_is_synced"),
    ),
    Mutant(
        "a-segment-is-deleted-before-the-next-checkpoint-sync",
        "adapters/store/journal/journal",
        "if due > self._pending.synced or segment.number >= self._pending.root:",
        "if due > self._pending.synced or segment.number > self._pending.root:",
        Test(f"{_DELETION}::test_a_segment_stays_until_the_checkpoint_of_its_successor_is_synced"),
    ),
    Mutant(
        "a-checkpoint-does-not-clear-damage",
        "adapters/store/journal/recovery",
        "            found.damaged = found.damaged_here\n",
        "",
        Test(f"{_RECOVERY}::test_damage_before_the_newest_checkpoint_costs_no_states"),
    ),
    Mutant(
        "damage-after-the-checkpoint-is-ignored",
        "adapters/store/journal/recovery",
        "        found.damaged = found.damaged_here = True\n    path",
        "        pass\n    path",
        Test(f"{_RECOVERY}::test_damage_behind_the_newest_checkpoint_may_cost_states"),
    ),
    Mutant(
        "a-truncated-segment-is-not-synced",
        "adapters/store/journal/writer",
        "            machine.files.truncate(self._fd, self._end)\n            self._disk.sync(self._fd)\n",
        "            machine.files.truncate(self._fd, self._end)\n",
        Test(
            "adapters/store/journal/test_disk.py::test_room_that_is_given_back_is_synced_before_the_segment_is_closed"
        ),
    ),
    Mutant(
        "a-name-that-cannot-be-looked-up-is-lost",
        "adapters/store/journal/lock",
        "        if error.errno in GONE:\n            raise FilesLostError(path) from error\n        return\n",
        "        raise FilesLostError(path) from error\n",
        Test(f"{_NAMES}::test_a_name_that_cannot_be_looked_up_is_not_missed"),
    ),
    Mutant(
        "a-segment-of-another-directory-is-deleted",
        "adapters/store/journal/fetcher",
        "            self._lock.check()\n            # The segment goes first.",
        "            # The segment goes first.",
        Test(f"{_NAMES}::test_no_segment_is_deleted_in_another_directory"),
    ),
)
