"""Configurations: those of drawn setups work, and say what the setup says."""

from stablecast.core.protocol.messages import Pace
from stablecast.core.protocol.setting_relations import relations
from stablecast.core.protocol.settings import AckMode, FlightBehavior, Ordering, RepositoryType
from stablecast.lab.sim.endpoint_configs import (
    LATE_JOIN_BYTES,
    LIMITED_GIVE_UP_NS,
    STORE_ADDRESSES,
    receiver_config,
    source_config,
    store_config,
)
from stablecast.lab.sim.setup import RECEIVERS, STORES, WorldSetup, draw_setup


def test_every_drawn_setup_works() -> None:
    for setup in map(draw_setup, range(300)):
        config = source_config(setup, 1, "10.0.0.1:1", "10.0.0.1:2", 3, 40)
        assert [finding.code for finding in relations(config) if finding.fatal] == []


def test_stores_are_named_or_have_an_address() -> None:
    config = source_config(WorldSetup(), 1, "a:1", "a:2", 3, 40)
    assert tuple(store.address for store in config.stores) == STORE_ADDRESSES
    named = source_config(WorldSetup(named=True), 1, "a:1", "a:2", 3, 40)
    assert [(store.name, store.address) for store in named.stores] == [(name, "") for name in STORES]


def test_a_setup_reaches_everybody() -> None:
    setup = WorldSetup(
        paced=True, non_blocking=True, memory=True, notify=True, arrival=True, size_limit=9, request_rate=5
    )
    store = store_config(setup, "a:1", 7, 0)
    assert store.request_rate == 5
    assert store.repository is not None
    assert store.repository.kind is RepositoryType.MEMORY
    assert (store.repository.size_limit, store.repository.allow_rpp) == (9, True)
    source = source_config(setup, 1, "a:1", "a:2", 3, 40)
    assert (source.pace, source.flight_behavior) == (Pace.RECEIVERS, FlightBehavior.NOTIFY)
    first, last = (receiver_config(setup, name, "a:1", 3) for name in RECEIVERS)
    assert (first.pace, last.pace) == (Pace.RECEIVERS, Pace.NON_BLOCKING)
    assert (first.ordering, first.give_up_ns, first.otr.give_up_ns) == (
        Ordering.ARRIVAL,
        LIMITED_GIVE_UP_NS,
        LIMITED_GIVE_UP_NS,
    )


def test_a_plain_one_is_as_documented() -> None:
    store = store_config(WorldSetup(), "a:1", 7, 0)
    assert store.repository is not None
    assert (store.repository.kind, store.repository.ack_minimum) == (RepositoryType.DISK, 1)
    receiver = receiver_config(WorldSetup(), RECEIVERS[0], "a:1", 3)
    assert (receiver.pace, receiver.ordering, receiver.ack_mode) == (Pace.SOURCE, Ordering.ORDERED, AckMode.BATCHED)


def test_a_streaming_source_retains_for_those_who_join_late() -> None:
    streaming = WorldSetup.from_json({"rules": [[], "QUORUM", "ANY"]})
    source = source_config(streaming, 1, "a:1", "a:2", 3, 40)
    assert (source.stores, source.retention.threshold_bytes) == ((), LATE_JOIN_BYTES)
