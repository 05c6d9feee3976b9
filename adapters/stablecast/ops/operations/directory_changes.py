"""Changes to the directory of a store that does not run: evict and drain. Each holds the directory's lock.

* `evict` forgets a client, as if it had deregistered: of a source its messages and its receivers too. With a number it
  lets only messages go, those below it: nobody can recover them from this store any more.
* `drain` lets go of what every registered receiver of a source has acknowledged, and tells what is left to be read. A
  source without receivers keeps everything: whoever comes later may want it.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import Role
from stablecast.ops.operations.target import OperationError
from stablecast.store.client_records import client_record, clients_of, forget_record
from stablecast.store.journal import Journal

Change = Callable[[Journal, dict[int, Client]], dict[str, Any]]
"""Appends to a running journal, given the clients, from which it takes those it forgets; returns what it did."""


async def change(directory: Path, what: Change) -> dict[str, Any]:
    """Do something to a directory and make it durable; returns what was done.

    Raises:
        JournalError: the directory is in use, or the disk fails.
        RecordError: its state cannot be read.
        OperationError: `what` cannot be done.
    """
    journal = Journal.open(directory)
    try:
        clients = clients_of(journal.recovered_states)
        journal.set_checkpoint(lambda: [client_record(client) for client in clients.values()])
        journal.start(asyncio.get_running_loop())
        done = what(journal, clients)
    except BaseException:
        journal.abort()
        raise
    await journal.close()
    return done


def evict(reg_id: int) -> Change:
    """Forget a client."""

    def forget(journal: Journal, clients: dict[int, Client]) -> dict[str, Any]:
        gone = [_known(clients, reg_id)]
        if gone[0].role is Role.SOURCE:
            gone += [one for one in clients.values() if one.role is Role.RECEIVER and one.source_reg_id == reg_id]
        for ticket, client in enumerate(gone, 1):
            del clients[client.reg_id]
            journal.append_state(forget_record(client.reg_id), ticket)
            if client.role is Role.SOURCE:
                journal.forget(client.reg_id, ticket)
        return {"forgotten": [client.reg_id for client in gone]}

    return forget


def evict_messages(reg_id: int, number: int) -> Change:
    """Let a source's messages below a number go."""

    def trim(journal: Journal, clients: dict[int, Client]) -> dict[str, Any]:
        if _known(clients, reg_id).role is not Role.SOURCE:
            raise OperationError(f"{reg_id} is a receiver and has no messages; name its source")
        return {"let_go": _let_go(journal, reg_id, number, 1)}

    return trim


def drain() -> Change:
    """Let go of what all have acknowledged."""

    def drain(journal: Journal, clients: dict[int, Client]) -> dict[str, Any]:
        let_go, remaining = 0, {}
        for ticket, (reg_id, needed) in enumerate(sorted(_needed(clients).items()), 1):
            let_go += _let_go(journal, reg_id, needed, ticket)
            left = sum(count for _, count, _ in journal.extents(reg_id))
            if left:
                remaining[reg_id] = left
        return {"let_go": let_go, "remaining": remaining}

    return drain


def _known(clients: dict[int, Client], reg_id: int) -> Client:
    if reg_id not in clients:
        raise OperationError(f"nobody is registered as {reg_id}; `inspect` shows who is")
    return clients[reg_id]


def _needed(clients: dict[int, Client]) -> dict[int, int]:
    """The first number that some receiver still needs, by source."""
    needed: dict[int, int] = {}
    for client in clients.values():
        if client.role is Role.RECEIVER:
            mine = client.acknowledged + 1
            needed[client.source_reg_id] = min(mine, needed.get(client.source_reg_id, mine))
    return needed


def _let_go(journal: Journal, reg_id: int, number: int, ticket: int) -> int:
    """Trim a source, never back; returns how many messages that let go."""
    before = sum(count for _, count, _ in journal.extents(reg_id))
    if before and number > max(journal.trail(reg_id) or 0, journal.extents(reg_id)[0][0]):
        journal.trim(reg_id, number, ticket)
    return before - sum(count for _, count, _ in journal.extents(reg_id))
