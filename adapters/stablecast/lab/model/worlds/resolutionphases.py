"""The world of `tla/ResolutionPhases`: a source and a receiver that look for each other, by the transports' machines.

The source's side is a whole `Advertiser`, the receiver's a whole `Querier`, without limits. The world adds the network,
which loses datagrams and parts the two, and what a driver does: it joins what is discovered, says so, and says when the
session is over. A turn comes at the instant at which the machines say that it is due.
"""

from collections.abc import Iterator, Mapping
from typing import Self

import attrs

from stablecast.lab.model.canonical import Fn, Value, record
from stablecast.lab.model.clone import Shared
from stablecast.lab.model.explorer import Action, Invariant, State
from stablecast.transports.resolution.udp.advertiser import Advertiser
from stablecast.transports.resolution.udp.effects import Transmit
from stablecast.transports.resolution.udp.inputs import (
    AddReceiver,
    AddSource,
    AdvertiserInput,
    QuerierInput,
    RecordsReceived,
    RemoveReceiver,
    RemoveSource,
    Resolved,
    SourceLost,
    Unresolved,
)
from stablecast.transports.resolution.udp.phases import NEVER, Phase, TopicTurns
from stablecast.transports.resolution.udp.querier import Querier, WantedTopic
from stablecast.transports.resolution.udp.settings import (
    AdvertiseOptions,
    PhasePace,
    QueryOptions,
    RateLimit,
    ResolutionLimits,
)
from stablecast.transports.wire import lbmr

TOPIC = "topic"
SESSION_ID, INDEX = 1, 0
NONE = -1
"""What does not come, as the model writes it."""

SOURCE = AddSource(TOPIC, "10.0.0.1:14371", SESSION_ID, INDEX, "", persistent=False)
UNLIMITED = ResolutionLimits(*[RateLimit(records=0, bits=0)] * len(attrs.fields(ResolutionLimits)))


@attrs.frozen
class Constants:
    """The model's constants; a tick is a nanosecond."""

    First: int
    Longest: int
    Initial: int
    Sustain: int
    SourceSustaining: int
    ReceiverSustaining: int
    UntilResolved: bool
    Enough: int
    FinalWord: bool
    Faults: frozenset[str]

    def pace(self, sustaining: int) -> PhasePace:
        """The turns of either side."""
        return PhasePace(1, self.First, self.Longest, self.Initial, 1, self.Sustain, sustaining)


