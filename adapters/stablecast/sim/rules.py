"""The invariants that the simulator watches, by the ids that traces, models and issues use, and how one is reported."""

from typing import Final

import attrs

RULES: Final = {
    "S1": "StableByQuorum",
    "S2": "NoReuse",
    "S3": "NoStableLost",
    "P1": "SyncedFirst",
    "C1": "RetainedUntilSettled",
    "R1": "OneHolder",
    "D1": "InOrder",
    "A1": "NothingUnread",
    "L1": "Progress",
    "X1": "NoDefect",
}
"""Each invariant's name.

S1: reported stable only when a quorum of disks has it synced. S2: a stable number is never used by another life. S3: no
stable message is cut, lost or given up while the disks of its quorum survive. P1: a store acknowledges and grants only
what its disk has synced. C1: a source keeps its copy until the message is stable, unless the limit forces it out. R1:
one live process per RegID and store. D1: delivery is in order, of the right life, without gap, repetition or loss that
is not reported, also across a receiver's restart. A1: a receiver acknowledges only what was consumed. L1: when all
faults are over, everything sent becomes stable and is delivered everywhere. X1: no machine and no driver raises.
"""


@attrs.frozen
class Violation:
    """What broke which rule; `at` in ns since the world began."""

    rule: str
    at: int
    text: str

    @property
    def name(self) -> str:
        """Id and name of the rule."""
        return f"{self.rule} {RULES[self.rule]}"
