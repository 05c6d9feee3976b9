"""The stores of a world and the relay through which contexts find each other."""

from stablecast.lab.world.programs import StoreProgram, relay_address, start_relay
from stablecast.lab.world.world import World
from stablecast.testing.simulated_world import SimulatedWorld

RELAY = "relay"
"""The host of the relay."""


def start_stores(world: SimulatedWorld, lab: World, count: int) -> None:
    """Start a relay and stores, on the hosts `store0`, `store1` and so on."""
    relay = relay_address(lab, RELAY)
    world.resolve_at([relay])
    world.add("lbmrd", RELAY, "relay", lambda: start_relay(lab, RELAY))
    for number in range(count):
        store = StoreProgram(lab, f"store{number}", [relay])
        world.add("store", store.name, "store", store.start)
        world.stores.append(store.address)
