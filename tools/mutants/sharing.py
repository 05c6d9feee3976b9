"""Faults in the members of a group that share a topic."""

from typing import Final

from tools.mutants.mutant import Graph, Mutant, Test

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
    Mutant(
        "a-share-takes-the-other-shares-for-its-past",
        "adapters/client/receiver",
        "filter(self.owns, self._delivery.owners())",
        "list(self._delivery.owners())",
        Test("adapters/client/test_group_worlds.py::test_a_member_with_a_message_in_hand_gets_a_share"),
    ),
    Mutant(
        "a-share-confirms-messages-of-other-shares",
        "receiver/arrival",
        "        if event.unseen:\n",
        "        if event.unseen and False:\n",
        Test("core/receiver/test_endpoint.py::test_messages_of_other_shares_are_acknowledged_and_not_confirmed"),
    ),
    Mutant(
        "a-share-confirms-what-an-earlier-session-passed-over",
        "receiver/arrival",
        "            if self.config.divides:\n",
        "            if self.config.divides and False:\n",
        Test("core/receiver/test_endpoint.py::test_a_share_confirms_nothing_of_an_earlier_session"),
    ),
    Mutant(
        "messages-of-other-shares-keep-a-session-that-ended",
        "adapters/client/session",
        "        self._unseen = (first, last)\n"
        "        if self.ended and not self.waiting:\n            self._receiver.on_consumed(self)\n",
        "        self._unseen = (first, last)\n",
        Test("adapters/client/test_going_on.py::test_messages_of_other_shares_keep_no_session_that_ended"),
    ),
    Mutant(
        "a-topic-that-returns-has-no-past",
        "adapters/client/wildcard",
        "            memory=self._memories.of(config) if calls.start_at or not returns(config) else None,\n",
        "            memory=Memories().of(config),\n",
        Test("adapters/client/test_wildcard.py::test_a_topic_that_returns_goes_on_where_the_application_is"),
    ),
)
