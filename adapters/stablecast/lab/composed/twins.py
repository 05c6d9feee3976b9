"""Check that endpoints in one state behave alike: the key of a state may drop nothing that matters.

Each endpoint's state is kept once, as the first endpoint that came to it. A *twin* came to it in another way. It must
take each step that was taken from there with the same messages, and to the same state.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

import attrs

from stablecast.core.protocol.inputs import Arrived
from stablecast.core.protocol.messages import Refused, Registered
from stablecast.core.registration.status import RegistrationStatus
from stablecast.lab.composed.world import ComposedWorld
from stablecast.lab.model.canonical import ForgetfulError
from stablecast.lab.model.clone import alike, clone

StepT = TypeVar("StepT")


def compare(world: ComposedWorld) -> int:
    """Return how many steps of twins were compared.

    Raises:
        ForgetfulError: two endpoints are in one state and behave differently.
    """
    compared = 0
    for what, state, step, known, found in _steps(world):
        if known != found:
            raise ForgetfulError(f"two {what} are in state {state} and differ in {step}: {known} and {found}")
        compared += 1
    return compared


def _steps(world: ComposedWorld) -> Iterator[tuple[str, int, object, object, object]]:
    stores, sources, receivers = world.stores, world.sources, world.receivers
    # The tables grow while twins run, so each is read before.
    for (state, step), known in list(stores.taken.items()):
        twin = stores.twins.get(state)
        if twin is not None and not alike(twin, stores.states[state]):
            yield "stores", state, step, known, stores.perform(clone(twin), step)
    for (state, event), heard in list(sources.taken.items()):
        life = sources.twins.get(state)
        if life is not None and not alike(life, sources.states[state]):
            asked = life.endpoint.status.registrations
            yield "sources", state, event, heard, sources.perform(clone(life), _addressed(event, asked))
    for (state, fate), reaction in list(receivers.taken.items()):
        other = receivers.twins.get(state)
        if other is not None and not alike(other, receivers.states[state]):
            asked = {} if other.session is None else other.session.status.registrations
            yield "receivers", state, fate, reaction, receivers.perform(clone(other), _addressed(fate, asked))


def _addressed(step: StepT, asked: Mapping[int, RegistrationStatus]) -> StepT:
    """Return an answer of a store as one to the newest request of a twin, because requests are counted."""
    match step:
        case Arrived(message=Registered() | Refused() as answer) if answer.store_index in asked:
            generation = asked[answer.store_index].request.generation
            return attrs.evolve(step, message=attrs.evolve(answer, generation=generation))
    return step
