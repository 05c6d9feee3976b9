"""Arrivals: the place of each run in a source's stream, what is delivered, and what must be recovered.

* **Incarnations.** Numbers from the resume point on belong to this session's life of the source, lower numbers to
  earlier lives. A run that does not fit is a dead tail and dropped. Messages that the application consumed in an
  earlier session are not delivered again. Without `Repair.TELL_LIVES` only numbers count (formal design, 7.4). A life
  that resumes below what earlier sessions received is reported either way (T20).
* **Burst** (T30). A live run that leaves out at least the limit of numbers ends all waiting for what is missing below
  it, recovery included.
* **Loss.** Messages that the transport gives up are recovered if that is configured (P-410), else lost. What it gives
  up before delivery begins is history, and recovered as such.

The first number of a receiver of a persistent source: the stores' proposal and the application's wish.

The application gets three numbers (P-421): the newest; the lowest that the request maximum allows; and the stores'
proposal. It may choose any other. The proposal unchanged counts as no wish, and then the request maximum decides (T9,
P-424). Nothing starts beyond the end (T10). A receiver without late join starts at the end whatever is wished (P-411).
A receiver that the pace depends on gets nothing below the stores' proposal (P-582).

Stores that all lack what is below their offers propose the first number that they should have (formal design, 7.11).
"""

import attrs

from stablecast.core.errors import MisuseError
from stablecast.core.machine import serial
from stablecast.core.protocol.effects import AskLow, Discard, Effect, Notify
from stablecast.core.protocol.events import (
    Oddity,
    RegistrationComplete,
    RegistrationFlag,
    SteppedBack,
    UnrecoverableLoss,
)
from stablecast.core.protocol.inputs import Acknowledge, Consumed, Data, History, Lost, Useless
from stablecast.core.protocol.messages import LateJoinInfo, Pace, Registered, SourceInfo
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.request_window import Target
from stablecast.core.protocol.resume_point import offer, span, start_number
from stablecast.core.protocol.settings import AckMode, Ordering, ReceiverConfig
from stablecast.core.receiver.delivery_window import DeliveryWindow
from stablecast.core.receiver.lives import ANY_LIFE, Lives
from stablecast.core.receiver.recovery import Recovery


@attrs.define
class FirstNumberChoice:
    """One choice. Numbers are extended; `low` is the proposal, `free` permits a wish below it.

    `certain`: no store that answers later can lower the start. `first_held`: all stores lack what is below; None: not
    all do.
    """

    config: ReceiverConfig
    low: int = 0
    free: bool = True
    certain: bool = True
    first_held: int | None = None

    def ask(self, proposal: int, high: int, recovers: bool, out: list[Effect]) -> None:
        """Ask the application, with the stores' proposal."""
        self.low = min(proposal, high + 1) if recovers else high + 1
        self.free = recovers and self.config.pace is Pace.SOURCE
        maximum = self.config.request_maximum
        out.append(AskLow(high, max(self.low, high - maximum) if maximum else self.low, self.low))

    def choose(self, wish: int, high: int, everyone: bool, out: list[Effect]) -> int:
        """Return where to start after the application's wish, and report it. `everyone`: every store granted."""
        start = start_number(self.low, high, self.config.request_maximum, wish)
        self.certain |= wish != self.low
        if wish > high + 1:
            out.append(Notify(Oddity("low-beyond-high", f"asked to start at {wish}, the newest number is {high}")))
        if not self.free:
            start = max(start, self.low)
        flags = RegistrationFlag.SESSION if self.config.session_id else RegistrationFlag.NONE
        if not everyone:
            flags |= RegistrationFlag.QUORUM
        if wish == self.low < start:
            flags |= RegistrationFlag.REQUEST_MAXIMUM
        out.append(Notify(RegistrationComplete(start, flags)))
        return start

    def revise(self, grant: Registered, window: DeliveryWindow, high: int, out: list[Effect]) -> int | None:
        """Return where to begin after all, by the grant of a store that came late; None: where it began.

        The store knows that the receiver acknowledged less than others offered, or keeps messages for one that sets the
        pace. What it never had between the two is lost if delivery went on, and that is reported: no acknowledgement
        passes over it in silence.
        """
        if self.certain:
            return None
        low, _ = offer(grant, high)
        if grant.old:
            # A store that knows more than this session acknowledged knows it of an earlier one.
            self.certain = low > window.acked + 1 or low < window.start
        elif self.config.pace is Pace.SOURCE or grant.known is None:
            return None
        else:
            low = serial.extend(grant.known, high)
        if low >= window.start:
            return None
        if window.next == window.start > window.acked:
            self.low = low
            return low
        out.append(Notify(UnrecoverableLoss(low, window.start - 1)))
        return None


