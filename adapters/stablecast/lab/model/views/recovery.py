"""View two neighbouring message numbers at a receiver, as the receiver's trace shows them.

    consumed acked, open      the first is consumed and acknowledged; the second was not delivered yet

Each is `before` (below the session's begin), `open`, `delivered`, `consumed`, or `lost` if that was reported; `acked`
if an acknowledgement covers it. The view ignores whether a number was requested or waits for its turn. Messages of the
stream, which the model lacks, are thus equal to those of a store. Traces are compared with graphs of their own ordering
and acknowledgement mode.
"""

from collections.abc import Iterable, Iterator

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol import inputs
from stablecast.core.protocol.effects import Deliver, Effect, Notify, Send
from stablecast.core.protocol.events import RegistrationComplete, SteppedBack, UnrecoverableLoss
from stablecast.core.protocol.messages import ConsumptionAck, LateJoinInfo, Role
from stablecast.core.receiver import ReceiverSession
from stablecast.evidence.trace.converter import Endpoint
from stablecast.evidence.trace.quorums import extended
from stablecast.lab.model.clone import clone
from stablecast.lab.model.views.edges import Constants, Edge, ModelStep, Outside, Seen, State, TraceView
from stablecast.lab.model.views.numbers import bounds, changes

WHOSE = "the receiver's"
MOST = 4
"""Two numbers, each delivered and consumed in a step of its own."""
AT_A_RECEIVER = ("Register", "ToReceiver", "Consume", "Tick", "Crash", "Close")


class ReceiverNumbersView(TraceView):
    def scope(self, constants: Constants) -> str | None:
        """Return the order and the acknowledgement mode."""
        return _pair(constants["Order"], constants["Acks"]) if "prefix" in constants["Repairs"] else None

    def windows(self, constants: Constants) -> Iterable[int]:
        return range(1, constants["Messages"])

    def step(self, constants: Constants, edge: Edge, window: int) -> ModelStep | None:
        receivers = edge.before["rcv"], edge.after["rcv"]
        if edge.action == "Close":
            receivers = receivers[0], {**receivers[0], "acked": _acknowledged(edge.after, receivers[0]["acked"])}
        if edge.action not in AT_A_RECEIVER or any(receiver["state"] != "ACTIVE" for receiver in receivers):
            return None
        before, after = (_pair(_one(receiver, window), _one(receiver, window + 1)) for receiver in receivers)
        return ModelStep(before, edge.action, after)

    def watch(self, machine: Endpoint) -> "FollowedSession | Outside":
        assert isinstance(machine, ReceiverSession)
        return FollowedSession.begin(machine)


def _pair(one: str, other: str) -> str:
    return f"{one}, {other}"


def _acknowledged(state: State, before: int) -> int:
    """Return what the last messages of a closed receiver acknowledge; only they are left of it."""
    under_way: list[int] = [m["first"] for queue in state["toStore"] for m in queue if m["kind"] == "ack"]
    return max([before, *under_way])


def _one(receiver: State, number: int) -> str:
    if number < receiver["low"]:
        return "before"
    told, done = receiver["told"], receiver["done"]
    return _text(-number in told, number in done, number in told, number <= receiver["acked"])


def _text(lost: bool, consumed: bool, delivered: bool, acked: bool) -> str:
    state = "lost" if lost else "consumed" if consumed else "delivered" if delivered else "open"
    return f"{state} acked" if acked else state


