"""Join rows, tests and planted faults: which tests show a row, and which faults make one of them fail."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import attrs

from tools.mutants.mutant import Mutant, Test
from tools.mutants.table import MUTANTS
from tools.rows.chapter import ABSENT, Row, committed, stated
from tools.rows.marks import tests_by_row


@attrs.frozen
class Evidence:
    """A row with the node ids of its tests and the names of the faults that one of them finds."""

    row: Row
    tests: tuple[str, ...] = ()
    mutants: tuple[str, ...] = ()

    @property
    def needs_test(self) -> bool:
        """True if a user sees the row, in whatever way, no test shows it, and it is no advice."""
        return self.row.status != ABSENT and not self.tests and self.row.row_id not in stated()

    def json(self) -> dict[str, object]:
        """Return the row as `python -m tools.rows --json` prints it."""
        row = self.row
        return {
            "id": row.row_id,
            "text": row.text,
            "part": row.part,
            "group": row.group,
            "status": row.status,
            "reason": row.reason,
            "tests": list(self.tests),
            "mutants": list(self.mutants),
        }


def finds(test: str, mutant: Mutant) -> bool:
    """Return whether the killer of a fault is this test, a case of it, or the file that has it."""
    if not isinstance(mutant.killer, Test):
        return False
    return f"{test}::".startswith(f"tests/{mutant.killer.node.partition('[')[0]}::")


def join(table: Iterable[Row], tests: Mapping[str, Sequence[str]], mutants: Sequence[Mutant]) -> list[Evidence]:
    """Return the evidence of each row, in the order of the table."""
    return [
        Evidence(
            row,
            tuple(tests.get(row.row_id, ())),
            tuple(one.name for one in mutants if any(finds(test, one) for test in tests.get(row.row_id, ()))),
        )
        for row in table
    ]


@cache
def committed_evidence() -> list[Evidence]:
    return join(committed().values(), tests_by_row(), MUTANTS)


def mutants_of_groups(evidence: Iterable[Evidence]) -> dict[str, list[str]]:
    """Return the faults of each group: those that a test of one of its rows finds. An empty list is a gap."""
    found: dict[str, list[str]] = {}
    for one in evidence:
        if one.row.status != ABSENT:
            names = found.setdefault(one.row.group, [])
            names += [name for name in one.mutants if name not in names]
    return found


def mutants_of_rows() -> list[str]:
    """Return the names of the faults that a test of some row of the project finds, without repetition."""
    return list(dict.fromkeys(name for one in committed_evidence() for name in one.mutants))
