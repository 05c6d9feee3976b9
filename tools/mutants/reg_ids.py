"""Faults in a store: which client holds a RegID, and how its lives are counted."""

from typing import Final

from tools.mutants.mutant import Mutant, Test, Worlds

REG_IDS: Final = (
    Mutant(
        "a-held-reg-id-is-granted-again",
        "store/clients",
        "held = record.lifetime.active and not _follows(client, request)",
        "held = False",
        Worlds("R1"),
    ),
    Mutant(
        "two-lives-of-one-context-take-turns",
        "store/clients",
        " and not replaced",
        "",
        Test("core/store/test_registry.py::test_two_lives_of_one_context_do_not_take_the_reg_id_from_each_other"),
    ),
    Mutant(
        "a-late-request-takes-the-reg-id",
        "store/registry",
        "        if self._is_late(request):\n",
        "        if False:\n",
        Test("core/store/test_reg_ids.py::test_a_late_request_of_a_life_that_ended_takes_nothing_from_its_successor"),
    ),
    Mutant(
        "only-a-life-that-announced-itself-is-late",
        "store/clients",
        "        record.ended = _ended(record, request)\n",
        "",
        Test("core/store/test_reg_ids.py::test_a_late_request_of_a_life_that_never_sent_takes_nothing"),
    ),
    Mutant(
        "a-source-that-outlived-a-late-request-counts-as-ended",
        "store/clients",
        " and lives.isdisjoint(record.ended)",
        "",
        Test("core/store/test_reg_ids.py::test_a_source_takes_its_reg_id_back_from_a_late_request"),
    ),
    Mutant(
        "a-source-that-returns-after-a-proxy-counts-as-late",
        "store/registry",
        "return client.reply_to == request.reply_to and request.incarnation in known",
        "return request.incarnation in known",
        Test("core/store/test_reg_ids.py::test_a_source_that_returns_after_a_proxy_is_not_late"),
    ),
    Mutant(
        "a-life-that-was-followed-never-comes-back",
        "store/registry",
        "        if not holder.lifetime.active:\n            return False\n",
        "",
        Test("core/store/test_reg_ids.py::test_a_life_of_a_restored_machine_is_granted_once_its_successor_is_silent"),
    ),
    Mutant(
        "a-session-id-is-shared-by-all-topics",
        "store/clients",
        "{who.session_id}:{who.source_reg_id}:{who.topic}",
        "{who.session_id}:{who.source_reg_id}",
        Test("core/store/test_clients.py::test_a_session_id_stands_for_topic_and_role"),
    ),
    Mutant(
        "a-reg-id-of-33-bits",
        "store/clients",
        "        self.next_reg_id = chosen % LAST_REG_ID + 1\n",
        "        self.next_reg_id = chosen + 1\n",
        Test("core/test_gaps.py::test_the_last_reg_id_is_followed_by_the_first"),
    ),
    Mutant(
        "lives-are-not-counted",
        "store/clients",
        "lives = record.client.term + (record.client.incarnation != request.incarnation)",
        "lives = record.client.term",
        Test("core/store/test_clients.py::test_a_client_that_returns_may_move_but_keeps_its_timeouts"),
    ),
    Mutant(
        "a-higher-count-of-lives-is-not-adopted",
        "store/clients",
        "term=min(max(lives, request.term), LAST_TERM)",
        "term=min(lives, LAST_TERM)",
        Test("adapters/lab/model/worlds/test_stability.py::test_a_store_that_counts_fewer_lives_is_asked_again"),
    ),
    Mutant(
        "a-count-of-lives-overflows",
        "store/clients",
        "term=min(max(lives, request.term), LAST_TERM)",
        "term=max(lives, request.term)",
        Test("core/store/test_clients.py::test_a_store_counts_lives_and_believes_a_higher_count"),
    ),
)
