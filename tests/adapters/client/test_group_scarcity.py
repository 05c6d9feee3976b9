"""A member of a group without descriptors, on the simulated machine."""

import asyncio

from stablecast.cli.resolution_daemons import serve_srs
from stablecast.client import Context
from stablecast.lab.world.programs import SERVICE_PORT
from stablecast.lab.world.world import OBSERVER, World
from stablecast.resolver.srs import SrsConfig
from stablecast.runtime.event_loop import run_service


def test_a_member_whose_first_descriptors_are_scarce_joins_its_group_later() -> None:
    """Running out passes: what announces the member is opened again, and one that is closed before waits no longer."""
    world = World(1)
    service = world.host("service").address
    settings = SrsConfig(interface=service)
    world.call(lambda: run_service(serve_srs(settings, as_json=False)), "service")

    async def member() -> tuple[list[int], list[int], bool]:
        (process,) = world.host(OBSERVER).running
        async with Context(
            resolver_service=[f"{service}:{SERVICE_PORT}"], interface=world.host(OBSERVER).address
        ) as own:
            roomy, process.limit = process.limit, process.limit - process.free_descriptors
            early = own.receiver("trades", group="billing", shares=1)
            await asyncio.sleep(1)
            await early.close()
            late = own.receiver("orders", group="billing", shares=1)
            reading = asyncio.ensure_future(anext(late))
            await asyncio.sleep(1)
            before, process.limit = [*late._open], roomy
            while not late._open and not reading.done():  # noqa: ASYNC110
                await asyncio.sleep(0.1)
            found = before, [*late._open], reading.done()
            reading.cancel()
            return found

    assert world.run(member) == ([], [0], False)
