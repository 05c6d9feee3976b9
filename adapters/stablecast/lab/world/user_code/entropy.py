"""The entropy that a program sees: numbers of the seed."""

import os
import random
import uuid
from random import Random
from typing import Any

from stablecast.lab.world.process import SimulatedProcess
from stablecast.lab.world.user_code.replacement import Table, in_programs, method_in_programs

UUID_EPOCH = 0x01B21DD213814000
"""Time from 1582-10-15 to 1970-01-01 in units of 100 ns."""

NODE_BASE = 0x02_00_00_00_00_00
"""Hardware address of a host without its IPv4 address; locally administered."""

UUID_MEMORY = ("_last_timestamp_v6", "_last_timestamp_v7", "_last_counter_v7")
"""The attributes in which the module keeps the latest identifier (3.14)."""


def table() -> Table:
    shared = random._inst
    names = [name for name, value in vars(random).items() if getattr(value, "__self__", None) is shared]
    newer = [name for name in ("uuid6", "uuid7") if hasattr(uuid, name)]
    return [
        in_programs(os, "urandom", lambda process, size, /: process.random.randbytes(size)),
        *[in_programs(random, name, _function(name)) for name in names],
        method_in_programs(Random, "seed", _seed),
        in_programs(uuid, "uuid1", _uuid1),
        in_programs(uuid, "getnode", _node),
        *[in_programs(uuid, name, _uuid_with_memory(getattr(uuid, name))) for name in newer],
    ]


def _function(name: str) -> Any:
    return lambda process, *args, **options: getattr(_generator(process), name)(*args, **options)


def _generator(process: SimulatedProcess) -> Random:
    """Return the generator of the functions of `random`; a program may seed it."""
    found: Random | None = process.memory.get(random)
    if found is None:
        found = process.memory[random] = Random(process.random.getrandbits(64))  # noqa: S311 - a seed must repeat its run
    return found


def _seed(process: SimulatedProcess, real: Any, self: Random, a: Any = None, version: int = 2) -> None:
    real(self, process.random.getrandbits(128) if a is None else a, version)


def _node(process: SimulatedProcess) -> int:
    return NODE_BASE | int.from_bytes(bytes(int(part) for part in process.host.address.split(".")), "big")


def _uuid1(process: SimulatedProcess, node: int | None = None, clock_seq: int | None = None) -> uuid.UUID:
    stamp = process.host.clock.wall_ns() // 100 + UUID_EPOCH
    stamp = process.memory["uuid1"] = max(stamp, process.memory.get("uuid1", 0) + 1)
    sequence = process.random.getrandbits(14) if clock_seq is None else clock_seq
    fields = (
        stamp & 0xFFFFFFFF,
        stamp >> 32 & 0xFFFF,
        stamp >> 48 & 0x0FFF,
        sequence >> 8 & 0x3F,
        sequence & 0xFF,
        _node(process) if node is None else node,
    )
    return uuid.UUID(fields=fields, version=1)


def _uuid_with_memory(real: Any) -> Any:
    """Let each process have its own latest identifier."""

    def call(process: SimulatedProcess, *args: Any, **options: Any) -> uuid.UUID:
        kept = {name: getattr(uuid, name) for name in UUID_MEMORY if hasattr(uuid, name)}
        vars(uuid).update(process.memory.get("uuid7", dict.fromkeys(kept, None) | {"_last_counter_v7": 0}))
        try:
            found: uuid.UUID = real(*args, **options)
        finally:
            process.memory["uuid7"] = {name: getattr(uuid, name) for name in kept}
            vars(uuid).update(kept)
        return found

    return call
