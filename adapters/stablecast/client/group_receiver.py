"""A member of a group: it receives the messages of its shares, and takes over or hands over shares as members come.

`stablecast.core.sharing` decides; this module performs. Each open share has a `ShareReceiver` with a request port of
its own. All shares deliver to one inbox, which the application reads.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

import attrs

from stablecast.client.batch import Batch
from stablecast.client.callbacks import notify
from stablecast.client.delivery import Delivery, IteratedReceiver
from stablecast.client.loop_ownership import check_loop, uninterrupted
from stablecast.client.message_division import MessageDivision, MessageKey
from stablecast.client.presence import Presence, PresenceContext, presence_topic
from stablecast.client.range_bounds import ReadBounds, ReceiverStart
from stablecast.client.redelivery import Redelivery, why_unsettled
from stablecast.client.share_receiver import ShareContext, SharePlace, ShareReceiver
from stablecast.client.shared_streams import SharedStreams
from stablecast.client.stored_sources import StoredSources
from stablecast.client.transport_sessions import Transports
from stablecast.config.transport_options import TransportConfig
from stablecast.core.errors import MisuseError, StablecastError
from stablecast.core.machine.seeded import Seeded
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.events import Event, SharesChanged
from stablecast.core.protocol.inputs import Gone, Reset
from stablecast.core.protocol.messages import Incarnation
from stablecast.core.protocol.quorum import Consensus
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import AckMode, ReceiverConfig
from stablecast.core.sharing.division import session_id
from stablecast.core.sharing.member import (
    Announce,
    Disagreement,
    GroupMember,
    MemberConfig,
    MemberEffect,
    MemberInput,
    MemberLeave,
    MemberStart,
    Progress,
)
from stablecast.core.sharing.share import Close, Drain, Open, Record, ShareEvent, ShareState
from stablecast.runtime import machine, ports
from stablecast.runtime.driver import UntracedDriver, report
from stablecast.runtime.source_strings import is_source_string

logger = logging.getLogger("stablecast")

WATCH_SECONDS = 0.05
"""Seconds between two looks at the shares: their leases, their messages in work, and the stores' records."""

RECORD_SECONDS = 5.0
"""Seconds that stores have to record what was consumed of a share that is handed over. After that it is released, and
the next member may get messages again."""


class GroupContext(ShareContext, PresenceContext, Protocol):
    transports: Transports

    @property
    def request_ports(self) -> tuple[int, int]: ...

    @property
    def resolves(self) -> bool: ...


@attrs.frozen
class GroupSettings:
    """A group, as the application names it.

    Attributes:
        name: The group. Members of one name divide the topic.
        shares: The number of shares, the same for all members.
        key: What decides the share of a message.
    """

    name: str
    shares: int
    key: MessageKey = None


@attrs.frozen
class Sources:
    """The way in which a member finds the sources of the topic.

    Attributes:
        place: The place of the only source; None asks the resolver.
        stores: The stores to ask for sources that do not run.
        bounds: Where a share begins that no store knows; None: as the stores propose.
        transport: The settings of transports.
    """

    place: str | None
    stores: tuple[str, ...]
    bounds: ReadBounds | None
    transport: TransportConfig


