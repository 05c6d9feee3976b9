"""The composed system keeps its guarantees in all explored states, and faults of the core break them."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner

from stablecast.cli.model import app
from stablecast.core.protocol.quorum import Quorums
from stablecast.core.receiver.arrival import FirstNumberChoice
from stablecast.core.receiver.delivery_window import DeliveryWindow
from stablecast.core.source.stability import StabilityWindow
from stablecast.core.store import grants
from stablecast.core.store.repository import Repository
from stablecast.lab.model.canonical import ForgetfulError
from stablecast.lab.prove import composed, twins
from stablecast.lab.prove.bounds import COMPOSED_SHORT
from stablecast.lab.prove.search import Search
from stablecast.lab.prove.state import NOBODY, Action, Deed, State
from stablecast.lab.prove.variants import BEGUN, VARIANTS
from stablecast.lab.prove.world import ProofWorld

KNOWN = {one.name: one for one in VARIANTS}
_ASK = FirstNumberChoice.ask


def played(name: str, *actions: Action) -> tuple[ProofWorld, State]:
    """Return a world and its state after these actions, each of which must be possible."""
    world = KNOWN[name].world(1)
    state = world.start()
    for action in actions:
        assert action in list(world.actions(state))
        state = world.do(state, action).done()
    return world, state


@pytest.mark.no_cover
def test_the_short_form_keeps_all_guarantees() -> None:
    found = list(composed.explore(COMPOSED_SHORT))
    assert [one.broken for one in found] == [""] * len(VARIANTS)
    assert sum(one.states for one in found) == COMPOSED_SHORT
    assert all(one.twins > 100 for one in found)
    assert {letter for one in found for letter in one.rules} == {"A1", "C1", "D1", "D2", "P1", "R6", "S1", "S2", "S3"}


def acknowledge_held(self: Repository, now: int, out: list[Any]) -> None:
    """Acknowledge what a store holds, synced or not."""
    self.window.on_synced(0, self.newest + 1)
    first = self._advance()
    self._acknowledge_again(first, self.acked, now, out)


def release_all(self: StabilityWindow, out: list[Any]) -> None:
    """Release every copy with the first acknowledgement."""
    while self.runs:
        self._drop(self.runs.popleft())


def ask_above(self: FirstNumberChoice, proposal: int, *words: Any) -> None:
    """Begin one message too late."""
    _ASK(self, proposal + 1, *words)


def acknowledge_delivered(self: DeliveryWindow, explicit: bool = False) -> int | None:
    """Acknowledge what was delivered, consumed or not."""
    assert self.next is not None
    return self._acknowledged(self.next - 1 if self.next - 1 > self.acked else None)


FAULTS: dict[str, tuple[str, str, int, Callable[[pytest.MonkeyPatch], object]]] = {
    "messages count before they are synced": (
        *("messages", "P1", 1_000),
        lambda patch: patch.setattr(Repository, "_acknowledge", acknowledge_held),
    ),
    "copies are released with the first acknowledgement": (
        *("receiver", "C1", 1_000),
        lambda patch: patch.setattr(StabilityWindow, "_release", release_all),
    ),
    "a session begins one message too late": (
        *("receiver", "D1", 1_000),
        lambda patch: patch.setattr(FirstNumberChoice, "ask", ask_above),
    ),
    "what is delivered is acknowledged": (
        *("receiver", "A1", 4_000),
        lambda patch: patch.setattr(DeliveryWindow, "acknowledge", acknowledge_delivered),
    ),
    "a store that lacks messages has a vote": (
        *("unread", "D1", 10_000),
        lambda patch: (
            patch.setattr(grants, "first_lacking", lambda _: None),
            patch.setattr(grants, "remembers", lambda _: True),
        ),
    ),
    "one store of a group is enough": (
        *("receiver", "S1", 1_000),
        lambda patch: patch.setattr(Quorums, "_quorum", lambda self, group, mask: bool(mask & self.members[group])),
    ),
}
"""Planted in the core: each with the variant that shows it, the guarantee that breaks, and a number of states."""


@pytest.mark.no_cover
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_core_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variant, rule, states, patch = FAULTS[name]
    patch(monkeypatch)
    found = composed.explored(KNOWN[variant], states)
    assert (found.broken, bool(found.found)) == (rule, True)


@pytest.mark.no_cover
def test_an_endpoint_that_behaves_unlike_its_state_is_found() -> None:
    world = KNOWN["messages"].world(300)
    Search(world, stalls=False).run()
    assert twins.compare(world) > 10
    begun, sent = (played("messages", *run)[1].source for run in (BEGUN, (*BEGUN, (Deed.SEND, ()))))
    world.sources.twins[begun] = world.sources.states[sent]
    with pytest.raises(ForgetfulError, match=f"two sources are in state {begun}"):
        twins.compare(world)


def test_a_receiver_recovers_what_it_missed_and_consumes_it() -> None:
    learned = ((Deed.ATTEND, ()), (Deed.SEND, (NOBODY,)), (Deed.LEARN, ()))
    world, state = played("receiver", *learned, (Deed.CONSUME, ()))
    assert world.receiver(state).read == {(1, 0)}
    assert [world.store(state, index).consumed for index in world.indices] == [0, 0, 0]


def test_a_receiver_that_dies_begins_behind_what_it_consumed() -> None:
    first = ((Deed.ATTEND, ()), (Deed.SEND, ()), (Deed.CONSUME, ()), (Deed.QUIT, ()))
    world, state = played("receiver", *first, (Deed.SEND, ()), (Deed.ATTEND, ()), (Deed.CONSUME, ()))
    assert world.receiver(state).start == 1
    assert world.receiver(state).read == {(1, 0), (1, 1)}


def test_a_message_is_lost_for_some_and_an_sri_names_it() -> None:
    world, state = played("messages", *BEGUN, (Deed.SEND, (0, 1)))
    assert [world.store(state, index).content for index in world.indices] == [{}, {}, {0: 1}]
    informed = world.do(state, (Deed.INFORM, (0,))).done()
    assert world.store(informed, 0).question is not None


def test_acknowledgements_outlive_their_life() -> None:
    late = ((Deed.SEND, ()), (Deed.SYNC_LATE, (0,)), (Deed.STOP, ()))
    world, state = played("messages", *BEGUN, *late, (Deed.BEGIN, (0, 1, 2)))
    assert (Deed.HEAR, (0,)) in list(world.actions(state))
    assert world.do(state, (Deed.HEAR, (0,))).done().safe == frozenset()


def test_a_minority_of_disks_is_lost_whoever_is_away() -> None:
    """Another disk may be lost when the first one is whole again. Who was away all the time need not be."""
    world, state = played("unread", (Deed.STOP, ()), (Deed.WIPE, (0,)))
    assert (world.may_wipe(state, 0), world.may_wipe(state, 1), world.may_wipe(state, 2)) == (False, False, False)
    begun = ((Deed.BEGIN, (0, 1, 2)), (Deed.INFORM, (0,)), (Deed.INFORM, (1,)))
    refilled = ((Deed.REFILL, (0,)), (Deed.SYNC, (0,)), (Deed.LEAVE, (1,)))
    for action in (*begun, *refilled):
        assert action in list(world.actions(state))
        state = world.do(state, action).done()
    assert (world.may_wipe(state, 1), world.whole(state, 2)) == (True, False)


def test_a_store_syncs_a_part() -> None:
    world, state = played("messages", *BEGUN, (Deed.SEND, ()), (Deed.SEND, ()), (Deed.SYNC_FIRST, (0,)))
    assert (world.store(state, 0).disk, world.store(state, 0).content) == ({0: 1}, {0: 1, 1: 1})


def test_messages_are_in_memory_before_the_disk() -> None:
    world, state = played("memory", *BEGUN, (Deed.SEND, ()))
    assert (world.store(state, 0).writes, world.store(state, 0).dirty) == (True, False)
    written = world.do(state, (Deed.WRITE, (0,))).done()
    assert (world.store(written, 0).writes, world.store(written, 0).dirty) == (False, True)


def test_the_command() -> None:
    said = CliRunner().invoke(app, ["composed", "receiver", "--states", "700", "--json"])
    told = json.loads(said.output)
    assert (said.exit_code, told["name"], told["states"], told["broken"]) == (0, "receiver", 105, "")
    said = CliRunner().invoke(app, ["composed", "wipes", "--states", "700"])
    assert said.output.endswith("42 states\n")
    assert CliRunner().invoke(app, ["composed", "nothing"]).exit_code == 2


def test_the_command_prints_the_run_to_a_broken_guarantee(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StabilityWindow, "_release", release_all)
    said = CliRunner().invoke(app, ["composed", "receiver", "--states", "7000"])
    assert said.exit_code == 1
    assert "BREAKS C1: the source released a message that is not stable" in said.output
    assert "the source sends 0" in said.output
