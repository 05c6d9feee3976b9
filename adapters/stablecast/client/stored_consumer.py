"""A consumer that is registered with stores and gets nothing from them: it only acknowledges what was consumed.

Its messages are read elsewhere, for example by the tasks of a cluster. Stores treat it as a receiver with a session id:
they remember how far it is, and a receiver-paced store keeps what it has not acknowledged.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

import attrs

from stablecast.client.range_contents import SourceContents, sources_of
from stablecast.client.range_inquiry import REPEAT_SECONDS, RangeRoutes, ask_all
from stablecast.client.stored_sources import ASK_SECONDS, announcement
from stablecast.core.errors import StablecastError
from stablecast.core.machine import serial
from stablecast.core.protocol.effects import Effect, Notify, Send
from stablecast.core.protocol.events import RegistrationError
from stablecast.core.protocol.history import divergence, unfold
from stablecast.core.protocol.inputs import Reset
from stablecast.core.protocol.messages import (
    ConsumptionAck,
    Deregistered,
    Keepalive,
    Message,
    Pace,
    Refusal,
    Refused,
    Registered,
    SourceInfo,
)
from stablecast.core.protocol.settings import ReceiverConfig
from stablecast.core.receiver.store_registrations import StoreRegistrations
from stablecast.core.registration.store_registration import Registration
from stablecast.runtime import machine
from stablecast.runtime.alarm import Alarm
from stablecast.transports import codec


class ConsumerRefused(StablecastError):  # noqa: N818  # a state of affairs, like RegistrationFailed
    """Too few stores registered the consumer. The text names the reason."""


@attrs.define(eq=False)
class ConsumedSource:
    """The registrations of a consumer for one source.

    Attributes:
        info: The source, as the stores know it.
        near: An extended number close to its newest.
        stop: The first number that was not acknowledged, None before the first acknowledgement.
    """

    info: SourceInfo
    near: int
    registrations: StoreRegistrations
    stop: int | None = None

    @property
    def low(self) -> int | None:
        """Return the first number that was not consumed; None if no store knows the consumer from before."""
        counting = self.registrations.enrollment.counting
        known = any(one.granted is not None and one.granted.old for one in counting)
        return self.registrations.low(self.near) if known else None


class StoredConsumer:
    """Registers with the stores of a topic's sources, and acknowledges."""

    def __init__(self, routes: RangeRoutes, config: ReceiverConfig, stores: Sequence[str]) -> None:
        """Prepare a consumer with the topic, session id and pace of `config`; `register` begins."""
        self._routes = routes
        self._config = config
        self._stores = stores
        self._sources: dict[str, ConsumedSource] = {}
        self._changed = asyncio.Event()
        self._alarm = Alarm(self._ring)
        self._failure = ""
        self._held = ""
        routes.readers[self] = None

    async def register(self, sources: Mapping[str, SourceContents], seconds: float) -> dict[str, int]:
        """Register for sources by name. Return the first number not consumed of those that a store knows it for.

        A source that is known by this name goes on with its next life. Sources that too few stores know are left out,
        also those of which too few stores know in time where the newest life resumes.

        Raises:
            ConsumerRefused: Too few stores granted a registration in time.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wait_for_lives(sources.values())
        for name, source in sources.items():
            info = announcement(source, self._stores)
            if info is not None:
                self._begin(name, info, max(map(source.stop, source.answers.values())))
        try:
            async with asyncio.timeout(seconds):
                while not all(one.registrations.enrollment.enough for one in self._sources.values()):
                    if self._failure:
                        raise ConsumerRefused(self._failure)
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            reason = self._held or "too few stores answer"
            session = self._config.session_id
            raise ConsumerRefused(f"session {session} is not registered for '{self._config.topic}': {reason}") from None
        lows = {name: one.low for name, one in self._sources.items()}
        return {name: low for name, low in lows.items() if low is not None}

    def acknowledge(self, name: str, stop: int) -> None:
        """Acknowledge all numbers of a source below `stop`; stores that are away get it when they return."""
        source = self._sources.get(name)
        if source is None or (source.stop is not None and stop <= source.stop):
            return
        source.stop = stop
        for registration in source.registrations.enrollment.counting:
            self._acknowledge(source, registration)

    async def close(self) -> None:
        """Send nothing any more. The stores remember the consumer."""
        self._alarm.set(None)
        self._routes.readers.pop(self, None)
        for source in self._sources.values():
            self._routes.consumers.pop(source.info.incarnation, None)
        self._sources.clear()

    # ----------------------------------------------------------------------------------------------------------- inputs

    def on_control(self, message: Message) -> None:
        now, out = machine.clock.monotonic_ns(), list[Effect]()
        source = next((one for one in self._sources.values() if one.info.incarnation == message.incarnation), None)
        if source is None:
            return
        match message:
            case Keepalive():
                source.registrations.enrollment.on_keepalive(message, now, out)
            case Registered() | Refused() | Deregistered():
                self._note(message)
                begun = source.registrations.on_answer(message, source.near, now, out)
                if begun is not None and source.stop is not None:
                    self._acknowledge(source, begun)
        self._perform(out)

    def stores_of(self, incarnation: int, index: int | None = None) -> list[str]:
        sources = (one for one in self._sources.values() if one.info.incarnation == incarnation)
        return [store for source in sources for store in source.registrations.enrollment.addresses(index)]

    def on_broken(self, address: str) -> None:
        """Register again where the connection is broken."""
        now, out = machine.clock.monotonic_ns(), list[Effect]()
        for source in self._sources.values():
            source.registrations.enrollment.on_broken(Reset(address), now, out)
        self._perform(out)

    # ------------------------------------------------------------------------------------------------------------ rules

    async def _wait_for_lives(self, sources: Collection[SourceContents]) -> None:
        """Ask the stores again while they do not know where the newest life of a source resumes."""
        while any(
            announcement(source, self._stores) is None and not all(one.readable for one in source.answers.values())
            for source in sources
        ):
            await asyncio.sleep(REPEAT_SECONDS)
            answers = await ask_all(self._routes, self._stores, ASK_SECONDS, topic=self._config.topic)
            for found in sources_of(answers):
                for source in sources:
                    if any(map(source.is_about, found.answers.values())):
                        source.answers.update(found.answers)

    def _begin(self, name: str, info: SourceInfo, near: int) -> None:
        now, out = machine.clock.monotonic_ns(), list[Effect]()
        known = self._sources.get(name)
        if known is not None and known.info.incarnation == info.incarnation:
            known.info, known.near = info, near
            known.registrations.on_info(info, now, out)
        else:
            stop = None
            if known is not None:
                stop = _agreed(known, info, near)
                self._routes.consumers.pop(known.info.incarnation, None)
            config = attrs.evolve(self._config, incarnation=info.incarnation)
            source = self._sources[name] = ConsumedSource(info, near, StoreRegistrations(config), stop)
            self._routes.consumers[info.incarnation] = self
            source.registrations.begin(info, now, out)
        self._perform(out)

    def _note(self, answer: Registered | Refused | Deregistered) -> None:
        """Note an answer that no later one will change."""
        wants = self._config.pace
        refused = isinstance(answer, Refused) and answer.reason is Refusal.INCOMPATIBLE
        unpaced = isinstance(answer, Registered) and wants is not Pace.SOURCE and answer.pace is Pace.SOURCE
        if refused or unpaced:
            other = "source" if wants is not Pace.SOURCE else "receivers"
            self._failure = f"the stores of '{self._config.topic}' have another pace: set the option pace to {other}"

    def _acknowledge(self, source: ConsumedSource, registration: Registration) -> None:
        assert source.stop is not None
        request = registration.request
        number = serial.wire(source.stop - 1)
        ack = ConsumptionAck(request.incarnation, request.source_reg_id, request.reg_id, number)
        self._routes.send(registration.address, codec.encode(ack))

    def _ring(self) -> None:
        now, out = machine.clock.monotonic_ns(), list[Effect]()
        for source in self._sources.values():
            source.registrations.enrollment.handle_timeout(now, out)
        self._perform(out)

    def _perform(self, out: Sequence[Effect]) -> None:
        for effect in out:
            match effect:
                case Send():
                    self._routes.send(effect.to, codec.encode(effect.message))
                case Notify(event=RegistrationError() as error):
                    self._held = error.text
        due = [source.registrations.enrollment.next() for source in self._sources.values()]
        self._alarm.set(min((one for one in due if one is not None), default=None))
        self._changed.set()


def _agreed(known: ConsumedSource, info: SourceInfo, near: int) -> int | None:
    """Return the first number of the next life that was not acknowledged; None: all of its numbers are new.

    A source that deregistered begins again at 0, and nothing of it was consumed.
    """
    parting = divergence(unfold(known.info.lives, near), unfold(info.lives, near))
    return known.stop if parting is None or known.stop is None else min(parting, known.stop) or None
