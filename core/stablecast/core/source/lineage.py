"""Where this life of a source stands among its lives: its resume point, its history, and whether another came after.

The first completion of registration fixes the *resume point*, one above the consensus of the stores' newest numbers
(T5, P-415), and with it the history that stores are told and its *term*: the highest count of lives that the stores
kept by then (`history`).

**A second round** (formal design, 7.6). A life that lost its quorum may come back through a store that it never reached
and that counts more lives than it knew of. Another may be among them, with a higher term, that told somebody where it
begins. So this one goes on under a newer term, which a quorum knows first, as when it began (`Enrollment.agree`), and
then only what a store says counts that has shown that it was told of this life under that term. Whoever begins later
and hears such a store, and one that was told of the other, finds this history the newer one.
"""

from collections.abc import Sequence

import attrs

from stablecast.core.protocol.history import continued, newest_history
from stablecast.core.protocol.messages import Incarnation, Life, Registered
from stablecast.core.protocol.quorum import Consensus, Quorums
from stablecast.core.protocol.resume_point import resume_point


@attrs.define
class Lineage:
    """The lives of the source as it tells them, this one last.

    `proof`: the term that a store must show before its acknowledgements count; 0: any store that was told of this life.
    """

    resume_point: int = 0
    term: int = 0
    proof: int = 0
    lives: list[Life] = attrs.field(factory=list)

    def begin(
        self, answers: Sequence[Registered], incarnation: Incarnation, consensus: Consensus, quorums: Quorums
    ) -> None:
        """These stores are enough to begin with."""
        self.resume_point = resume_point(answers, consensus, quorums)
        history, self.term = newest_history(answers, self.resume_point)
        self.lives = continued(history, incarnation, self.resume_point)

    def succeeded(self, answer: Registered, before: Registered | None, asked: int) -> bool:
        """Whether another life came after this one, by what a store grants now and what it granted `before`.

        One that was told of a later life has had it. So has one that counts more lives than it did, and more than the
        `asked`; one that is heard for the first time may have counted more all along.
        """
        counted = before is not None and answer.term > max(self.term, asked, before.term)
        return counted or answer.lives_term > self.term

    def renew(self, term: int) -> None:
        """The life goes on under a newer term."""
        self.term = self.proof = term

    def proven(self, granted: Registered | None) -> bool:
        """Whether what a store acknowledges was told under the term of this life, by what it granted last."""
        return not self.proof or (granted is not None and granted.lives_term == self.proof)
