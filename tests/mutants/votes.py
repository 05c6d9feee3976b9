"""Faults in the votes of stores about older lives: a store without memory must not decide where a source begins."""

from typing import Final

from tests.mutants.mutant import Mutant, Test

_SOURCE = "core/source/test_votes.py"
_STORE = "core/store/test_memory.py"

VOTES: Final = (
    Mutant(
        "a-store-without-memory-votes",
        "registration/registration_set",
        "return self.informed & self.voters",
        "return self.informed",
        Test(f"{_SOURCE}::test_a_store_that_lost_its_disk_does_not_decide_where_a_life_begins"),
    ),
    Mutant(
        "an-empty-answer-counts-in-the-consensus",
        "source/endpoint",
        "voters = self.enrollment.voters",
        "voters = self.enrollment.mask",
        Test(f"{_SOURCE}::test_an_empty_answer_does_not_lower_the_consensus"),
    ),
    Mutant(
        "an-empty-store-never-votes",
        "protocol/quorum",
        "(here == listed & members or not here & ~new)",
        "False",
        Test(f"{_SOURCE}::test_when_every_store_has_answered_nobody_knows_better"),
    ),
    Mutant(
        "new-stores-wait-for-each-other",
        "protocol/quorum",
        "(here == listed & members or not here & ~new)",
        "here == listed & members",
        Test(f"{_SOURCE}::test_new_stores_vote_where_all_that_answer_are_new"),
    ),
    Mutant(
        "one-new-store-opens-the-vote",
        "protocol/quorum",
        "not here & ~new",
        "here & new",
        Test(f"{_SOURCE}::test_a_lost_store_among_new_ones_has_no_vote_before_all_have_answered"),
    ),
    Mutant(
        "the-other-group-votes-for-an-empty-store",
        "protocol/quorum",
        "here == listed & members",
        "here",
        Test(f"{_SOURCE}::test_the_other_group_decides_nothing_for_the_group_of_an_empty_store"),
    ),
    Mutant(
        "known-numbers-are-used-again",
        "protocol/resume_point",
        "return high if answer.known is None else max(high, serial.extend(answer.known, high))",
        "return high",
        Test(f"{_SOURCE}::test_a_number_that_a_store_only_knows_is_not_used_again"),
    ),
    Mutant(
        "a-returning-life-trusts-an-old-grant",
        "registration/registration_set",
        "registration.granted = attrs.evolve(registration.granted, memory=StoreMemory.LOST)",
        "pass",
        Test(f"{_SOURCE}::test_stale_grants_of_new_stores_do_not_bring_a_life_back"),
    ),
    Mutant(
        "an-empty-store-is-asked-once",
        "source/endpoint",
        "        self.enrollment.recount(now, self.outbox)\n",
        "",
        Test(f"{_SOURCE}::test_a_life_that_lost_its_quorum_asks_the_empty_store_again"),
    ),
    Mutant(
        "the-wait-is-not-explained",
        "source/ballot",
        "if (mask, voters) == self.reported:",
        "if True:",
        Test(f"{_SOURCE}::test_a_store_that_lost_its_disk_does_not_decide_where_a_life_begins"),
    ),
    Mutant(
        "the-wait-is-reported-at-every-tick",
        "source/ballot",
        "if (mask, voters) == self.reported:",
        "if False:",
        Test(f"{_SOURCE}::test_the_report_is_repeated_only_when_something_changed"),
    ),
    Mutant(
        "a-lost-disk-is-not-mentioned",
        "store/grants",
        "memory=client.memory,",
        "memory=StoreMemory.KEPT,",
        Test(f"{_STORE}::test_a_grant_names_what_the_store_knows"),
    ),
    Mutant(
        "a-restart-is-a-memory",
        "store/registry",
        "        self.memory = memory\n        out.append(PersistMemory(self.tickets.draw(), memory))",
        "        self.memory = memory",
        Test(f"{_STORE}::test_a_store_without_memory_writes_that_down"),
    ),
    Mutant(
        "an-announcement-gives-no-vote-back",
        "store/registry",
        "if record.client.memory is not StoreMemory.KEPT or (",
        "if (",
        Test(f"{_STORE}::test_the_announcement_of_the_current_life_gives_the_vote_back"),
    ),
    Mutant(
        "announced-numbers-are-not-remembered",
        "store/registry",
        "memory=StoreMemory.KEPT, known=high)",
        "memory=StoreMemory.KEPT)",
        Test(f"{_STORE}::test_the_announcement_of_the_current_life_gives_the_vote_back"),
    ),
    Mutant(
        "a-later-life-leaves-the-known-number",
        "store/registry",
        " or (cut is not None and record.client.known >= 0)",
        "",
        Test(f"{_STORE}::test_a_later_life_replaces_the_known_number"),
    ),
    Mutant(
        "one-announcement-makes-a-witness",
        "store/registry",
        "if info.founding and self.memory is StoreMemory.NEW:",
        "if self.memory is StoreMemory.NEW:",
        Test(f"{_STORE}::test_a_life_that_found_an_older_store_makes_no_witness"),
    ),
    Mutant(
        "a-lost-disk-becomes-a-witness",
        "store/registry",
        "if info.founding and self.memory is StoreMemory.NEW:",
        "if info.founding:",
        Test(f"{_STORE}::test_a_life_that_found_only_new_stores_makes_them_witnesses"),
    ),
    Mutant(
        "a-damaged-journal-votes",
        "store/endpoint",
        "marked = client if memory and not unnamed else self.registry.mark(client, StoreMemory.LOST)",
        "marked = client",
        Test(f"{_STORE}::test_a_damaged_journal_has_no_vote_until_the_source_announces_itself"),
    ),
    Mutant(
        "a-damaged-message-frees-its-number",
        "store/endpoint",
        "if repository.newest < newest:",
        "if False:",
        Test(f"{_STORE}::test_a_message_that_turns_out_damaged_still_counts_as_used"),
    ),
)
