"""Print the rows of `spec/rows.md`, the tests that show them, and the faults that those tests find.

python -m tools.rows            rows without a test, marks of unknown rows, groups without a fault; status 1 if any
python -m tools.rows --all      every row with its status and tests
python -m tools.rows --groups   every group with its rows and faults
python -m tools.rows --json     every row as JSON
"""

import json
import sys
from collections.abc import Iterator, Sequence

from tools.rows.chapter import NOT_HERE, committed, explained, groups
from tools.rows.evidence import Evidence, committed_evidence, mutants_of_groups
from tools.rows.marks import tests_by_row


def gaps(evidence: Sequence[Evidence]) -> Iterator[str]:
    """Yield rows that nothing shows, marks of unknown rows, absences without reason, and groups without a fault."""
    known = {one.row.row_id: one.row for one in evidence}
    yield from (f"{one.row.row_id}  no test shows it: {one.row.text}" for one in evidence if one.needs_test)
    for row_id, tests in sorted(tests_by_row().items()):
        if row_id not in known:
            yield f"{row_id}  is marked and not in the table: {' '.join(tests)}"
        elif known[row_id].status == "not-here":
            yield f"{row_id}  is not here, and yet marked: {' '.join(tests)}"
    absent = {row.row_id for row in known.values() if row.status == "not-here"}
    told = explained(NOT_HERE.read_text(encoding="utf-8"))
    yield from (f"{row_id}  is not here, and spec/not_here.md does not say so" for row_id in sorted(absent - told))
    yield from (f"{row_id}  stands in spec/not_here.md and is here" for row_id in sorted(told - absent))
    yield from (f"group {name}: no planted fault" for name, found in mutants_of_groups(evidence).items() if not found)


def lines(evidence: Sequence[Evidence]) -> Iterator[str]:
    """Yield every row with its status and the tests that show it."""
    for one in evidence:
        yield f"{one.row.row_id}  {one.row.status:11}  {' '.join(one.tests) or '-'}"


def group_lines(evidence: Sequence[Evidence]) -> Iterator[str]:
    """Yield every group with its rows and its faults."""
    faults = mutants_of_groups(evidence)
    for name, members in groups(committed().values()).items():
        yield f"{name}: {' '.join(members)}"
        yield f"    {' '.join(faults[name]) or '-'}"


def main(arguments: Sequence[str]) -> int:
    """Print what is asked for and return the exit status."""
    evidence = committed_evidence()
    if "--json" in arguments:
        print(json.dumps([one.json() for one in evidence], indent=2, ensure_ascii=False))
        return 0
    if "--groups" in arguments:
        print(*group_lines(evidence), sep="\n")
        return 0
    missing = list(gaps(evidence))
    for line in lines(evidence) if "--all" in arguments else missing:
        print(line)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
