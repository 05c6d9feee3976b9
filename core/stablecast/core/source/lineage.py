"""Where this life of a source stands among its lives: its resume point, its history, and whether another came after.

The first completion of registration fixes the *resume point*, one above the consensus of the stores' newest numbers
(T5, P-415), and with it the history that stores are told. `born` is the term of this life: the count of lives that the
stores kept by then (`history`); `term` the newest that it heard of.
"""

from collections.abc import Sequence

import attrs

from stablecast.core.history import continued, newest_history, overtaken
from stablecast.core.messages import Incarnation, Life, Registered
from stablecast.core.quorum import Consensus, Quorums
from stablecast.core.resume import resume_point


@attrs.define
class Lineage:
    """The lives of the source as it tells them, this one last."""

    resume_point: int = 0
    born: int = 0
    term: int = 0
    lives: list[Life] = attrs.field(factory=list)

    def begin(
        self, answers: Sequence[Registered], incarnation: Incarnation, consensus: Consensus, quorums: Quorums
    ) -> None:
        """These stores are enough to begin with."""
        self.resume_point = resume_point(answers, consensus, quorums)
        history, self.born = newest_history(answers, self.resume_point)
        self.term = self.born
        self.lives = continued(history, incarnation, self.resume_point)

    def succeeded(self, answer: Registered) -> bool:
        """Whether a store tells of a life that began after this one.

        One that is unknown here but began earlier sent nothing that counts: this life uses its numbers again.
        """
        return answer.lives_term > self.born and overtaken(self.lives, answer.lives)

    def on_term(self, term: int) -> None:
        """A store counts lives up to this one; none of those beyond ours got to send."""
        self.term = max(self.term, term)
