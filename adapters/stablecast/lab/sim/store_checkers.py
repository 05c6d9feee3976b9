"""Check that stores cut nothing stable, and follow whom they know and what they delete within the rules."""

from collections.abc import Iterable, Mapping

import attrs

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import Pace, Role, SourceInfo
from stablecast.lab.sim.disk import VirtualDisk
from stablecast.lab.sim.facts import NOBODY, Facts, Lives
from stablecast.lab.sim.receiver_checkers import ReceiverLedger
from stablecast.lab.sim.setup import MESSAGE_BYTES, PAYLOAD_BYTES, RECEIVERS, STORES


@attrs.frozen
class KnownReceiver:
    """Describe a receiver that a store knows: its name, and whether it blocks.

    One that has `acknowledged` is known for certain. Any other begins after what some store has deleted, as a new one
    does.
    """

    receiver: str
    blocking: bool
    acknowledged: bool


@attrs.define
class StoreCheckers:
    """Check the stores.

    By store: its receivers by RegID, its trails by stream, the stores it was told of, those of them that are not synced
    with the ticket that they wait for, and the receivers that it forgot and that did not acknowledge anything since.
    """

    facts: Facts
    ledgers: Mapping[str, ReceiverLedger]
    readers: dict[str, dict[int, KnownReceiver]] = attrs.field(factory=dict)
    trails: dict[str, dict[int, int]] = attrs.field(factory=dict)
    heard_of: dict[str, list[int]] = attrs.field(factory=dict)
    unsynced: dict[str, list[tuple[int, int]]] = attrs.field(factory=dict)
    forgotten: dict[str, set[str]] = attrs.field(factory=dict)

    def on_start(self, store: str, clients: Iterable[Client]) -> None:
        self.readers[store] = {}
        self.unsynced[store] = []
        for client in clients:
            self.on_client(store, client)

    def on_wiped(
        self, store: str, *, silent: bool = True, copy: VirtualDisk | None = None, released: Lives | None = None
    ) -> None:
        """Record that a store loses its disk, with the record of what it deleted; see `Facts.on_lost`."""
        self.facts.on_lost(store, disk=True, silent=silent, copy=copy, released=released)
        self.heard_of.pop(store, None)
        self.trails[store] = {} if copy is None else copy.trails()

    def on_client(self, store: str, client: Client) -> None:
        if client.role is not Role.RECEIVER:
            return
        name, blocking = RECEIVERS[client.session_id - 2], client.pace is Pace.RECEIVERS
        if client.has_acknowledged:
            self.forgotten.setdefault(store, set()).discard(name)
        known = KnownReceiver(name, blocking, client.has_acknowledged)
        self.readers.setdefault(store, {})[client.reg_id] = known

    def on_info(self, store: str, info: SourceInfo) -> None:
        names = self.facts.announced.setdefault(info.incarnation, {info.incarnation})
        names.update(life for life, _ in info.lives)
        names.update((entry.address, entry.source_reg_id) for entry in info.stores)
        if info.incarnation not in self.facts.stand_ins:
            self.facts.on_told(info.incarnation, info.term)

    def on_read(self, store: str, info: SourceInfo, ticket: int) -> None:
        """Record the stores that an SRI names; the record of the store that read it is synced with a ticket."""
        if info.incarnation not in self.facts.stand_ins:
            self.unsynced.setdefault(store, []).extend((ticket, entry.index) for entry in info.stores)

    def on_synced(self, store: str, ticket: int) -> None:
        """Record that a store has synced what it wrote up to a ticket. It will not forget that in a crash."""
        waiting = self.unsynced.get(store, [])
        self.heard_of.setdefault(store, []).extend(index for due, index in waiting if due <= ticket)
        self.unsynced[store] = [(due, index) for due, index in waiting if due > ticket]

    def strangers(self, stores: list[str]) -> bool:
        """Return whether some of these stores do not know others, so that their proxies cannot meet.

        The guarantees say nothing about proxies. A store knows others by what an SRI said and its disk kept.
        """
        return any(STORES.index(other) not in self.heard_of.get(store, []) for store in stores for other in stores)

    def on_forget(self, store: str, role: Role, reg_id: int) -> None:
        """Check and record that a store removes a client."""
        if role is Role.SOURCE:
            self.on_cut(store, reg_id, 0)
        else:
            reader = self.readers[store].pop(reg_id, None)
            if reader is not None:
                self.forgotten.setdefault(store, set()).add(reader.receiver)
                self._excuse_deleted(reader.receiver)

    def on_acknowledged(self, store: str, life: int, first: int, stop: int) -> None:
        self.facts.acknowledged.setdefault(store, {}).setdefault(life, RangeSet()).add(first, stop)

    def on_cut(self, store: str, stream: int, first: int) -> None:
        """Check that a store which removes a stream from `first` on removes no stable message."""
        facts = self.facts
        for number, record in facts.disks[store].contents.get(stream, {}).items():
            if number >= first and facts.stable.get(number) == record.tag and not facts.farewell:
                facts.report("S3", f"{store} cuts number {number} of life {record.tag:#x}, which is stable")
                return
        trails = self.trails.setdefault(store, {})
        trails[stream] = min(trails.get(stream, 0), first)
        for numbers in facts.gone.get(store, {}).values():
            if numbers.last is not None:
                numbers.remove(first, max(first, numbers.last + 1))

    def on_dropped(self, store: str, first: int, stop: int) -> None:
        self.facts.dropped.setdefault(store, RangeSet()).add(first, stop)

    def passed(self, number: int) -> list[str]:
        """Return the stores at which a limit deleted this number, or kept it out."""
        passed = [store for store, trails in self.trails.items() if any(trail > number for trail in trails.values())]
        return passed + [store for store, dropped in self.facts.dropped.items() if number in dropped]

    def released(self, number: int) -> bool:
        """Return whether some store let this number go by a rule, or had no room for it."""
        return any(self.released_at(store, number) for store in STORES)

    def released_at(self, store: str, number: int) -> bool:
        """Return whether a store let this number go by a rule, or had no room for it."""
        gone = self.facts.gone.get(store, {}).values()
        return store in self.passed(number) or any(number in numbers for numbers in gone)

    def full(self, store: str) -> bool:
        """Return whether the limit of a store without a disk leaves no room for one more message.

        Nothing leaves such a memory but by a rule. The guarantees end where a limit lets a message go.
        """
        setup = self.facts.setup
        kept = sum(len(numbers) for numbers in self.facts.disks[store].memory.values())
        size = PAYLOAD_BYTES if setup.paced else MESSAGE_BYTES
        return setup.memory and 0 < setup.size_limit < (kept + 1) * size

    def on_reclaim(self, store: str, stream: int, stop: int) -> None:
        """Record that a store deletes a stream's messages below `stop`."""
        facts, trails = self.facts, self.trails.setdefault(store, {})
        first = trails.get(stream, 0)
        if stop <= first:
            return
        trails[stream] = stop
        gone = facts.gone.setdefault(store, {})
        if facts.setup.paced:
            gone.setdefault(NOBODY, RangeSet()).add(first, stop)
        else:
            disk = facts.disks[store]
            for contents in (disk.durable, disk.memory):
                for number, record in contents.get(stream, {}).items():
                    if number < stop:
                        gone.setdefault(record.tag, RangeSet()).add(number, number + 1)
        last = self._last_copies(store, stream, first, stop)
        for receiver, ledger in self.ledgers.items():
            ledger.excused.update((number, number + 1) for number in last)
            if not facts.setup.paced or not self._protects(receiver):
                ledger.excused.add(first, stop)

    def _last_copies(self, store: str, stream: int, first: int, stop: int) -> list[int]:
        """Return the numbers of [first, stop) of which other disks lost their copies, so that no quorum is left."""
        facts, found = self.facts, []
        for number, record in facts.disks[store].contents.get(stream, {}).items():
            if first <= number < stop and facts.had(record.tag, number):
                others = [other for other in facts.disks if other != store and facts.has(other, record.tag, number)]
                found += [] if facts.judge.recoverable(others) else [number]
        return found

    def _excuse_deleted(self, receiver: str) -> None:
        """Excuse deleted messages of a receiver, if the stores that forgot it suffice to register again.

        Each may have deleted them when the others still knew the receiver, because stores forget one after the other.
        """
        forgot = self._forgot(receiver)
        if self.facts.judge.registered(forgot):
            deleted = [trail for store in forgot for trail in self.trails.get(store, {}).values()]
            self.ledgers[receiver].excused.add(0, max(deleted, default=0))

    def _forgot(self, receiver: str) -> list[str]:
        return [store for store, receivers in self.forgotten.items() if receiver in receivers]

    def _protects(self, receiver: str) -> bool:
        """Return whether enough stores know a blocking receiver for its messages to be kept.

        With several groups the stores that forgot it, because its state lifetime ended, may suffice to register again.
        """
        stores = [
            store
            for store, readers in self.readers.items()
            if any(
                reader.receiver == receiver and reader.blocking and reader.acknowledged for reader in readers.values()
            )
        ]
        return self.facts.judge.registered(stores) and not self.facts.judge.registered(self._forgot(receiver))
