"""Three members in processes of their own, one of which is killed: count what each of them processed.

    python -m tests.adapters.client.group_processes --messages 10000

A relay and three stores run in processes of their own, too. The program ends with 1 if a message was lost, or if one
was processed twice that the killed member did not process.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

from stablecast.client import Context
from tests.support.network import LOCAL, unused_port

MEMBERS = 3
SHARES = 12
PROPERTY = "number"


async def member(relay: str, path: Path) -> None:
    """Process messages until killed: write the number of each to a file."""
    with path.open("a", buffering=1, encoding="ascii") as done:
        async with Context(resolver=[relay]) as context:
            receiver = context.receiver("jobs", group="workers", shares=SHARES)
            async for message in receiver:
                if not done.tell():
                    done.write(f"shares {len(receiver.shares)} of {SHARES}, {receiver.members} members\n")
                done.write(message.payload.decode() + "\n")


async def started(*words: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(sys.executable, "-m", *words, stdout=asyncio.subprocess.DEVNULL)


def numbers(path: Path) -> list[int]:
    """Return what a member processed, without a line that its death cut off."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="ascii").split("\n")[:-1]
    return [int(line) for line in lines if line.isdigit()]


async def run(count: int, folder: Path) -> bool:
    """Send, kill one member in the middle, and compare; return whether all is as promised."""
    relay, stores = f"{LOCAL}:{unused_port()}", [f"{LOCAL}:{unused_port()}" for _ in range(3)]
    paths = [folder / f"member {one}" for one in range(MEMBERS)]
    running = [await started("stablecast.cli.main", "lbmrd", "--listen", relay)]
    for number, store in enumerate(stores):
        data = folder / f"store {number}"
        data.mkdir()
        running.append(await started("stablecast.cli.main", "store", str(data), "--listen", store, "--new"))
    try:
        async with Context(resolver=[relay], session_id=1) as context:
            source = await context.source("jobs", stores=stores)
            running += [await started(__spec__.name, "--member", relay, "--path", str(path)) for path in paths]
            sent = 0
            while not all(numbers(path) for path in paths):  # Until each member has work.
                await source.send(b"%d" % sent)
                sent += 1
                await asyncio.sleep(0.02)
            stop = sent + count
            while sent < stop:
                await source.send(b"%d" % sent)
                sent += 1
                if sent == stop - count // 2:
                    running[-1].send_signal(signal.SIGKILL)
                await asyncio.sleep(0)
            await source.wait_stable_through(sent - 1)
            while len(set().union(*map(numbers, paths))) < sent:  # noqa: ASYNC110  # other processes write the files
                await asyncio.sleep(0.1)
            return compared(sent, paths)
    finally:
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            await process.wait()


def compared(sent: int, paths: list[Path]) -> bool:
    """Print and judge what the members processed; the last one was killed."""
    each = [numbers(path) for path in paths]
    all_of_them = Counter(number for done in each for number in done)
    twice = {number for number, times in all_of_them.items() if times > 1}
    killed = each[-1]
    foreign = twice - set(killed)
    lost = set(range(sent)) - set(all_of_them)
    print(f"sent {sent}; processed by each member: {[len(done) for done in each]}, the last one was killed")
    print(f"lost {len(lost)}; processed twice {len(twice)}, of which not by the killed member {len(foreign)}")
    last = killed[-1] if killed else -1
    if twice:
        print(f"the oldest one that came twice was {last - min(twice)} numbers before the killed member's last one")
    return not lost and not foreign


def main() -> int:
    """Run a member, or the whole."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--member", default="")
    parser.add_argument("--path", type=Path)
    given = parser.parse_args()
    if given.member:
        asyncio.run(member(given.member, given.path))
        return os.EX_OK
    with tempfile.TemporaryDirectory() as folder:
        return os.EX_OK if asyncio.run(run(given.messages, Path(folder))) else 1


if __name__ == "__main__":
    sys.exit(main())
