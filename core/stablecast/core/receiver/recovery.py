"""Recovery of missing messages: the history before the session, and gaps that the stream left.

Messages that existed when delivery began are *history*: nobody sends them again unasked, so they are requested at once.
A gap above is of the stream, and the transport may still fill it. Off-transport recovery (P-410) requests such a gap
when it is as old as the delay, or when the transport gives up on it. Without it gaps are left to the transport. Both
have a window and a give-up time of their own (P-432, P-433), and nothing is requested twice at a time.
"""

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.effects import Effect
from stablecast.core.protocol.messages import ANY_STORE, Address, LateJoinInfo, Role
from stablecast.core.protocol.request_window import RequestWindow, Target
from stablecast.core.protocol.settings import ReceiverConfig


@attrs.define
class Recovery:
    """Requests of one session. Numbers are extended; `origin` is the first that is not history.

    `cared` has everything that is or will be requested; `young` has gaps by the time at which they are old enough (ns).
    The window bounds both.
    """

    history: RequestWindow
    gaps: RequestWindow
    delay_ns: int
    origin: int = 0
    otr: bool = False
    cared: RangeSet = attrs.field(factory=RangeSet)
    young: dict[int, RangeSet] = attrs.field(factory=dict)

    @classmethod
    def of(cls, config: ReceiverConfig) -> "Recovery":
        """Return a recovery with nothing missing."""
        spans = (config.give_up_ns, config.otr.give_up_ns)
        history, gaps = (
            RequestWindow(Role.RECEIVER, config.incarnation, config.reply_to, config.window, config.retry_ns, give_up)
            for give_up in spans
        )
        gaps.requests = serial.HALF  # An answer to one window's request must not be taken for the other's.
        return cls(history, gaps, config.otr.delay_ns)

    def __bool__(self) -> bool:
        return bool(self.cared)

    def answer_to(self, reply_to: Address) -> None:
        """Have the answers to later requests sent to another address."""
        self.history.reply_to = self.gaps.reply_to = reply_to

    def begin(self, origin: int, otr: bool) -> None:
        """Set the first number that is not history; with `otr` recover gaps of the stream, too."""
        self.origin, self.otr = origin, otr

    def look(self, missing: list[tuple[int, int]], now: int) -> None:
        """Schedule requests for missing ranges that are new."""
        for start, stop in missing:
            for low, high in self.cared.missing(start, stop):
                if low < self.origin:
                    self._want(self.history, low, min(high, self.origin))
                if self.otr and self.origin < high:
                    self._wait(max(low, self.origin), high, now)

    def hurry(self, start: int, stop: int) -> None:
        """Request the young parts of [start, stop) at once, because the transport gave up on them (P-410)."""
        for gaps in self.young.values():
            for low, high in gaps.remove(start, stop):
                self.gaps.want(low, high)

    def got(self, start: int, stop: int) -> None:
        """Record that [start, stop) is no longer missing."""
        if self.cared.remove(start, stop):
            for gaps in self.young.values():
                gaps.remove(start, stop)
            self.history.got(start, stop)
            self.gaps.got(start, stop)

    def issue(self, targets: list[Target], now: int, out: list[Effect]) -> None:
        """Request as much as the windows allow."""
        if self.cared:
            self.history.issue(targets, now, out)
            self.gaps.issue(targets, now, out)

    def begin_anew(self, now: int) -> None:
        """Count the time of all requests from now on."""
        self.history.begin_anew(now)
        self.gaps.begin_anew(now)

    def handle_timeout(self, now: int, may_give_up: bool, whole: bool = False) -> list[tuple[int, int]]:
        """Do what is due; return the ranges given up for lost, as a `whole` if no other peer can be asked."""
        for due in [due for due in self.young if due <= now]:
            for start, stop in self.young.pop(due):
                self.gaps.want(start, stop)
        lost = [part for one in (self.history, self.gaps) for part in one.handle_timeout(now, may_give_up, whole)]
        for start, stop in lost:
            self.got(start, stop)
        return lost

    def deny(self, answer: LateJoinInfo) -> list[tuple[int, int]]:
        """Process a denial of a request; return the ranges that no peer has."""
        # A store that forwards a request may have what the source denies.
        names = answer.request, answer.low, answer.store_index != ANY_STORE
        return [*self.history.deny(*names), *self.gaps.deny(*names)]

    def next(self) -> int | None:
        """Return when `handle_timeout` is due (ns), or None."""
        if not (self.history.asked or self.gaps.asked or self.young):
            return None  # the usual case, for every input of a healthy session
        due = (self.history.next(), self.gaps.next(), *self.young)
        return min([deadline for deadline in due if deadline is not None], default=None)

    def _want(self, window: RequestWindow, start: int, stop: int) -> None:
        self.cared.add(start, stop)
        window.want(start, stop)

    def _wait(self, start: int, stop: int, now: int) -> None:
        if not self.delay_ns:
            self._want(self.gaps, start, stop)
            return
        self.cared.add(start, stop)
        self.young.setdefault(now + self.delay_ns, RangeSet()).add(start, stop)
