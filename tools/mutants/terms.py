"""Faults in the return of a source's life: after another life, or under a newer term after it lost its quorum."""

from typing import Final

from tools.mutants.mutant import Mutant, Test

TERMS: Final = (
    Mutant(
        "a-replaced-life-asks-for-ever",
        "source/endpoint",
        "if self.enrollment.replaced and",
        "if False and",
        Test("core/source/test_endpoint.py::test_a_life_whose_reg_id_others_hold_is_over_when_the_rest_is_too_few"),
    ),
    Mutant(
        "a-refused-proxy-ends",
        "source/endpoint",
        " and self.config.election is None:\n            fire(SOURCE, self, SourceStep.OVERTAKEN",
        ":\n            fire(SOURCE, self, SourceStep.OVERTAKEN",
        Test("core/source/test_endpoint.py::test_a_proxy_that_is_refused_asks_on"),
    ),
    Mutant(
        "a-refusal-ends-a-second-early",
        "protocol/refusals",
        "-(-answer.held_ms // _MS)",
        "answer.held_ms // _MS",
        Test("core/registration/test_store_registration.py::test_a_refusal_is_told_and_asked_again_later"),
    ),
    Mutant(
        "a-refusing-store-is-called-unresponsive",
        "registration/store_registration",
        "self.unanswered = 0 if answered else min(self.unanswered + 1, self._tries)",
        "self.unanswered = min(self.unanswered + 1, self._tries)",
        Test("core/registration/test_store_registration.py::test_a_store_that_refuses_is_not_called_unresponsive"),
    ),
    Mutant(
        "a-restart-resumes-an-overtaken-life",
        "store/source_history",
        "client.lives[-1] if client.lives else (None, None)",
        "next((life for life in client.lives if life[0] == client.incarnation), (None, None))",
        Test("core/store/test_source_history.py::test_a_restart_knows_the_lives"),
    ),
    Mutant(
        "a-returning-life-keeps-its-old-term",
        "source/endpoint",
        "if (returning or self.state is SourceState.REGISTERING) and agrees(self.config):",
        "if self.state is SourceState.REGISTERING and agrees(self.config):",
        Test("core/source/test_second_round.py::test_a_store_that_counts_more_lives_takes_a_second_round"),
    ),
    Mutant(
        "the-second-round-needs-no-proof-of-the-newer-term",
        "source/lineage",
        "return not self.proof or (granted is not None and granted.lives_term == self.proof)",
        "return True",
        Test("core/source/test_second_round.py::test_a_store_that_counts_more_lives_takes_a_second_round"),
    ),
    Mutant(
        "acknowledgements-of-the-older-term-are-kept",
        "source/endpoint",
        "            self.window.forget_acks()\n",
        "",
        Test("core/source/test_second_round.py::test_repeated_acknowledgements_count"),
    ),
    Mutant(
        "acknowledgements-between-two-terms-count",
        "source/endpoint",
        "if registration is not None and self._between_terms:",
        "if False:",
        Test("core/source/test_second_round.py::test_a_store_that_counts_more_lives_takes_a_second_round"),
    ),
    Mutant(
        "a-source-without-a-quorum-announces-itself",
        "source/endpoint",
        "        self.announcing.stop()\n        self.enrollment.recount(",
        "        self.enrollment.recount(",
        Test("core/source/test_second_round.py::test_a_suspended_source_announces_nothing"),
    ),
    Mutant(
        "one-group-of-several-lets-a-life-return",
        "source/endpoint",
        "every = self._between_terms and wants_every_group(self.config, enrollment.quorums)",
        "every = False",
        Test("models/test_returning_process.py::test_a_process_does_not_return_through_one_group_of_several"),
    ),
    Mutant(
        "a-restarted-store-goes-on-for-a-life-that-was-followed",
        "store/source_history",
        "0 < client.lives_term < client.term",
        "False",
        Test(
            "models/test_returning_process.py"
            "::test_a_restarted_store_does_not_count_late_data_for_a_life_that_was_followed"
        ),
    ),
)
