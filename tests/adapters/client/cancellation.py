"""Cancel an application at each of its awaits, in a world whose time is virtual.

    python -m tests.adapters.client.cancellation --times 1000

The application opens contexts, sends, waits for stability, receives, acknowledges, refuses a message, and closes. It is
cancelled at its first await, then at its second one, and so on, again and again. Afterwards no task may be left, no
stable message may be lost, and no acknowledged message may come again.
"""

import argparse
import asyncio
import itertools
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator
from types import coroutine
from typing import Any, Final

import attrs

from stablecast.client import Context, Redelivery
from stablecast.testing.simulated_world import SimulatedWorld
from stablecast.testing.world_run import WorldSetting, run_world

LIMIT_S: Final = 600.0
"""Virtual seconds of one world."""

MOST_AWAITS: Final = 200
"""Awaits of a run whose backlog has grown; then the first await has its turn again."""

LAST: Final = b"last"


@attrs.define
class Reading:
    """One run of the receiver.

    Attributes:
        began: Numbers of the messages that it got, with their payloads.
        finished: Numbers of those whose blocks ended.
        closing: The run was cancelled while it closed; then it may lose acknowledgements.
    """

    began: dict[int, bytes] = attrs.field(factory=dict)
    finished: set[int] = attrs.field(factory=set)
    closing: bool = False

    def acknowledged(self) -> set[bytes]:
        """Return the payloads that the stores must count as read: the finished ones up to the first other one."""
        if self.closing:
            return set()
        read = itertools.takewhile(lambda number: number in self.finished, sorted(self.began))
        return {self.began[number] for number in read}


@attrs.define
class Ledger:
    """The account of all runs.

    Attributes:
        stable: Payloads that the application knows to be stable.
        readings: The runs of the receiver.
        awaits: Awaits of the longest run.
        cancelled: Runs that were cancelled.
        leaks: Tasks that a run left.
    """

    stable: set[bytes] = attrs.field(factory=set)
    readings: list[Reading] = attrs.field(factory=list)
    awaits: int = 0
    cancelled: int = 0
    leaks: list[str] = attrs.field(factory=list)

    def lost(self) -> set[bytes]:
        """Return the stable payloads that no run processed."""
        done = {one.began[number] for one in self.readings for number in one.finished}
        return self.stable - done

    def repeated(self) -> list[bytes]:
        """Return the payloads that came again although a run had acknowledged them and closed."""
        read: set[bytes] = set()
        again: list[bytes] = []
        for one in self.readings:
            again += read.intersection(one.began.values())
            read |= one.acknowledged()
        return again


@coroutine
def cancelled_at(wanted: int, count: list[int], body: Coroutine[Any, Any, object]) -> Generator[Any, Any, None]:
    """Run a coroutine, and cancel it once it waits for the `wanted`th time. Count its awaits."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    inner = body.__await__()
    value, thrown = None, None
    while True:
        try:
            waits = inner.send(value) if thrown is None else inner.throw(thrown)
        except StopIteration:
            return
        value, thrown = None, None
        count[0] += 1
        if count[0] == wanted:
            loop.call_soon(task.cancel)
        try:
            value = yield waits
        except BaseException as error:  # noqa: BLE001 - it goes on inside
            thrown = error


async def trade(payload: bytes, ledger: Ledger, stores: list[str], context: dict[str, Any]) -> None:
    """Send a message, and process all until this one. Refuse the first one once."""
    async with Context(**context, session_id=1) as shop, Context(**context, session_id=2) as office:
        source = await shop.source("orders", stores=stores)
        await (await source.send(payload, {"size": len(payload)})).stable()
        ledger.stable.add(payload)
        reading = Reading()
        ledger.readings.append(reading)
        async for message in office.receiver("orders", redelivery=Redelivery(delay=0.001)):
            first = not reading.began
            reading.began[message.number] = message.payload
            async with message:
                await asyncio.sleep(0.005)
                if first:
                    message.nack()
                    continue
            reading.finished.add(message.number)
            if payload in reading.began.values() and reading.began.keys() == reading.finished:
                break
        message.consumed()
        reading.closing = True
    reading.closing = False


async def cancel_often(first: int, times: int, ledger: Ledger, stores: list[str], context: dict[str, Any]) -> None:
    """Run the application so often, each time cancelled one await later; begin anew after its last await."""
    at = first
    for run in range(times):
        count = [0]
        task = asyncio.create_task(_as_coroutine(cancelled_at(at, count, trade(b"%d" % run, ledger, stores, context))))
        await asyncio.wait([task])
        if not task.cancelled() and task.exception() is not None:
            raise AssertionError(f"run {run}, cancelled at await {at}") from task.exception()
        ledger.cancelled += task.cancelled()
        ledger.awaits = max(ledger.awaits, count[0])
        await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        ledger.leaks += [f"run {run}, await {at}: {one}" for one in left]
        at = at + 1 if task.cancelled() and at < MOST_AWAITS else first
    await trade(LAST, ledger, stores, context)


async def _as_coroutine(body: Awaitable[None]) -> None:
    await body


def cancelled(times: int, seed: int, first: int = 1) -> Ledger:
    """Cancel the application `times` times in the world of a seed. Raises what the world raises."""
    ledger = Ledger()

    async def story(world: SimulatedWorld) -> None:
        program = world.start(
            cancel_often, first, times, ledger, list(world.stores), world.context_of("office"), host="office"
        )
        await program.wait()

    outcome = run_world(WorldSetting(stores=3, limit_s=LIMIT_S), story, seed, ())
    if outcome.failure is not None:
        raise outcome.failure.error
    return ledger


def judge(ledger: Ledger) -> list[str]:
    """Return what went wrong."""
    wrong = [f"{payload.decode()} is lost" for payload in sorted(ledger.lost())]
    wrong += [f"{payload.decode()} came again although it was acknowledged" for payload in ledger.repeated()]
    return wrong + ledger.leaks


def main(arguments: list[str], say: Callable[[str], object] = print) -> int:
    """Cancel often, and print what was found; return the exit status."""
    parser = argparse.ArgumentParser(description="Cancel an application at each of its awaits.")
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    ledger = cancelled(chosen.times, chosen.seed)
    wrong = judge(ledger)
    say(
        f"{chosen.times} runs, {ledger.cancelled} cancelled, up to {ledger.awaits} awaits; {len(ledger.stable)} stable "
        f"messages, {sum(len(one.finished) for one in ledger.readings)} processed, {len(wrong)} faults"
    )
    for text in wrong:
        say(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