@attrs.define
class World:
    """See the module."""

    constants: Constants
    advertising: Shared[Advertiser]
    querying: Shared[Querier]
    parted: bool = False
    now: int = 0

    @classmethod
    def create(cls, constants: Mapping[str, Value]) -> Self:
        """The initial state: there is neither source nor receiver."""
        known = Constants(**{name: value for name, value in constants.items() if name != "Mutant"})  # type: ignore[arg-type]
        advertise = AdvertiseOptions(known.pace(known.SourceSustaining), at_end=known.FinalWord)
        query = QueryOptions(known.pace(known.ReceiverSustaining), known.Enough, known.UntilResolved)
        return cls(
            known,
            Shared(Advertiser(b"source 1", advertise, UNLIMITED)),
            Shared(Querier(query, limits=UNLIMITED)),
        )

    @property
    def interest(self) -> WantedTopic | None:
        """What the receiver's side keeps of the topic; not to be changed."""
        return self.querying.machine.interests.get(TOPIC)

    @property
    def is_there(self) -> bool:
        """Whether there is a source."""
        return bool(self.advertising.machine)

    @property
    def known(self) -> bool:
        """Whether the receiver was told of it."""
        return self.interest is not None and bool(self.interest.known)

    @property
    def joined(self) -> bool:
        """Whether the receiver has a session."""
        return self.interest is not None and self.interest.since is None

    # What can happen.

    def actions(self) -> Iterator[Action]:
        """In the order of the model's `Next`."""
        faults = self.constants.Faults
        yield from self._of_source()
        if self._due(self.querying):
            yield from (("ReceiverTurn", outcome) for outcome in self._outcomes())
        if self.interest is None:
            yield ("Want",)
        elif "leave" in faults:
            yield ("Leave",)
        within_reach = self.is_there and not self.parted
        if self.known and not self.joined:
            yield ("Join",) if within_reach else ("Miss",)
        if self.joined and (not self.is_there or "break" in faults):
            yield ("Break",)
        if "part" in faults:
            yield ("Part",)
        if not self._busy():
            yield ("Tick",)

    def _of_source(self) -> Iterator[Action]:
        if not self.is_there and not self.joined:
            yield from (("Create", fate) for fate in self._passes())
        if self._due(self.advertising):
            yield from (("SourceTurn", fate) for fate in self._passes())
        if "end" in self.constants.Faults and self.is_there:
            yield from (("End", fate) for fate in (self._passes() if self.constants.FinalWord else ("lost",)))

    def _passes(self) -> tuple[str, ...]:
        """What may become of a datagram."""
        if self.parted:
            return ("lost",)
        return ("heard", "lost") if "lose" in self.constants.Faults else ("heard",)

    def _outcomes(self) -> tuple[str, ...]:
        if self.parted or not self.is_there:
            return ("lost",)
        return ("lost", "asked", "answered") if "lose" in self.constants.Faults else ("answered",)

    def _due(self, side: Shared[Advertiser] | Shared[Querier]) -> bool:
        due = side.machine.next_timeout()
        return due is not None and due <= self.now

    def _busy(self) -> bool:
        """What is due, is found or has ended does not wait."""
        if self._due(self.advertising) or self._due(self.querying):
            return True
        return self.known is not self.joined if self.is_there else self.known or self.joined

    # What happens.

    def do(self, action: Action) -> None:
        """Let it happen."""
        name, *parameters = action
        match name:
            case "Tick":
                self.now += 1
            case "Part":
                self.parted = not self.parted
            case "Create" | "SourceTurn" | "End":
                self._advertise(_DOES[str(name)], heard=parameters == ["heard"])
            case "ReceiverTurn":
                self._ask(str(parameters[0]))
            case _:
                self._tell(_INPUTS[str(name)])

    def _advertise(self, event: AdvertiserInput | None, *, heard: bool) -> None:
        """The source's side does something; what it says is heard, or not."""
        self.advertising = self.advertising.own()
        advertiser = self.advertising.machine
        if event is None:
            advertiser.handle_timeout(self.now)
        else:
            advertiser.receive(event, self.now)
        said = advertiser.take_effects()
        if heard:
            for effect in said:
                self._tell(RecordsReceived(_packet(effect)))

    def _ask(self, outcome: str) -> None:
        """The receiver's turn. Both sides hear in the order in which was said."""
        self.querying = self.querying.own()
        querier = self.querying.machine
        querier.handle_timeout(self.now)
        asked = [effect for effect in querier.take_effects() if isinstance(effect, Transmit)]
        if outcome != "lost":
            for effect in asked:
                self._advertise(RecordsReceived(_packet(effect)), heard=outcome == "answered")

    def _tell(self, event: QuerierInput) -> None:
        self.querying = self.querying.own()
        self.querying.machine.receive(event, self.now)
        self.querying.machine.take_effects()

    # What the model sees.

    def abstract(self) -> State:
        """The model's variables."""
        querier = self.querying.machine
        turns = next(iter(self.advertising.machine.rounds.topics.values()), None)
        return {
            "source": self._turns(turns),
            "receiver": self._turns(querier.rounds.topics.get(TOPIC)),
            "known": self.known,
            "joined": self.joined,
            "cached": bool(querier.cache.of(TOPIC)),
            "parted": self.parted,
        }

    def _turns(self, topic: TopicTurns | None) -> Fn:
        if topic is None or topic.state is Phase.QUIESCENT:
            due = NONE if topic is None or topic.due == NEVER else topic.due - self.now
            return record(phase="AWAY" if topic is None else "QUIESCENT", due=due, gap=0, interval=0, ends=NONE)
        return record(
            phase=topic.state.name,
            due=topic.due - self.now,
            gap=topic.gap,
            interval=topic.interval,
            ends=max(topic.ends - self.now, 0) if topic.ends else NONE,
        )


_INPUTS: dict[str, QuerierInput] = {
    "Want": AddReceiver(TOPIC),
    "Leave": RemoveReceiver(TOPIC),
    "Join": Resolved(TOPIC),
    "Break": Unresolved(TOPIC),
    "Miss": SourceLost(TOPIC, SESSION_ID, INDEX),
}
"""What the receiver's side is told."""

_DOES: dict[str, AdvertiserInput | None] = {
    "Create": SOURCE,
    "SourceTurn": None,
    "End": RemoveSource(SESSION_ID, INDEX),
}
"""What the source's side is told; None: it is its turn."""


def _packet(said: Transmit) -> lbmr.Packet:
    return lbmr.Packet(lbmr.PacketKind.NORMAL, said.queries, said.advertisements)


def _silent(state: State) -> bool:
    """Q1: who is quiet plans no turn, and who is not plans one."""
    sides = [side for side in (state["source"], state["receiver"]) if isinstance(side, Fn)]
    return all((side["phase"] in ("AWAY", "QUIESCENT")) is (side["due"] == NONE) for side in sides)


INVARIANTS: Mapping[str, Invariant] = {"Silent": _silent}
