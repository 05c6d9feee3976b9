"""Which life of a source may be stored, from which number on, and what of older lives has to go.

* A life that registers is current at once, but nothing of it is accepted before its SRI says where it resumes.
* Then everything an older life left there or above is cut back: those numbers are used again. If the source's history
  says that lives were missed here, the cut is where the histories part (formal design, 7.3, 7.4). A life that comes
  back after another one that never sent finds its own messages, which are not cut.
* As documented, without the repair, a number alone says what is held and nothing is cut back.
"""

import attrs

from stablecast.core.effects import Client
from stablecast.core.history import continued, divergence, unfold
from stablecast.core.lives import MAX_LIVES
from stablecast.core.messages import Incarnation, Life, SourceInfo
from stablecast.core.repairs import Repair


@attrs.define
class Lifeline:
    """The current life, its first number once that is known, and the history as the life of `term` told it."""

    repairs: Repair
    incarnation: Incarnation
    resume_point: int | None = None
    lives: list[Life] = attrs.field(factory=list)
    term: int = 0

    @classmethod
    def recover(cls, repairs: Repair, client: Client) -> "Lifeline":
        """As it is known from the source's record. One that others followed here begins anew: theirs may be held."""
        incarnation, first = client.lives[-1] if client.lives else (None, None)
        resumed = first if incarnation == client.incarnation else None
        return cls(repairs, client.incarnation, resumed, list(client.lives), client.lives_term)

    def begin(self, incarnation: Incarnation) -> bool:
        """The source registered; returns whether it is another life than before."""
        if incarnation == self.incarnation:
            return False
        self.incarnation, self.resume_point = incarnation, None
        return True

    def affirm(self, term: int) -> None:
        """The current life goes on under a newer term: what it told here is as new as that (formal design, 7.6)."""
        if self.lives and self.lives[-1][0] == self.incarnation:
            self.term = max(self.term, term)

    def is_current(self, incarnation: Incarnation) -> bool:
        """Whether a message of this life may count as one of the current life."""
        return incarnation == self.incarnation or Repair.ONE_LIFE not in self.repairs

    def resume(self, number: int, info: SourceInfo, newest: int) -> int:
        """The current life resumes at `number`; returns from where on what is held has to go."""
        theirs = unfold(info.lives, number) or continued(self.lives, self.incarnation, number)
        parting = divergence(self.lives, theirs)
        cut = number if parting is None else min(parting, number)
        returned = parting is None and self.lives[-1:] == [(self.incarnation, number)]
        if returned or Repair.ONE_LIFE not in self.repairs:
            cut = newest + 1
        self.resume_point = number
        affirmed = self.term if returned else 0
        self.lives, self.term = theirs[-MAX_LIVES:], max(info.term, affirmed)
        return cut
