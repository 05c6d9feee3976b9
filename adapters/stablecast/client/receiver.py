"""A receiver: finds the sources of a topic, keeps a session with each, and hands messages to the application in order.

`async for message in receiver` acknowledges a message when its loop body has ended; `async for batch in
receiver.batches()` does the same for whole runs and costs nothing per message.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

import attrs

from stablecast.client.message import Batch, Message
from stablecast.client.session import Session
from stablecast.core import effects as fx
from stablecast.core.events import Event
from stablecast.core.inputs import Gone, Reset
from stablecast.core.messages import Message as ControlMessage
from stablecast.core.messages import SourceInfo
from stablecast.core.settings import ReceiverConfig
from stablecast.net.joiner import Joiner
from stablecast.net.stream import Item
from stablecast.transports import codec
from stablecast.transports.lbttcp import Run
from stablecast.transports.wire.errors import WireError

if TYPE_CHECKING:
    from stablecast.client.context import Context

MAX_QUEUED_MESSAGES = 50_000
"""Messages delivered but not taken; beyond that the streams are read no further until half of them are taken."""

REPORT_SECONDS = 0.01
"""A consumed message is reported at the latest with the first message taken this long after it."""

DRAIN_SECONDS = 1.0
"""How long a new life of a source waits for the application to finish what an earlier one delivered."""


@attrs.frozen
class RegIdRequest:
    """Which RegID at this store? (P-249) `source` is the source's transport, as `TCP:ip:port`."""

    store_index: int
    store: str
    source_reg_id: int
    source: str


@attrs.frozen
class Plan:
    """A stream to join, at the latest when `timer` fires."""

    transport: str
    session_id: int | None
    request: str
    timer: asyncio.TimerHandle


