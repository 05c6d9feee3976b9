"""Drive the core's machines for `tla/Stability`: the lives of a source and the stores that keep its messages.

The source is a whole `SourceEndpoint`, each store a whole `StoreEndpoint`. The world adds what the core leaves to its
drivers: streams and connections (queues that a crash empties), the stores' disks (a crash loses the unsynced part),
registration intervals that pass, and processes that end and return.

Numbers begin at 1 in the model and at 0 in the core (`stability_view`).
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import attrs

from stablecast.core.protocol.effects import Notify, Resend, Send
from stablecast.core.protocol.events import Event, Stable, StableFlag
from stablecast.core.protocol.inputs import Arrived, Gone, Sent, SourceInput, Start, Tick
from stablecast.core.protocol.messages import LateJoinInfo, Registered, StableAck, StoreMemory
from stablecast.core.registration.status import RegistrationStatus
from stablecast.core.registration.store_registration import RegistrationState
from stablecast.core.source import SourceEndpoint, SourceState
from stablecast.core.store import StoreEndpoint
from stablecast.lab.model.clone import SharedMachine
from stablecast.lab.model.explorer import Action, State
from stablecast.lab.model.store_process import INTERVAL_NS, WorldJournal, data, messages, store_address
from stablecast.lab.model.worlds import stability_stores as parts
from stablecast.lab.model.worlds import stability_view as views

WAITING = (RegistrationState.REGISTERING, RegistrationState.RENEWING, RegistrationState.UNRESPONSIVE)
"""States of a registration whose request is not answered yet."""


@attrs.define
class StabilityWorld:
    """Drive one source and its stores. `life` is the source's; `safe` are (life, number) reported stable.

    `aside` is the other process while it is partitioned from its stores, with its life.
    """

    constants: parts.StabilityConstants
    shared_stores: list[SharedMachine[parts.StabilityStore]]
    shared_source: SharedMachine[SourceEndpoint] | None = None
    life: int = 0
    aside: tuple[SharedMachine[SourceEndpoint] | None, int] = (None, 0)
    crashes: int = 0
    safe: set[tuple[int, int]] = attrs.field(factory=set)
    now: int = 0

    @classmethod
    def create(cls, constants: Mapping[str, Any]) -> Self:
        """Return the initial state: the stores run, the source does not."""
        known = parts.StabilityConstants(**constants)
        configs = [parts.store_config(known, index) for index in range(len(known.groups))]
        stores = [
            parts.StabilityStore(one, StoreEndpoint.create(one), index=index) for index, one in enumerate(configs)
        ]
        return cls(known, list(map(SharedMachine, stores)))

    @property
    def stores(self) -> list[parts.StabilityStore]:
        """The stores; do not change them."""
        return [shared.machine for shared in self.shared_stores]

    @property
    def source(self) -> SourceEndpoint | None:
        """The source; do not change it."""
        return None if self.shared_source is None else self.shared_source.machine

    # Enabled actions.

    def actions(self) -> Iterator[Action]:
        heard = not any(process.back for process in self.stores if not self.constants.weak("slow", process.index))
        if heard:
            yield from ((name,) for name in self._source_actions() if self._chosen(name, 0))
        for number, process in enumerate(self.stores, 1):
            if heard:
                yield from ((name, number) for name in self._store_actions(process) if self._chosen(name, number))
            if process.back:
                yield ("ToSource", number)

    def _chosen(self, name: str, number: int) -> bool:
        """Return whether an action is part of the one failure that the paths "groups" are about."""
        if self.constants.Paths != "groups":
            return True
        later, source = self.life == 2, self.source
        begun = source is not None and source.state is not SourceState.REGISTERING
        first = source.resume_point if begun and source is not None else 0
        match name:
            case "Stop":
                return later and begun and self._source.oldest_number > first
            case "Send":
                return later or self.aside[1] == 2
            case "Crash":
                return number == 3 and later and self._informs() and self._source.next_number == first
            case "Restart":
                return not later
            case _:
                return True

    def _source_actions(self) -> Iterator[str]:
        source, calm = self.source, self._calm(self.stores)
        if calm and "rival" in self.constants.Faults and self._may_turn():
            yield "Turn"
        if source is None:
            if calm and max(self.life, self.aside[1]) < self.constants.Lives:
                yield "Begin"
            return
        if self._may_stop(source):
            yield "Stop"
        if not (calm and self._prompt(self.stores)):
            return
        status = source.status
        waits = source.state is SourceState.REGISTERING and not status.first_interval_over
        if waits or any(one.state is RegistrationState.RENEWING for one in status.registrations.values()):
            yield "Wait"
        if source.can_send and source.next_number < self.constants.Numbers and source.credit_messages:
            yield "Send"

    def _may_stop(self, source: SourceEndpoint) -> bool:
        """Return whether the process may crash.

        On some paths the first life, or one that sent nothing, does not crash.
        """
        sent = source.state is not SourceState.REGISTERING and source.next_number > source.resume_point
        return {"once": self.life > 1, "away": sent}.get(self.constants.Paths, True)

    def _may_turn(self) -> bool:
        """Return whether a process can be partitioned or return, and none has yet to begin."""
        if self.constants.Paths in ("once", "groups") and self.aside[1]:
            return self.life > self.aside[1] and self.source is None
        source = self.source
        return self.aside[0] is not None if source is None else source.state is not SourceState.REGISTERING

    def _store_actions(self, process: parts.StabilityStore) -> Iterator[str]:
        constants = self.constants
        calm = self._calm([other for other in self.stores if other is not process])
        if process.machine is None:
            if calm:
                yield "Restart"
                if process.synced.clients and self._wipes(process):
                    yield "Wipe"
            return
        if calm:
            yield from self._hearing(process)
        if process.unsynced:
            yield "Sync"
        if self.crashes < constants.Crashes:
            yield "Crash"

    def _wipes(self, process: parts.StabilityStore) -> bool:
        """Return whether a disk may be lost: any one, or one of a minority that has no memory."""
        sizes, groups = parts.LAYOUTS[self.constants.Layout]
        group = groups[process.index]
        blank = [one for one in self.stores if one is process or views.disk_view(one, self.constants)["blank"]]
        few = 2 * sum(groups[one.index] == group for one in blank) <= sizes[group]
        return "wipe" in self.constants.Faults or ("replace" in self.constants.Faults and few)

    def _hearing(self, process: parts.StabilityStore) -> Iterator[str]:
        """Yield the messages that may reach a store next."""
        prompt, in_turn = self._prompt(self.stores), self._prompt(self.stores[: process.index])
        if self._unanswered(process) and in_turn:
            yield "Ask"
        repository = process.repository
        if self._announced(process) and repository is not None:
            if self._uninformed(process) and in_turn:
                yield "Inform"
            behind = repository.resume_point is not None and views.highest(repository) < self._source.next_number - 1
            if behind and prompt and self._informs():
                yield "Inform"
            if repository.late_join is not None and not process.granting and prompt:
                yield "Fill"
        if process.stream and prompt:
            if not process.granting:
                yield "ToStore"
            if self.constants.weak("lose", process.index):
                yield "Lose"

    def _calm(self, stores: list[parts.StabilityStore]) -> bool:
        """Return whether no other store's disk comes first."""
        return "lag" in self.constants.Faults or not any(process.unsynced for process in stores)

    def _prompt(self, stores: list[parts.StabilityStore]) -> bool:
        """Return whether none of these stores has a prompt message in flight."""
        prompt = [store for store in stores if not self.constants.weak("slow", store.index)]
        return not any(self._unanswered(store) or self._uninformed(store) for store in prompt)

    def _unanswered(self, process: parts.StabilityStore) -> bool:
        """Return whether a request to the store is in flight."""
        if self.source is None or process.machine is None or not self._connected(process):
            return False
        if self._registration(process).state not in WAITING:
            return False
        granting = process.granting and process.life == self.life
        return not granting and not process.granted(self.life)

    def _announced(self, process: parts.StabilityStore) -> bool:
        """Return whether the store is connected to this life, and the life has begun."""
        running = self.source is not None and self.source.state is not SourceState.REGISTERING
        return running and process.life == self.life and self._connected(process)

    def _connected(self, process: parts.StabilityStore) -> bool:
        proven = self.source is not None and self.source.status.proof > 0
        return self.constants.connected(process.index, self.life, self.aside[1], proven)

    def _informs(self) -> bool:
        """Return whether the source announces itself, which it does only while it may send."""
        return self.source is not None and self.source.state is SourceState.ACTIVE

    def _uninformed(self, process: parts.StabilityStore) -> bool:
        repository = process.repository
        heard = self._informs() and process.life == self.life and self._connected(process)
        return heard and repository is not None and repository.resume_point is None

    def do(self, action: Action) -> None:
        name, *parameters = action
        if parameters:
            self._AT_A_STORE[name](self, self.shared_stores[parameters[0] - 1].own())
        else:
            self._AT_THE_SOURCE[name](self)
        if self.source is not None and self.source.state is SourceState.OVER:
            self.shared_source = None

    def _begin(self) -> None:
        self.life = max(self.life, self.aside[1]) + 1
        self.shared_source = SharedMachine(SourceEndpoint.create(parts.source_config(self.constants, self.life)))
        self._hear(Start())

    def _stop(self) -> None:
        self.shared_source = None
        for index, process in enumerate(self.stores):
            if not self.constants.weak("late", process.index) and (process.stream or process.back):
                self.shared_stores[index].own().disconnect()

    def _turn(self) -> None:
        """Partition one process from all stores until its leases end, and swap it with the other one."""
        for index, process in enumerate(self.stores):
            self.shared_stores[index].own().disconnect()
            if self.shared_source is not None:
                self._hear(Gone(store_address(process.index)))
        if self.shared_source is not None:
            self._wait()
        (self.shared_source, self.life), self.aside = self.aside, (self.shared_source, self.life)

    def _wait(self) -> None:
        self.now += INTERVAL_NS
        self._hear(Tick())

    def _send(self) -> None:
        number = self._source.next_number
        self._hear(Sent(number, 1, 0))
        for index, process in enumerate(self.stores):
            if process.life == self.life and self._connected(process):
                self.shared_stores[index].own().stream.append(number)

    def _ask(self, process: parts.StabilityStore) -> None:
        if process.life != self.life:
            process.stream = []
        process.feed(Arrived(self._registration(process).request))

    def _inform(self, process: parts.StabilityStore) -> None:
        process.feed(Arrived(self._source.info()))

    def _to_store(self, process: parts.StabilityStore) -> None:
        process.feed(data(process.life, process.stream.pop(0)))

    def _lose(self, process: parts.StabilityStore) -> None:
        process.stream.pop(0)

    def _fill(self, process: parts.StabilityStore) -> None:
        """Recover the store's holes: it asks, the source answers with what it retains, the store requests it."""
        repository = process.repository
        assert repository is not None
        assert repository.late_join is not None
        (told,) = self._hear(Arrived(repository.late_join))
        assert isinstance(told, LateJoinInfo)
        for request in process.feed(Arrived(told)):
            for resent in self._hear(Arrived(request)):
                assert isinstance(resent, Resend)
                for number in range(resent.first, resent.last + 1):
                    process.feed(data(self.life, number, recovered=True))

    def _sync(self, process: parts.StabilityStore) -> None:
        process.answer(messages(process.sync()))

    def _to_source(self, process: parts.StabilityStore) -> None:
        """Deliver a grant, or all acknowledgements up to the next grant. Without a running source they are lost."""
        message = process.back.pop(0)
        self._hear(Arrived(message))
        while process.back and _together(message, process.back[0]):
            self._hear(Arrived(process.back.pop(0)))

    def _crash(self, process: parts.StabilityStore) -> None:
        process.crash()
        self.crashes += 1
        self._hear(Gone(store_address(process.index)))

    def _restart(self, process: parts.StabilityStore) -> None:
        process.restart()
        process.feed(Start())

    def _wipe(self, process: parts.StabilityStore) -> None:
        process.synced = WorldJournal(memory=StoreMemory.LOST)

    _AT_THE_SOURCE: ClassVar = {"Begin": _begin, "Stop": _stop, "Turn": _turn, "Wait": _wait, "Send": _send}
    _AT_A_STORE: ClassVar = {
        "Ask": _ask,
        "Inform": _inform,
        "ToStore": _to_store,
        "Lose": _lose,
        "Fill": _fill,
        "Sync": _sync,
        "ToSource": _to_source,
        "Crash": _crash,
        "Restart": _restart,
        "Wipe": _wipe,
    }

    # The source's driver.

    @property
    def _source(self) -> SourceEndpoint:
        assert self.source is not None
        return self.source

    def _registration(self, process: parts.StabilityStore) -> RegistrationStatus:
        return self._source.status.registrations[process.index]

    def _hear(self, event: SourceInput) -> list[LateJoinInfo | Resend]:
        """Pass an input to a running source; return its messages to a store that asked."""
        if self.shared_source is None:
            return []
        source = self.shared_source.own()
        source.receive(event, self.now)
        told: list[LateJoinInfo | Resend] = []
        for effect in source.take_effects():
            if isinstance(effect, Notify):
                self._note(effect.event)
            elif isinstance(effect, Resend):
                told.append(effect)
            elif isinstance(effect, Send) and isinstance(effect.message, LateJoinInfo):
                told.append(effect.message)
        return told

    def _note(self, event: Event) -> None:
        if isinstance(event, Stable) and event.flags & StableFlag.STABLE:
            self.safe |= {(self.life, number) for number in range(event.first, event.last + 1)}

    # The model's variables.

    def abstract(self) -> State:
        stores, source, constants = self.stores, self.source, self.constants
        shared, other = self.aside
        return {
            "aside": views.aside_view(None if shared is None else shared.machine, other, len(stores)),
            "source": views.source_view(source, self.life),
            "reg": tuple(views.registration_view(source, process.index) for process in stores),
            "window": views.window_view(source, len(stores)),
            "stream": tuple(tuple(number + 1 for number in process.stream) for process in stores),
            "back": tuple(views.answers_view(process.back) for process in stores),
            "store": tuple(views.store_view(process, constants) for process in stores),
            "disk": tuple(views.disk_view(process, constants) for process in stores),
            "safe": frozenset((life, number + 1) for life, number in self.safe),
            "crashes": self.crashes,
        }


def _together(one: Registered | StableAck, other: Registered | StableAck) -> bool:
    """Return whether two answers arrive in one step."""
    acks = isinstance(one, StableAck) and isinstance(other, StableAck)
    return acks and one.incarnation == other.incarnation
