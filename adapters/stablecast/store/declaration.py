"""The declaration that a store's directory is an older copy, or belongs to a new disk.

The next start then grants nothing at first, and the store has no vote about earlier messages of its sources.
"""

import asyncio
from pathlib import Path

import attrs

from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import Role, StoreMemory
from stablecast.store.client_records import Waiting, client_record, clients_of, generation_of, memory_record
from stablecast.store.journal import Journal


async def declare(directory: Path) -> int:
    """Write durably that a directory has no memory; return the number of sources that lose their vote.

    Raises:
        JournalError: The directory is in use, or the disk fails.
    """
    journal = Journal.open(directory)
    journal.on_failed = lambda _: None  # `close` raises it; raised on the loop, too, it would be a traceback.
    try:
        clients = {reg_id: marked(one) for reg_id, one in clients_of(journal.recovered_states).items()}
        generation, *_ = generation_of(journal.recovered_states)
        declaration = memory_record(StoreMemory.LOST, generation, Waiting.REQUIRED)
        journal.set_checkpoint(lambda: [declaration, *map(client_record, clients.values())])
        journal.start(asyncio.get_running_loop())
        for client in clients.values():
            journal.append_note(client_record(client))
        journal.append_note(declaration)
    except BaseException:
        journal.abort()
        raise
    await journal.close()
    return sum(client.role is Role.SOURCE for client in clients.values())


def marked(client: Client) -> Client:
    """Return the record of a client at a store without memory."""
    return attrs.evolve(client, memory=StoreMemory.LOST) if client.role is Role.SOURCE else client
