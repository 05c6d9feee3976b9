"""A relay that is named by its host is looked up again while it is silent, and heard at its new address."""

import pytest

from stablecast.resolver import Listeners, RelayDaemon, Resolver
from stablecast.resolver import resolver as resolver_module
from stablecast.runtime import machine
from stablecast.transports.resolution.udp.inputs import AddSource
from tests.support.network import LOCAL, until, unused_port


class Names:
    """The network of this machine, with one host whose address may change."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._system = machine.network

    def resolve(self, host: str) -> str:
        assert host == "relay.example"
        return self.address

    def __getattr__(self, name: str) -> object:
        return getattr(self._system, name)


@pytest.mark.rows("T-210", "T-218")
async def test_a_relay_that_moved_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """On reconnect, without a restart of the context."""
    monkeypatch.setattr(resolver_module, "LOOK_SECONDS", 0.05)
    names = Names(LOCAL)
    monkeypatch.setattr(machine, "network", names)
    port, remarks, found = unused_port(), [], []
    first = await RelayDaemon.start(LOCAL, port)
    listeners = Listeners(lambda topic, _: found.append(topic), remark=lambda text, _: remarks.append(text))
    resolver = await Resolver.start(LOCAL, [f"relay.example:{port}"], listeners)
    resolver.add_receiver("orders")
    await until(lambda: resolver.statistics()["received"])
    await first.close()
    names.address = "127.0.0.2"
    second = await RelayDaemon.start("127.0.0.2", port)
    peer = await Resolver.start(LOCAL, [second.address], Listeners(lambda *_: None))
    peer.feed(AddSource("orders", f"{LOCAL}:1", 1, 1, f"{LOCAL}:2", persistent=False))
    await until(lambda: found)
    assert f"relay relay.example:{port} has the address 127.0.0.2:{port} now" in remarks
    for one in (resolver, peer, second):
        await one.close()
