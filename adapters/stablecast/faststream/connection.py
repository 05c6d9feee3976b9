"""The context of a broker, and its sources by topic."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from faststream._internal.configs import BrokerConfig
from faststream.exceptions import IncorrectState

from stablecast.client import Context, Source


@dataclass
class BrokerConnection:
    """The open context of a broker, and its sources.

    Attributes:
        arguments: The arguments of the context.
        stores: The stores of its sources and receivers.
        options: The options of its sources.
    """

    arguments: Mapping[str, Any] = field(default_factory=dict)
    stores: Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    _context: Context | None = None
    _sources: dict[str, Source] = field(default_factory=dict)
    _making: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def open(self) -> Context:
        """Open the context unless it is open; return it. Raises like `Context`."""
        if self._context is None:
            context = Context(**self.arguments)
            await context.__aenter__()
            self._context = context
        return self._context

    async def close(self) -> None:
        context, self._context = self._context, None
        self._sources.clear()
        if context is not None:
            await context.close()

    @property
    def context(self) -> Context:
        """Return the open context. Raises IncorrectState if it is not open."""
        if self._context is None:
            raise IncorrectState("the broker is not connected: call `await broker.connect()` or `broker.start()`")
        return self._context

    async def source(self, topic: str) -> Source:
        """Return the source of a topic, and make it at first. It may still wait for its stores; `send` waits, too."""
        async with self._making:
            source = self._sources.get(topic)
            if source is None or source.over:
                source = await self.context.source(topic, stores=self.stores, wait=False, options=self.options)
                self._sources[topic] = source
            return source


@dataclass(kw_only=True)
class StablecastBrokerConfig(BrokerConfig):
    connection: BrokerConnection = field(default_factory=BrokerConnection)