class Receiver:
    """Made by `Context.receiver`; an asynchronous iterator of messages."""

    def __init__(
        self,
        context: "Context",
        config: ReceiverConfig,
        on_event: Callable[[Event], None] | None,
        reg_id: Callable[[RegIdRequest], int] | None,
        start_at: Callable[[fx.AskLow], int] | None,
    ) -> None:
        """A receiver of `config.topic`; `config` is the template of its sessions."""
        self.topic = config.topic
        self.config = config
        self._context = context
        self._on_event = on_event
        self._reg_id = reg_id
        self._start_at = start_at
        self._joiners: dict[str, Joiner] = {}
        self._sessions: dict[int, Session] = {}
        self._finished: list[Session] = []
        self._history: dict[int, list[tuple[int, int]]] = {}
        self._plans: dict[str, Plan] = {}
        self._queue: deque[Batch] = deque()
        self._queued = 0
        self._arrived = asyncio.Event()
        self._paused = False
        self._closed = False
        self._current: Batch | None = None
        self._payloads: list[bytes] = []
        self._at = 0
        self._reported_at = 0.0
        self._choosing = ""

    async def __aenter__(self) -> "Receiver":
        """The receiver itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    async def close(self) -> None:
        """Acknowledge what was consumed and leave; nothing is left running."""
        if self._closed:
            return
        self._closed = True
        self._arrived.set()
        for plan in self._plans.values():
            plan.timer.cancel()
        for joiner in self._joiners.values():
            await joiner.close()
        for session in (*self._sessions.values(), *self._finished):
            session.close()
        self._context.forget_receiver(self)

    # Taking messages.

    def __aiter__(self) -> "Receiver":
        """Messages, in order for each source."""
        return self

    async def __anext__(self) -> Message:
        """The next message; the one before it is consumed. Ends when the receiver is closed."""
        if self._current is not None and self._at < len(self._payloads):
            now = time.monotonic()
            if now - self._reported_at > REPORT_SECONDS:
                self._reported_at = now
                self._current.consumed(self._at)
        else:
            await self._next_batch()
        assert self._current is not None
        message = Message(self._payloads[self._at], self._current, self._at)
        self._at += 1
        return message

    async def batches(self) -> AsyncIterator[Batch]:
        """Runs of messages; a run is consumed when the next one is asked for."""
        while True:
            batch = await self._take()
            if batch is None:
                return
            yield batch
            batch.consumed()

    async def _next_batch(self) -> None:
        if self._current is not None:
            self._current.consumed()
        self._current = await self._take()
        if self._current is None:
            raise StopAsyncIteration
        self._payloads = self._current.payloads()
        self._at = 0
        self._reported_at = time.monotonic()

    async def _take(self) -> Batch | None:
        while not self._queue:
            if self._closed:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        batch = self._queue.popleft()
        self._queued -= batch.count
        if self._paused and self._queued < MAX_QUEUED_MESSAGES // 2:
            self._paused = False
            for joiner in self._joiners.values():
                joiner.resume()
        return batch

    # Sources come and go.

    def found(self, transport: str, session_id: int | None, request: str) -> None:
        """A source of the topic listens at `transport`; join it once earlier lives' messages are done with."""
        if self._closed or transport in self._joiners or transport in self._plans:
            return
        timer = asyncio.get_running_loop().call_later(DRAIN_SECONDS, self._join, transport)
        self._plans[transport] = Plan(transport, session_id, request, timer)
        self._settle()

    def _join(self, transport: str) -> None:
        plan = self._plans.pop(transport)
        plan.timer.cancel()

        def items(session: int, arrived: list[Item]) -> None:
            self._on_stream(session, arrived, plan)

        def ended(gone: bool) -> None:
            if gone:
                self._gone(transport)

        joiner = Joiner(transport, plan.session_id, items, ended)
        self._joiners[transport] = joiner
        if self._paused:
            joiner.pause()

    def _gone(self, transport: str) -> None:
        """The life that listened there is over; what it delivered may still be consumed and acknowledged."""
        self._joiners.pop(transport, None)
        over = [session for session in self._sessions.values() if session.transport == transport]
        for session in over:
            del self._sessions[session.incarnation]
            session.ended = True
            self._finished.append(session)
        self._settle()
        self._context.lost_source(self, transport)

    def on_consumed(self, session: Session) -> None:
        """The application is done with something; a waiting new life may begin when it was the last of an old one."""
        if not session.waiting and session in self._finished:
            self._settle()

    def _settle(self) -> None:
        """Let go of finished sessions whose messages are all consumed; when none is left, join what waits."""
        for session in [session for session in self._finished if not session.waiting]:
            self._finished.remove(session)
            self._history.update(session.history())
            session.close()
        if not self._finished:
            for transport in list(self._plans):
                self._join(transport)

    def _on_stream(self, session_id: int, items: list[Item], plan: Plan) -> None:
        for item in items:
            if isinstance(item, Run):
                session = self._sessions.get(codec.join(session_id, item.topic_index))
                if session is not None:
                    session.on_run(item)
                continue
            try:
                message = codec.decode(item)
            except WireError:
                self._context.oddities["malformed-on-stream"] += 1
                continue
            if isinstance(message, SourceInfo) and message.topic == self.topic:
                self._session_for(message, plan).on_message(message)
        if self._queued > MAX_QUEUED_MESSAGES and not self._paused:
            self._paused = True
            for joiner in self._joiners.values():
                joiner.pause()

    def _session_for(self, info: SourceInfo, plan: Plan) -> Session:
        session = self._sessions.get(info.incarnation)
        if session is None:
            config = attrs.evolve(
                self.config,
                incarnation=info.incarnation,
                reply_to=self._context.request_address,
                source_request=plan.request or info.request,
            )
            session = Session(self, config, self._context.pool, self._context.trace, plan.transport)
            self._sessions[info.incarnation] = session
            self._context.met_source(self)
            for finished in self._finished:
                self._history.update(finished.history())
            session.start(self._history)
        return session

    # What a session asks of the application.

    def deliver(self, batch: Batch) -> None:
        """Queue a run for the application."""
        self._queue.append(batch)
        self._queued += batch.count
        self._arrived.set()

    def choose_reg_id(self, question: fx.AskRegId, transport: str) -> int:
        """The RegID to ask for at a store."""
        if self._reg_id is None:
            return 0
        return self._reg_id(
            RegIdRequest(question.store_index, question.store, question.source_reg_id, f"TCP:{transport}")
        )

    def choose_low(self, question: fx.AskLow) -> int:
        """Where to start."""
        return question.low if self._start_at is None else self._start_at(question)

    def on_notify(self, event: Event) -> None:
        """Tell the application."""
        if self._on_event is not None:
            self._on_event(event)

    def on_control(self, message: ControlMessage) -> None:
        """A control message that came to the request port for one of the sessions."""
        session = self._sessions.get(message.incarnation)
        if session is not None:
            session.on_message(message)

    def on_recovered(self, incarnation: int, messages: list[codec.Recovered]) -> None:
        """Retransmissions that came to the request port."""
        session = self._sessions.get(incarnation)
        if session is not None:
            session.on_recovered(messages)

    def on_broken(self, event: Reset | Gone) -> None:
        """A store's connection broke."""
        for session in (*self._sessions.values(), *self._finished):
            session.receive(event)
