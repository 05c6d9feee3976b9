"""The acts of each endpoint, as its trace or a capture has them: what it sent, got, wrote and reported, and when.

Runs of messages within `JOINED_NS` are joined, so that a day of traffic is a few hundred thousand acts.
"""

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Protocol

import attrs

from stablecast.core.errors import StablecastError
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.messages import Role
from stablecast.core.source import SourceEndpoint
from stablecast.evidence.trace.converter import TAG, Json, restore
from stablecast.evidence.trace.facts import identity
from stablecast.evidence.trace.file_names import SUFFIX, find, part_of, traces_of
from stablecast.evidence.trace.frames import TraceFrame, frames_from
from stablecast.evidence.trace.quorums import asked_for
from stablecast.evidence.trace.tools.records import TraceRecord, of_frame

JOINED_NS: Final = 50 * MILLISECOND
"""Time within which neighbouring runs of messages are one act, ns."""

MAX_MATCHED: Final = 50_000
"""Messages of one trace that are kept for the comparison of clocks."""

NOTICED: Final = frozenset(
    (
        *("QuorumLost", "StoreUnresponsive", "RegistrationError", "Overtaken", "UnrecoverableLoss", "LostAtStore"),
        *("MessagesDropped", "ReleasedUnread", "NoSource", "ClientForgotten", "NotStable", "HistoryForgotten"),
    )
)
"""Events that an endpoint reported because something was wrong."""


@attrs.frozen
class Proof:
    """A record of a trace or a packet of a capture: its file, number, and time on one wall clock (ns of the epoch)."""

    path: Path
    record: int
    time: int

    @property
    def text(self) -> str:
        return f"{self.path.name} {'record' if self.path.name.endswith(SUFFIX) else 'packet'} {self.record}"


class ActPlace(Protocol):
    """A record of a trace, or a packet of a capture; `time` is in ns of its clock."""

    @property
    def path(self) -> Path:
        """The trace or capture that has it."""

    @property
    def number(self) -> int:
        """Its position in that file, from 0 in a trace and from 1 in a capture."""

    @property
    def time(self) -> int:
        """When it was written, in ns of the clock of that file."""


@attrs.define
class NumberedAct:
    """Numbers [first, stop) at a time of the machine's clock, ns; `until` is that of the last run that was joined."""

    time: int
    until: int
    first: int
    stop: int
    record: int
    path: Path


@attrs.define
class NumberedActs:
    rows: list[NumberedAct] = attrs.field(factory=list)

    def add(self, record: ActPlace, first: int, stop: int) -> None:
        last = self.rows[-1] if self.rows else None
        if last is not None and last.stop == first and record.time - last.time < JOINED_NS:
            last.stop, last.until = stop, record.time
        else:
            self.rows.append(NumberedAct(record.time, record.time, first, stop, record.number, record.path))

    def within(self, since: int, until: int) -> list[NumberedAct]:
        """Return the acts at these times of the machine's clock."""
        return [one for one in self.rows if one.until >= since and one.time <= until]


@attrs.frozen
class Notice:
    """An event that an endpoint reported, or a refusal that it got."""

    time: int
    record: int
    path: Path
    kind: str
    fields: Json


