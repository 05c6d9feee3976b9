"""Recovery of messages that a store missed: the numbers that a source's stream has shown, and the holes in them.

* Later data, an SRI, or a loss of the transport shows that numbers exist, and with them the holes. The store asks the
  source what it retains (late join). Lower numbers are lost, the others are requested until they are given up.
* If the transport recovers by itself, recovery from the source begins when the transport gives up.
* A row of missing messages above the burst limit is lost at once, as one burst (P-917, T30).
* Lost messages are passed over and never acknowledged. A lost message that comes again unasked is refused (T16).
"""

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.effects import Effect, Notify, Send
from stablecast.core.protocol.events import LostAtStore
from stablecast.core.protocol.messages import Address, Incarnation, LateJoinInfo, LateJoinRequest, Role
from stablecast.core.protocol.request_window import RequestWindow, Target
from stablecast.core.protocol.settings import StoreConfig

MAX_HOLES = 4096
"""Separate ranges of lost numbers that are kept; beyond that the oldest below the trail become one."""


@attrs.define
class GapFilling:
    """The holes of one source. `high` is the newest number known to exist, `asked_at` (ns) when the source was asked.

    Since the store started (P-917, P-918) `losses` counts lost messages, `burst_losses` those of them in `bursts` lost
    bursts; `newest_burst` is the last number of the newest one. `given_up` counts acts of giving up. While `paused`
    nothing is requested, because it would find no room. The source has nothing below `retained`, as it said last.
    """

    reg_id: int
    requests: RequestWindow
    burst: int
    high: int | None = None
    asked_at: int | None = None
    lost: RangeSet = attrs.field(factory=RangeSet)
    paused: bool = False
    losses: int = 0
    bursts: int = 0
    burst_losses: int = 0
    newest_burst: int | None = None
    given_up: int = 0
    retained: int = 0

    @classmethod
    def create(cls, config: StoreConfig, reg_id: int, incarnation: Incarnation) -> "GapFilling":
        """Return a filling that knows nothing yet."""
        requests = RequestWindow(
            Role.STORE, incarnation, config.address, config.window, config.retry_ns, config.give_up_ns
        )
        return cls(reg_id, requests, config.burst)

    def begin_life(self, incarnation: Incarnation, trail: int, *, new: bool) -> None:
        """Adapt to a registration of the source. A new life ends all requests to the one before.

        The same life may still retain what was given up during its absence; numbers below the trail stay lost.
        """
        if new:
            self.high, self.asked_at, self.retained = None, None, 0
            self.lost, self.paused = RangeSet(), False
            self._forget_requests(incarnation)
        elif self.lost:
            self.lost.remove(trail, self.lost.ranges[-1][1])

    def missing(self, held: RangeSet, bottom: int) -> list[tuple[int, int]]:
        """Return the holes from `bottom` on that are not given up."""
        assert self.high is not None
        return [gap for low, high in held.missing(bottom, self.high + 1) for gap in self.lost.missing(low, high)]

    def learn(self, high: int, held: RangeSet, bottom: int, source: Address, now: int, out: list[Effect]) -> None:
        """Record that numbers up to `high` exist, and ask for the missing ones."""
        self.high = high if self.high is None else max(self.high, high)
        # One question at a time: the answer decides what is requested and what is lost.
        if self.asked_at is None and not self.paused and not self.requests and self.missing(held, bottom):
            self._ask(source, now, out)

    def on_late_join(
        self, info: LateJoinInfo, held: RangeSet, bottom: int, source: Address, now: int, out: list[Effect]
    ) -> None:
        """Process the source's retained range: give up lower holes, and if this store had asked, request the others.

        The source also denies a request with it, because it retains the messages no more.
        """
        if self.high is None:
            return
        asked = self.asked_at is not None
        low = self.retained = serial.extend(info.low, self.high)
        if not asked and not self.requests:
            return
        self.asked_at = None
        for first, stop in self.missing(held, bottom):
            if first < low:
                self.lose(first, min(stop, low), out)
            if stop > low and asked:
                self.requests.want(max(first, low), stop)
        self.issue(source, now, out)

    def issue(self, source: Address, now: int, out: list[Effect]) -> None:
        """Request as much as the window allows."""
        if self.requests:
            self.requests.issue([Target(source, 0)], now, out)

    def handle_timeout(self, source: Address, now: int, out: list[Effect]) -> bool:
        """Repeat unanswered requests and give up old ones; return whether any was given up."""
        if self.asked_at is not None and now - self.asked_at >= self.requests.retry_ns:
            self._ask(source, now, out)
        given_up = self.requests.handle_timeout(now)
        for first, stop in given_up:
            self.lose(first, stop, out)
        return bool(given_up)

    def next_timeout(self) -> int | None:
        """Return when `handle_timeout` is due (ns), or None."""
        requests = self.requests.next() if self.requests.asked else None
        asked = None if self.asked_at is None else self.asked_at + self.requests.retry_ns
        return asked if requests is None else requests if asked is None else min(asked, requests)

    def got(self, first: int, stop: int) -> None:
        """Record that [first, stop) is there, or needed no more."""
        self.requests.got(first, stop)

    def lose(self, first: int, stop: int, out: list[Effect]) -> None:
        """Give up [first, stop), which nobody can send, and report it."""
        self.give_up(first, stop)
        self.losses += stop - first
        out.append(Notify(LostAtStore(self.reg_id, first, stop - 1)))

    def lose_burst(self, gaps: list[tuple[int, int]], out: list[Effect]) -> None:
        """Give up gaps that are too large to be requested, and report them as one burst."""
        for first, stop in gaps:
            self.give_up(first, stop)
            self.losses += stop - first
            self.burst_losses += stop - first
        self.bursts, self.newest_burst = self.bursts + 1, gaps[-1][1] - 1
        out.append(Notify(LostAtStore(self.reg_id, gaps[0][0], self.newest_burst, burst=True)))

    def give_up(self, first: int, stop: int) -> None:
        """Give up [first, stop) without an event."""
        self.lost.add(first, stop)
        self.given_up += 1
        self.got(first, stop)

    def tidy(self, trail: int) -> None:
        """Join old losses below the trail, where nothing is held, so that the list stays short."""
        if len(self.lost) > MAX_HOLES:
            old = self.lost.within(self.lost.ranges[0][0], trail)
            if old:
                self.lost.add(old[0][0], old[-1][1])

    def pause(self) -> None:
        """Stop requesting, because nothing more finds room."""
        self.paused, self.asked_at = True, None
        self._forget_requests(self.requests.incarnation)

    def _forget_requests(self, incarnation: Incarnation) -> None:
        self.requests = attrs.evolve(
            self.requests, incarnation=incarnation, wanted=RangeSet(), retrying=[], asked=[], outstanding=0
        )

    def _ask(self, source: Address, now: int, out: list[Effect]) -> None:
        self.asked_at = now
        request = LateJoinRequest(self.requests.incarnation, self.reg_id, self.requests.reply_to)
        out.append(Send(source, request))
