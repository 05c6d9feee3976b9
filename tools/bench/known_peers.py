"""The known peers of `tools.bench.strangers`: a source, receivers, and visitors that come anew.

    python -m tools.bench.known_peers source|receiver|visitor PLACES

PLACES is JSON: the addresses `relay`, `service` and `store`. Each line of standard input is a command in JSON, each
line of standard output its result.
"""

import asyncio
import json
import struct
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from stablecast.client import Context, Source
from stablecast.core.protocol.events import RegistrationSuccess
from stablecast.runtime.event_loop import run_loop
from tests.support.network import LOCAL

TOPIC, CALLS = "orders", "calls"
PAYLOAD: Final = struct.Struct("!IQ84x")
"""A payload of 96 bytes: the number of its phase, and the time at which it was sent (ns)."""

STABLE_SECONDS: Final = 10.0
"""Time for which the last message of a phase may take to become stable."""

VISIT_SECONDS: Final = 30.0
"""Time after which a newcomer gives up."""

CALL_SECONDS: Final = 0.05
TICK_SECONDS: Final = 0.002

Places = Mapping[str, str]


def say(**found: object) -> None:
    print(json.dumps(found), flush=True)


async def commands() -> dict[str, Any] | None:
    """Return the next command; None at the end of standard input."""
    line = await asyncio.to_thread(sys.stdin.readline)
    return json.loads(line) if line else None


async def source(places: Places) -> None:
    """Send in phases: at a steady rate, or as fast as credit allows."""
    reg_ids: list[int] = []
    async with Context(resolver=[places["relay"]], interface=LOCAL, session_id=3) as context:
        made = await context.source(
            TOPIC,
            stores=[places["store"]],
            on_event=lambda event: reg_ids.append(event.reg_id) if isinstance(event, RegistrationSuccess) else None,
        )
        say(life=made.config.incarnation, reg_id=reg_ids[0], request=context.request_address)
        while (command := await commands()) is not None:
            say(**await _phase(made, **command))


async def _phase(made: Source, phase: int, seconds: float, per_s: int) -> dict[str, float]:
    began, sent = time.monotonic(), 0
    last = None
    while (now := time.monotonic() - began) < seconds:
        due = int(now * per_s) if per_s else sent + 64
        while sent < due:
            last = await made.send(PAYLOAD.pack(phase, time.monotonic_ns()))
            sent += 1
        if per_s:
            await asyncio.sleep(TICK_SECONDS)
    stable = False
    with suppress(TimeoutError):
        async with asyncio.timeout(STABLE_SECONDS):
            if last is not None:
                await last.stable()
            stable = True
    return {"sent": sent, "seconds": time.monotonic() - began, "stable": stable}


async def receiver(places: Places) -> None:
    """Count what arrives by phase, with the time that it took."""
    took: dict[int, list[int]] = defaultdict(list)
    ended: dict[int, float] = {}

    def arrived(message: Any) -> None:
        phase, sent = PAYLOAD.unpack(message.payload)
        took[phase].append(time.monotonic_ns() - sent)
        ended[phase] = time.monotonic()

    async with Context(resolver=[places["relay"]], interface=LOCAL, session_id=int(places["session"])) as context:
        context.receiver(TOPIC, on_message=arrived)
        say(request=context.request_address)
        while (command := await commands()) is not None:
            # What a phase sent arrives after what it said of itself; a message that never comes must not hold up all.
            stop = time.monotonic() + STABLE_SECONDS
            while len(took[command["phase"]]) < command["sent"] and time.monotonic() < stop:  # noqa: ASYNC110
                await asyncio.sleep(TICK_SECONDS)
            times = sorted(took.pop(command["phase"])) or [0]
            say(count=len(times), p99_ms=times[len(times) * 99 // 100] / 1e6, worst_ms=times[-1] / 1e6)


async def visitor(places: Places) -> None:
    """Come anew: register a source, find a source over the relay, and one over the service. Results: seconds."""
    async with Context(resolver_service=[places["service"]], interface=LOCAL, session_id=900) as context:
        calls = asyncio.create_task(_call(await context.source(CALLS)))
        say(ready=True)
        number = 901
        while await commands() is not None:
            number += 1
            found = {
                "store": await _timed(partial(_register, places, number)),
                "relay": await _timed(partial(_hear, TOPIC, resolver=[places["relay"]])),
                "service": await _timed(partial(_hear, CALLS, resolver_service=[places["service"]])),
            }
            say(**found)
        calls.cancel()


async def _call(made: Source) -> None:
    while True:
        await made.send(b"call")
        await asyncio.sleep(CALL_SECONDS)


async def _timed(visit: Callable[[], Coroutine[Any, Any, None]]) -> float | str:
    began = time.monotonic()
    try:
        async with asyncio.timeout(VISIT_SECONDS):
            await visit()
    except Exception as error:  # noqa: BLE001 - whatever keeps a newcomer out is what is measured
        return f"{type(error).__name__}: {error}"[:200]
    return time.monotonic() - began


async def _register(places: Places, session: int) -> None:
    async with Context(interface=LOCAL, session_id=session) as context:
        made = await context.source(f"visit/{session}", stores=[places["store"]])
        await (await made.send(b"visit")).stable()
        await made.deregister()


async def _hear(topic: str, **ways: Any) -> None:
    async with Context(interface=LOCAL, **ways) as context:
        async for _ in context.receiver(topic, options={"use_late_join": 0}):
            return


ROLES: Final = {"source": source, "receiver": receiver, "visitor": visitor}

if __name__ == "__main__":
    run_loop(ROLES[sys.argv[1]](json.loads(sys.argv[2])))