@attrs.define
class Actor:
    """One life of an endpoint: the acts of one trace. Times are ns of the machine's clock.

    Attributes:
        ending: How it ended, for people; empty: `closed` tells.
        opening: The record with which it began.
        address: Where others find it.
        life: Of a source, or of the source of a receiver.
        closed: Whether the endpoint ended its trace; a killed process does not.
        shift: The wall clock minus the machine's clock, ns.
        error: How wrong `shift` may be beside the other hosts, ns.
        stores: Of a source: the addresses of its stores by index.
        needs: Of a source: the stores and the number of holders of each group.
        enough: Of a source: groups that must hold a message.
        acked: Of a source: the acknowledgements that arrived, by store.
        registered: Whether enough stores granted its registration.
        syncs: Of a store: the beginning and the end of each write to the disk, and its record.
        gaps: Pauses between two records of more than a second.
    """

    path: Path
    role: Role
    endpoint: str
    address: str
    life: int
    began: int = -1
    ended: int = 0
    closed: bool = False
    ending: str = ""
    opening: int = 0
    records: int = 0
    shift: int = 0
    wall_known: bool = False
    error: int = 0
    stores: dict[int, str] = attrs.field(factory=dict)
    needs: list[tuple[list[int], int]] = attrs.field(factory=list)
    sizes: tuple[int, ...] = ()
    enough: int = 1
    sent: NumberedActs = attrs.field(factory=NumberedActs)
    stable: NumberedActs = attrs.field(factory=NumberedActs)
    delivered: NumberedActs = attrs.field(factory=NumberedActs)
    arrived: dict[int, NumberedActs] = attrs.field(factory=lambda: defaultdict(NumberedActs))
    acked: dict[int, NumberedActs] = attrs.field(factory=lambda: defaultdict(NumberedActs))
    acknowledged: dict[int, NumberedActs] = attrs.field(factory=lambda: defaultdict(NumberedActs))
    lost: NumberedActs = attrs.field(factory=NumberedActs)
    registered: bool = False
    syncs: list[tuple[int, int, int]] = attrs.field(factory=list)
    notices: list[Notice] = attrs.field(factory=list)
    pauses: list[tuple[int, int, int]] = attrs.field(factory=list)
    went: dict[str, int] = attrs.field(factory=dict)
    came: dict[str, int] = attrs.field(factory=dict)
    repeated: set[str] = attrs.field(factory=set)
    _writing: dict[int, int] = attrs.field(factory=dict)

    @property
    def name(self) -> str:
        return f"store {self.address}" if self.role is Role.STORE else f"{self.role.name.lower()} {self.endpoint}"

    @property
    def host(self) -> str:
        return self.address.rpartition(":")[0]

    @property
    def clock(self) -> str:
        return self.host

    @property
    def end(self) -> str:
        """Return how it ended, for people."""
        return self.ending or ("ended in order" if self.closed else "killed")

    def wall(self, time: int) -> int:
        """Return a time of the machine's clock on the wall clock."""
        return time + self.shift

    def proof(self, act: NumberedAct) -> Proof:
        return Proof(act.path, act.record, self.wall(act.time))

    def take(self, record: TraceRecord) -> None:
        """Add the acts of a record, which follows the one before."""
        if self.began < 0:
            self.began = record.time
        elif record.time - self.ended > PAUSE_NS:
            self.pauses.append((self.ended, record.time, record.number))
        self.ended, self.records = record.time, record.number + 1
        self._on_input(record)
        for effect in record.effects:
            self._on_effect(record, effect)

    def _on_input(self, record: TraceRecord) -> None:
        match record.event:
            case {"_": "Sent", "first": int(first), "count": int(count)}:
                self.sent.add(record, first, first + count)
            case {"_": "Data", "wire_first": int(first), "count": int(count), "incarnation": int(life)}:
                self.arrived[life].add(record, first, first + count)
            case {"_": "Lost", "wire_first": int(first), "count": int(count)}:
                self.lost.add(record, first, first + count)
            case {"_": "Persisted", "ticket": int(ticket)}:
                due = [one for one in self._writing if one <= ticket]
                if due:
                    began = min(self._writing.pop(one) for one in due)
                    self.syncs.append((began, record.time, record.number))
            case {"_": "Arrived", "message": dict(message)}:
                self._keep(self.came, message, record.time)
                match message:
                    case {"_": "StableAck", "store_index": int(store), "first": int(first), "last": int(last)}:
                        self.acked[store].add(record, first, last + 1)
                    case {"_": "Refused"}:
                        self.notices.append(Notice(record.time, record.number, record.path, "Refused", message))

    def _on_effect(self, record: TraceRecord, effect: Json) -> None:
        match effect:
            case {"_": "Send", "message": dict(message)} | {"_": "Broadcast", "message": dict(message)}:
                self._keep(self.went, message, record.time)
                match message:
                    case {"_": "StableAck", "incarnation": int(life), "first": int(first), "last": int(last)}:
                        self.acknowledged[life].add(record, first, last + 1)
            case {"_": "Notify", "event": {"_": "Stable", "first": int(first), "last": int(last), "flags": int(flags)}}:
                if flags & 1:
                    self.stable.add(record, first, last + 1)
            case {"_": "Notify", "event": {"_": "RegistrationSuccess", "store_index": int(store), "store": str(at)}}:
                if self.role is Role.SOURCE:
                    self.stores[store] = at
            case {"_": "Notify", "event": {"_": "RegistrationComplete"}}:
                self.registered = True
            case {"_": "Notify", "event": dict(event)} if event.get(TAG) in NOTICED:
                self.notices.append(Notice(record.time, record.number, record.path, event[TAG], event))
            case {"_": "Deliver", "first": int(first), "count": int(count)}:
                self.delivered.add(record, first, first + count)
            case {"_": str(kind), "ticket": int(ticket)} if kind.startswith("Persist"):
                self._writing[ticket] = record.time

    def _keep(self, those: dict[str, int], message: Json, time: int) -> None:
        keep(those, self.repeated, json.dumps(message, sort_keys=True), time)


