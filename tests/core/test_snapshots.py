"""Every endpoint's state is plain: a generic converter takes it to JSON and back, and the copy goes on alike.

Traces rest on this: any frame of a trace begins with such a snapshot.
"""

import json
from typing import Any

import cattrs
import pytest
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.inputs import Tick
from stablecast.core.receiver import ReceiverSession
from stablecast.core.source import SourceEndpoint
from stablecast.core.store import StoreEndpoint
from tests.support.cluster import Cluster

ENDPOINTS = (SourceEndpoint, ReceiverSession, StoreEndpoint)


def converter() -> cattrs.Converter:
    """A plain converter; the outbox is empty between inputs and left out."""
    plain = cattrs.Converter()
    for kind in ENDPOINTS:
        plain.register_unstructure_hook(kind, make_dict_unstructure_fn(kind, plain, outbox=override(omit=True)))
        plain.register_structure_hook(kind, make_dict_structure_fn(kind, plain, outbox=override(omit=True)))
    return plain


def copy(machine: Any) -> Any:
    plain = converter()
    text = json.dumps(plain.unstructure(machine))
    return plain.structure(json.loads(text), type(machine))


@pytest.mark.no_cover
@pytest.mark.parametrize("pause", [MILLISECOND // 3, 5 * MILLISECOND, 2 * SECOND])
def test_a_copy_is_equal_and_goes_on_alike(pause: int) -> None:
    """Looked at in the middle of everything: runs in flight, a store away, a gap, a second life of the source."""
    cluster = Cluster.started(receivers=2)
    cluster.send(10)
    cluster.world.run(pause)
    cluster.crash_store("store1")
    cluster.send(10)
    cluster.world.run(pause)
    cluster.crash_source()
    cluster.start_source()
    cluster.world.run(pause)
    cluster.start_store("store1")
    cluster.world.run(pause)
    for node in cluster.world.nodes.values():
        original, twin = node.machine, copy(node.machine)
        assert twin == original
        for machine in (original, twin):
            machine.receive(Tick(), cluster.world.now + SECOND)
        assert twin.take_effects() == original.take_effects()
        assert twin == original
