"""A client's registrations as they stand: a read-only copy for whoever looks at an endpoint from outside."""

import attrs

from stablecast.core.protocol.messages import Address, Register, Registered
from stablecast.core.registration.registration_set import RegistrationSet
from stablecast.core.registration.store_registration import Registration, RegistrationState


@attrs.frozen
class RegistrationStatus:
    """One store's registration: the request to send, its newest grant, and the state of the registration.

    Attributes:
        counts: The store counts towards a quorum of registered stores.
        present: The store granted, and nothing indicates that it is away.
        active: It is present, and answered lately, if a rule of the client depends on that.
        failing: The store does not grant: an interval passed without a grant, or the lease ended.
        left: The store has forgotten the client.
    """

    request: Register
    address: Address
    state: RegistrationState
    granted: Registered | None
    counts: bool
    present: bool
    active: bool
    failing: bool
    left: bool

    @classmethod
    def of(cls, known: Registration) -> "RegistrationStatus":
        flags = (known.counts, known.present, known.active, known.failing, known.left)
        return cls(known.request, known.address, known.state, known.granted, *flags)


def registrations_of(enrollment: RegistrationSet) -> dict[int, RegistrationStatus]:
    """Return the status of every registration by store index, in the order in which they were made."""
    return {index: RegistrationStatus.of(known) for index, known in enrollment.registrations.items()}
