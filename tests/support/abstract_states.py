"""The abstract states of the core's machines: what their models see, as small values that tests compare."""

from functools import singledispatch
from typing import Any

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.receiver.delivery_window import DeliveryWindow
from stablecast.core.receiver.endpoint import ReceiverSession
from stablecast.core.receiver.recovery import Recovery
from stablecast.core.registration.registration_set import RegistrationSet
from stablecast.core.registration.store_registration import Registration
from stablecast.core.source.endpoint import SourceEndpoint
from stablecast.core.source.stability import StabilityWindow
from stablecast.core.store.client_lifetime import Lifetime
from stablecast.core.store.clients import ClientTable
from stablecast.core.store.endpoint import StoreEndpoint
from stablecast.core.store.proxy_election import Election
from stablecast.core.store.proxy_elections import Elections


@singledispatch
def abstract(machine: Any) -> Any:
    """Return the abstract state of a machine, a function of its state only."""
    return machine.abstract()


@abstract.register
def _(machine: ClientTable) -> tuple[object, ...]:
    """Return RegID, role, lifetime state, incarnation and acknowledged number of every client."""
    return tuple(
        (reg_id, r.client.role.name, abstract(r.lifetime), r.client.incarnation, r.client.acknowledged)
        for reg_id, r in sorted(machine.records.items())
    )


@abstract.register
def _(machine: DeliveryWindow) -> tuple[object, ...]:
    """Return what the recovery model sees: next, newest known, held or settled ahead, last acknowledged."""
    return (machine.next, machine.high, tuple(machine.have), machine.acked)


@abstract.register
def _(machine: Election) -> tuple[object, ...]:
    """Return the state, the holder's token, and the newest life of the source."""
    return (machine.state.name, None if machine.holder is None else machine.holder.rank, machine.life)


@abstract.register
def _(machine: Elections) -> tuple[object, ...]:
    return tuple((reg_id, abstract(election)) for reg_id, election in sorted(machine.running.items()))


@abstract.register
def _(machine: Lifetime) -> str:
    return machine.state.name


@abstract.register
def _(machine: ReceiverSession) -> tuple[object, ...]:
    """Return what the models see: state, registrations, window, requests."""
    return (machine.state.name, abstract(machine.enrollment), abstract(machine.window), abstract(machine.requests))


@abstract.register
def _(machine: Recovery) -> tuple[object, ...]:
    """Return what is and will be requested: history, gaps, and gaps that are too young."""
    young = RangeSet()
    for gaps in machine.young.values():
        for start, stop in gaps:
            young.add(start, stop)
    return (abstract(machine.history), abstract(machine.gaps), tuple(young))


@abstract.register
def _(machine: Registration) -> tuple[object, ...]:
    """Return what the registration model sees: the state, the RegID asked for and the generation."""
    return (machine.state.name, machine.request.reg_id, machine.request.generation)


@abstract.register
def _(machine: RegistrationSet) -> tuple[object, ...]:
    return tuple(abstract(registration) for _, registration in sorted(machine.registrations.items()))


@abstract.register
def _(machine: SourceEndpoint) -> tuple[object, ...]:
    """Return what the models see: the right to send, the resume point, the registrations, the window."""
    return (machine.state.name, machine.resume_point, abstract(machine.enrollment), abstract(machine.window))


@abstract.register
def _(machine: StabilityWindow) -> tuple[object, ...]:
    """Return what the stability model sees: trail, next, stable ranges, and acknowledgements by store."""
    return (machine.trail, machine.next, tuple(machine.stable), tuple(tuple(held) for held in machine.acked))


@abstract.register
def _(machine: StoreEndpoint) -> tuple[object, ...]:
    """Return what the models see: clients with their timers, and the repositories."""
    return (
        abstract(machine.clients),
        tuple((reg_id, abstract(repository)) for reg_id, repository in sorted(machine.repositories.items())),
    )
