"""A fault in what a receiver recovers with shows as another graph, or as an invariant that does not hold."""

from typing import Any

import attrs
import pytest

from stablecast.core.protocol.request_window import RequestWindow, Target
from stablecast.core.receiver import ReceiverSession, arrival, store_registrations
from stablecast.core.receiver.consumption_acks import Acknowledger
from stablecast.core.receiver.delivery_window import DeliveryWindow
from stablecast.core.receiver.recovery import Recovery
from stablecast.core.receiver.store_registrations import StoreRegistrations
from stablecast.core.registration.registration_set import RegistrationSet
from stablecast.core.store.clients import ClientTable
from stablecast.core.store.repository import Repository
from tests.models.planted import Patch, after, before, changed, fixed, is_seen


def delivered(self: DeliveryWindow, explicit: bool = False) -> int | None:
    assert self.next is not None
    return self._acknowledged(self.next - 1 if self.next - 1 > self.acked else None)


def losses_too(self: DeliveryWindow, explicit: bool = False) -> int | None:
    self.consumed.ranges, skipped = self.consumed.ranges.copy(), self.skipped
    for start, stop in skipped:
        self.consumed.add(start, stop)
    return self._acknowledged(
        end - 1 if (end := self.consumed.contiguous_from(self.acked + 1)) > self.acked + 1 else None
    )


def silently(self: DeliveryWindow, start: int, stop: int, burst: bool, out: list[Any]) -> None:
    self.skipped.add(max(start, self.acked + 1), stop)


def step_back(self: DeliveryWindow, first: int, *_: Any) -> None:
    if self.next is not None and first < self.next:
        self.next = first


def no_turns(self: RequestWindow) -> None:
    self.turn = 0


def forgotten(self: RequestWindow) -> None:
    self.retrying.clear()


def patient(self: RequestWindow, now: int, may_give_up: bool = True, whole: bool = False) -> list[tuple[int, int]]:
    return REAL_TIMEOUT(self, now, False)


def impatient(self: RequestWindow, now: int, may_give_up: bool = True, whole: bool = False) -> list[tuple[int, int]]:
    return REAL_TIMEOUT(self, now, True)


REAL_TIMEOUT = RequestWindow.handle_timeout
REAL_ACKNOWLEDGE = Acknowledger.acknowledge


def any_number(self: ClientTable, record: Any, number: int) -> bool:
    record.client = attrs.evolve(record.client, acknowledged=number, has_acknowledged=True)
    return True


def unknown_for_ever(self: ClientTable, record: Any, number: int) -> bool:
    record.client = attrs.evolve(record.client, acknowledged=number)
    return True


def forgets(self: ClientTable, client: Any, now: int) -> Any:
    return REAL_RESTORE(self, attrs.evolve(client, acknowledged=0, has_acknowledged=False), now)


REAL_RESTORE = ClientTable.restore


def all_that_count(self: StoreRegistrations, source: Target) -> list[Target]:
    return [Target(one.address, one.request.source_reg_id) for one in self.enrollment.counting]


def first_only(self: Repository, start: int, stop: int) -> list[tuple[int, int]]:
    return self.held.within(start, start + 1)


def yes(value: bool) -> property:
    return property(lambda self: value)


