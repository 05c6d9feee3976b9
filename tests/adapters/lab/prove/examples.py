"""Example configurations, and worlds made from them."""

from collections.abc import Sequence
from pathlib import Path

from stablecast.lab.prove.instance import Bounds, Instance, instance
from stablecast.lab.prove.search import Result, Search
from stablecast.lab.prove.state import Action, State
from stablecast.lab.prove.world import World

HERE = Path(__file__).parent
BOUNDS = Bounds()


def example(name: str) -> Path:
    """Return the path of an example."""
    return HERE / f"{name}.cfg"


def read(name: str, profile: str, *options: str, bounds: Bounds = BOUNDS) -> Instance:
    """Return the instance of an example."""
    return instance([example(name)], options, profile, bounds)


def search(name: str, profile: str, *options: str, bounds: Bounds = BOUNDS) -> tuple[World, Result]:
    """Search an example; return its world and the result."""
    world = World.create(read(name, profile, *options, bounds=bounds))
    return world, Search(world).run()


def play(world: World, actions: Sequence[Action]) -> State:
    """Return the state after these actions. Each must be possible, or stand for an equivalent one."""
    state = world.start()
    for action in actions:
        state = world.do(state, action).done()
    return state
