"""Search breadth first for the shortest run to a loss, or to a state without a good continuation.

States that differ only by equal stores of a group are one state.

**Stall.** From every state a good continuation is tried: all stores return, the source runs, holes are filled,
everything is synced, and one more message is sent. If that message, or an earlier one, does not become stable, nothing
ever does. States that are known to end well are cached, so this costs about one more step for each state.
"""

from collections import deque
from enum import StrEnum

import attrs

from stablecast.lab.prove.rules import PROVED, Rule, first_loss
from stablecast.lab.prove.state import Action, Deed, Loss, Run, State
from stablecast.lab.prove.world import ProofWorld


class ProofVerdict(StrEnum):
    NONE = "none"
    LOSS = "loss"
    STALL = "stall"


@attrs.frozen
class FoundRun:
    """Hold a run from the start to a loss, or if there is none to a stall."""

    run: Run
    loss: Loss | None = None


@attrs.frozen
class SearchResult:
    """Hold what was found in how many states; `complete` means that these were all."""

    states: int
    complete: bool = True
    loss: FoundRun | None = None
    stall: FoundRun | None = None

    @property
    def verdict(self) -> ProofVerdict:
        """The result; a loss is worse than a stall."""
        return ProofVerdict.LOSS if self.loss else ProofVerdict.STALL if self.stall else ProofVerdict.NONE


@attrs.define
class Search:
    """Search a world. `came` holds the predecessor of each state, and `sound` the states that can end well.

    A state that breaks a rule is a loss. Without `stalls`, only losses are searched.
    """

    world: ProofWorld
    rules: tuple[Rule, ...] = PROVED
    stalls: bool = True
    came: dict[State, tuple[State, Action] | None] = attrs.field(factory=dict)
    seen: set[tuple[object, ...]] = attrs.field(factory=set)
    sound: set[tuple[object, ...]] = attrs.field(factory=set)
    stall: FoundRun | None = None

    def run(self) -> SearchResult:
        """Search within the bounds; a loss ends the search."""
        world, queue = self.world, deque[State]()
        self._enter(world.start(), None, queue)
        while queue:
            here = queue.popleft()
            for action in world.actions(here):
                loss = self._enter(world.do(here, action).done(), (here, action), queue)
                if loss is not None:
                    return SearchResult(len(self.seen), True, loss, self.stall)
                if len(self.seen) >= world.bounds.states:
                    return SearchResult(len(self.seen), False, None, self.stall)
        return SearchResult(len(self.seen), True, None, self.stall)

    def _enter(self, state: State, came: tuple[State, Action] | None, queue: deque[State]) -> FoundRun | None:
        key = self.world.key(state)
        if key in self.seen:
            return None
        self.seen.add(key)
        self.came[state] = came
        queue.append(state)
        loss = first_loss(self.world, self.rules, state)
        if loss is not None:
            return FoundRun(self._way(state), loss)
        if self.stalls and self.stall is None and not ends_well(self.world, state, self.sound):
            self.stall = FoundRun(self._way(state))
        return None

    def _way(self, state: State) -> Run:
        actions = []
        came = self.came[state]
        while came is not None:
            state, action = came
            actions.append(action)
            came = self.came[state]
        return tuple(reversed(actions))


DONE: Action = (Deed.STOP, ())


def turn(world: ProofWorld, state: State, probed: bool) -> Action | None:
    """Return the next action of a good continuation: `DONE` at its end, None if there is none."""
    source = world.source(state)
    if source is None:
        return (Deed.BEGIN, tuple(world.indices))
    for index in world.indices:
        if not world.store(state, index).up:
            return (Deed.RETURN, (index,))
    if not source.active:
        return (Deed.ALTERNATE, ()) if state.doubled else None  # The other source of the context has the registrations.
    for deed, wanted in ((Deed.INFORM, world.uninformed), (Deed.FILL, world.asks), (Deed.SYNC, world.dirty)):
        for index in world.indices:
            if wanted(state, index):
                return (deed, (index,))
    if not source.settled:
        return None
    return DONE if probed else (Deed.SEND, ())


def ends_well(world: ProofWorld, state: State, sound: set[tuple[object, ...]] | None = None) -> bool:
    """Return whether one more message can become stable if nothing fails from now on.

    `sound` are states known to end well; the function adds to them.
    """
    known = set() if sound is None else sound
    path: list[tuple[object, ...]] = []
    probed = False
    while True:
        key = (probed, world.key(state))
        if key in known:
            break
        if key in path:
            return False
        path.append(key)
        action = turn(world, state, probed)
        if action is None:
            return False
        if action == DONE:
            break
        probed = probed or action[0] is Deed.SEND
        state = world.do(state, action).done()
    known.update(path)
    return True
