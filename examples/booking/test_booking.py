"""Each order is booked once, whatever crashes."""

import booking

import stablecast.testing
from stablecast.testing import SimulatedWorld, crash, partition, stop

FAULTS = crash("store") | crash("app") | crash("app", power=True) | stop() | partition()


@stablecast.testing.world(stores=3, seeds=200, faults=FAULTS)
async def test_orders_are_booked_once(world: SimulatedWorld) -> None:
    """Sell and book in worlds of three stores."""
    world.start(booking.sell, world.stores, host="shop", **world.context_of("shop"))
    world.start(booking.book, host="office", **world.context_of("office"))
    await world.settled()
    booked = world.read("office", "book").decode().split("\n")
    assert booked == [*(f"order {number}" for number in range(booking.ORDERS)), ""]
