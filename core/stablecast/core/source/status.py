"""A source as it stands: read-only questions for judges of traces, models, simulators and embedders.

Each question copies what it shows, so it is not for the data path. Questions that a driver asks for each message are
properties of `SourceEndpoint`. A status follows the source: ask again after an input.
"""

from collections.abc import Callable
from typing import TypeVar

import attrs

from stablecast.core.protocol.messages import Address
from stablecast.core.registration.registration_set import RegistrationSet
from stablecast.core.registration.status import registrations_of
from stablecast.core.source.lineage import Lineage
from stablecast.core.source.transmission import Transmission

ShownT = TypeVar("ShownT")


def _shown(read: Callable[["SourceStatus"], ShownT]) -> ShownT:
    """Return a property; its type is that of the value."""
    return property(read)  # type: ignore[return-value] # properties show as their values


@attrs.frozen
class SourceStatus:
    """A source's stores, lives and messages. Range sets are copies; numbers are extended."""

    _enrollment: RegistrationSet
    _lineage: Lineage
    _sending: Transmission

    registrations = _shown(lambda self: registrations_of(self._enrollment))
    """The registrations by store index."""
    first_interval_over = _shown(lambda self: self._enrollment.first_interval_over)
    """True if the first registration interval has ended."""
    returning = _shown(lambda self: self._enrollment.returning)
    """True if an earlier life may have used these numbers, so every group must answer first."""
    turn = _shown(lambda self: None if self._enrollment.rotation is None else self._enrollment.rotation.turn)
    """Index of the store whose turn it is (round robin), or None."""
    quorums = _shown(lambda self: self._enrollment.quorums)
    """The rules of the groups."""
    claim = _shown(lambda self: self._enrollment.term)
    """The term that the stores' counts of lives must reach."""
    term = _shown(lambda self: self._lineage.term)
    """The term of this life."""
    proof = _shown(lambda self: self._lineage.proof)
    """The term that a store must prove before its acknowledgements count; 0 is any."""
    lives = _shown(lambda self: tuple(self._lineage.lives))
    """The lives of the source, this one last."""
    acked = _shown(lambda self: tuple(held.copy() for held in self._sending.window.acked))
    """By store, the numbers that it acknowledged."""
    lost = _shown(lambda self: tuple(held.copy() for held in self._sending.window.lost))
    """By store, the numbers that it lost for good."""
    stable = _shown(lambda self: self._sending.window.stable.copy())
    """Retained numbers that satisfy the rules of the groups."""
    settled = _shown(lambda self: self._sending.window.settled.copy())
    """Retained numbers that are stable and confirmed."""
    confirmed = _shown(lambda self: tuple(held.copy() for held in self._sending.window.confirmations.counted))
    """By n, the retained numbers that more than n receivers confirmed, up to the receivers that a release waits for."""
    unsettled = _shown(lambda self: tuple((run.first, run.stop) for run in self._sending.window.runs))
    """The ranges of runs that are not settled yet, whole runs each."""
    large = _shown(lambda self: self._sending.window.large.copy())
    """The retained messages that were cut."""
    unruled = _shown(lambda self: self._sending.window.unruled)
    """True if no store acknowledges, so confirmations alone settle."""
    blocked = _shown(lambda self: bool(self._sending.flight.waiting))
    """True if a send waits for credit."""

    @property
    def unproven(self) -> frozenset[int]:
        """Indices of the stores whose acknowledgements do not count under `proof`."""
        known = self._enrollment.registrations.items()
        return frozenset(index for index, one in known if not self._lineage.proven(one.granted))

    def stores(self, index: int | None = None) -> list[Address]:
        """Return the known addresses of all stores, or of the one with this index."""
        return self._enrollment.addresses(index)
