"""R1 and P2: the holders of RegIDs at stores, and the progress of paced receivers.

A grant to another process takes a RegID over, which is right if the one before is gone. A frozen process may send
something more when it wakes up. A process that continues for seconds is alive, and then there are two holders.

C1: messages that a source does not keep any more should be stable.

A release looks early if acknowledgements are not in the capture, or not in it yet. So it is judged twice: a second
later, when frames captured in another order have arrived, and at the end, when missing packets are known.
"""

from typing import Final

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.messages import Address, Incarnation, Pace, Registered, Role
from stablecast.evidence.capture.judge.findings import CaptureFindings, RuleStanding
from stablecast.evidence.capture.judge.lives import RETENTION_BYTES, CapturedLife
from stablecast.evidence.capture.statements import At

ALIVE_NS: Final = 2 * SECOND
"""A process that uses a RegID for this time after another one got it is alive."""


@attrs.define
class Holder:
    """A process that was granted a RegID; `deposed`: time of the next grant, `woke`: its first use after that.

    `consumed` is None until it acknowledges something.
    """

    role: Role
    reply_to: Address
    life: Incarnation
    paced: bool
    timeout_ns: int
    heard_ns: int
    deposed: int | None = None
    woke: int | None = None
    consumed: int | None = None


@attrs.define
class RegIdHolders:
    """The holders by store and RegID, the newest last."""

    findings: CaptureFindings
    grants: dict[tuple[Address, int], list[Holder]] = attrs.field(factory=dict)

    def grant(self, at: At, store: Address, reply_to: Address, granted: Registered, low: int) -> None:
        """Note a grant of a store, and judge R1 and P2."""
        holders = self.grants.setdefault((store, granted.reg_id), [])
        paced, timeout = granted.pace is Pace.RECEIVERS, granted.activity_timeout_ms * MILLISECOND
        new = Holder(granted.role, reply_to, granted.incarnation, paced, timeout, at.time_ns)
        if holders and holders[-1].reply_to == reply_to and holders[-1].role is granted.role:
            new.consumed = holders.pop().consumed
        # A port that is used again belongs to another process, because the one before has ended.
        holders[:] = [one for one in holders if one.reply_to != reply_to]
        for other in holders:
            other.deposed = at.time_ns if other.deposed is None else other.deposed
        holders.append(new)
        self.findings.fine("R1", store)
        if granted.role is Role.RECEIVER and paced and not granted.old:  # one that returns starts where it was
            self._keeps(at, store, low)

    def forget(self, store: Address, reg_id: int) -> None:
        self.grants.pop((store, reg_id), None)

    def use(self, at: At, store: Address, reg_id: int, reply_to: Address | None, consumed: int | None = None) -> None:
        """Note a use of a RegID by the process that answers at `reply_to`, None if it is unknown."""
        for holder in self.grants.get((store, reg_id), ()):
            if holder.reply_to == reply_to:
                holder.heard_ns = at.time_ns
                if consumed is not None:
                    holder.consumed = max(consumed, holder.consumed or 0)
                if holder.deposed is not None:
                    self._doubt(at, store, reg_id, holder)

    def _doubt(self, at: At, store: Address, reg_id: int, holder: Holder) -> None:
        holder.woke = at.time_ns if holder.woke is None else holder.woke
        said = f"RegID {reg_id} was given to another, and {holder.reply_to} goes on using it"
        if at.time_ns - holder.woke >= ALIVE_NS:
            self.findings.broken("R1", store, at.frame, f"{said}: two live processes hold it")
        elif at.time_ns == holder.woke:
            self.findings.cannot_tell("R1", store, at.frame, f"{said}: it may have been frozen, and end now")

    def _keeps(self, at: At, store: Address, low: int) -> None:
        """Judge P2: a paced store offers messages from `low` on."""
        for (where, reg_id), holders in self.grants.items():
            holder = holders[-1]
            if where != store or not holder.paced or holder.role is not Role.RECEIVER or holder.consumed is None:
                continue
            gone = at.time_ns - holder.heard_ns > holder.timeout_ns
            if holder.consumed >= low - 1 or gone:
                self.findings.fine("P2", store)
            else:
                text = f"offers from number {low} on, and RegID {reg_id} has consumed up to {holder.consumed} only"
                self.findings.broken("P2", store, at.frame, text)


MAX_WAITING = 1 << 12
"""Releases that wait for the end; later ones are not judged."""


@attrs.frozen
class CopyRelease:
    """A statement of `whose` that numbers from `first` to below `stop` are not kept any more."""

    whose: Address
    at: At
    life: CapturedLife
    first: int
    stop: int
    payload: int

    @property
    def text(self) -> str:
        return f"numbers up to {self.stop - 1} are not kept any more"


@attrs.define
class Releases:
    """Releases that were not stable at first: `late` may be soon, `early` were not a second later."""

    findings: CaptureFindings
    late: list[CopyRelease] = attrs.field(factory=list)
    early: list[CopyRelease] = attrs.field(factory=list)

    def judge_release(self, release: CopyRelease) -> None:
        if release.life.stable(release.first, release.stop) is RuleStanding.FINE:
            self.findings.fine("C1", release.whose)
        elif len(self.late) + len(self.early) < MAX_WAITING:
            self.late.append(release)

    def settle(self, before_ns: int) -> None:
        """Judge again the releases before this time: all their acknowledgements have arrived."""
        while self.late and self.late[0].at.time_ns < before_ns:
            release = self.late.pop(0)
            if release.life.stable(release.first, release.stop) is RuleStanding.BROKEN:
                self.early.append(release)
            else:
                self._doubt(release)

    def close(self, now_ns: int) -> None:
        """Judge the rest at the end of the capture."""
        self.settle(now_ns + 1)
        for release in self.early:
            life = release.life
            if life.doubted or release.payload > RETENTION_BYTES or not life.spoken_since(release.at.time_ns):
                self._doubt(release)
            else:
                text = f"{release.text}, and too few stores have acknowledged them"
                at = release.at.frame, release.at.time_ns
                self.findings.note("C1", RuleStanding.BROKEN, release.whose, at, text)

    def _doubt(self, release: CopyRelease) -> None:
        text = f"{release.text}, and not all stores have acknowledged them"
        at = release.at.frame, release.at.time_ns
        self.findings.note("C1", RuleStanding.CANNOT_TELL, release.whose, at, text)
