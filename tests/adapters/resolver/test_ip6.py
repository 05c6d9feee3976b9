"""IPv6: the connections to services and the pages of monitors use it; addresses in messages do not."""

import socket
from pathlib import Path
from typing import Any

import pytest

from stablecast.client import Context
from stablecast.core.errors import StablecastError
from stablecast.runtime.address import AddressError, parse_services, split_service
from tests.support.network import Network, network
from tests.support.program import outcome, running

LOOPBACK = "::1"


def available() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as one:
            one.bind((LOOPBACK, 0))
    except OSError:
        return False
    return True


WITH_IP6 = pytest.mark.skipif(not available(), reason="this host has no IPv6")


@WITH_IP6
async def test_contexts_meet_over_a_service_that_has_an_ipv6_address(tmp_path: Path) -> None:
    """T-411: the service is reached over IPv6. The source, the receiver and the store use IPv4."""
    config = tmp_path / "srs.xml"
    config.write_text(f'<um-srs version="1.0"><srs><interface>{LOOPBACK}</interface><port>0</port></srs></um-srs>')
    async with network(tmp_path) as net:
        with running("srs", config, "--json") as service:
            address = service.json_line()["address"]
            assert address.startswith("[::1]:")
            await exchange(net, address)
            service.interrupt()


async def exchange(net: Network, service: str) -> None:
    """Send a message between two contexts that know the service only."""
    store = await net.store()
    async with (
        Context(resolver_service=[service], interface="127.0.0.1") as sending,
        Context(resolver_service=[service], interface="127.0.0.1") as receiving,
    ):
        receiver = receiving.receiver("orders", session_id=2)
        source = await sending.source("orders", stores=[store])
        await (await source.send(b"over IPv6")).stable()
        assert (await anext(receiver)).payload == b"over IPv6"


@WITH_IP6
def test_the_context_has_an_ipv4_address_by_itself() -> None:
    """It faces no service over IPv4, so it takes the first address of this host that peers may reach."""
    assert ":" not in Context(resolver_service=["[::1]:27000"]).interface


@pytest.mark.parametrize("text", ["::1:27000", "[::1]", "[nonsense]:1", "[]:1", "[::1]:0"])
def test_an_address_of_a_service_needs_brackets(text: str) -> None:
    with pytest.raises(AddressError, match=r"write host:port, for example localhost:27000 or \[::1\]:27000"):
        parse_services([text])


def test_services_of_all_kinds() -> None:
    found = parse_services(["[fe80::1]:27000, localhost:27001,10.0.0.1:27002"])
    assert [split_service(one) for one in found] == [("fe80::1", 27000), ("localhost", 27001), ("10.0.0.1", 27002)]


OTHERS: dict[str, dict[str, Any]] = {
    "interface": {"interface": "::1"},
    "relay": {"resolver": ["[::1]:15380"]},
    "store names": {"store_names": {"a": "[::1]:14567"}},
}


@pytest.mark.parametrize("where", OTHERS)
def test_other_addresses_are_refused_with_the_reason(where: str) -> None:
    with pytest.raises(StablecastError, match="carry IPv4 addresses only: write the IPv4 address of that host"):
        Context(**OTHERS[where])


async def test_a_store_with_an_ipv6_address_is_refused(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        context = await net.context()
        with pytest.raises(StablecastError, match="carry IPv4 addresses only"):
            await context.source("orders", stores=["[::1]:14567"])
    status, _, err = outcome("store", tmp_path, "--listen", "[::1]:14567")
    assert status == 1
    assert "carry IPv4 addresses only" in err
