"""How the sources and receivers of a context find each other: over relays, over services, or over both."""

from contextlib import AsyncExitStack
from typing import Protocol

from stablecast.client.advice import log
from stablecast.resolver import Resolver
from stablecast.resolver.combined import Combined
from stablecast.resolver.srs import OnRecord, SrsResolver


class Finder(Protocol):
    """What finding needs of a context."""

    interface: str
    relays: list[str]
    services: list[str]
    resolver_port: int


async def start(context: Finder, on_found: OnRecord, instance: bytes, stack: AsyncExitStack) -> Combined | None:
    """Start what the context has been told of, None if that is nothing; it is closed with `stack`.

    Raises like `Resolver.start` and `SrsResolver.start`.
    """
    if not context.relays and not context.services:
        return None
    found = Combined(on_found)
    stack.push_async_callback(found.close)
    if context.relays:
        relay = await Resolver.start(context.interface, context.relays, found.found, instance=instance)
        context.resolver_port = relay.port
        found.add([relay])
    if context.services:
        service = await SrsResolver.start(
            context.interface,
            context.services,
            found.found,
            on_gone=found.gone,
            on_service=_tell,
            instance=instance,
        )
        found.add([service])
    return found


def _tell(address: str, up: bool, reason: str) -> None:
    if up:
        log.info("service %s keeps us informed", address)
    else:
        log.warning("service %s does not keep us informed: %s", address, reason)
