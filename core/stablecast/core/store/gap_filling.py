"""How a store gets what it missed, and when it gives up: what a source's stream has shown, and the holes in it.

* Whatever shows that numbers exist (later data, an SRI, a transport that lost them) shows the holes. The source is
  asked what it still has (late join); what lies below is lost, the rest is requested and retried until it is given up.
* A transport's own recovery comes first where there is one; when it gives up, recovery from the source begins at once.
* More missing in a row than the burst limit is lost at once, as one burst (P-917, T30).
* What is lost is passed over and never acknowledged. Told of a loss again, unasked, a store refuses it (T16).
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
"""Ranges of lost numbers that are told apart; below the trail the oldest become one beyond that."""


@attrs.define
class Filling:
    """The holes of one source. `high` is the newest number known to exist, `asked_at` (ns) when it was asked.

    Since the store started (P-917, P-918) `losses` counts lost messages, `burst_losses` those of them in `bursts` lost
    bursts; `newest_burst` is the last number of the newest one. While `paused` nobody is asked, because nothing more
    could be kept.
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

    @classmethod
    def create(cls, config: StoreConfig, reg_id: int, incarnation: Incarnation) -> "Filling":
        """Nothing is known yet."""
        requests = RequestWindow(
            Role.STORE, incarnation, config.address, config.window, config.retry_ns, config.give_up_ns
        )
        return cls(reg_id, requests, config.burst)

    def begin_life(self, incarnation: Incarnation, trail: int, *, new: bool) -> None:
        """The source registered. If its life is a new one, what was asked of the one before is over.

        If not, it may still have what was given up while it was away; what lies below the trail stays lost.
        """
        if new:
            self.high = self.asked_at = None
            self.lost, self.paused = RangeSet(), False
            self._forget_requests(incarnation)
        elif self.lost:
            self.lost.remove(trail, self.lost.ranges[-1][1])

    def missing(self, held: RangeSet, bottom: int) -> list[tuple[int, int]]:
        """The holes from `bottom` on that are not given up."""
        assert self.high is not None
        return [gap for low, high in held.missing(bottom, self.high + 1) for gap in self.lost.missing(low, high)]

    def learn(self, high: int, held: RangeSet, bottom: int, source: Address, now: int, out: list[Effect]) -> None:
        """Numbers up to `high` exist; what is missing is asked for."""
        self.high = high if self.high is None else max(self.high, high)
        if self.asked_at is None and not self.paused and not self.requests and self.missing(held, bottom):
            self._ask(source, now, out)

    def on_late_join(
        self, info: LateJoinInfo, held: RangeSet, bottom: int, source: Address, now: int, out: list[Effect]
    ) -> None:
        """The source says what it can still send."""
        if self.asked_at is None or self.high is None:
            return
        self.asked_at = None
        low = serial.extend(info.low, self.high)
        for first, stop in self.missing(held, bottom):
            if first < low:
                self.lose(first, min(stop, low), out)
            if stop > low:
                self.requests.want(max(first, low), stop)
        self.issue(source, now, out)

    def issue(self, source: Address, now: int, out: list[Effect]) -> None:
        """Request as much as the window allows."""
        if self.requests:
            self.requests.issue([Target(source, 0)], now, out)

    def handle_timeout(self, source: Address, now: int, out: list[Effect]) -> bool:
        """Repeat what was not answered; what could not be had in time is lost. Returns whether anything is."""
        if self.asked_at is not None and now - self.asked_at >= self.requests.retry_ns:
            self._ask(source, now, out)
        given_up = self.requests.handle_timeout(now)
        for first, stop in given_up:
            self.lose(first, stop, out)
        return bool(given_up)

    def next_timeout(self) -> int | None:
        """When `handle_timeout` is due."""
        requests = self.requests.next() if self.requests.asked else None
        asked = None if self.asked_at is None else self.asked_at + self.requests.retry_ns
        return asked if requests is None else requests if asked is None else min(asked, requests)

    def got(self, first: int, stop: int) -> None:
        """[first, stop) is there, or needed no more."""
        self.requests.got(first, stop)

    def lose(self, first: int, stop: int, out: list[Effect]) -> None:
        """Nobody can send [first, stop)."""
        self.give_up(first, stop)
        self.losses += stop - first
        out.append(Notify(LostAtStore(self.reg_id, first, stop - 1)))

    def lose_burst(self, gaps: list[tuple[int, int]], out: list[Effect]) -> None:
        """So much is missing that it is not asked for."""
        for first, stop in gaps:
            self.give_up(first, stop)
            self.losses += stop - first
            self.burst_losses += stop - first
        self.bursts, self.newest_burst = self.bursts + 1, gaps[-1][1] - 1
        out.append(Notify(LostAtStore(self.reg_id, gaps[0][0], self.newest_burst, burst=True)))

    def give_up(self, first: int, stop: int) -> None:
        """[first, stop) will not be had."""
        self.lost.add(first, stop)
        self.got(first, stop)

    def tidy(self, trail: int) -> None:
        """Keep the account of old losses short: below the trail, where nothing is held, they may become one."""
        if len(self.lost) > MAX_HOLES:
            old = self.lost.within(self.lost.ranges[0][0], trail)
            if old:
                self.lost.add(old[0][0], old[-1][1])

    def pause(self) -> None:
        """Nothing more can be kept for now."""
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
