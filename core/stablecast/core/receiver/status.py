"""A receiver's session as it stands: read-only questions for judges of traces, models and simulators.

Each question copies what it shows, so it is not for the data path. Questions that a driver asks for each run are
properties of `ReceiverSession`. A status follows the session: ask again after an input.
"""

from collections.abc import Callable
from typing import TypeVar

import attrs

from stablecast.core.protocol.messages import Address
from stablecast.core.protocol.resume_point import offer
from stablecast.core.protocol.settings import AckMode
from stablecast.core.receiver.arrival import Arrivals, FirstNumberChoice
from stablecast.core.receiver.consumption_acks import Acknowledger, AckTimer
from stablecast.core.receiver.store_registrations import StoreRegistrations
from stablecast.core.registration.registration_set import RegistrationSet
from stablecast.core.registration.status import registrations_of

ShownT = TypeVar("ShownT")


def _shown(read: Callable[["ReceiverStatus"], ShownT]) -> ShownT:
    """Return a property; its type is that of the value."""
    return property(read)  # type: ignore[return-value] # properties show as their values


@attrs.frozen
class ReceiverStatus:
    """A session's stores and messages. Range sets are copies; numbers are extended."""

    _enlistment: StoreRegistrations
    _arrivals: Arrivals
    _acknowledger: Acknowledger
    _starting: FirstNumberChoice

    @property
    def _enrollment(self) -> RegistrationSet:
        return self._enlistment.enrollment

    patience = _shown(lambda self: self._enlistment.patience)
    """Until when registration waits for stores that can tell where to begin (ns); None: it does not wait."""
    impatient = _shown(lambda self: self._enlistment.impatient)
    """True once that wait has ended."""
    certain = _shown(lambda self: self._starting.certain)
    """True if no store that grants later can lower the start."""
    registrations = _shown(lambda self: registrations_of(self._enrollment))
    """The registrations by store index."""
    returning = _shown(lambda self: any(one.granted and one.granted.old for one in self._enrollment.counting))
    """True if a store that counts knows how far the receiver acknowledged."""
    first_interval_over = _shown(lambda self: self._enrollment.first_interval_over)
    """True if the first registration interval has ended."""
    acknowledged = _shown(lambda self: self._arrivals.window.acked)
    """The newest number acknowledged; one below the start when there is none."""
    ack_due = _shown(lambda self: self._acknowledger.timers.armed(AckTimer.ACK))
    """True if a timer runs at whose end consumption is acknowledged."""
    next = _shown(lambda self: self._arrivals.window.next)
    """The next number to deliver; None before delivery begins."""
    origin = _shown(lambda self: self._arrivals.window.origin)
    """The first number that was not sent when delivery began; a recovered message from there on fills a gap."""
    newest = _shown(lambda self: self._arrivals.window.high)
    """The newest number known to exist; None: none is known."""
    missed = _shown(lambda self: self._arrivals.window.missed.copy())
    """Numbers that were lost for good or are for other shares, and are never confirmed."""
    arrived = _shown(lambda self: {life: seen.copy() for life, seen in self._arrivals.lives.seen.items()})
    """Numbers that arrived, by the life that sent them."""
    held = _shown(lambda self: tuple((part.first, part.stop) for part in self._arrivals.window.held))
    """Ranges that arrived and wait for their turn."""
    settled_ahead = _shown(lambda self: self._arrivals.window.have.copy())
    """Numbers that are held, delivered or given up above the next one."""
    lost = _shown(lambda self: self._arrivals.window.lost.copy())
    """Lost numbers that are not reported yet, because lower numbers are open."""
    known = _shown(lambda self: self._arrivals.window.known.copy())
    """Numbers not reached yet that the application consumed in earlier sessions."""
    consumed = _shown(lambda self: self._arrivals.window.consumed.copy())
    """Numbers consumed and not acknowledged yet."""
    skipped = _shown(lambda self: self._arrivals.window.skipped.copy())
    """Numbers given up that no acknowledgement has passed yet."""
    lives = _shown(lambda self: {life: known.copy() for life, known in self._arrivals.lives.consumed.items()})
    """Numbers consumed in this session and before, by the life that sent them."""
    seen = _shown(lambda self: frozenset(self._arrivals.lives.seen))
    """The lives that sent messages in this session."""
    wanted = _shown(lambda self: self._arrivals.requests.history.wanted.copy())
    """Missing history that is not requested yet."""
    asked = _shown(lambda self: tuple(map(attrs.evolve, self._arrivals.requests.history.asked)))
    """Requests for history that are not answered yet."""

    contested = _shown(
        lambda self: (
            bool(self._enrollment.counting)
            and not self._enrollment.enough
            and any(one.refused for one in self._enrollment.registrations.values())
        )
    )
    """True if some stores granted, too few, and another refused: another client may have the session id there."""

    def leased(self, now: int) -> bool:
        """Return whether enough stores keep the receiver's RegIDs for it at `now` (ns)."""
        return self._enrollment.leased(now)

    @property
    def owes(self) -> bool:
        """True while the application may still acknowledge messages itself."""
        window = self._arrivals.window
        explicit = self._arrivals.config.ack_mode is AckMode.EXPLICIT
        return explicit and window.next is not None and window.acked + 1 < window.next

    @property
    def unrecorded(self) -> tuple[str, ...]:
        """The counting stores that have not shown the newest acknowledgement in a grant; none if enough have."""
        window, behind, recorded = self._arrivals.window, [], 0
        if window.next is None or window.acked < window.start:
            return ()
        for registration in self._enrollment.counting:
            answer = registration.granted
            if answer is not None and answer.old and offer(answer, window.acked)[0] > window.acked:
                recorded |= 1 << registration.request.store_index
            else:
                behind.append(registration.address)
        return () if self._enrollment.quorums.registered(recorded) else tuple(behind)

    @property
    def confirmable(self) -> tuple[tuple[int, int], ...]:
        """Ranges up to `acknowledged` that were confirmed to the source, or may be; also those of earlier sessions."""
        return tuple(self._arrivals.window.confirmable)

    @property
    def turn(self) -> int | None:
        """Number of requests for history so far, which selects the next store; None when no history is missing."""
        history = self._arrivals.requests.history
        return history.turn if history else None

    def stores(self, index: int | None = None) -> list[Address]:
        """Return the known addresses of all stores, or of the one with this index."""
        return self._enrollment.addresses(index)
