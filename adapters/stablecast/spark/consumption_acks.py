"""The acknowledgements of a query with a session: stores keep for it what Spark has not processed.

The driver registers a consumer with the stores, as a receiver with this session id, and keeps it alive in a thread.
Spark reports each batch that is committed, and the consumer acknowledges its messages. Tasks read as they always do.
"""

import attrs

from stablecast.archive.message_columns import name_of
from stablecast.client import Context
from stablecast.client.stored_consumer import StoredConsumer
from stablecast.spark.message_options import ReadTerms, interface_to
from stablecast.spark.message_ranges import Offset, SourceSpan, number_of, planned, spans
from stablecast.sync.loop_thread import LoopThread

REGISTRATION_SECONDS = 60.0
"""Time to wait for the stores. They may hold the session of a driver that was killed until its port refuses them."""


class ConsumptionAcks:
    """The consumer of one query, at its driver."""

    def __init__(self, terms: ReadTerms) -> None:
        """Start the thread, and open the context. Raises InterfaceError, PortError."""
        self._terms = terms
        self._thread = LoopThread()
        self._thread.start()
        self._context, self._consumer = self._thread.run(self._open())

    async def _open(self) -> tuple[Context, StoredConsumer]:
        terms = self._terms
        context = Context(interface=interface_to(terms.stores, terms.interface))
        context.prompt = False
        await context.__aenter__()
        config = attrs.evolve(context.template(terms.session), topic=terms.topic, pace=terms.pace)
        return context, StoredConsumer(context.reads, config, terms.stores)

    def spans(self, start: str, end: str) -> list[SourceSpan]:
        """Return the range of each source between two bounds, after the registration for all of them.

        A source begins where the session is, if a store knows the session. Raises ReadFailed, BoundError,
        ConsumerRefused.
        """
        return self._thread.run(self._spans(attrs.evolve(self._terms, start=start, end=end)))

    async def _spans(self, terms: ReadTerms) -> list[SourceSpan]:
        sources = {name_of(source): source for source, _ in await planned(self._context, terms)}
        known = await self._consumer.register(sources, REGISTRATION_SECONDS)
        # The messages are kept from the registration on, so the plan before it may be too old.
        found = spans(await planned(self._context, terms))
        return [
            attrs.evolve(one, first=known[one.name], remembered=True) if one.name in known else one for one in found
        ]

    def acknowledge(self, end: Offset) -> None:
        """Acknowledge everything below an offset."""
        for name in end:
            stop = number_of(end, name)
            if stop:
                self._thread.call(self._consumer.acknowledge, name, stop)

    def close(self) -> None:
        """Close the context and end the thread; the stores remember the session."""
        if self._thread.running:
            self._thread.run(self._context.close())
            self._thread.stop()
