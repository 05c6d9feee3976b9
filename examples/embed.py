"""Run a source and a store in one process without sockets, files, tasks or a clock.

The machines return effects, and the driver below performs them. It passes messages on, treats writes as synced at
once, and moves its time to the next deadline. The asyncio client and the store daemon drive the same machines with
real sockets, disks and clocks.
"""

from collections import deque
from typing import Any

from stablecast.core import GroupRules, SourceConfig, SourceEndpoint, StoreConfig, StoreEndpoint, StoreSpec
from stablecast.core import effects as fx
from stablecast.core.protocol.events import RegistrationComplete
from stablecast.core.protocol.inputs import Arrived, Data, Persisted, Sent, Start

MILLISECOND = 1_000_000
LIFE = 1
COUNT, SIZE = 3, 100
END = 250 * MILLISECOND

source = SourceEndpoint.create(
    SourceConfig(
        "orders", LIFE, reply_to="source", transport="stream", stores=(StoreSpec("store"),), groups=GroupRules((1,))
    )
)
store = StoreEndpoint.create(StoreConfig("store", seed=1))
names: dict[str, Any] = {"source": source, "store": store}
inputs: deque[tuple[str, Any]] = deque([("store", Start()), ("source", Start())])


def perform(name: str, effect: fx.Effect, now: int) -> None:
    """Perform one effect of the machine `name`."""
    moment = f"{now // MILLISECOND:4} ms  {name:6}"
    match effect:
        case fx.Send(to, message):
            print(f"{moment} sends to {to}: {type(message).__name__}")
            inputs.append((to, Arrived(message)))
        case fx.Broadcast(message):
            print(f"{moment} broadcasts: {type(message).__name__}")
            inputs.append(("store", Arrived(message)))
        case fx.Join(_, transport):
            print(f"{moment} joins {transport}")
        case fx.PersistClient(ticket=ticket) | fx.PersistMessages(ticket=ticket):
            print(f"{moment} writes: {type(effect).__name__}")
            inputs.append((name, Persisted(ticket)))
        case fx.Notify(event):
            print(f"{moment} reports: {type(event).__name__}")
            if isinstance(event, RegistrationComplete):
                inputs.append(("source", Sent(event.number, COUNT, COUNT * SIZE)))
                inputs.append(("store", Data(LIFE, LIFE, event.number, COUNT, COUNT * SIZE, recovered=False, token=1)))
        case fx.Release(number):
            print(f"{moment} releases its copies below {number}")


now = 0
while now <= END:
    while inputs:
        name, event = inputs.popleft()
        names[name].receive(event, now)
        for effect in names[name].take_effects():
            perform(name, effect, now)
    now = min(machine.next_timeout() for machine in names.values())
    for name, machine in names.items():
        machine.handle_timeout(now)
        for effect in machine.take_effects():
            perform(name, effect, now)
print(f"stable through {source.stable_through}")
