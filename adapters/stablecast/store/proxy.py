"""Proxies: sources that stand in for absent ones, so that receivers can register and recover (P-540).

A proxy is a source like any other, with a context, a life and a stream of its own. It sends announcements only.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import attrs

from stablecast.config.options import Value, apply
from stablecast.config.transport_options import split
from stablecast.core.errors import StablecastError
from stablecast.core.protocol.effects import StartProxy
from stablecast.core.protocol.events import Event, Overtaken, QuorumLost, RegistrationComplete
from stablecast.core.protocol.inputs import ProxyOver, ProxyQuorum
from stablecast.core.protocol.messages import Pace
from stablecast.core.protocol.quorum import GroupRules
from stablecast.core.protocol.settings import SourceConfig, StoreSpec
from stablecast.runtime.routing import Routing
from stablecast.store.settings import StoreSettings, no_options

if TYPE_CHECKING:
    from stablecast.client.context import Context


def proxy_config(effect: StartProxy) -> SourceConfig:
    """Return the configuration of a proxy; `Context.host` fills in its life and its addresses.

    With a session id the proxy asks for no RegIDs. Each store has the index that it has for the source, even if stores
    are missing between them. The proxy asks for the agreed settings again (P-569).
    """
    specs = [StoreSpec()] * (1 + max((store.index for store in effect.stores), default=-1))
    for store in effect.stores:
        reg_id = 0 if effect.session_id else store.source_reg_id
        specs[store.index] = StoreSpec(store.address, reg_id, store.group)
    wishes = effect.wishes
    config = SourceConfig(
        effect.topic,
        0,
        "",
        "",
        tuple(specs),
        GroupRules(effect.group_sizes),
        session_id=effect.session_id,
        pace=effect.pace,
        wishes=wishes,
        wants_proxy=True,
        election=effect.election,
    )
    if effect.pace is not Pace.RECEIVERS:
        return config
    return attrs.evolve(config, flight_messages=wishes.flight_messages, flight_bytes=wishes.flight_bytes)


def change_of(effect: StartProxy, event: Event) -> ProxyQuorum | ProxyOver | None:
    """Return what an event of a proxy tells its store; None: nothing."""
    match event:
        case RegistrationComplete() | QuorumLost():
            return ProxyQuorum(effect.source_reg_id, effect.election, isinstance(event, RegistrationComplete))
        case Overtaken():
            return ProxyOver(effect.source_reg_id, effect.election)
        case _:
            return None


def context_for(settings: StoreSettings, host: str) -> "Context":
    """Return the context for a proxy of a store, on an address of this host."""
    from stablecast.client.context import Context  # noqa: PLC0415 - most stores never need one, and it loads slowly
    from stablecast.client.source_discovery import resolution  # noqa: PLC0415

    return Context(
        resolver=settings.resolver,
        resolver_service=settings.resolver_service,
        resolution=resolution(options=settings.resolution),
        interface=host,
        trace=settings.trace,
    )


@attrs.define(eq=False)
class Proxies:
    """The proxies of one store, by the RegID of the source there.

    Attributes:
        context: Makes the context of each proxy.
        on_failed: Called with the RegID of the source and the error if its proxy fails.
        on_change: Called when a proxy gets or loses its quorum, or is over.
        options: Returns the source options of a topic (P-845).
        routing: What the store knows of domains.
    """

    _context: "Callable[[], Context]"
    _on_failed: Callable[[int, Exception], None]
    _on_change: Callable[[ProxyQuorum | ProxyOver], None]
    _options: Callable[[str], Mapping[str, Value]] = no_options
    _routing: Routing | None = None
    _running: dict[int, asyncio.Task[None]] = attrs.field(factory=dict)
    _ending: set[asyncio.Task[None]] = attrs.field(factory=set)

    def __len__(self) -> int:
        return len(self._running)

    def start(self, effect: StartProxy) -> None:
        """Start a proxy for a source; it replaces an earlier one."""
        self.stop(effect.source_reg_id)
        task = asyncio.get_running_loop().create_task(self._stand_in(effect))
        self._running[effect.source_reg_id] = task

    def stop(self, source_reg_id: int) -> None:
        task = self._running.pop(source_reg_id, None)
        if task is not None:
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """Stop all proxies, and wait until they have ended."""
        for source_reg_id in list(self._running):
            self.stop(source_reg_id)
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def _stand_in(self, effect: StartProxy) -> None:
        try:
            async with AsyncExitStack() as stack:
                context = await stack.enter_async_context(self._context())
                if self._routing is not None:
                    stack.enter_context(self._routing.leading(context.pool.routing))
                config = proxy_config(effect)
                transport, options = split(self._options(config.topic))
                config = apply("source", config, options)
                source = await context.host(config, lambda event: self._on_event(effect, event), transport)
                raise await source.until_failed()  # Otherwise it runs until it is cancelled.
        except StablecastError as error:
            self._running.pop(effect.source_reg_id, None)
            self._on_failed(effect.source_reg_id, error)
            self._on_change(ProxyOver(effect.source_reg_id, effect.election, failed=True))

    def _on_event(self, effect: StartProxy, event: Event) -> None:
        change = change_of(effect, event)
        if effect.source_reg_id in self._running and change is not None:
            self._on_change(change)
