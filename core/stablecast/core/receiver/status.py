"""A receiver's session as it stands: a read-only copy for judges of traces, models and simulators.

Making a status copies sets of ranges, so it is not for the data path. Questions that a driver asks for each run are
properties of `ReceiverSession`.
"""

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.request_window import OpenRequest
from stablecast.core.receiver.arrival import Arrivals
from stablecast.core.receiver.consumption_acks import Acknowledger, AckTimer
from stablecast.core.registration.registration_set import RegistrationSet
from stablecast.core.registration.status import RegistrationStatus, registrations_of


@attrs.frozen
class ReceiverStatus:
    """A session's stores and messages. Range sets are copies; numbers are extended.

    Attributes:
        registrations: By store index.
        first_interval_over: The first registration interval has ended.
        acknowledged: The newest number acknowledged; one below the start when there is none.
        ack_due: A timer runs at whose end consumption is acknowledged.
        held: Ranges that arrived and wait for their turn.
        settled_ahead: Numbers that are held, delivered or given up above the next one.
        lost: Lost numbers that are not reported yet, because lower numbers are open.
        known: Numbers not reached yet that the application consumed in earlier sessions.
        consumed: Numbers consumed and not acknowledged yet.
        skipped: Numbers given up that no acknowledgement has passed yet.
        lives: Numbers consumed in this session and before, by the life that sent them.
        seen: The lives that sent messages in this session.
        confirmable: Ranges from the start to `acknowledged` that may be confirmed to a source.
        wanted: Missing history that is not requested yet.
        asked: Requests for history that are not answered yet.
        turn: Number of requests for history so far, which selects the next store; None when no history is missing.
    """

    registrations: dict[int, RegistrationStatus]
    first_interval_over: bool
    acknowledged: int
    ack_due: bool
    held: tuple[tuple[int, int], ...]
    settled_ahead: RangeSet
    lost: RangeSet
    known: RangeSet
    consumed: RangeSet
    skipped: RangeSet
    lives: dict[int, RangeSet]
    seen: frozenset[int]
    confirmable: tuple[tuple[int, int], ...]
    wanted: RangeSet
    asked: tuple[OpenRequest, ...]
    turn: int | None

    @classmethod
    def of(cls, enrollment: RegistrationSet, arrivals: Arrivals, acknowledger: Acknowledger) -> "ReceiverStatus":
        """Return the status of the session that has these parts."""
        window, history, lives = arrivals.window, arrivals.requests.history, arrivals.lives
        return cls(
            registrations=registrations_of(enrollment),
            first_interval_over=enrollment.first_interval_over,
            acknowledged=window.acked,
            ack_due=acknowledger.timers.armed(AckTimer.ACK),
            held=tuple((part.first, part.stop) for part in window.held),
            settled_ahead=window.have.copy(),
            lost=window.lost.copy(),
            known=window.known.copy(),
            consumed=window.consumed.copy(),
            skipped=window.skipped.copy(),
            lives={life: numbers.copy() for life, numbers in lives.consumed.items()},
            seen=frozenset(lives.seen),
            confirmable=tuple(window.confirmed(window.start, window.acked + 1)),
            wanted=history.wanted.copy(),
            asked=tuple(attrs.evolve(request) for request in history.asked),
            turn=history.turn if history else None,
        )
