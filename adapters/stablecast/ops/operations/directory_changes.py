"""Evict clients and drain a store while it does not run. Each change holds the directory's lock.

- - `evict` removes a client as if it had deregistered; a source goes with its messages and receivers. With a number it
  deletes only the messages below that number, and no receiver can recover them from this store.
- `drain` deletes what every registered receiver of a source has acknowledged, and reports what is left. A source
  without receivers keeps every message: a receiver may register later.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import Role
from stablecast.ops.operations.target import OperationError
from stablecast.store.client_records import (
    client_record,
    clients_of,
    forget_record,
    generation_of,
    memory_of,
    memory_record,
)
from stablecast.store.journal import Journal

Change = Callable[[Journal, dict[int, Client]], dict[str, Any]]
"""Append to a running journal, remove forgotten clients from the dictionary, and return a report."""


async def change(directory: Path, what: Change) -> dict[str, Any]:
    """Apply a change to a directory, make it durable and return its report.

    Raises:
        JournalError: the directory is in use, or the disk fails.
        RecordError: its state cannot be read.
        OperationError: `what` is not possible, or the directory is damaged.
    """
    journal = Journal.open(directory)
    try:
        _check_whole(journal, directory)
        clients = clients_of(journal.recovered_states)
        # A declaration of an operator holds until a start has waited.
        memory = memory_record(memory_of(journal.recovered_states), *generation_of(journal.recovered_states))
        journal.set_checkpoint(lambda: [memory, *map(client_record, clients.values())])
        journal.start(asyncio.get_running_loop())
        done = what(journal, clients)
    except BaseException:
        journal.abort()
        raise
    await journal.close()
    return done


def _check_whole(journal: Journal, directory: Path) -> None:
    """Raise OperationError if a change would hide damage from the store, which must not count on what it lost."""
    if journal.lost or journal.unnamed or not (journal.whole or journal.segments == 0):
        raise OperationError(f"{directory} is damaged: start the store on it first, so that it knows what it lost")


def evict(reg_id: int) -> Change:
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
    """Return a change that deletes a source's messages below `number`."""

    def trim(journal: Journal, clients: dict[int, Client]) -> dict[str, Any]:
        if _known(clients, reg_id).role is not Role.SOURCE:
            raise OperationError(f"{reg_id} is a receiver and has no messages; name its source")
        return {"let_go": _let_go(journal, reg_id, number, 1)}

    return trim


def drain() -> Change:
    """Return a change that deletes messages that every receiver has acknowledged."""

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
        raise OperationError(f"no client is registered as {reg_id}; `inspect` lists the clients")
    return clients[reg_id]


def _needed(clients: dict[int, Client]) -> dict[int, int]:
    """Return the first number that some receiver still needs, by source."""
    needed: dict[int, int] = {}
    for client in clients.values():
        if client.role is Role.RECEIVER:
            mine = client.acknowledged + 1
            needed[client.source_reg_id] = min(mine, needed.get(client.source_reg_id, mine))
    return needed


def _let_go(journal: Journal, reg_id: int, number: int, ticket: int) -> int:
    """Trim a source forward only; return the number of deleted messages."""
    before = sum(count for _, count, _ in journal.extents(reg_id))
    if before and number > max(journal.trail(reg_id) or 0, journal.extents(reg_id)[0][0]):
        journal.trim(reg_id, number, ticket)
    return before - sum(count for _, count, _ in journal.extents(reg_id))
