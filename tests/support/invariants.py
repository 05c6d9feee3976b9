"""The rules that hold between the inputs of the core's machines. Tests assert them after each input."""

from functools import singledispatch
from itertools import pairwise

from stablecast.core.receiver.arrival import Arrivals
from stablecast.core.receiver.delivery_window import DeliveryWindow
from stablecast.core.receiver.endpoint import ReceiverSession
from stablecast.core.source.endpoint import SourceEndpoint, SourceState
from stablecast.core.source.large_messages import LargeMessages
from stablecast.core.source.stability import StabilityWindow
from stablecast.core.store.endpoint import StoreEndpoint
from stablecast.core.store.message_window import MessageWindow
from stablecast.core.store.proxy_election import Election, ElectionState, ElectionTimer
from stablecast.core.store.proxy_elections import Elections
from stablecast.core.store.registry import Registry
from stablecast.core.store.repository import Repository


@singledispatch
def check_invariants(machine: object) -> None:
    """Assert the rules of a machine, and of its parts."""
    raise NotImplementedError(machine)


@check_invariants.register
def _(machine: Arrivals) -> None:
    window, cared = machine.window, machine.requests.cared
    check_invariants(window)
    assert window.high is None or window.high >= machine.resume_point - 1
    assert not cared or (cared.last or 0) <= machine.high
    if window.next is not None and not window.behind:
        assert not any((window.held, window.have, window.known, window.lost))


@check_invariants.register
def _(machine: DeliveryWindow) -> None:
    spans = [(held.first, held.stop) for held in machine.held]
    assert spans == sorted(spans)
    assert all(first < stop for first, stop in spans)
    assert all(not machine.have.missing(first, stop) for first, stop in spans)
    assert not machine.in_order or sum(stop - first for first, stop in spans) == machine.have.total()
    assert machine.next is None or machine.in_order or not spans
    assert machine.next is None or machine.have.first is None or machine.have.first > machine.next
    assert sum(machine.users.values()) == len(machine.held)


@check_invariants.register
def _(machine: Election) -> None:
    assert (machine.holder is None) is (machine.state in (ElectionState.WATCHING, ElectionState.WAITING))
    waits = machine.state is ElectionState.WAITING and machine.may_stand
    assert machine.timers.armed(ElectionTimer.WAIT) is (waits or machine.state is ElectionState.STANDING)
    assert machine.life not in machine.past
    assert not machine.backed or (machine.quorum and machine.ours)
    assert machine.backed or not machine.quorum or machine.state is not ElectionState.SERVING


@check_invariants.register
def _(machine: Elections) -> None:
    for election in machine.running.values():
        check_invariants(election)


def check_large_messages(machine: LargeMessages, below: int) -> None:
    """Assert the rules of the spans of large messages; nothing from `below` on was sent."""
    spans = list(zip(machine.firsts, machine.lasts, strict=True))
    assert all(first < last < below for first, last in spans)
    assert all(one[1] < other[0] for one, other in pairwise(spans))


@check_invariants.register
def _(machine: MessageWindow) -> None:
    assert all(machine.held.within(low, high) == [(low, high)] for low, high in machine.synced)
    assert not machine.held or machine.trail <= machine.held.ranges[0][0]
    assert machine.trail <= machine.mem_trail <= machine.lead + 1
    for extents in (machine.memory, machine.disk):
        assert extents.messages == sum(run.stop - run.first for run in extents.runs)
        assert all(machine.held.within(run.first, run.stop) == [(run.first, run.stop)] for run in extents.runs)


@check_invariants.register
def _(machine: ReceiverSession) -> None:
    check_invariants(machine.arrivals)


@check_invariants.register
def _(machine: Registry) -> None:
    check_invariants(machine.elections)
    for repository in machine.repositories.values():
        check_invariants(repository)
    assert set(machine.repositories) == {record.client.reg_id for record in machine.clients.sources()}
    assert set(machine.streams.values()) == set(machine.repositories)


@check_invariants.register
def _(machine: Repository) -> None:
    check_invariants(machine.window)
    assert all(not machine.held.within(low, high) for low, high in machine.filling.lost)


@check_invariants.register
def _(machine: SourceEndpoint) -> None:
    check_invariants(machine.window)
    assert not machine.outbox or machine.state is not SourceState.IDLE


@check_invariants.register
def _(machine: StabilityWindow) -> None:
    in_window = machine.next - machine.trail
    assert machine.unsettled_messages == machine.large.touched(machine.settled.missing(machine.trail, machine.next))
    assert machine.retained_bytes == sum(run.size for run in (*machine.kept, *machine.runs))
    assert machine.unsettled_bytes == sum(run.payload_bytes for run in machine.runs)
    assert 0 <= machine.unsettled_messages <= in_window
    check_large_messages(machine.large, machine.next)


@check_invariants.register
def _(machine: StoreEndpoint) -> None:
    check_invariants(machine.registry)