class GroupReceiver(IteratedReceiver):
    """A member of a group that shares a topic, made by `Context.receiver(topic, group=...)`; an iterator for one task.

    async for message in context.receiver("orders", group="billing"):
        print(message.payload)

    A message goes to one member, which acknowledges it as a `Receiver` does. If the member dies, another one gets its
    unacknowledged messages.

    Attributes:
        topic: The topic.
        group: The name of the group.
    """

    def __init__(
        self,
        context: GroupContext,
        config: ReceiverConfig,
        settings: GroupSettings,
        sources: Sources,
        on_event: Callable[[Event], None] | None = None,
        auto_ack: bool = True,
        redelivery: Redelivery | None = None,
        deduplicate: bool = False,
    ) -> None:
        """Make a member; `config` is the template of its sessions.

        Raises MisuseError if its options prevent sharing.
        """
        if why := unshared(config):
            raise MisuseError(f"receiver '{config.topic}' of group '{settings.name}' {why}")
        self.topic, self.group = config.topic, settings.name
        self._config = attrs.evolve(config, consensus=Consensus.HIGHEST)
        self._context, self._settings, self._sources = context, settings, sources
        self._on_event = on_event
        self._loop = asyncio.get_running_loop()
        self._streams = SharedStreams(context.transports)
        self._division = MessageDivision(settings.shares, settings.key)
        self._whose = f"receiver '{self.topic}' of group '{self.group}'"
        self._delivery = Delivery(
            self._whose,
            config.ack_interval_ns / SECOND,
            None,
            shared=True,
            auto_ack=auto_ack,
            redelivery=redelivery,
            refusal=why_unsettled(config),
            deduplicate=deduplicate,
            spans=context.spans,
        )
        self._delivery.reader.on_turn = self._check_leases
        self._looked_at = self._loop.time()
        self._places: dict[tuple[str, int | None], tuple[str, int | None, str, int | None, Incarnation | None]] = {}
        self._open: dict[int, ShareReceiver] = {}
        self._record_by: dict[int, float] = {}
        self._jobs: set[asyncio.Task[None]] = set()
        self._closed = False
        self._shown: tuple[tuple[int, ...], int] = ((), 0)
        self._presence: Presence | None = None
        self._member = MemberConfig(machine.entropy.bits(64), settings.shares)
        if not context.resolves:
            self._member = attrs.evolve(self._member, settle_ns=0)  # Nobody can be heard.
        self._machine = GroupMember(self._member, Seeded(machine.entropy.bits(64)))
        self._driver: UntracedDriver[MemberInput, MemberEffect] = UntracedDriver(
            self._machine, self._perform, self._on_failed
        )
        self._watch_timer = self._loop.call_later(WATCH_SECONDS, self._watch)
        self._start = self._do(self._begin())

    def __repr__(self) -> str:
        return f"<GroupReceiver '{self.topic}' of group '{self.group}', {len(self.shares)} of {self.members} members>"

    @property
    def shares(self) -> tuple[int, ...]:
        """Return the shares whose messages this member gets."""
        return self._machine.held

    @property
    def unconsumed(self) -> int:
        """Return the number of messages that were delivered and that the application has not consumed."""
        return sum(receiver.unconsumed for receiver in self._open.values())

    @property
    def members(self) -> int:
        """Return the number of members that this one knows, itself included."""
        return self._machine.members

    async def close(self) -> None:
        """Leave the group: acknowledge the consumed messages, and release all shares. Iteration ends."""
        if self._closed:
            return
        check_loop(self._loop, self._whose)
        self._closed = True
        self._delivery.redeliverer.close()
        self._delivery.reader.close()
        await uninterrupted(self._leave())

    async def _leave(self) -> None:
        await asyncio.gather(self._start, return_exceptions=True)
        self._driver.feed(MemberLeave())
        while self._machine.in_state(*(set(ShareState) - {ShareState.RELEASED})):
            self._look()
            await asyncio.sleep(WATCH_SECONDS)
        self._watch_timer.cancel()
        self._driver.close()
        while self._jobs:
            await asyncio.gather(*self._jobs, return_exceptions=True)
        if self._presence is not None:
            await self._presence.close()
        self._context.forget_receiver(self)  # type: ignore[arg-type]

    async def deregister(self) -> None:
        """Ask the stores to forget the shares that this member holds, and wait until all have (P-584).

        Messages are still delivered, but not acknowledged any more. To end a group for good, call this at each member.
        """
        check_loop(self._loop, self._whose)
        await asyncio.gather(*(self._open[share].deregister() for share in self.shares))

    def disown(self) -> None:
        """Refuse every later call, because this is a forked process."""
        for receiver in self._open.values():
            receiver.disown()

    # --------------------------------------------------------------------------------------------------------- sources

    def found(
        self,
        transport: str,
        session_id: int | None,
        request: str,
        index: int | None = None,
        life: Incarnation | None = None,
    ) -> None:
        """Join a source with all open shares, and with those that open later: those at its newest place only."""
        if life is not None:
            self._places = {stream: known for stream, known in self._places.items() if known[-1] != life}
        self._places[_stream_of(transport, index)] = place = (transport, session_id, request, index, life)
        for receiver in self._open.values():
            receiver.found(*place)

    def withdrawn(self, transport: str, session_id: int, index: int, life: Incarnation | None = None) -> None:
        """Leave a source whose end was announced. Its next life may have been found at the same place before that."""
        stream = _stream_of(transport, index)
        place = self._places.get(stream)
        if place is not None and place[1] in (None, session_id):
            del self._places[stream]
        for receiver in tuple(self._open.values()):
            receiver.withdrawn(transport, session_id, index, life)

    def _lost_source(self, topic: str, place: str, *, others: bool) -> None:
        """Look for the next life of a source; shares that open later join it where it is found, not where it was."""
        self._places = {stream: known for stream, known in self._places.items() if known[0] != place}
        self._context.lost_source(topic, place, others=others)

    def on_broken(self, event: Reset | Gone) -> None:
        """Notify all shares that a connection broke."""
        for receiver in tuple(self._open.values()):
            receiver.on_broken(event)

    def on_notify(self, event: Event, source: str = "") -> None:
        """Report an event to the application."""
        notify(self._on_event, event, self._whose)

    # --------------------------------------------------------------------------------------------------------- members

    async def _begin(self) -> None:
        """Announce this member, then claim shares. A context without a resolver takes those that it gets."""
        topic, told = presence_topic(self.group, self.topic), False
        while self._context.resolves and self._presence is None:
            try:
                self._presence = await Presence.open(self._context, topic, self._member, self._driver.feed)
            except ports.ScarcityError as error:  # Running out passes.
                if self._closed:
                    return
                if not told:
                    logger.warning("%s joins its group later: %s", self._whose, error)
                told = True
                await asyncio.sleep(WATCH_SECONDS)
        self._driver.feed(MemberStart())

    def _perform(self, effect: MemberEffect) -> None:
        match effect:
            case Announce():
                if self._presence is not None:
                    self._presence.announce(effect)
            case Open():
                self._try_to_claim(effect.share)
            case Drain():
                self._open[effect.share].drain()
            case Record():
                self._record_by[effect.share] = self._loop.time() + RECORD_SECONDS
            case Close():
                self._do(self._release(effect.share))
            case Disagreement():
                self._disagree(effect)

    def _on_failed(self, effect: object, error: Exception) -> None:
        failure = error if isinstance(error, StablecastError) else MisuseError(f"{self._whose} ended: {error}")
        self._delivery.reader.fail(failure, error)

    def _disagree(self, other: Disagreement) -> None:
        text = (
            f"a member of group '{self.group}' divides '{self.topic}' into {other.shares} shares, this one into "
            f"{self._settings.shares}: give all members the same shares="
        )
        if self._open:
            logger.warning(text)  # The other one is new, and ends.
            return
        error = MisuseError(text)
        self._delivery.reader.fail(error, error)
        self._driver.feed(MemberLeave())

    # ---------------------------------------------------------------------------------------------------------- shares

    def _try_to_claim(self, share: int) -> None:
        """Claim a share, or put that off if descriptors are scarce: running out of them passes."""
        try:
            self._claim(share)
        except ports.ScarcityError as error:
            logger.warning("%s claims share %d later: %s", self._whose, share, error)
            self._driver.feed(Progress(share, ShareEvent.CONTESTED))

    def _claim(self, share: int) -> None:
        """Open a share's receiver, and join the known sources. Raises PortError."""
        context, sources = self._context, self._sources
        listening = ports.listen_in_range(context.interface, context.request_ports)
        place = SharePlace(context, self._streams, listening)
        place.lost_source = self._lost_source
        identity = session_id(self.group, self._settings.shares, share)
        config = attrs.evolve(self._config, session_id=identity, divides=True)
        receiver = ShareReceiver(place, config, share, self._delivery, self._shares_of, self._may_give, self._on_event)
        receiver.transport = sources.transport
        if sources.bounds is not None:
            receiver.start = ReceiverStart(sources.bounds, context.reads)
        self._open[share] = receiver
        self._do(self._serve(receiver))

    async def move(self) -> None:
        """Go on at the context's new address, with every share. Raises PortError."""
        for receiver in tuple(self._open.values()):
            await receiver.place.move(self._context.interface, self._context.request_ports)
            await receiver.move()

    async def _serve(self, receiver: ShareReceiver) -> None:
        await receiver.place.port.start()
        sources = self._sources
        if sources.place is not None:
            receiver.join(sources.place)
        for place in self._places.values():
            receiver.found(*place)
        if sources.stores:
            receiver.stored = StoredSources(self._context.reads, self.topic, sources.stores, receiver.on_stored)

    async def _release(self, share: int) -> None:
        receiver = self._open.pop(share, None)
        if receiver is not None:  # Else its claim was put off.
            receiver.drain()
            await receiver.close()
            await receiver.place.port.close()
        self._driver.feed(Progress(share, ShareEvent.CLOSED))

    def _shares_of(self, batch: Batch) -> list[int]:
        try:
            return self._division(batch)
        except Exception as error:
            text = f"the key of {self._whose} failed: {type(error).__name__}: {error}"
            self._delivery.reader.fail(MisuseError(text), error)
            report(text, error)
            raise

    def _may_give(self, share: int, leased: bool) -> bool:
        """Return whether the application gets messages of a share, whose first message shows that it was granted.

        A share that is not leased is lost at once: what is not given now comes again with its next claim only.
        """
        if not leased:
            self._look()
            return False
        if self._machine.shares[share].state is ShareState.CLAIMING:
            self._driver.feed(Progress(share, ShareEvent.GRANTED))
        return self._machine.shares[share].state is ShareState.HELD

    def _watch(self) -> None:
        self._watch_timer = self._loop.call_later(WATCH_SECONDS, self._watch)
        self._look()
        known = (self._machine.held, self._machine.members)
        if known != self._shown and not self._closed:
            self._shown = known
            self.on_notify(SharesChanged(self.topic, self.group, *known))

    def _check_leases(self) -> None:
        """Look at the shares before messages are handed over, if the process was stopped or busy for a while."""
        if self._loop.time() - self._looked_at > WATCH_SECONDS:
            self._look()

    def _look(self) -> None:
        """Report to the machine what happened to the shares."""
        self._looked_at = self._loop.time()
        for share, receiver in tuple(self._open.items()):
            event = self._news(share, receiver, self._machine.shares[share].state)
            if event is not None:
                self._driver.feed(Progress(share, event))

    def _news(self, share: int, receiver: ShareReceiver, state: ShareState) -> ShareEvent | None:
        if state in (ShareState.CLAIMING, ShareState.HELD):
            if receiver.lost:
                return ShareEvent.LOST if state is ShareState.HELD else ShareEvent.CONTESTED
            if receiver.contested:
                return ShareEvent.CONTESTED
            return ShareEvent.GRANTED if state is ShareState.CLAIMING and receiver.granted else None
        if state is ShareState.DRAINING:
            return None if receiver.busy and not self._closed else ShareEvent.DRAINED
        if state is ShareState.RECORDING:
            late = self._loop.time() > self._record_by[share]
            return ShareEvent.RECORDED if receiver.record() or late else None
        return None

    def _do(self, job: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(job)
        self._jobs.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._jobs.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failed(None, error)  # type: ignore[arg-type]


def _stream_of(transport: str, index: int | None) -> tuple[str, int | None]:
    """Return what a source has for itself: a stream, or its topic index on one that sources share."""
    return transport, index if is_source_string(transport) else None


def unshared(config: ReceiverConfig) -> str:
    """Return the reason why a receiver with this configuration cannot share a topic; empty if it can."""
    if not config.use_store:
        return "needs the stores, which keep who has which share: leave ume_use_store at 1"
    if config.ack_mode is AckMode.EXPLICIT:
        return "has ume_explicit_ack_only: use auto_ack=False instead"
    if config.request_maximum:
        return "would leave out messages whenever a share moves: leave retransmit_request_maximum at 0"
    if Repair.LEASE not in config.repairs or Repair.PREFIX not in config.repairs:
        return "needs leases, which the documented profiles lack: use the profile 'safe'"
    return ""