@attrs.define
class FollowedSession:
    """Hold the numbers of a session that began at `low` (None: it has not), acknowledged up to `acked`."""

    scope: str
    low: int | None = None
    acked: int = -1
    delivered: RangeSet = attrs.field(factory=RangeSet)
    consumed: RangeSet = attrs.field(factory=RangeSet)
    lost: RangeSet = attrs.field(factory=RangeSet)
    outside: RangeSet = attrs.field(factory=RangeSet)

    @classmethod
    def begin(cls, receiver: ReceiverSession) -> "FollowedSession":
        """Return the session of a snapshot; numbers before the trace are not judged."""
        config = receiver.config
        session = cls(_pair(config.ordering.name.lower(), config.ack_mode.name.lower()))
        if receiver.next_number is not None:
            session.low = session.acked = receiver.next_number
            session.outside.add(0, receiver.next_number)
        return session

    def cuts(self) -> Iterable[int]:
        """Return the numbers where the view may change: a pair changes with either of its numbers."""
        ends = (0, self.low or 0, self.acked + 1)
        for cut in (*ends, *bounds(self.delivered, self.consumed, self.lost, self.outside)):
            yield from (cut - 1, cut)

    def shown(self, number: int) -> str | None:
        """Return the view of a pair; None if it cannot be judged."""
        if self.low is None or number < 0 or number in self.outside or number + 1 in self.outside:
            return None
        return _pair(self._one(number), self._one(number + 1))

    def _one(self, number: int) -> str:
        if number < (self.low or 0):
            return "before"
        return _text(number in self.lost, number in self.consumed, number in self.delivered, number <= self.acked)

    def take(self, event: inputs.Input, effects: Iterable[Effect]) -> Iterator[Seen | Outside]:
        before, losing = clone(self), False
        match event:
            case inputs.Consumed(first=first, last=last):
                self.consumed.add(first, last + 1)
            case inputs.History(first=first, last=last):
                yield self._leave(first, last + 1, "the application consumed it in an earlier session")
            case inputs.Useless(first=first, last=last):
                yield self._leave(first, last + 1, "it is a piece of a message that is not whole")
            case inputs.Acknowledge(number=number):
                yield self._leave(0, number + 1, "the application acknowledges by itself")
        for effect in effects:
            match effect:
                case Deliver(first=first):
                    yield from self._deliver(first, first + effect.count)
                case Notify(UnrecoverableLoss() as loss):
                    losing = True
                    self.lost.add(loss.first, loss.last + 1)
                case Notify(RegistrationComplete(number=number)) if self.low is None:
                    self.low, self.acked = number, number - 1
                    before = clone(self)
                case Notify(SteppedBack() as back):
                    yield self._leave(back.resume_point, back.known + 1, "its source resumed below it")
                case Send(message=ConsumptionAck() as ack):
                    self.acked = max(self.acked, extended(ack.number, max(self.acked, 0)))
        yield from changes(WHOSE, before, self, _actions(event, losing))

    def _deliver(self, first: int, stop: int) -> Iterator[Seen]:
        """Yield repeated deliveries as steps of their own, because the view stays the same."""
        for low, high in self.delivered.within(first, stop):
            if self.shown(low) is not None:
                again = frozenset({"ToReceiver"})
                yield Seen(WHOSE, "delivered", again, "delivered", "again", first=low, stop=high)
        self.delivered.add(first, stop)

    def _leave(self, first: int, stop: int, why: str) -> Outside:
        self.outside.add(first, stop)
        return Outside(why)


def _actions(event: inputs.Input, losing: bool) -> Iterable[str]:
    """Return the actions that a record may be.

    The begin of a session delivers messages held until then. A loss releases messages held after it, as the lost
    message itself would.
    """
    match event:
        case inputs.Data():
            return ("ToReceiver",)
        case inputs.Lost() | inputs.Tick():
            return ("Tick", "ToReceiver") if losing else ("Tick",)
        case inputs.Consumed():
            return ("Consume",)
        case inputs.Finish():
            return ("Close",)
        case inputs.LowChosen():
            return ("Register", "ToReceiver")
        case inputs.Reset() | inputs.Gone():
            return ("Crash",)
        case inputs.Arrived(LateJoinInfo()) if losing:
            return ("Tick", "ToReceiver")  # A denial gives up early what a tick would.
        case inputs.Arrived():
            return ("Register", "ToReceiver")
        case _:
            return ()


RECEIVER = ReceiverNumbersView("Recovery.receiver", Role.RECEIVER, MOST)