def keep(those: dict[str, int], repeated: set[str], key: str, time: int) -> None:
    """Keep a message that tells its origin, once; one that comes twice says nothing about clocks."""
    if key in those:
        repeated.add(key)
    elif len(those) < MAX_MATCHED:
        those[key] = time


PAUSE_NS: Final = 1000 * MILLISECOND
"""Time without any record after which an endpoint counts as silent, ns."""


def read(paths: Iterable[Path]) -> tuple[list[Actor], list[str]]:
    """Return the actors of traces, and a sentence for each file that could not be read to its end."""
    actors: list[Actor] = []
    unread: list[str] = []
    for parts in traces_of(find(paths)):
        actor: Actor | None = None
        for path in parts:
            try:
                for frame, offset in frames_from(path):
                    actor = actor or _actor(path, frame)
                    _take_frame(actor, frame, path, offset)
            except StablecastError as error:
                unread.append(str(error))
        if actor is not None and actor.records:
            actors.append(actor)
    return actors, unread


def _actor(path: Path, frame: TraceFrame) -> Actor:
    machine = restore(frame.head.role, frame.head.snapshot)
    address, life, _ = identity(machine)
    actor = Actor(Path(part_of(path)[0]), frame.head.role, frame.head.endpoint, address, life)
    if isinstance(machine, SourceEndpoint):
        config = machine.config
        actor.stores = {index: one.address for index, one in enumerate(config.stores)}
        actor.needs, actor.enough = asked_for(config)
        actor.sizes = config.groups.sizes
    return actor


def _take_frame(actor: Actor, frame: TraceFrame, path: Path, offset: int) -> None:
    if frame.head.wall and not actor.wall_known:
        actor.shift, actor.wall_known = frame.head.wall - frame.head.time, True
    for record in of_frame(frame, path, offset):
        actor.take(record)
    actor.closed = frame.foot.closed


@attrs.define
class EndpointLives:
    """An endpoint over all of its lives, the oldest first."""

    lives: list[Actor]

    @property
    def name(self) -> str:
        newest = self.lives[-1]
        return newest.name if newest.role is Role.STORE else f"{newest.name} at {newest.host}"

    @property
    def role(self) -> Role:
        return self.lives[0].role

    def downs(self) -> Iterator[tuple[int, int, Actor]]:
        """Yield the wall times between two lives, with the life before."""
        for before, after in pairwise(self.lives):
            yield before.wall(before.ended), after.wall(after.began), before


def participants(actors: Iterable[Actor]) -> list[EndpointLives]:
    """Join the lives of one endpoint: the same store, or a client of the same kind on the same host that ran later."""
    found: dict[Any, list[EndpointLives]] = defaultdict(list)
    for actor in sorted(actors, key=lambda one: one.wall(one.began)):
        key = actor.role, actor.address if actor.role is Role.STORE else (actor.host, actor.endpoint)
        began = actor.wall(actor.began)
        earlier = [one for one in found[key] if one.lives[-1].wall(one.lives[-1].ended) <= began]
        if earlier:
            # A receiver has a trace for each life of its source: of those that ended, it continues the last.
            max(earlier, key=lambda one: one.lives[-1].wall(one.lives[-1].ended)).lives.append(actor)
        else:
            found[key].append(EndpointLives([actor]))
    return [one for some in found.values() for one in some]


def reached(acts: NumberedActs, number: int) -> NumberedAct | None:
    """Return the first act that has a number, or None. Numbers of acts mostly rise."""
    rows = acts.rows
    at = bisect_right(rows, number, key=lambda one: one.first) - 1
    # A number that was repaired stands after higher ones, so the neighbours are asked first and then the rest.
    for one in (*rows[max(0, at - 2) : at + 3], *rows):
        if one.first <= number < one.stop:
            return one
    return None
