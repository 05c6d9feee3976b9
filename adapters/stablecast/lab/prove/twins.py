"""Check that endpoints in one state behave alike: the key of a state may drop nothing that matters.

Each endpoint's state is kept once, as the first endpoint that came to it. A *twin* came to it in another way. It must
take each step that was taken from there with the same messages, and to the same state.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from stablecast.core.protocol.inputs import Arrived
from stablecast.core.protocol.messages import Refused, Registered
from stablecast.core.registration.status import RegistrationStatus
from stablecast.lab.model.canonical import ForgetfulError
from stablecast.lab.model.clone import alike, clone
from stablecast.lab.prove.endpoints import EndpointStates
from stablecast.lab.prove.world import ProofWorld

StepT = TypeVar("StepT")


def compare(world: ProofWorld) -> int:
    """Return how many steps of twins were compared.

    Raises:
        ForgetfulError: two endpoints are in one state and behave differently.
    """
    kinds = (("stores", world.stores), ("sources", world.sources), ("receivers", world.receivers))
    return sum(_compared(what, endpoints) for what, endpoints in kinds)


def _compared(what: str, endpoints: EndpointStates[Any, Any, Any, Any]) -> int:
    compared = 0
    for (state, step), known in list(endpoints.taken.items()):  # The table grows while twins run.
        twin = endpoints.twins.get(state)
        if twin is None or alike(twin, endpoints.states[state]):
            continue
        found = endpoints.perform(clone(twin), _addressed(step, endpoints.registrations(twin)))
        if known != found:
            raise ForgetfulError(f"two {what} are in state {state} and differ in {step}: {known} and {found}")
        compared += 1
    return compared


def _addressed(step: StepT, asked: Mapping[int, RegistrationStatus]) -> StepT:
    """Return an answer of a store as one to the newest request of a twin, because requests are counted."""
    match step:
        case Arrived(message=Registered() | Refused() as answer) if answer.store_index in asked:
            generation = asked[answer.store_index].request.generation
            return attrs.evolve(step, message=attrs.evolve(answer, generation=generation))
    return step
