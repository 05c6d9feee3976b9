"""Drive the core's machines for `tla/Refill`: stores that stop, lose their disks, and refill from each other.

Each store is a whole endpoint. The world is the source: it registers, announces each life, and sends. It retains
nothing, so that only other stores can help. It counts the votes of the stores as they grant them.

A refill is one step: the store asks the others until it has nothing more to ask. Time passes in this step only.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import attrs

from stablecast.core.machine import serial
from stablecast.core.protocol import messages as msg
from stablecast.core.protocol.effects import Effect, Send, SendStored
from stablecast.core.protocol.history import fold
from stablecast.core.protocol.inputs import Arrived, Data
from stablecast.core.protocol.messages import StoreMemory
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import StoreConfig
from stablecast.core.store import StoreEndpoint
from stablecast.lab.model.canonical import Fn, record
from stablecast.lab.model.clone import SharedMachine
from stablecast.lab.model.explorer import Action, State
from stablecast.lab.model.store_process import (
    SOURCE_ID,
    WorldJournal,
    WorldStore,
    data,
    disk_only,
    numbers_of,
    registration,
    store_address,
)

SOURCE, STREAM = "source:1", "stream:1"
RETRY_NS = 1
ROUND_NS = 100
"""Longer than all requests of a round, and shorter than the wait for the next one."""


@attrs.frozen
class RefillConstants:
    Stores: int
    Messages: int
    Lives: int
    Stops: int
    Wipes: int
    Healing: bool
    Careful: bool


@attrs.define
class RefillWorld:
    """Drive some stores. `history` has the first number of each life, `upcoming` the next number of the source."""

    constants: RefillConstants
    keepers: list[SharedMachine[WorldStore]]
    history: tuple[int, ...] = ()
    upcoming: int = 0
    joined: frozenset[int] = frozenset()
    stable: frozenset[tuple[int, int]] = frozenset()
    stops: int = 0
    wipes: int = 0
    now: int = 0

    @classmethod
    def create(cls, constants: Mapping[str, Any]) -> Self:
        """Return the initial state: all stores are up, and no source was there yet."""
        return cls.of(RefillConstants(**constants), Repair.ALL)

    @classmethod
    def of(cls, known: RefillConstants, repairs: Repair) -> Self:
        """Return that state, with stores that have these repairs."""
        configs = [_config(index, repairs, healing=known.Healing) for index in range(known.Stores)]
        keepers = [SharedMachine(WorldStore(one, StoreEndpoint.create(one), timers=False)) for one in configs]
        return cls(known, keepers, stops=known.Stops, wipes=known.Wipes)

    # Enabled actions.

    def actions(self) -> Iterator[Action]:
        if self._life < self.constants.Lives and self._votes():
            yield ("Begin",)
        if self._life and self.upcoming < self.constants.Messages:
            yield ("Send",)
        for index in range(self.constants.Stores):
            yield from self._actions_at(index)

    def _actions_at(self, index: int) -> Iterator[Action]:
        process, number = self._process(index), index + 1
        if process.machine is None:
            yield ("Start", number)
            healed = not self.constants.Careful or all(map(self._whole, self._others(index)))
            if self.wipes and process.synced != _lost() and healed:
                yield ("Replace", number)
            return
        if self._life and index not in self.joined:
            yield ("Join", number)
        if process.written.messages != process.synced.messages:
            yield ("Sync", number)
        if self._offered(index):
            yield ("Refill", number)
        if self.stops:
            yield ("Stop", number)

    def do(self, action: Action) -> None:
        name, *parameters = action
        if parameters:
            self._do_at(name, parameters[0] - 1)
        elif name == "Begin":
            self._begin()
        else:
            number, self.upcoming = self.upcoming, self.upcoming + 1
            for index in sorted(self.joined):
                self._perform(index, self._own(index).receive(data(self._life, number), self.now))

    def _do_at(self, name: str, index: int) -> None:
        process = self._own(index)
        match name:
            case "Start":
                self._perform(index, process.restart(self.now))
            case "Replace":
                process.synced, self.wipes = _lost(), self.wipes - 1
            case "Stop":
                process.end()
                self.joined, self.stops = self.joined - {index}, self.stops - 1
            case "Join":
                self._register(index)
                self._announce(index)
                self._count()
            case "Sync":
                self._perform(index, process.sync(self.now))
                self._count()
            case "Refill":
                self._refill(index)

    # The source.

    @property
    def _life(self) -> int:
        return len(self.history)

    def _begin(self) -> None:
        """Register another life with all stores that are up, and begin above what they know."""
        up = [index for index in range(self.constants.Stores) if self._process(index).machine is not None]
        first, life = 1 + max(map(self._known, up)), self._life + 1
        self.history, self.upcoming = (*self.history, first), first
        for index in up:
            self._register(index)
        for index in up:
            self._announce(index)
        assert life == self._life

    def _register(self, index: int) -> None:
        process = self._own(index)
        self._perform(index, process.receive(Arrived(registration(self._life, SOURCE, STREAM, index)), self.now))
        self._perform(index, process.sync(self.now))

    def _announce(self, index: int) -> None:
        """Announce the life to a store, which syncs what it writes."""
        process = self._own(index)
        self.joined |= {index}
        self._perform(index, process.receive(Arrived(self._info()), self.now))
        self._perform(index, process.sync(self.now))

    def _info(self) -> msg.SourceInfo:
        stores = range(self.constants.Stores)
        return msg.SourceInfo(
            self._life,
            "topic",
            self._life,
            serial.wire(self.history[-1]),
            serial.wire(self.upcoming - 1),
            SOURCE,
            (len(stores),),
            confirmations=False,
            stores=tuple(msg.StoreEntry(index, 0, store_address(index), SOURCE_ID, 0) for index in stores),
            term=self._life,
            lives=fold((life, first) for life, first in enumerate(self.history, 1)),
        )

    def _count(self) -> None:
        """Record what a majority of the disks holds of the current life."""
        disks = [one.machine.synced for one in self.keepers]
        for number in range(self.history[-1] if self.history else 0, self.upcoming):
            holding = [disk for disk in disks if _life(disk) == disk.messages.get(number) == self._life]
            if 2 * len(holding) > len(disks):
                self.stable |= {(number, self._life)}

    def _votes(self) -> bool:
        """Return whether the stores that are up may decide where a life begins."""
        up = [one.machine for one in self.keepers if one.machine.machine is not None]
        kept = [process for process in up if _memory(process.synced) is StoreMemory.KEPT]
        return 2 * len(kept) > self.constants.Stores or len(up) == self.constants.Stores

    # Stores.

    def _process(self, index: int) -> WorldStore:
        return self.keepers[index].machine

    def _own(self, index: int) -> WorldStore:
        return self.keepers[index].own()

    def _others(self, index: int) -> list[int]:
        return [other for other in range(self.constants.Stores) if other != index]

    def _known(self, index: int) -> int:
        process = self._process(index)
        repository, source = process.repository, process.synced.source
        newest = -1 if repository is None else repository.newest
        return max(newest, -1 if source is None else source.known)

    def _lacking(self, index: int) -> frozenset[int]:
        repository = self._process(index).repository
        return frozenset() if repository is None else numbers_of(repository.lacking_numbers)

    def _whole(self, index: int) -> bool:
        """Return whether a store is up, joined, lacks nothing, and has everything on disk."""
        process = self._process(index)
        written = process.written.messages == process.synced.messages
        return index in self.joined and written and not self._lacking(index)

    def _offered(self, index: int) -> bool:
        """Return whether a peer of the same life holds something that this store lacks."""
        life = _life(self._process(index).synced)
        peers = [self._process(other) for other in self._others(index)]
        able = [one.written.messages for one in peers if one.machine is not None and _life(one.synced) == life]
        return any(number in messages for number in self._lacking(index) for messages in able)

    def _refill(self, index: int) -> None:
        """Let a store ask until nothing is under way any more."""
        until = self.now + ROUND_NS
        while self.now < until:
            self.now += RETRY_NS
            process = self._own(index)
            process.running.handle_timeout(self.now)
            self._perform(index, process.perform(self.now))

    def _perform(self, index: int, effects: Sequence[Effect]) -> None:
        """Deliver the messages of a store. The source retains nothing, and answers at once."""
        for effect in effects:
            match effect:
                case Send(to=to, message=msg.RetransmitRequest() as request) if to != SOURCE:
                    self._ask(index, int(to.removeprefix("store:")) - 1, request)
                case Send(message=msg.LateJoinRequest() as asked) if asked.incarnation == self._life:
                    gone = msg.LateJoinInfo(
                        self._life, asked.request, serial.wire(self.upcoming), serial.wire(self.upcoming - 1)
                    )
                    self._perform(index, self._own(index).receive(Arrived(gone), self.now))

    def _ask(self, index: int, peer: int, request: msg.RetransmitRequest) -> None:
        """Deliver a request of a store to another one, and the answer."""
        if self._process(peer).machine is None:
            return
        answering = self._own(peer)
        for effect in answering.receive(Arrived(request), self.now):
            if isinstance(effect, SendStored):
                for number in range(effect.first, effect.last + 1):
                    life = answering.written.messages[number]
                    run = Data(effect.session, life, serial.wire(number), 1, 0, recovered=True, token=0)
                    self._perform(index, self._own(index).receive(run, self.now))

    # The model's variables.

    def abstract(self) -> State:
        return {
            "source": record(life=self._life, next=self.upcoming, history=self.history),
            "store": tuple(map(self._store, range(self.constants.Stores))),
            "disk": tuple(self._disk(one.machine.synced) for one in self.keepers),
            "stable": frozenset(self.stable),
            "left": record(stops=self.stops, wipes=self.wipes),
        }

    def _store(self, index: int) -> Fn:
        process = self._process(index)
        up = process.machine is not None
        return record(up=up, joined=index in self.joined, holds=self._holds(process.written if up else WorldJournal()))

    def _disk(self, journal: WorldJournal) -> Fn:
        source = journal.source
        history = () if source is None else tuple(first for _, first in source.lives)
        return record(
            life=_life(journal),
            history=history,
            holds=self._holds(journal),
            kept=_memory(journal) is StoreMemory.KEPT,
            known=-1 if source is None else source.known,
        )

    def _holds(self, journal: WorldJournal) -> Fn:
        return Fn({number: journal.messages.get(number, 0) for number in range(self.constants.Messages)})


def _config(index: int, repairs: Repair, *, healing: bool) -> StoreConfig:
    config = disk_only(store_address(index), repairs)
    return attrs.evolve(config, refill=healing, refill_rate=0, refill_byte_rate=0, retry_ns=RETRY_NS)


def _lost() -> WorldJournal:
    """Return a disk that replaces another one."""
    return WorldJournal(memory=StoreMemory.LOST)


def _life(journal: WorldJournal) -> int:
    return 0 if journal.source is None else journal.source.incarnation


def _memory(journal: WorldJournal) -> StoreMemory:
    """Return what a store knows of older lives of the source."""
    return journal.memory if journal.source is None else journal.source.memory
