"""Simulate a proxy in a store's process: a source that replaces an absent one and sends no data."""

from collections.abc import Callable

import attrs

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import Event, Overtaken, RegistrationComplete
from stablecast.core.protocol.inputs import ProxyOver, ProxyQuorum, Start
from stablecast.core.protocol.messages import Role
from stablecast.core.source import SourceState
from stablecast.lab.sim.endpoint_configs import TIMES
from stablecast.lab.sim.network import Connection
from stablecast.lab.sim.process import VirtualProcess
from stablecast.lab.sim.source import StreamSource
from stablecast.lab.sim.source_checkers import Checkers
from stablecast.store.proxy import change_of, proxy_config
from stablecast.transports import codec

PROXY_PORTS = range(14_411, 14_431)
"""Ports of proxies on a host."""

Advertise = Callable[[StreamSource], None]


def _nobody() -> None:
    """Ignore the end of the proxy."""


class Proxy(StreamSource):
    """Run from creation until `close`, or until its process ends."""

    def __init__(
        self,
        process: VirtualProcess,
        effect: fx.StartProxy,
        advertise: Advertise,
        checkers: Checkers,
        on_change: Callable[[ProxyQuorum | ProxyOver], None],
    ) -> None:
        """Listen, advertise and register. `on_change` is called with what the proxy tells its store."""
        rng = process.world.rng
        places = (f"{process.host}:{port}" for port in PROXY_PORTS)
        free = [place for place in places if place not in process.network.listeners]
        config = attrs.evolve(
            proxy_config(effect),
            incarnation=codec.join(rng.getrandbits(32), rng.getrandbits(31)),
            context=rng.getrandbits(64),
            reply_to=free[0],
            transport=free[1],
            times=TIMES,
        )
        self._make(process, config)
        self._checkers = checkers
        self._effect, self._on_change = effect, on_change
        self.alive = True
        self.registered_at = -1
        self.on_close = _nobody
        self._accepted: list[Connection] = []
        trace = checkers.ledger.follow(Role.SOURCE, f"proxy at {process.name}", self.machine)
        self.driver = self._listen(trace)
        self.driver.feed(Start())
        advertise(self)

    def close(self) -> None:
        self.alive = False
        self.on_close()
        self.driver.close()
        for address in (self.config.reply_to, self.config.transport):
            self.process.leave(address)
        for connection in [*self._subscribers, *self._accepted]:
            connection.close(self.process)

    @property
    def registered(self) -> bool:
        """True while enough stores have registered the proxy."""
        return self.machine.state is SourceState.ACTIVE

    def _accept(self, connection: Connection) -> None:
        if not self.alive:  # The connection was under way when the port was closed.
            connection.close(self.process)
            return
        super()._accept(connection)
        self._accepted.append(connection)

    def _admit(self, connection: Connection) -> None:
        if not self.alive:
            connection.close(self.process)
            return
        super()._admit(connection)

    def _on_notify(self, event: Event) -> None:
        super()._on_notify(event)
        if isinstance(event, RegistrationComplete):
            self.registered_at = self.process.world.now
            self._checkers.on_proxy(self.config.incarnation)
        elif isinstance(event, Overtaken):
            self._checkers.facts.counts["overtaken proxies"] += 1
        else:
            self._checkers.on_oddity(event)
        change = change_of(self._effect, event)
        if change is not None:
            self.process.deliver(lambda: self._tell(change))

    def _tell(self, change: ProxyQuorum | ProxyOver) -> None:
        self._on_change(change)
        if isinstance(change, ProxyOver) and self.alive:
            self._checkers.facts.report("E8", f"{self.process.name} keeps its proxy, which is over")
