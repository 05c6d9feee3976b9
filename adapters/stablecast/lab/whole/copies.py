"""The messages that the disks of a world's stores hold, and whether a store asks for messages that exist nowhere.

A store cannot know whether a number that it lacks was ever a message. A source that dies while the transport still owes
a message to all stores leaves such a number: the next life resumes above it, every store lacks it, and none can send
it. Only what was reported stable is guaranteed. So a store that asked in vain has what is due to it if no disk, its own
included, holds what it asked for, and if no source reported any of that stable.

The world reads the disks itself, because what a store says of the others is what is judged.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.messages import Role
from stablecast.lab.whole.application_history import Line
from stablecast.lab.world.disk import SimulatedDisk
from stablecast.store.client_records import clients_of
from stablecast.store.journal import DISK
from stablecast.store.journal.recovery import recover
from stablecast.store.store_log import ASKED, VAIN, WHOLE

Identity = tuple[str, int]
"""The topic of a source, and its session id, or its RegID if it has none."""

Copies = Mapping[Identity, RangeSet]
"""The numbers that are held of each source."""

_VAIN = re.compile(rf"source (\d+): .*?([\d,]+) messages? .*?of (-?\d+)\.\.(-?\d+), and {VAIN}")
_SOURCE = re.compile(r"source (\d+): ")


@attrs.frozen
class Vain:
    """What a store asked all others for in vain: `messages` numbers of `first`..`last` of a source."""

    reg_id: int
    messages: int
    first: int
    last: int


@attrs.frozen
class StoreCopies:
    """What one journal holds: the numbers of each source by RegID, and who has the RegID."""

    held: Mapping[int, RangeSet]
    identities: Mapping[int, Identity]

    @property
    def by_identity(self) -> dict[Identity, RangeSet]:
        found: dict[Identity, RangeSet] = defaultdict(RangeSet)
        for reg_id, identity in self.identities.items():
            found[identity].update(self.held.get(reg_id, RangeSet()))
        return found


def read_copies(disk: SimulatedDisk, directory: Path, own: SimulatedDisk, scratch: Path) -> StoreCopies:
    """Read a journal as a restart would, from a copy in `scratch` on the caller's `own` disk."""
    own.restore(disk.backup(str(directory)), str(scratch))
    journal = recover(scratch, DISK)
    held: dict[int, RangeSet] = {}
    for stream in journal.index.streams:
        numbers = held[stream] = RangeSet()
        numbers.update((start, stop) for start, stop, _ in journal.index.pieces(stream))
    for stream, start, stop, _ in journal.lost:
        held[stream].remove(start, stop)
    clients = clients_of(journal.states).values()
    sources = [client for client in clients if client.role is Role.SOURCE]
    return StoreCopies(held, {one.reg_id: (one.topic, one.session_id or one.reg_id) for one in sources})


def asked_in_vain(output: Iterable[str]) -> list[Vain]:
    """Return what a store lacks after its last rounds; nothing while it waits for answers about a source.

    Args:
        output: What the newest run of the store printed.
    """
    asking: dict[int, dict[str, Vain] | None] = {}
    for line in output:
        if (source := _SOURCE.search(line)) is None:
            continue
        reg_id = int(source[1])
        if ASKED in line:
            asking[reg_id] = None
        elif WHOLE in line:
            asking.pop(reg_id, None)
        elif found := _VAIN.search(line):
            vain = Vain(reg_id, *(int(number.replace(",", "")) for number in found.groups()[1:]))
            cause = line[found.start() : found.start(2)]
            asking[reg_id] = {**(asking.get(reg_id) or {}), cause: vain}
    if any(rounds is None for rounds in asking.values()):
        return []
    return [vain for rounds in asking.values() if rounds for vain in rounds.values()]


def has_its_due(
    vain: Iterable[Vain], journals: Iterable[StoreCopies], others: Iterable[StoreCopies], stable: Copies
) -> bool:
    """Return whether no journal holds what a store asked for in vain, and no source reported any of it stable.

    Args:
        vain: What it asked for.
        journals: The journals of the store's host.
        others: Those of all other hosts.
        stable: The numbers that sources reported stable.
    """
    own = list(journals)
    known: dict[Identity, RangeSet] = defaultdict(RangeSet)
    for copies in (*(one.by_identity for one in (*own, *others)), stable):
        for identity, numbers in copies.items():
            known[identity].update(numbers)
    return all(any(_is_nowhere(one, journal, known) for journal in own) for one in vain)


def _is_nowhere(vain: Vain, journal: StoreCopies, known: Copies) -> bool:
    """Return whether a journal has so many gaps where the store asked for messages, and all of them are unknown."""
    identity = journal.identities.get(vain.reg_id)
    if identity is None:
        return False
    begin, end = vain.first, vain.last + 1
    gaps = journal.held.get(vain.reg_id, RangeSet()).missing(begin, end)
    whole = gaps and gaps[0][0] == begin and gaps[-1][1] == end and sum(stop - at for at, stop in gaps) >= vain.messages
    return bool(whole) and gaps == known.get(identity, RangeSet()).missing(begin, end)


def reported_stable(lines: Iterable[Line], identities: Mapping[tuple[str, str], Identity]) -> Copies:
    """Return the numbers that sources reported stable, fragments included.

    Args:
        lines: What the applications wrote.
        identities: The source of each owner and topic. An owner that deregistered has none any more.
    """
    found: dict[Identity, RangeSet] = defaultdict(RangeSet)
    for line in lines:
        if line["is"] == "stable" and (whose := identities.get((line["owner"], line["topic"]))) is not None:
            found[whose].add(line["first"], line["last"] + 1)
    return found
