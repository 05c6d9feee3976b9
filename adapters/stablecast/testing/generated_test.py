"""Write the text of a test that plays a recorded run again."""

from typing import Final

import attrs

from stablecast.core.errors import ConfigError
from stablecast.testing.recorded_run import RecordedCrash, RecordedMessage, RecordedRun
from stablecast.testing.schedule import MILLISECOND

INSTANTS: Final = 8
"""Worlds of a run with crashes. Each has the crashes at other instants of the time in which they may have happened."""

HEAD: Final = '''"""A recorded run of an application, played again in simulated worlds.

Written by `stablecast testing from-traces`. It is plain Python: change what you want, and run it with pytest.

Each source sends its messages at the recorded times. Traces have no payloads, so `payload` makes them: let it return
what your application expects.{unknown}{orderly}
"""

import asyncio

import stablecast.testing
from stablecast.client import Context, NotRegistered
from stablecast.testing import SimulatedWorld
{imports}
MESSAGES = {messages}
"""Of each source: its topic, and for each message the time in ms, the recorded number and the bytes."""

'''

UNKNOWN: Final = """

The application crashes and starts again as recorded. A killed program loses the end of its traces, so the instant of a
crash is known only roughly. Each world has its crashes at another instant of that time."""
ORDERLY: Final = """

The application also ended properly and began again, {count} times. That is not played."""

APPLICATION: Final = '''
async def application(**context: object) -> None:
    """Call the application. `context` are keyword arguments for its `stablecast.client.Context`."""
    raise NotImplementedError("call your application here, or give --application MODULE:FUNCTION")

'''
PAYLOAD: Final = '''
def payload(topic: str, number: int, size: int) -> bytes:
    """Return the payload of a message. The traces have only its number and its size."""
    return f"{topic} {number}".encode().ljust(size)[: max(size, 1)]

'''
CHECK: Final = '''
def check(world: SimulatedWorld, sent: list[bytes]) -> None:
    """Assert what must be true when everything has settled: all of `sent` was received, and nothing happens any more.

    Example: `assert world.read("app", "book").splitlines() == sent`.
    """

'''
TAIL: Final = '''
async def replay(world: SimulatedWorld, source: int, sent: list[bytes], context: dict[str, object]) -> None:
    """Send the messages of one source at the recorded times."""
    topic, messages = MESSAGES[source]
    async with Context(**context, session_id=1_000_000 + source) as sender:  # type: ignore[arg-type]
        origin = await sender.source(topic, stores=world.stores, within=None)
        for at_ms, number, size in messages:
            await asyncio.sleep(max(0.0, at_ms / 1e3 - world.time()))
            one = payload(topic, number, size)
            while True:
                try:
                    await origin.send(one)
                    break
                except NotRegistered:
                    await origin.registered()
            sent.append(one)
            world.note(f"source {{source}} sends message {{number}} of {{topic}}")
        await asyncio.Event().wait()  # Receivers find the messages as long as the source lives.


{regressions}
async def test_recorded_run(world: SimulatedWorld) -> None:
    """Play the recorded run."""
    sent: list[bytes] = []
    for source in range(len(MESSAGES)):
        host = f"source{{source}}"
        world.start(replay, world, source, sent, world.context_of(host), host=host)
    world.start(application, host="app", **world.context_of("app"))
    await world.until(lambda: len(sent) == {count}, limit={limit})
    await world.settled()
    check(world, sent)
'''


@attrs.frozen
class UserParts:
    """The functions of the user, as `MODULE:FUNCTION`; empty for a stub in the generated file.

    Attributes:
        application: The coroutine function that receives. It gets keyword arguments for `stablecast.client.Context`.
        payload: Returns the payload of a topic, a number and a size.
        check: Asserts, with the world and the payloads that were sent.
    """

    application: str = ""
    payload: str = ""
    check: str = ""

    def lines(self) -> tuple[str, str]:
        """Return the imports, and the stubs. Raises ConfigError."""
        imports, stubs = [], []
        for name, stub in (("application", APPLICATION), ("payload", PAYLOAD), ("check", CHECK)):
            given = getattr(self, name)
            if not given:
                stubs.append(stub)
                continue
            module, _, function = given.partition(":")
            if not all(part.isidentifier() for part in (*module.split("."), function)):
                raise ConfigError(f"--{name} {given}: give MODULE:FUNCTION, as in my_app.main:receive")
            imports.append(f"from {module} import {function}" + (f" as {name}" if function != name else ""))
        return "\n".join(["", *imports, ""] if imports else [""]), "".join(stubs)


def text_of(run: RecordedRun, parts: UserParts) -> str:
    """Return the text of the test. Raises ConfigError."""
    imports, stubs = parts.lines()
    last = run.messages[-1].at / 1e9
    head = HEAD.format(
        unknown=UNKNOWN if run.crashes else "",
        orderly=ORDERLY.format(count=run.orderly) if run.orderly else "",
        imports=imports,
        messages=_messages(run.messages),
    )
    tail = TAIL.format(regressions=_regressions(run), count=len(run.messages), limit=round(last) + 900)
    return head + stubs + tail


def _messages(messages: tuple[RecordedMessage, ...]) -> str:
    """Return the messages of all sources as a literal, one message a line."""
    lines = ["["]
    for source in sorted({one.source for one in messages}):
        mine = [one for one in messages if one.source == source]
        lines.append(f"    ({mine[0].topic!r}, [")
        lines += [f"        ({_ms(one.at)!r}, {one.number}, {one.size})," for one in mine]
        lines.append("    ]),")
    return "\n".join([*lines, "]"])


def _regressions(run: RecordedRun) -> str:
    """Return the decorators: one world for each instant at which the crashes may have happened."""
    worlds = INSTANTS if run.crashes else 1
    lines = []
    for index in range(worlds):
        faults = [_fault(crash, index, worlds) for crash in run.crashes]
        inside = "".join(f"\n    {fault}," for fault in faults)
        shown = f"[{inside}\n]" if faults else "[]"
        lines.append(f"@stablecast.testing.regression(seed={index}, stores={run.stores}, faults={shown})")
    return "\n".join(lines)


def _fault(crash: RecordedCrash, index: int, worlds: int) -> str:
    at = crash.first + (crash.last - crash.first) * index // max(1, worlds - 1)
    return repr({"fault": "crash", "on": "app", "at_ms": _ms(at), "ms": max(1.0, _ms(crash.again - at))})


def _ms(ns: int) -> float:
    return round(ns / MILLISECOND, 3)
