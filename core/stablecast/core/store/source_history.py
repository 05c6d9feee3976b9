"""Which life of a source may be stored, from which number on, and what of older lives has to go.

* A life that registers is current at once, but nothing of it is accepted before its SRI says where it resumes.
* Then everything an older life left there or above is cut back: those numbers are used again. If the source's history
  says that lives were missed here, the cut is where the histories part (formal design, 7.3, 7.4).
* A life may come back to a store after another life was there. Its messages below the parting of the two are its own
  and may be stable, so the cut is at the parting, not at the resume point.
* As documented, without the repair, a number alone says what is held and nothing is cut back.
"""

import attrs

from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.history import FORGOTTEN, HISTORY_LIVES, continued, divergence, owner, remembered, unfold
from stablecast.core.protocol.messages import Incarnation, Life, SourceInfo
from stablecast.core.protocol.repairs import Repair


@attrs.define
class Lifeline:
    """The current life, its first number once that is known, and the history as the life of `term` told it.

    `history_lives`: so many entries of a history are kept.
    """

    repairs: Repair
    incarnation: Incarnation
    resume_point: int | None = None
    lives: list[Life] = attrs.field(factory=list)
    term: int = 0
    history_lives: int = HISTORY_LIVES

    @classmethod
    def recover(cls, repairs: Repair, client: Client, history_lives: int = HISTORY_LIVES) -> "Lifeline":
        """As it is known from the source's record. One that others followed here begins anew: theirs may be held."""
        incarnation, first = client.lives[-1] if client.lives else (None, None)
        resumed = first if incarnation == client.incarnation else None
        return cls(repairs, client.incarnation, resumed, list(client.lives), client.lives_term, history_lives)

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

    def resume(self, number: int, info: SourceInfo, newest: int) -> tuple[int, bool]:
        """Take the SRI with which the current life resumes at `number`.

        Return from where on the store cuts, and whether that is because the lives it missed are forgotten.

        A life that this store was told of before left messages here, and they may be stable: only what other lives
        wrote since goes, from the parting on. All that is held at the numbers of a life that is new here goes.
        """
        theirs = unfold(info.lives, number) or continued(self.lives, self.incarnation, number)
        ours = self.lives
        parting = divergence(ours, theirs)
        known = (self.incarnation, number) in ours
        cut = newest + 1 if parting is None else parting
        if not known:
            # Messages of lives that no history names must not stay under a life that is new here.
            cut = min(cut, number)
        if Repair.ONE_LIFE not in self.repairs:
            cut = newest + 1
        self.resume_point = number
        affirmed = self.term if known and parting is None else 0
        self.lives, self.term = remembered(theirs, self.history_lives), max(info.term, affirmed)
        forgotten = parting is not None and FORGOTTEN in (owner(ours, parting), owner(theirs, parting))
        return (cut, forgotten)
