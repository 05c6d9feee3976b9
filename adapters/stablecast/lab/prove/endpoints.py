"""Represent an endpoint by a number: each of its states is kept once, and each step performed once.

Endpoints do not know each other, so a step depends only on the state of the one that takes it. A search through a
million combinations takes a few thousand steps of real machines.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

import attrs

from stablecast.core.registration.status import RegistrationStatus
from stablecast.lab.model.clone import clone

SummaryT = TypeVar("SummaryT")
StepT = TypeVar("StepT")
ReactionT = TypeVar("ReactionT")

Parts = tuple[int, tuple[int, ...]]
"""What an endpoint knows in general, and of each store."""


class Explored(Protocol):
    """An endpoint whose states are told apart."""

    def look(self) -> Any:
        """Return the summary for other parts."""

    def common(self) -> tuple[object, ...]:
        """Return what distinguishes states beside the stores."""

    def of(self, index: int) -> tuple[object, ...]:
        """Return what the endpoint knows of one store."""


EndpointT = TypeVar("EndpointT", bound=Explored)


@attrs.define
class EndpointStates(Generic[EndpointT, SummaryT, StepT, ReactionT]):
    """Keep every state of one endpoint by number, and the result of each step.

    `views` are the summaries, and `parts` the general knowledge of a state and that of each of `places` stores, by the
    number in `names`. If the world is `fine`, `twins` are endpoints that came to a known state in another way.
    """

    places: int = attrs.field(kw_only=True)
    fine: bool = attrs.field(kw_only=True, default=False)
    states: list[EndpointT] = attrs.field(init=False, factory=list)
    views: list[SummaryT] = attrs.field(init=False, factory=list)
    parts: list[Parts] = attrs.field(init=False, factory=list)
    numbers: dict[Parts, int] = attrs.field(init=False, factory=dict)
    names: dict[tuple[object, ...], int] = attrs.field(init=False, factory=dict)
    taken: dict[tuple[int, StepT], ReactionT] = attrs.field(init=False, factory=dict)
    twins: dict[int, EndpointT] = attrs.field(init=False, factory=dict)

    def take(self, state: int, step: StepT) -> ReactionT:
        known = self.taken.get((state, step))
        if known is None:
            known = self.taken[state, step] = self.perform(clone(self.states[state]), step)
        return known

    @abstractmethod
    def perform(self, endpoint: EndpointT, step: StepT) -> ReactionT:
        """Perform a step with an endpoint, which changes."""

    def registrations(self, endpoint: EndpointT) -> Mapping[int, RegistrationStatus]:
        """Return what the endpoint knows of its registrations, by the index of the store."""
        return {}

    def generation(self, state: int, index: int) -> int:
        """Return the generation of the request to a store; 0 if there is none."""
        known = self.registrations(self.states[state]).get(index)
        return 0 if known is None else known.request.generation

    def number(self, endpoint: EndpointT) -> int:
        parts = (self._name(endpoint.common()), tuple(self._name(endpoint.of(at)) for at in range(self.places)))
        number = self.numbers.setdefault(parts, len(self.states))
        if number == len(self.states):
            self.states.append(endpoint)
            self.views.append(endpoint.look())
            self.parts.append(parts)
        elif self.fine:
            self.twins.setdefault(number, endpoint)
        return number

    def _name(self, part: tuple[object, ...]) -> int:
        return self.names.setdefault(part, len(self.names))
