"""A source as it stands: a read-only copy for judges of traces, models, simulators and embedders.

Making a status copies sets of ranges, so it is not for the data path. Questions that a driver asks for each message
are properties of `SourceEndpoint`.
"""

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.messages import Life
from stablecast.core.protocol.quorum import Quorums
from stablecast.core.registration.registration_set import RegistrationSet
from stablecast.core.registration.status import RegistrationStatus, registrations_of
from stablecast.core.source.lineage import Lineage
from stablecast.core.source.transmission import Transmission


@attrs.frozen
class SourceStatus:
    """A source's stores, lives and messages. Range sets are copies; numbers are extended.

    Attributes:
        registrations: By store index.
        first_interval_over: The first registration interval has ended.
        returning: An earlier life may have used these numbers, so every group must answer first.
        turn: Index of the store whose turn it is (round robin), or None.
        claim: The term that the stores' counts of lives must reach.
        term: The term of this life.
        proof: The term that a store must prove before its acknowledgements count; 0 is any.
        lives: The lives of the source, this one last.
        unproven: Indices of the stores whose acknowledgements do not count under `proof`.
        acked: By store, the numbers that it acknowledged.
        lost: By store, the numbers that it lost for good.
        stable: Retained numbers that satisfy the rules of the groups.
        settled: Retained numbers that are stable and confirmed.
        unsettled: The ranges of runs that are not settled yet, whole runs each.
        unruled: No store acknowledges, so confirmations alone settle.
        blocked: A send waits for credit.
    """

    registrations: dict[int, RegistrationStatus]
    first_interval_over: bool
    returning: bool
    turn: int | None
    quorums: Quorums
    claim: int
    term: int
    proof: int
    lives: tuple[Life, ...]
    unproven: frozenset[int]
    acked: tuple[RangeSet, ...]
    lost: tuple[RangeSet, ...]
    stable: RangeSet
    settled: RangeSet
    unsettled: tuple[tuple[int, int], ...]
    unruled: bool
    blocked: bool

    @classmethod
    def of(cls, enrollment: RegistrationSet, lineage: Lineage, sending: Transmission) -> "SourceStatus":
        """Return the status of the source that has these parts."""
        window, known = sending.window, registrations_of(enrollment)
        return cls(
            registrations=known,
            first_interval_over=enrollment.first_interval_over,
            returning=enrollment.returning,
            turn=None if enrollment.rotation is None else enrollment.rotation.turn,
            quorums=enrollment.quorums,
            claim=enrollment.term,
            term=lineage.term,
            proof=lineage.proof,
            lives=tuple(lineage.lives),
            unproven=frozenset(index for index, one in known.items() if not lineage.proven(one.granted)),
            acked=tuple(held.copy() for held in window.acked),
            lost=tuple(held.copy() for held in window.lost),
            stable=window.stable.copy(),
            settled=window.settled.copy(),
            unsettled=tuple((run.first, run.stop) for run in window.runs),
            unruled=window.unruled,
            blocked=bool(sending.flight.waiting),
        )
