"""Where this life of a source stands among its lives: its resume point, its history, and whether another came after.

The first completion of registration fixes the *resume point*, one above the consensus of the stores' newest numbers
(T5, P-415), and with it the history that stores are told and its *term*: the highest count of lives that the stores
kept by then (`history`).
"""

from collections.abc import Sequence

import attrs

from stablecast.core.history import continued, newest_history
from stablecast.core.messages import Incarnation, Life, Registered
from stablecast.core.quorum import Consensus, Quorums
from stablecast.core.resume import resume_point


@attrs.define
class Lineage:
    """The lives of the source as it tells them, this one last."""

    resume_point: int = 0
    term: int = 0
    lives: list[Life] = attrs.field(factory=list)

    def begin(
        self, answers: Sequence[Registered], incarnation: Incarnation, consensus: Consensus, quorums: Quorums
    ) -> None:
        """These stores are enough to begin with."""
        self.resume_point = resume_point(answers, consensus, quorums)
        history, self.term = newest_history(answers, self.resume_point)
        self.lives = continued(history, incarnation, self.resume_point)

    def succeeded(self, answer: Registered, before: Registered | None) -> bool:
        """Whether another life came after this one, by what a store grants now and what it granted `before`.

        A store that counts more lives than it did has had another since, and who sends under the term of this life
        after that might be taken for the older one. A store that is heard for the first time may have counted more all
        along: what it was told decides.
        """
        if before is None:
            return answer.lives_term > self.term
        return answer.term > max(self.term, before.term)
