"""Faults in the members of a group that share a topic."""

from typing import Final

from tests.mutants.mutant import Graph, Mutant, Test

SHARING: Final = (
    Mutant(
        "all-shares-have-one-session-id",
        "sharing/division",
        'f"{group}\\0{shares}\\0{share}"',
        'f"{group}\\0{shares}"',
        Test("core/sharing/test_division.py::test_session_ids_differ"),
    ),
    Mutant(
        "a-member-gets-more-than-its-part",
        "sharing/division",
        "if counts[one] < least or (larger and counts[one] == least)",
        "if counts[one] <= least",
        Test("core/sharing/test_division.py::test_shares_are_even_and_members_agree"),
    ),
    Mutant(
        "a-share-is-released-before-it-is-drained",
        "sharing/share",
        'states.HELD.to(states.DRAINING, on="drain")\n    granted',
        'states.HELD.to(states.CLOSING, on="close")\n    granted',
        Graph("WorkSharing/graph_die"),
    ),
    Mutant(
        "a-share-is-released-before-it-is-recorded",
        "sharing/share",
        'drained = states.DRAINING.to(states.RECORDING, on="record")',
        'drained = states.DRAINING.to(states.CLOSING, on="close")',
        Graph("WorkSharing/graph_die"),
    ),
    Mutant(
        "a-contested-claim-is-made-again-at-once",
        "sharing/share",
        "        owner.put_off(self.number)\n",
        "        pass\n",
        Test("core/sharing/test_member.py::test_a_contested_claim_waits"),
    ),
    Mutant(
        "a-member-that-left-counts-on",
        "sharing/member",
        "                self.others.pop(event.member, None)\n",
        "                pass\n",
        Graph("WorkSharing/graph_die"),
    ),
    Mutant(
        "a-silent-member-counts-on",
        "sharing/member",
        "if now < heard + silent}",
        "if now < heard + 2 * silent}",
        Test("core/sharing/test_member.py::test_a_silent_member_counts_no_more"),
    ),
)
