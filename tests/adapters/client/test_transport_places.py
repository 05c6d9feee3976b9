"""The places of sources and receivers: ports, ranges and pools that options name."""

import attrs
import pytest

from stablecast.client import Context
from stablecast.client.transport_sessions import Transports
from stablecast.config.option_kinds import Value
from stablecast.config.transport_options import TransportConfig
from stablecast.runtime import datagrams, ports
from stablecast.runtime.ports import PortError
from tests.adapters.client.test_transport_sessions import HASTY, ready
from tests.support.network import LOCAL, Network


def udp_port() -> int:
    with datagrams.bind(LOCAL, 0) as free:
        port: int = free.getsockname()[1]
    return port


async def place_of(context: Context, **options: Value) -> list[str]:
    """The place of a source with these options, in parts."""
    return (await context.source("orders", options=options)).place.split(":")


async def test_naks_come_to_a_port_of_the_range(net: Network) -> None:
    port = udp_port()
    named: dict[str, Value] = {
        "transport_lbtrm_source_port_low": port,
        "transport_lbtrm_source_port_high": port,
        "transport_lbtrm_multicast_address_low": "239.192.7.20",
        "transport_lbtrm_multicast_address_high": "239.192.7.21",
    }
    context, other = await net.context(), await net.context()
    assert (await place_of(context, transport="lbtrm", **named))[2:5:2] == [str(port), "239.192.7.20"]
    with pytest.raises(PortError, match="in use"):
        await place_of(other, transport="lbtrm", **named)


async def test_sessions_and_receivers_of_lbtru_have_ranges_of_their_own(net: Network) -> None:
    """One that is exhausted leaves a receiver a port of the system's choice."""
    port, mine = udp_port(), udp_port()
    sending, hearing = await net.context(), await net.context()
    named: dict[str, Value] = {"transport_lbtru_port_low": port, "transport_lbtru_port_high": port}
    source = await sending.source("orders", options={"transport": "lbtru", **named})
    assert source.place.split(":")[2] == str(port)
    own: dict[str, Value] = {"transport_lbtru_port_low": mine, "transport_lbtru_port_high": mine}
    receiver = hearing.receiver("orders", source=source.place, options={**HASTY, **own})
    await ready(source, receiver)
    with pytest.raises(PortError, match="in use"):
        datagrams.bind(LOCAL, mine)


async def test_a_source_over_tcp_may_name_its_port_or_the_range(net: Network) -> None:
    with ports.listen(LOCAL, 0, "port") as free:
        port = free.getsockname()[1]
    context = await net.context()
    assert (await place_of(context, transport_tcp_port=port))[1] == str(port)
    with pytest.raises(PortError, match="transport_tcp_port"):
        await place_of(context, transport_tcp_port=port)
    with ports.listen(LOCAL, 0, "port") as free:
        low = free.getsockname()[1]
    assert (await place_of(context, transport_tcp_port_low=low, transport_tcp_port_high=low))[1] == str(low)


async def test_the_marks_of_a_source_are_set_by_its_options(net: Network) -> None:
    context = await net.context()
    marks: dict[str, Value] = {
        "transport_topic_sequence_number_info_interval": 700,
        "transport_topic_sequence_number_info_active_threshold": 8,
    }
    source = await context.source("orders", options={"transport": "lbtru", **marks})
    (session,) = context.transports._sources.values()
    kept = session[0].settings(1)
    assert (kept.tsni_ns, kept.tsni_active_ns) == (700_000_000, 8_000_000_000)
    await source.close()


async def test_an_option_without_effect_is_told(net: Network, caplog: pytest.LogCaptureFixture) -> None:
    context = await net.context()
    await context.source("orders", options={"transport_tcp_nodelay": 0})
    assert "transport_tcp_nodelay has no effect: TCP_NODELAY is always set" in caplog.text


@pytest.mark.parametrize(("named", "group"), [("239.1.2.3", "239.1.2.3"), ("", "224.10.10.12")])
def test_a_group_that_is_named_wins_over_those_of_the_pool(named: str, group: str) -> None:
    config = attrs.evolve(TransportConfig(), group=named)
    assert Transports._group(config, 2) == {"group": f"{group}:{config.port}", "ports": config.nak_ports.pair}