@attrs.define
class Arrivals:
    """Window, recovery and lives of one session; `inform` comes first."""

    config: ReceiverConfig
    window: DeliveryWindow
    requests: Recovery
    lives: Lives
    resume_point: int = 0

    @classmethod
    def of(cls, config: ReceiverConfig) -> "Arrivals":
        """Return arrivals of a session that has received nothing."""
        return cls(
            config,
            DeliveryWindow(config.proximity, config.ordering is Ordering.ORDERED),
            Recovery.of(config),
            Lives(Repair.TELL_LIVES in config.repairs),
        )

    @property
    def high(self) -> int:
        """The newest number known to exist. Only after `inform`."""
        assert self.window.high is not None
        return self.window.high

    @property
    def first_live(self) -> int:
        """The first number that came on the stream before delivery begins; until one has come, the next."""
        held = self.window.held
        return held[0].first if held else self.high + 1

    def inform(self, info: SourceInfo, out: list[Effect]) -> None:
        """Process the first SRI: the numbers of this life."""
        received = self.lives.newest(self.config.incarnation)
        self.resume_point, high = span(info.low, info.high, received or 0)
        self.window.learn(high)
        if received is not None and received >= self.resume_point:
            # This life uses numbers again that the receiver already received (T20).
            self.step_back(received, out)

    def step_back(self, known: int, out: list[Effect]) -> None:
        """Report that numbers up to `known`, received from an earlier life, will be used again."""
        out.append(Notify(SteppedBack(self.resume_point, known)))

    def on_unannounced(self, known: int, used: int, out: list[Effect]) -> None:
        """Process an acknowledgement up to `known`, which this session's stream has not shown.

        Another holder of the RegID may have been faster: a store vouches that the source `used` a number. Numbers above
        may be those of a dead tail.
        """
        self.window.learn(min(used, known))
        if used < known:
            self.step_back(known, out)

    def begin(self, start: int, otr: bool, out: list[Effect]) -> None:
        """Deliver from `start` on; with `otr` recover what the stream leaves out from now on."""
        self.window.begin(start, out)
        self.requests.begin(self.window.origin, otr)

    def abandon(self, out: list[Effect]) -> None:
        """Give up recovery: missing messages are lost, live messages are delivered (P-588)."""
        at, stop = self.window.next, self.high + 1
        if at is None:
            self.window.begin(stop, out)
        else:
            self.window.lose(at, stop, out)
            self.requests.got(at, stop)
        self.window.origin = stop
        self.requests.begin(stop, otr=False)

    def join(self, answer: LateJoinInfo) -> int:
        """Return where to start, by the source's retained range and the request maximum.

        The start is never above the live messages received meanwhile, because the source may have dropped those at
        once.
        """
        low, high = span(answer.low, answer.high, self.high)
        self.window.learn(high)
        return min(start_number(low, self.high, self.config.request_maximum, low), self.first_live)

    def goes_on(self, wire_first: int, count: int) -> int | None:
        """Accept a live run of this life that continues the stream, and return its first number.

        Nothing is held, lost, known or requested then (tests assert it), so nothing else needs to be done. For
        every other run return None and change nothing: `on_data` handles it, and would come to the same result for this
        one.
        """
        window, lives = self.window, self.lives
        at = window.next
        if at is None or window.high != at - 1 or wire_first != at % serial.MODULUS:
            return None
        name = self.config.incarnation if lives.told_apart else ANY_LIFE
        seen, consumed = lives.seen.get(name), lives.consumed.get(name)
        # Messages that an earlier session consumed are not delivered again; `on_data` passes over them.
        if seen is None or (consumed is not None and consumed.ranges and consumed.ranges[-1][1] > at):
            return None
        stop = at + count
        seen.add(at, stop)
        window.high, window.next = stop - 1, stop
        return at

    def on_data(self, event: Data, out: list[Effect]) -> bool:
        """Process a run of this session; return whether some of it was consumed in an earlier one."""
        window, high = self.window, self.high
        first = serial.extend(event.wire_first, high)
        stop = first + event.count
        if self.lives.told_apart and not self._belongs(event.incarnation, first, stop):
            out.append(Discard(event.token))
            text = f"{event.count} messages from {event.wire_first} of incarnation {event.incarnation:#x}"
            out.append(Notify(Oddity("dead-tail", text)))
            return False
        known = self.lives.known(event.incarnation, first, stop)
        for start, end in known:
            window.know(start, end, out)
            if self.config.divides:
                window.leave_out(start, end)
        # A recovered run is far from the newest number by nature, so it is never a burst.
        if first - high > self.config.burst and not event.recovered:
            self._burst(high + 1, first, out)
        self.lives.saw(first, stop, event.incarnation)
        window.on_run(first, stop, event.token, event.recovered, out)
        if self.requests:
            self.requests.got(first, stop)
        return bool(known)

    def on_lost(self, event: Lost, now: int, out: list[Effect]) -> None:
        """Process a run that the transport gave up."""
        first = serial.extend(event.wire_first, self.high)
        stop = first + event.count
        self.window.learn(stop - 1)
        if event.burst:
            self._burst(first, stop, out)
        elif self.window.next is None:
            # Messages that are missing before delivery begins are history, and recovered as such.
            return
        elif self.requests.otr:
            self.requests.look(self.window.missing(), now)
            self.requests.hurry(first, stop)
        else:
            self.window.lose(max(first, self.window.origin), stop, out)

    def on_history(self, event: History) -> None:
        """Record what an earlier session consumed, or what it confirmed to this life, whichever life sent that."""
        if not event.confirmed:
            self.lives.remember(event.incarnation, event.first, event.last + 1)
        elif event.incarnation == self.config.incarnation:
            self.window.on_confirmed(event.first, event.last + 1)

    def on_consumed(self, event: Consumed) -> None:
        """Count a run as consumed. Raises MisuseError if it was not delivered."""
        if not self.window.delivered(event.first, event.last + 1):
            raise MisuseError(f"consumed {event.first}..{event.last}, which is not delivered yet")
        self.window.on_consumed(event.first, event.last + 1)
        if event.unseen:
            self.window.leave_out(event.first, event.last + 1)
        self.lives.on_consumed(event.first, event.last + 1)

    def on_useless(self, event: Useless) -> None:
        """Count a run as lost to the application. Raises MisuseError if it was not delivered.

        It is not recorded as consumed: a later session may get the rest of the message, and must not confirm this part.
        """
        if not self.window.delivered(event.first, event.last + 1):
            raise MisuseError(f"{event.first}..{event.last} is called useless and is not delivered yet")
        self.window.pass_over(event.first, event.last + 1)

    def on_acknowledged(self, event: Acknowledge) -> None:
        """Count the application's own acknowledgement, up to a number. Raises MisuseError if that was not delivered."""
        number = event.number
        if self.config.ack_mode is not AckMode.EXPLICIT:
            raise MisuseError(f"acknowledged {number} in mode {self.config.ack_mode.name}; choose EXPLICIT")
        if not self.window.delivered(number, number + 1):
            raise MisuseError(f"acknowledged {number}, which is not delivered yet")
        self.window.claim(number if event.first is None else event.first, number)

    def recover(self, targets: list[Target], now: int, out: list[Effect]) -> None:
        """Request missing messages, unless the application lags: more messages would only wait for it."""
        if self.window.unconsumed <= self.config.proximity:
            self.requests.look(self.window.missing(), now)
            self.requests.issue(targets, now, out)

    def handle_timeout(self, now: int, may_give_up: bool, out: list[Effect], *, whole: bool = False) -> None:
        """Give up messages that were requested in vain for too long; see `RequestWindow.handle_timeout`."""
        for start, stop in self.requests.handle_timeout(now, may_give_up, whole):
            self.window.lose(start, min(stop, self.high + 1), out)

    def on_denied(self, answer: LateJoinInfo, everyone: bool, out: list[Effect]) -> None:
        """Process a denial of a request. What all peers deny is lost at once if `everyone` can be asked."""
        for start, stop in self.requests.deny(answer):
            if everyone:
                self.window.lose(start, min(stop, self.high + 1), out)
                self.requests.got(start, stop)

    def _belongs(self, incarnation: int, first: int, stop: int) -> bool:
        if incarnation == self.config.incarnation:
            return first >= self.resume_point
        # An earlier life has no numbers from the resume point on: those are a dead tail (formal 7.4).
        return stop <= self.resume_point

    def _burst(self, first: int, stop: int, out: list[Effect]) -> None:
        before = self.window.next
        if before is not None:  # Before the start, missing numbers are history.
            self.window.burst(first, stop, out)
            self.requests.got(before, self.window.next or before)
