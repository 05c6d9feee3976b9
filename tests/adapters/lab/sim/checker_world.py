"""Checkers of a world in which nothing has happened, and what may happen in it."""

from typing import Any

import attrs

from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import Pace, Role
from stablecast.lab.sim.disk import DiskRecord, DiskRecordKind, VirtualDisk
from stablecast.lab.sim.facts import Facts
from stablecast.lab.sim.setup import RECEIVERS, STORES, WorldSetup
from stablecast.lab.sim.source_checkers import Checkers

LIFE, NEXT, STREAM = 7, 8, 50
READER, PROCESS = RECEIVERS[0], "receiver0.1"


def world(**setup: Any) -> Checkers:
    """Three empty disks, and a life that may send from 0 on."""
    checkers = Checkers.of(Facts(lambda: 0, {store: VirtualDisk() for store in STORES}, WorldSetup(**setup)))
    checkers.on_life(LIFE, 0)
    return checkers


def store(checkers: Checkers, first: int, stop: int, stores: tuple[str, ...] = STORES, life: int = LIFE) -> None:
    for name in stores:
        disk, record = (
            checkers.facts.disks[name],
            DiskRecord(1, DiskRecordKind.MESSAGES, None, STREAM, first, stop, life),
        )
        for contents in (disk.contents, disk.durable):
            contents.setdefault(STREAM, {}).update(dict.fromkeys(range(first, stop), record))


def stable(checkers: Checkers, first: int, stop: int) -> None:
    """Everywhere, and called so."""
    store(checkers, first, stop)
    checkers.on_stable(LIFE, first, stop, list(STORES))


def begin(checkers: Checkers, number: int = 0) -> None:
    checkers.receivers.on_session(READER, PROCESS, LIFE)
    checkers.receivers.on_begin(READER, PROCESS, LIFE, number)


def deliver(checkers: Checkers, first: int, stop: int, sender: int = LIFE, payload: int = LIFE) -> None:
    """With what their sender put into them, or somebody else."""
    found = [(payload, number) for number in range(first, stop)]
    checkers.receivers.on_delivered(PROCESS, LIFE, sender, first, found)


def broken(checkers: Checkers) -> list[str]:
    return [violation.rule for violation in checkers.facts.violations]


def client(role: Role, reg_id: int, pace: Pace = Pace.SOURCE, *, has_acknowledged: bool = False) -> Client:
    """Return a store's record of the first receiver, which consumed nothing, or of the source."""
    blank: dict[str, Any] = dict.fromkeys(("reply_to", "transport", "topic"), "")
    fields = {field.name: 0 for field in attrs.fields(Client) if field.default is attrs.NOTHING}
    known = {"role": role, "reg_id": reg_id, "session_id": 2, "source_reg_id": STREAM, "acknowledged": -1}
    found = Client(**{**fields, **blank, **known, "lives": (), "pace": pace})
    return attrs.evolve(found, has_acknowledged=has_acknowledged)
