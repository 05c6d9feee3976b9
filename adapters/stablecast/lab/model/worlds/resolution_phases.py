"""Drive the machines of the transports for `tla/ResolutionPhases`: a source and a receiver that find each other.

The source's side is a whole `Advertiser`, the receiver's a whole `Querier`, without rate limits. The world adds a
network that loses datagrams and partitions, and the acts of a driver: it joins a discovered source, confirms that, and
reports the end of the session. A turn comes at the instant at which a machine is due.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Self

import attrs

from stablecast.lab.model.canonical import Fn, record
from stablecast.lab.model.clone import SharedMachine
from stablecast.lab.model.explorer import Action, State
from stablecast.transports.resolution.udp import inputs, settings
from stablecast.transports.resolution.udp.advertiser import Advertiser
from stablecast.transports.resolution.udp.effects import Transmit
from stablecast.transports.resolution.udp.phases import NEVER, Phase, TopicTurns
from stablecast.transports.resolution.udp.querier import Querier, WantedTopic
from stablecast.transports.wire import lbmr

TOPIC = "topic"
SESSION_ID, INDEX = 1, 0
NONE = -1
"""A turn that does not come, in the model."""

SOURCE = inputs.AddSource(TOPIC, "10.0.0.1:14371", SESSION_ID, INDEX, "", persistent=False)
UNLIMITED = settings.ResolutionLimits(
    *[settings.RateLimit(records=0, bits=0)] * len(attrs.fields(settings.ResolutionLimits))
)


@attrs.frozen
class ResolutionConstants:
    """Hold the model's constants; a tick is a nanosecond."""

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

    def pace(self, sustaining: int) -> settings.PhasePace:
        """Return the turns of either side."""
        return settings.PhasePace(1, self.First, self.Longest, self.Initial, 1, self.Sustain, sustaining)


@attrs.define
class ResolutionPhasesWorld:
    """Drive one source's side and one receiver's side."""

    constants: ResolutionConstants
    advertising: SharedMachine[Advertiser]
    querying: SharedMachine[Querier]
    parted: bool = False
    now: int = 0

    @classmethod
    def create(cls, constants: Mapping[str, Any]) -> Self:
        """Return the initial state: there is neither source nor receiver."""
        known = ResolutionConstants(**constants)
        advertise = settings.AdvertiseOptions(known.pace(known.SourceSustaining), at_end=known.FinalWord)
        query = settings.QueryOptions(known.pace(known.ReceiverSustaining), known.Enough, known.UntilResolved)
        return cls(
            known,
            SharedMachine(Advertiser(b"source 1", advertise, UNLIMITED)),
            SharedMachine(Querier(query, limits=UNLIMITED)),
        )

    @property
    def interest(self) -> WantedTopic | None:
        """The receiver's record of the topic; do not change it."""
        return self.querying.machine.interests.get(TOPIC)

    @property
    def is_there(self) -> bool:
        """True if a source exists."""
        return bool(self.advertising.machine)

    @property
    def known(self) -> bool:
        """True if the receiver knows the source."""
        return self.interest is not None and bool(self.interest.known)

    @property
    def joined(self) -> bool:
        """True if the receiver has a session."""
        return self.interest is not None and self.interest.since is None

    # Enabled actions.

    def actions(self) -> Iterator[Action]:
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
        """Return what may happen to a datagram."""
        if self.parted:
            return ("lost",)
        return ("heard", "lost") if "lose" in self.constants.Faults else ("heard",)

    def _outcomes(self) -> tuple[str, ...]:
        if self.parted or not self.is_there:
            return ("lost",)
        return ("lost", "asked", "answered") if "lose" in self.constants.Faults else ("answered",)

    def _due(self, side: SharedMachine[Advertiser] | SharedMachine[Querier]) -> bool:
        due = side.machine.next_timeout()
        return due is not None and due <= self.now

    def _busy(self) -> bool:
        """Return whether time must wait for a due turn, a discovered source or an ended session."""
        if self._due(self.advertising) or self._due(self.querying):
            return True
        return self.known is not self.joined if self.is_there else self.known or self.joined

    # Effects of actions.

    def do(self, action: Action) -> None:
        name, *parameters = action
        match name:
            case "Tick":
                self.now += 1
            case "Part":
                self.parted = not self.parted
            case "Create" | "SourceTurn" | "End":
                self._advertise(_DOES[name], heard=parameters == ["heard"])
            case "ReceiverTurn":
                self._ask(parameters[0])
            case _:
                self._tell(_INPUTS[name])

    def _advertise(self, event: inputs.AdvertiserInput | None, *, heard: bool) -> None:
        """Run the source's side; its datagrams arrive if `heard`."""
        advertiser = self.advertising.own()
        if event is None:
            advertiser.handle_timeout(self.now)
        else:
            advertiser.receive(event, self.now)
        said = advertiser.take_effects()
        if heard:
            for effect in said:
                self._tell(inputs.RecordsReceived(_packet(effect)))

    def _ask(self, outcome: str) -> None:
        """Run the receiver's turn. Both sides receive in the order of sending."""
        querier = self.querying.own()
        querier.handle_timeout(self.now)
        asked = [effect for effect in querier.take_effects() if isinstance(effect, Transmit)]
        if outcome != "lost":
            for effect in asked:
                self._advertise(inputs.RecordsReceived(_packet(effect)), heard=outcome == "answered")

    def _tell(self, event: inputs.QuerierInput) -> None:
        querier = self.querying.own()
        querier.receive(event, self.now)
        querier.take_effects()

    # The model's variables.

    def abstract(self) -> State:
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


_INPUTS: dict[str, inputs.QuerierInput] = {
    "Want": inputs.AddReceiver(TOPIC),
    "Leave": inputs.RemoveReceiver(TOPIC),
    "Join": inputs.Resolved(TOPIC),
    "Break": inputs.Unresolved(TOPIC),
    "Miss": inputs.SourceLost(TOPIC, SESSION_ID, INDEX),
}
"""Inputs of the receiver's side by action."""

_DOES: dict[str, inputs.AdvertiserInput | None] = {
    "Create": SOURCE,
    "SourceTurn": None,
    "End": inputs.RemoveSource(SESSION_ID, INDEX),
}
"""Inputs of the source's side by action; None: its turn."""


def _packet(said: Transmit) -> lbmr.Packet:
    return lbmr.Packet(lbmr.PacketKind.NORMAL, said.queries, said.advertisements)
