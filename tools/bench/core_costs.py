"""The processor time of the core alone: a source's and a store's machine without bytes, sockets or a disk.

The machines work on runs of messages, so the cost of one message depends on the length of the run. A busy source of
small messages puts 64 of them into a packet of 8 KB.
"""

import time

import attrs

from stablecast.core.protocol.effects import Broadcast, Effect, PersistClient, PersistMessages, Send
from stablecast.core.protocol.inputs import Arrived, Data, Persisted, Sent, Start
from stablecast.core.protocol.messages import StableAck
from stablecast.core.protocol.quorum import GroupRules
from stablecast.core.protocol.settings import RepositoryConfig, SourceConfig, StoreConfig, StoreSpec
from stablecast.core.source import SourceEndpoint
from stablecast.core.store import StoreEndpoint
from tools.bench.roles import BenchError

RUN_MESSAGES = 64
PAYLOAD_BYTES = 100
FLIGHT_RUNS = 300
"""Number of runs in flight, which is about 20000 messages."""

_SOURCE = SourceConfig("bench", 1, "source", "stream", (StoreSpec("store"),), GroupRules((1,)), flight_messages=20_000)
_STORE = StoreConfig("store", seed=1)


def registered(repository: RepositoryConfig | None = None) -> tuple[SourceEndpoint, StoreEndpoint]:
    """Return the machines of a source and a store after the registration. Messages are passed on directly."""
    config = _STORE if repository is None else attrs.evolve(_STORE, repository=repository)
    source, store = SourceEndpoint.create(_SOURCE), StoreEndpoint.create(config)
    store.receive(Start(), 0)
    source.receive(Start(), 0)
    effects: list[Effect] = [*source.take_effects()]
    while effects:
        match effects.pop(0):
            case Send(to="store", message=message) | Broadcast(message=message):
                store.receive(Arrived(message), 0)
            case Send(to="source", message=message):
                source.receive(Arrived(message), 0)
            case PersistClient(ticket=ticket):
                store.receive(Persisted(ticket), 0)
            case _:
                pass
        effects += [*store.take_effects(), *source.take_effects()]
    return source, store


def source_us(runs: int) -> float:
    """Return the source's microseconds per message from sending to stable, always with a full flight."""
    source, _ = registered()
    first, size = 0, RUN_MESSAGES * PAYLOAD_BYTES
    started = time.perf_counter()
    for _ in range(runs):
        source.receive(Sent(first, RUN_MESSAGES, size), 0)
        source.take_effects()
        first += RUN_MESSAGES
        acked = first - FLIGHT_RUNS * RUN_MESSAGES
        if acked >= 0:
            source.receive(Arrived(StableAck(0, 1, acked, acked + RUN_MESSAGES - 1)), 0)
            source.take_effects()
    elapsed = time.perf_counter() - started
    if source.window.unsettled_messages != min(runs, FLIGHT_RUNS - 1) * RUN_MESSAGES:
        raise BenchError(f"{source.window.unsettled_messages} messages are in flight: the source lost count")
    return elapsed / first * 1e6


def store_us(runs: int) -> float:
    """Return the store's microseconds per message from arrival to acknowledgement, with one run per sync."""
    _, store = registered()
    first, acked, size = 0, 0, RUN_MESSAGES * PAYLOAD_BYTES
    started = time.perf_counter()
    for token in range(runs):
        store.receive(Data(1, 1, first, RUN_MESSAGES, size, False, token), 0)
        for effect in store.take_effects():
            if isinstance(effect, PersistMessages):
                store.receive(Persisted(effect.ticket), 0)
        for effect in store.take_effects():
            if isinstance(effect, Send) and isinstance(effect.message, StableAck):
                acked = effect.message.last + 1
        first += RUN_MESSAGES
    elapsed = time.perf_counter() - started
    if acked != first:
        raise BenchError(f"{acked} of {first} messages were acknowledged")
    return elapsed / first * 1e6


COSTS = {"source": source_us, "store": store_us}
"""The measurements by role."""