MUTANTS: dict[str, tuple[str, Patch]] = {
    "early messages are delivered early": ("graph_ordered", fixed(DeliveryWindow, "in_order", False)),
    "arrival order waits": ("graph_arrival", fixed(DeliveryWindow, "in_order", True)),
    "a loss is not told": ("graph_arrival", changed(DeliveryWindow, "_skip", silently)),
    "a loss is not noticed": ("graph_arrival", changed(DeliveryWindow, "lose", lambda self, *words: None)),
    "duplicates are delivered": ("graph_slow", before(DeliveryWindow, "on_run", step_back)),
    "what is delivered is acknowledged": ("graph_small", changed(DeliveryWindow, "acknowledge", delivered)),
    "a loss is acknowledged": ("graph_arrival", changed(DeliveryWindow, "acknowledge", losses_too)),
    "the highest number is acknowledged": ("graph_small", changed(DeliveryWindow, "acknowledge", DeliveryWindow.leap)),
    "the documented receiver waits for prefixes": (
        "graph_documented",
        changed(DeliveryWindow, "leap", DeliveryWindow.acknowledge),
    ),
    "one store is asked for everything": ("graph_small", after(RequestWindow, "_pick", no_turns)),
    "nothing is asked for twice": ("graph_small", after(RequestWindow, "handle_timeout", forgotten)),
    "the request window is not kept": ("graph_small", fixed(RequestWindow, "window", 1000)),
    "one message is asked for at a time": ("graph_ordered", fixed(RequestWindow, "window", 1)),
    "nothing is given up": ("graph_arrival", changed(RequestWindow, "handle_timeout", patient)),
    "whoever is away, it is given up": ("graph_stores", changed(RequestWindow, "handle_timeout", impatient)),
    "one group is enough to give up": ("graph_stores", changed(StoreRegistrations, "may_give_up", yes(True))),
    "requests to nobody stay open": ("graph_stores", changed(RequestWindow, "_wait", lambda self: None)),
    "what came is asked for again": ("graph_small", changed(RequestWindow, "got", lambda self, *words: None)),
    "what came is still recovered": ("graph_small", changed(Recovery, "got", lambda self, *words: None)),
    "history is not asked for": ("graph_small", changed(Recovery, "look", lambda self, *words: None)),
    "who is away is asked": ("graph_stores", changed(StoreRegistrations, "targets", all_that_count)),
    "the request maximum does not count": (
        "graph_maximum",
        changed(arrival, "start_number", lambda low, high, maximum, wish: wish),
    ),
    "the lowest number counts": (
        "graph_small",
        changed(store_registrations, "receiver_low", lambda answers, *_: min(answer.low for answer in answers)),
    ),
    "what the stores know does not count": ("graph_small", changed(StoreRegistrations, "low", lambda self, high: 1)),
    "a majority is the highest number": (
        "graph_maximum",
        changed(store_registrations, "receiver_low", lambda answers, *_: max(answer.low for answer in answers)),
    ),
    "one store is told": (
        "graph_small",
        changed(
            Acknowledger, "acknowledge", lambda self, counting, *words: REAL_ACKNOWLEDGE(self, counting[:1], *words)
        ),
    ),
    "no store is told": ("graph_small", changed(Acknowledger, "acknowledge_to_store", lambda self, *words: None)),
    "batches do not wait": ("graph_ordered", changed(Acknowledger, "plan", lambda self, now: True)),
    "nothing is acknowledged by itself": ("graph_small", changed(Acknowledger, "plan", lambda self, now: False)),
    "who ends says nothing": ("graph_maximum", changed(ReceiverSession, "_acknowledge", lambda self, now: None)),
    "a late acknowledgement counts": ("graph_small", changed(ClientTable, "on_acknowledged", any_number)),
    "a store knows nobody": ("graph_small", changed(ClientTable, "on_acknowledged", unknown_for_ever)),
    "a store that returns has forgotten": ("graph_stores", changed(ClientTable, "restore", forgets)),
    "a quorum is enough at once": ("graph_stores", changed(RegistrationSet, "everyone", yes(True))),
    "all stores must answer": (
        "graph_stores",
        changed(RegistrationSet, "_allows", lambda self, mask: all(one.counts for one in self.registrations.values())),
    ),
    "a store sends one message only": ("graph_ordered", changed(Repository, "available", first_only)),
    "a store sends what it does not hold": (
        "graph_small",
        changed(Repository, "available", lambda self, start, stop: [(start, stop)]),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_of_the_recovery_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """P-349, P-417, P-418, P-422, P-429, P-431, P-432, P-433, T3, T4, T9; formal design, 7.2 and 7.7."""
    graph, patch = MUTANTS[name]
    assert is_seen(patch, monkeypatch, f"Recovery/{graph}")
