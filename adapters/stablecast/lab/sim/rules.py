"""The invariants that the simulator watches, by the ids that traces, models and issues use, and how one is reported."""

from typing import Final

import attrs

RULES: Final = {
    "S1": "StableByQuorum",
    "S2": "NoReuse",
    "S3": "NoStableLost",
    "P1": "SyncedFirst",
    "P2": "PacedRetention",
    "C1": "RetainedUntilSettled",
    "F1": "FlightKept",
    "R1": "OneHolder",
    "D1": "InOrder",
    "A1": "NothingUnread",
    "E1": "OneProxy",
    "L1": "Served",
    "X1": "NoDefect",
}
"""Each invariant's name.

S1: reported stable only when the disks of enough stores have it synced, by the rules of the groups. S2: a stable number
is never used by another life. S3: no stable message is cut, lost or given up while enough disks survive, but for what a
limit let go. P1: a store acknowledges and grants only what its disk has synced. P2: a paced store lets go of a message
only when every blocking receiver that is registered has consumed it. C1: a source keeps its copy until the message is
stable (and confirmed, if it asks for that), unless a limit forces it out. F1: a source that blocks never has more in
flight than its flight size. R1: one live process per RegID and store. D1: delivery is in order, or in arrival order
once, of the right life, without gap, repetition or loss that is not reported, also across a receiver's restart; in one
run of a program the application is handed each message once, and those of one life in order. A1: a
receiver acknowledges only what was consumed, and never less than before. E1: when all is quiet one proxy stands in for
a source that stays away, if there are proxies, and none for one that is there. L1: when all
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
