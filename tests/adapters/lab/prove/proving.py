"""Examples of configurations, and worlds made of them."""

from collections.abc import Sequence
from pathlib import Path

from stablecast.lab.prove.instance import Instance, ProofBounds, instance
from stablecast.lab.prove.search import Search, SearchResult
from stablecast.lab.prove.state import Action, State
from stablecast.lab.prove.world import ProofWorld

HERE = Path(__file__).parent
BOUNDS = ProofBounds()


def example(name: str) -> Path:
    """An example's file."""
    return HERE / f"{name}.cfg"


def read(name: str, profile: str, *options: str, bounds: ProofBounds = BOUNDS) -> Instance:
    """An example as it is read."""
    return instance([example(name)], options, profile, bounds)


def search(name: str, profile: str, *options: str, bounds: ProofBounds = BOUNDS) -> tuple[ProofWorld, SearchResult]:
    """What is found in an example."""
    world = ProofWorld.create(read(name, profile, *options, bounds=bounds))
    return world, Search(world).run()


def play(world: ProofWorld, actions: Sequence[Action]) -> State:
    """The state after these actions, each of which is possible where it comes or stands for an equal one."""
    state = world.start()
    for action in actions:
        state = world.do(state, action).done()
    return state
