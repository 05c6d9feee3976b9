"""What arrives of a source's stream, and what does not: where it belongs, what goes through, what is to be recovered.

* **Incarnations.** Numbers from the resume point on belong to this session's life of the source, numbers below it to
  earlier ones. What does not fit is a dead tail and dropped. What the application consumed in an earlier session is not
  handed over again. Without `Repair.TELL_LIVES` numbers are all there is (formal design, 7.4). A life that resumes
  below what earlier sessions received is reported either way (T20).
* **Burst** (T30). A live run that leaves out as many numbers as the limit, or more, ends all waiting for what is
  missing below it, recovery included.
* **Loss.** What the transport gives up is recovered where that is wanted (P-410), and lost where it is not. What it
  gives up before delivery begins is history: it is recovered with the rest of that.
"""

import attrs

from stablecast.core.errors import MisuseError
from stablecast.core.machine import serial
from stablecast.core.protocol.effects import Discard, Effect, Notify
from stablecast.core.protocol.events import Oddity, SteppedBack
from stablecast.core.protocol.inputs import Acknowledge, Consumed, Data, Lost, Useless
from stablecast.core.protocol.messages import LateJoinInfo, SourceInfo
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.request_window import Target
from stablecast.core.protocol.resume_point import span, start_number
from stablecast.core.protocol.settings import AckMode, Ordering, ReceiverConfig
from stablecast.core.receiver.delivery_window import DeliveryWindow
from stablecast.core.receiver.lives import ANY_LIFE, Lives
from stablecast.core.receiver.recovery import Recovery


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
        """Nothing has arrived."""
        return cls(
            config,
            DeliveryWindow(config.proximity, config.ordering is Ordering.ORDERED),
            Recovery.of(config),
            Lives(Repair.TELL_LIVES in config.repairs),
        )

    @property
    def high(self) -> int:
        """The newest number that the source sent, as far as is known; the first SRI names one."""
        assert self.window.high is not None
        return self.window.high

    @property
    def first_live(self) -> int:
        """The first number that came on the stream before delivery begins; until one has come, the next."""
        held = self.window.held
        return held[0].first if held else self.high + 1

    def inform(self, info: SourceInfo, out: list[Effect]) -> None:
        """The first SRI: what this life has sent."""
        received = self.lives.newest(self.config.incarnation)
        self.resume_point, high = span(info.low, info.high, received or 0)
        self.window.learn(high)
        if received is not None and received >= self.resume_point:
            self.step_back(received, out)

    def step_back(self, known: int, out: list[Effect]) -> None:
        """Numbers up to `known` were received from an earlier life, and will be used again."""
        out.append(Notify(SteppedBack(self.resume_point, known)))

    def begin(self, start: int, otr: bool, out: list[Effect]) -> None:
        """Deliver from `start` on; what the stream leaves out from now on is recovered with `otr`."""
        self.window.begin(start, out)
        self.requests.begin(self.window.origin, otr)

    def abandon(self, out: list[Effect]) -> None:
        """Nobody can be asked any more: what is missing is lost, what the stream brings is delivered (P-588)."""
        at, stop = self.window.next, self.high + 1
        if at is None:
            self.window.begin(stop, out)
        else:
            self.window.lose(at, stop, out)
            self.requests.got(at, stop)
        self.window.origin = stop
        self.requests.begin(stop, otr=False)

    def join(self, answer: LateJoinInfo) -> int:
        """The source can retransmit so much; returns where to start, by the request maximum too.

        Never behind what came on the stream meanwhile: the source may have let go of it at once.
        """
        low, high = span(answer.low, answer.high, self.high)
        self.window.learn(high)
        return min(start_number(low, self.high, self.config.request_maximum, low), self.first_live)

    def goes_on(self, wire_first: int, count: int) -> int | None:
        """Take a live run of this life that simply goes on: the next number, and nothing before it is missing.

        Nothing is held, lost or known of then, nothing asked for that it could be (see `check_invariants`), and to
        deliver it is all that follows, at the number returned. None for every other run, and nothing was done: that is
        for `on_data`, which would come to the same here.
        """
        window, lives = self.window, self.lives
        at = window.next
        if at is None or window.high != at - 1 or wire_first != at % serial.MODULUS:
            return None
        name = self.config.incarnation if lives.told_apart else ANY_LIFE
        seen, consumed = lives.seen.get(name), lives.consumed.get(name)
        if seen is None or (consumed is not None and consumed.ranges and consumed.ranges[-1][1] > at):
            return None
        stop = at + count
        seen.add(at, stop)
        window.high, window.next = stop - 1, stop
        return at

    def on_data(self, event: Data, out: list[Effect]) -> bool:
        """A run of this session; returns whether some of it was consumed in an earlier one."""
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
        if first - high > self.config.burst and not event.recovered:
            self._burst(high + 1, first, out)
        self.lives.saw(first, stop, event.incarnation)
        window.on_run(first, stop, event.token, event.recovered, out)
        if self.requests:
            self.requests.got(first, stop)
        return bool(known)

    def on_lost(self, event: Lost, now: int, out: list[Effect]) -> None:
        """The transport gave up on a run of this session."""
        first = serial.extend(event.wire_first, self.high)
        stop = first + event.count
        self.window.learn(stop - 1)
        if event.burst:
            self._burst(first, stop, out)
        elif self.window.next is None:
            return
        elif self.requests.otr:
            self.requests.look(self.window.missing(), now)
            self.requests.hurry(first, stop)
        else:
            self.window.lose(max(first, self.window.origin), stop, out)

    def on_consumed(self, event: Consumed) -> None:
        """The application is done with a run. Raises MisuseError if it was not delivered."""
        if not self.window.delivered(event.first, event.last + 1):
            raise MisuseError(f"consumed {event.first}..{event.last}, which is not delivered yet")
        self.window.on_consumed(event.first, event.last + 1)
        self.lives.on_consumed(event.first, event.last + 1)

    def on_useless(self, event: Useless) -> None:
        """No message comes of a run. Raises MisuseError if it was not delivered.

        It is not remembered as consumed: a later session may get the rest of the message, and must not confirm this.
        """
        if not self.window.delivered(event.first, event.last + 1):
            raise MisuseError(f"{event.first}..{event.last} is called useless and is not delivered yet")
        self.window.pass_over(event.first, event.last + 1)

    def on_acknowledged(self, event: Acknowledge) -> None:
        """The application acknowledges itself, all up to a number. Raises MisuseError if that was not delivered."""
        number = event.number
        if self.config.ack_mode is not AckMode.EXPLICIT:
            raise MisuseError(f"acknowledged {number} in mode {self.config.ack_mode.name}; choose EXPLICIT")
        if not self.window.delivered(number, number + 1):
            raise MisuseError(f"acknowledged {number}, which is not delivered yet")
        self.window.claim(number if event.first is None else event.first, number)

    def recover(self, targets: list[Target], now: int, out: list[Effect]) -> None:
        """Ask for what is missing, as far as the windows allow; more would only wait for the application."""
        if self.window.unconsumed <= self.config.proximity:
            self.requests.look(self.window.missing(), now)
            self.requests.issue(targets, now, out)

    def handle_timeout(self, now: int, may_give_up: bool, out: list[Effect]) -> None:
        """What was asked for in vain for long enough is lost."""
        for start, stop in self.requests.handle_timeout(now, may_give_up):
            self.window.lose(start, stop, out)

    def _belongs(self, incarnation: int, first: int, stop: int) -> bool:
        if incarnation == self.config.incarnation:
            return first >= self.resume_point
        return stop <= self.resume_point

    def _burst(self, first: int, stop: int, out: list[Effect]) -> None:
        before = self.window.next
        if before is not None:  # What is missing before the start is history.
            self.window.burst(first, stop, out)
            self.requests.got(before, self.window.next or before)

    def check_invariants(self) -> None:
        """What must hold between inputs (used by tests). `goes_on` counts on it."""
        window, cared = self.window, self.requests.cared
        window.check_invariants()
        assert window.high is None or window.high >= self.resume_point - 1
        assert not cared or (cared.last or 0) <= self.high
        if window.next is not None and not window.behind:
            assert not any((window.held, window.have, window.known, window.lost))
