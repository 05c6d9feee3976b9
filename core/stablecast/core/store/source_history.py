"""The history of a source at a store: the life that may be stored, its first number, and the cut of older lives.

* A life that registers is current at once, but nothing of it is accepted before its SRI announces where it resumes.
* Then everything that an older life left from there on is cut, because those numbers are used again. If the source's
  history names lives that this store missed, the cut is where the histories part (formal design, 7.3, 7.4).
* A life may return to a store after another life was there. Its messages below the parting of the two are its own and
  may be stable, so the cut is at the parting, not at the resume point.
* As documented, without the repair, a number alone identifies a message and nothing is cut.
"""

import attrs

from stablecast.core.machine import serial
from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.history import FORGOTTEN, HISTORY_LIVES, continued, divergence, owner, remembered, unfold
from stablecast.core.protocol.messages import Incarnation, Life, SourceInfo
from stablecast.core.protocol.repairs import Repair


@attrs.define
class SourceHistory:
    """The current life, its first number once known, and the history as the life of `term` announced it.

    `history_lives`: entries of a history that are kept.
    """

    repairs: Repair
    incarnation: Incarnation
    resume_point: int | None = None
    lives: list[Life] = attrs.field(factory=list)
    term: int = 0
    history_lives: int = HISTORY_LIVES

    @classmethod
    def recover(cls, repairs: Repair, client: Client, history_lives: int = HISTORY_LIVES) -> "SourceHistory":
        """Return the history from the source's record. A life that others may have followed here begins anew."""
        incarnation, first = client.lives[-1] if client.lives else (None, None)
        # A store that granted a later term than it was told of may have voted for a life that never announced itself
        # here. Late data of the older life must not count any more, so the store waits for an announcement.
        promised = Repair.ONE_LIFE in repairs and 0 < client.lives_term < client.term
        resumed = first if incarnation == client.incarnation and not promised else None
        return cls(repairs, client.incarnation, resumed, list(client.lives), client.lives_term, history_lives)

    def begin(self, incarnation: Incarnation) -> bool:
        """Begin a life at its registration; return whether it is another one than before."""
        if incarnation == self.incarnation:
            return False
        self.incarnation, self.resume_point = incarnation, None
        return True

    def affirm(self, term: int) -> None:
        """Raise the term of a current life that goes on: what it announced here is that new (formal design, 7.6)."""
        if self.lives and self.lives[-1][0] == self.incarnation:
            self.term = max(self.term, term)

    def near(self, info: SourceInfo, newest: int) -> int:
        """Return a number near those of an SRI: the newest here, if anything is known of the source.

        Else no number of its history may become negative. Below 0 nothing was ever acknowledged or kept, so a store
        that restarts would take negative numbers for released ones.
        """
        if self.lives or newest >= 0:
            return newest
        oldest = min((first for _, first in unfold(info.lives, info.low)), default=info.low)
        return info.low if oldest >= 0 else info.low + serial.MODULUS

    def is_current(self, incarnation: Incarnation) -> bool:
        """Return whether a message of this life counts as one of the current life."""
        return incarnation == self.incarnation or Repair.ONE_LIFE not in self.repairs

    def is_behind(self, info: SourceInfo) -> bool:
        """Return whether an SRI is older than that of another life which announced itself here (formal design, 7.3)."""
        known = bool(self.lives) and self.lives[-1][0] == self.incarnation
        return Repair.ONE_LIFE in self.repairs and not known and info.term < self.term

    def last_of(self, incarnation: Incarnation, number: int) -> int | None:
        """Return the last number up to `number` that an earlier life has by this history; None: it names no such life.

        While the current life waits, the life before may still be cut. Then what it acknowledged is cut back, too.
        """
        if incarnation == FORGOTTEN or Repair.ONE_LIFE not in self.repairs:
            return None
        stops = [*(first for _, first in self.lives[1:]), number + 1]
        ends = [stop for (life, _), stop in zip(self.lives, stops, strict=False) if life == incarnation]
        return min(number, ends[-1] - 1) if ends else None

    def resume(self, number: int, info: SourceInfo, newest: int) -> tuple[int, bool]:
        """Process the SRI with which the current life resumes at `number`.

        Return from where on the store cuts, and whether that is because the lives it missed are forgotten. All messages
        at the numbers of a life that is new here go. A life that announced itself here before left messages that may be
        stable, so only what other lives wrote since goes, from the parting on.
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
        # A life that announced itself here under a newer term keeps that term when its SRI is older.
        affirmed = self.term if known and parting is None else 0
        self.lives, self.term = remembered(theirs, self.history_lives), max(info.term, affirmed)
        forgotten = parting is not None and FORGOTTEN in (owner(ours, parting), owner(theirs, parting))
        return (cut, forgotten)
