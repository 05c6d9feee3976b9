"""Acknowledgements of consumption, to every registered store and to the source, and their times.

Stores get a receiver's acknowledgement under its RegID there (P-303, C-29). The source gets a *confirmation*, if it
asks for them and the receiver is willing (P-304). It names one RegID for the whole session, so the source counts every
receiver once although stores come and go (P-329), and the session id, so it counts a returned receiver once. A broken
connection may have swallowed confirmations, so they are repeated then, and by the next session of this run with the
life. If nothing is confirmed for an interval, the source gets a sign of life (P-338).

An acknowledgement to a store covers lost messages below its number, because it marks where the receiver resumes (T3). A
confirmation names the ranges that the session consumed, without lost messages, so the source finds the gap (P-349).

    IMMEDIATE   with each consumption
    BATCHED     an interval after the first consumption that was not acknowledged (P-343)
    EXPLICIT    when the application asks, up to the number it gives (P-346, P-347)

Acknowledgements cover a contiguous prefix. The documented receiver does so only where it batches. Otherwise, or in
arrival order, it acknowledges the highest number at once, and a lower message that never came is lost to it (P-431;
formal design, 7.7; without `Repair.PREFIX`).
"""

from enum import IntEnum

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.timers import TimerTable
from stablecast.core.protocol.effects import Effect, Send
from stablecast.core.protocol.inputs import Gone, Reset
from stablecast.core.protocol.messages import AckFlag, ConsumptionAck, Pace, ReceiverAlive, SourceInfo
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.resume_point import offer
from stablecast.core.protocol.settings import AckMode, Ordering, ReceiverConfig
from stablecast.core.receiver.delivery_window import DeliveryWindow
from stablecast.core.registration.store_registration import Registration


class AckTimer(IntEnum):
    """ACK: acknowledge what was consumed. ALIVE: nothing was confirmed for an interval."""

    ACK = 0
    ALIVE = 1


@attrs.define
class Acknowledger:
    """Sends consumption acknowledgements; `confirms_as` is the RegID in confirmations, 0 before.

    A number of the user takes its place there (`user_reg_id`).
    """

    config: ReceiverConfig
    confirms_as: int = 0
    timers: TimerTable = attrs.field(factory=TimerTable)

    def watch(self, now: int) -> None:
        """Start the interval after which the source gets a sign of life."""
        if self.config.liveness_ns:
            self.timers.set(AckTimer.ALIVE, now + self.config.liveness_ns)

    def stop(self) -> None:
        """Stop all timers."""
        for kind in AckTimer:
            self.timers.stop(kind)

    def plan(self, now: int) -> bool:
        """Plan an acknowledgement after consumption; return whether to acknowledge at once."""
        mode = self.config.ack_mode
        if mode is AckMode.EXPLICIT or self.timers.armed(AckTimer.ACK):
            return False
        # In arrival order the documented receiver acknowledges at once, whatever its mode (P-431).
        if mode is AckMode.IMMEDIATE or self._leaps:
            return True
        self.timers.set(AckTimer.ACK, now + self.config.ack_interval_ns)
        return False

    def number(self, window: DeliveryWindow) -> int | None:
        """Return the number to acknowledge, None if there is no new one."""
        explicit = self.config.ack_mode is AckMode.EXPLICIT
        return window.leap(explicit) if self._leaps else window.acknowledge(explicit)

    def acknowledge(
        self,
        counting: list[Registration],
        info: SourceInfo,
        number: int,
        parts: list[tuple[int, int]],
        now: int,
        out: list[Effect],
    ) -> None:
        """Acknowledge everything up to `number`; `parts` are the ranges [first, stop) of it to confirm."""
        for registration in counting:
            self.acknowledge_to_store(registration, number, out)
        self.confirm(counting, info, parts, now, out)

    def on_broken(
        self,
        event: Reset | Gone,
        counting: list[Registration],
        info: SourceInfo | None,
        window: DeliveryWindow,
        now: int,
        out: list[Effect],
    ) -> None:
        """Repeat confirmations that a broken connection to the source may have lost."""
        # Nobody listens at an address that is gone, so a repeat would reach nobody.
        if info is None or info.request != event.address or isinstance(event, Gone):
            return
        self.confirm(counting, info, window.confirmable, now, out)

    def confirm(
        self, counting: list[Registration], info: SourceInfo, parts: list[tuple[int, int]], now: int, out: list[Effect]
    ) -> None:
        """Confirm the ranges [first, stop) to the source, if it asked for confirmations."""
        if not (info.confirmations and self.config.confirm and counting and parts):
            return
        who, session_id, flags = self._known_as(counting), self.config.session_id, self._flags
        for first, stop in parts:
            last = serial.wire(stop - 1)
            confirmation = ConsumptionAck(info.incarnation, 0, who, last, flags, session_id, serial.wire(first))
            out.append(Send(info.request, confirmation))
        self.watch(now)

    def acknowledge_to_store(self, registration: Registration, number: int, out: list[Effect]) -> None:
        """Acknowledge everything up to `number` to one store."""
        request = registration.request
        ack = ConsumptionAck(request.incarnation, request.source_reg_id, request.reg_id, serial.wire(number))
        out.append(Send(registration.address, ack))

    def catch_up(self, registration: Registration, window: DeliveryWindow, out: list[Effect]) -> None:
        """Send a store that granted the newest acknowledgement, which it may lack. Only after `window.begin`.

        A receiver that sets the pace also acknowledges what lies below its start. Otherwise a store would keep these
        messages for it for ever, and withhold acknowledgements once its room is used up.
        """
        behind = window.acked >= window.start
        if not behind and self.config.pace is not Pace.SOURCE and registration.granted is not None:
            low, _ = offer(registration.granted, window.start)
            behind = low < window.start
        if behind:
            self.acknowledge_to_store(registration, window.acked, out)

    def show_life(self, counting: list[Registration], info: SourceInfo, now: int, out: list[Effect]) -> None:
        """Send the source a sign of life. It needs a RegID to name, so a receiver without one stays silent."""
        if counting:
            config = self.config
            alive = ReceiverAlive(info.incarnation, self._known_as(counting), config.session_id, config.context)
            out.append(Send(info.request, alive))
        self.watch(now)

    @property
    def _leaps(self) -> bool:
        config = self.config
        documented = Repair.PREFIX not in config.repairs
        return documented and (config.ordering is Ordering.ARRIVAL or config.ack_mode is AckMode.IMMEDIATE)

    @property
    def _flags(self) -> AckFlag:
        config = self.config
        flags = AckFlag.NONE
        for so, flag in (
            (config.ack_mode is AckMode.EXPLICIT, AckFlag.EXPLICIT),
            (config.user_reg_id, AckFlag.USER_REG_ID),
            (config.ordering is Ordering.ARRIVAL, AckFlag.ARRIVAL_ORDER),
        ):
            flags |= flag if so else AckFlag.NONE
        return flags

    def _known_as(self, counting: list[Registration]) -> int:
        # The source counts receivers by this RegID, and stores come and go: so it never changes (P-329).
        self.confirms_as = self.confirms_as or counting[0].request.reg_id
        # The user's own number replaces it, as documented (P-330): the publisher knows its receivers by it.
        return self.config.user_reg_id or self.confirms_as
