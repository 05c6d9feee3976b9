"""Breadth first, so that what is found first is the shortest run: to a loss, or to a state that nothing leads out of.

States that differ only in which of two equal stores of a group is which are one state.

**Stall.** From every state things may turn out well: all stores come back, the source runs, holes are filled, all is
synced, and one more message is sent. If that message, or one before it, does not become stable then, nothing ever does:
that is a stall. What was seen to end well is remembered, so this costs about one more step for each state.
"""

from collections import deque
from enum import StrEnum

import attrs

from stablecast.lab.prove.state import Action, Deed, Loss, State
from stablecast.lab.prove.world import World


class Verdict(StrEnum):
    """What was found."""

    NONE = "none"
    LOSS = "loss"
    STALL = "stall"


@attrs.frozen
class Found:
    """A run from the start to a loss, or if there is none to a stall."""

    run: tuple[Action, ...]
    loss: Loss | None = None


@attrs.frozen
class Result:
    """What was found in how many states; `complete`: those were all."""

    states: int
    complete: bool = True
    loss: Found | None = None
    stall: Found | None = None

    @property
    def verdict(self) -> Verdict:
        """A loss is worse than a stall."""
        return Verdict.LOSS if self.loss else Verdict.STALL if self.stall else Verdict.NONE


@attrs.define
class Search:
    """`came` tells how each state was come to: from which, and by what. `sound` are those that can end well."""

    world: World
    came: dict[State, tuple[State, Action] | None] = attrs.field(factory=dict)
    seen: set[tuple[object, ...]] = attrs.field(factory=set)
    sound: set[tuple[object, ...]] = attrs.field(factory=set)
    stall: Found | None = None

    def run(self) -> Result:
        """Look for the shortest runs, in as many states as the bounds allow; a loss ends the search."""
        world, queue = self.world, deque[State]()
        self._enter(world.start(), None, queue)
        while queue:
            here = queue.popleft()
            for action in world.actions(here):
                loss = self._enter(world.do(here, action).done(), (here, action), queue)
                if loss is not None:
                    return Result(len(self.seen), True, loss, self.stall)
                if len(self.seen) >= world.bounds.states:
                    return Result(len(self.seen), False, None, self.stall)
        return Result(len(self.seen), True, None, self.stall)

    def _enter(self, state: State, came: tuple[State, Action] | None, queue: deque[State]) -> Found | None:
        key = self.world.key(state)
        if key in self.seen:
            return None
        self.seen.add(key)
        self.came[state] = came
        queue.append(state)
        loss = self.world.loss(state)
        if loss is not None:
            return Found(self._way(state), loss)
        if self.stall is None and not ends_well(self.world, state, self.sound):
            self.stall = Found(self._way(state))
        return None

    def _way(self, state: State) -> tuple[Action, ...]:
        actions = []
        came = self.came[state]
        while came is not None:
            state, action = came
            actions.append(action)
            came = self.came[state]
        return tuple(reversed(actions))


DONE: Action = (Deed.STOP, ())


def turn(world: World, state: State, probed: bool) -> Action | None:
    """What leads to a good end next: `DONE` at that end, None if nothing does."""
    source = world.source(state)
    if source is None:
        return (Deed.BEGIN, tuple(world.indices))
    for index in world.indices:
        if not world.store(state, index).up:
            return (Deed.RETURN, (index,))
    if not source.active:
        return (Deed.ALTERNATE, ()) if state.doubled else None  # The other source of the context has what it needs.
    for deed, wanted in ((Deed.INFORM, world.uninformed), (Deed.FILL, world.asks), (Deed.SYNC, world.dirty)):
        for index in world.indices:
            if wanted(state, index):
                return (deed, (index,))
    if not source.settled:
        return None
    return DONE if probed else (Deed.SEND, ())


def ends_well(world: World, state: State, sound: set[tuple[object, ...]] | None = None) -> bool:
    """Whether one more message can become stable if from now on nothing fails; `sound` are states that are known to."""
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
