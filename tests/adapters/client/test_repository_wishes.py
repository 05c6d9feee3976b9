"""The repository that a source asks for, through the client and a running store, at either pace."""

import pytest

from stablecast.client import RegistrationFailed
from stablecast.config.option_kinds import Value
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.events import RegistrationError
from stablecast.core.protocol.settings import RepositoryType
from stablecast.core.source.stability import OVERHEAD_BYTES
from tests.support.network import Events, Network

PAYLOAD = bytes(100 - OVERHEAD_BYTES)
"""A message costs a repository 100 bytes."""


@pytest.mark.rows("P-111", "P-112")
async def test_a_size_threshold_of_the_source_is_in_effect(net: Network) -> None:
    """Other sources have the threshold of the store."""
    context = await net.context()
    store = await net.store(kind=RepositoryType.MEMORY)
    sizes: dict[str, Value] = {"ume_repository_size_threshold": 1000, "ume_repository_size_limit": 100_000}
    wishing = await context.source("small", stores=[store], options=sizes)
    plain = await context.source("large", stores=[store])
    for source in (wishing, plain):
        await source.send_many([PAYLOAD] * 100)
        await source.wait_stable_through(99)
    repositories = net.stores["store"]._machine.status.repositories
    assert sorted(one.messages for one in repositories.values()) == [10, 100]


@pytest.mark.rows("P-592")
async def test_a_write_delay_of_the_source_is_in_effect(net: Network) -> None:
    """Without it the message would be stable after an hour."""
    context = await net.context()
    store = await net.store(write_delay_ns=3600 * SECOND)
    source = await context.source("orders", stores=[store], options={"ume_write_delay": 0})
    await (await source.send(b"soon")).stable()


@pytest.mark.rows("P-112", "P-562", "P-592", "P-593")
@pytest.mark.parametrize(
    "wish",
    [
        {"ume_repository_size_threshold": 1 << 30},
        {"ume_repository_size_limit": 1 << 30},
        {"ume_repository_disk_file_size_limit": 1 << 30},
        {"ume_write_delay": 1001},
    ],
)
async def test_more_than_a_store_permits_is_refused_only_where_receivers_set_the_pace(
    net: Network, wish: dict[str, Value], caplog: pytest.LogCaptureFixture
) -> None:
    """The refusal names the option and both values; a source that sets the pace is served with the store's values."""
    events = Events()
    context = await net.context()
    store = await net.store(write_delay_ns=SECOND, allow_rpp=True)
    plain = await context.source("plain", stores=[store], options=wish)
    await (await plain.send(b"served")).stable()
    paced = {"ume_receiver_paced_persistence": 1, "ume_flight_size_bytes": 1000, **wish}
    source = await context.source("orders", stores=[store], options=paced, wait=False, on_event=events)
    refusal = await events.first(RegistrationError)
    assert refusal.store == store
    ((name, value),) = wish.items()
    assert f"source and store configuration are incompatible: it asks for {name} {value}, and the store has" in (
        refusal.text
    )
    with pytest.raises(RegistrationFailed, match="source and store configuration are incompatible"):
        await source.registered(0)


@pytest.mark.rows("P-561", "P-573")
async def test_a_refused_pace_is_named_with_both_values(net: Network) -> None:
    events = Events()
    context = await net.context()
    store = await net.store()
    paced: dict[str, Value] = {"ume_receiver_paced_persistence": 1, "ume_flight_size_bytes": 1000}
    await context.source("orders", stores=[store], options=paced, wait=False, on_event=events)
    told = "it asks for ume_receiver_paced_persistence 1, and the store has 0"
    assert told in (await events.first(RegistrationError)).text
