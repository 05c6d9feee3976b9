"""The place of this life among the source's lives: its resume point, its history, and its successors.

The first completion of registration fixes the *resume point*, one above the consensus of the stores' newest numbers
(T5, P-415). It also fixes the history that stores receive and its *term*: the highest count of lives that the stores
had (`history`).

**A second round** (formal design, 7.6). A life that lost its quorum may come back through a store that it never reached
and that counts more lives than it knew. One of these may have a higher term and may have announced its resume point. So
this life goes on under a newer term, which a quorum knows first, as at its beginning (`RegistrationSet.agree`). From
then on an acknowledgement counts only if its store has proved that it knows this life under that term. A later life
that finds such a store and a store that knows the other life then takes this history for the newer one.
"""

from collections.abc import Sequence

import attrs

from stablecast.core.protocol.history import continued, newest_history
from stablecast.core.protocol.messages import Incarnation, Life, Registered
from stablecast.core.protocol.quorum import Consensus, Quorums
from stablecast.core.protocol.resume_point import resume_point


@attrs.define
class Lineage:
    """The lives of the source as it announces them, this one last.

    `proof`: the term that a store must prove before its acknowledgements count; 0: knowing this life is enough.
    `founding`: no store that answered had a memory, so nobody knew of an earlier life (formal design, 7.11).
    """

    resume_point: int = 0
    term: int = 0
    proof: int = 0
    founding: bool = False
    lives: list[Life] = attrs.field(factory=list)

    def begin(
        self, answers: Sequence[Registered], incarnation: Incarnation, consensus: Consensus, quorums: Quorums
    ) -> None:
        """Fix the resume point, the history and the term from the grants of enough stores."""
        self.resume_point = resume_point(answers, consensus, quorums)
        history, self.term = newest_history(answers, self.resume_point)
        self.lives = continued(history, incarnation, self.resume_point)

    def succeeded(self, answer: Registered, before: Registered | None, asked: int) -> bool:
        """Return whether another life came after this one, by a store's grant now and its grant `before`.

        A store that knows a later life proves it. So does a store that counts more lives than it did, and more than
        were `asked` for. A store that grants for the first time may have counted more all along.
        """
        counted = before is not None and answer.term > max(self.term, asked, before.term)
        return counted or answer.lives_term > self.term

    def renew(self, term: int) -> None:
        """Go on under a newer term."""
        self.term = self.proof = term

    def proven(self, granted: Registered | None) -> bool:
        """Return whether a store's acknowledgements count, by its newest grant."""
        return not self.proof or (granted is not None and granted.lives_term == self.proof)
