"""A store's directory as a daemon leaves it, written by a real journal: clients, runs and deletions."""

import asyncio
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import Role
from stablecast.store.client_records import client_record
from stablecast.store.journal import Journal
from stablecast.transports.wire.lbmc import DATA_HEADER

SOURCE = Client(
    role=Role.SOURCE,
    reg_id=1001,
    store_index=0,
    topic="orders",
    session_id=7,
    incarnation=55,
    source_reg_id=0,
    reply_to="10.1.0.1:14391",
    transport="10.1.0.1:14371",
    activity_timeout_ms=0,
    state_lifetime_ms=0,
    acknowledged=-1,
    lives=(),
)
READER = attrs.evolve(
    SOURCE, role=Role.RECEIVER, reg_id=2001, source_reg_id=1001, session_id=8, acknowledged=4, has_acknowledged=True
)
LATE = attrs.evolve(READER, reg_id=2002, acknowledged=1, has_acknowledged=False)
OTHER = attrs.evolve(SOURCE, reg_id=1002, topic="quotes")
_LENGTH = struct.Struct(">2xH")


def block(first: int, count: int) -> bytes:
    """Return messages as bytes of a stream. Each payload names its message."""
    parts = []
    for number in range(first, first + count):
        payload = b"message %d" % number
        header = bytearray(DATA_HEADER.size)
        _LENGTH.pack_into(header, 0, DATA_HEADER.size + len(payload))
        parts.append(bytes(header) + payload)
    return b"".join(parts)


Fill = Callable[[Journal], Any]


async def fill(directory: Path, *clients: Client, then: Fill | None = None, **settings: Any) -> Path:
    """Write a directory with these clients, and with the records that `then` appends; return its path."""
    directory.mkdir(exist_ok=True)  # noqa: ASYNC240
    journal = Journal.open(directory, **settings)
    journal.set_checkpoint(lambda: [client_record(client) for client in clients])
    journal.start(asyncio.get_running_loop())
    for client in clients:
        journal.append_state(client_record(client), 1)
    if then is not None:
        then(journal)
    await journal.close()
    return directory


def usual(journal: Journal) -> None:
    """Append ten orders in two runs with a gap of two messages between them, and three quotes."""
    journal.append_messages(1001, 0, 6, 55, block(0, 6), 2)
    journal.append_messages(1001, 8, 4, 55, block(8, 4), 3)
    journal.append_messages(1002, 100, 3, 66, block(100, 3), 4)


async def kept(directory: Path) -> Path:
    """Write a directory with two sources, two receivers and the usual messages; return its path."""
    return await fill(directory, SOURCE, READER, LATE, OTHER, then=usual)
