"""Transmission: what a source sends of itself and its messages, and what it watches until they are stable.

Window, flight, proactive retransmission and watched receivers meet here. `endpoint` decides whether the source may send
at all. The window is checked every `check_ns` while anything in it may take too long (P-436, P-438).

Announcements are SRIs. Several go out, at an interval, after every change of a registration (P-221). The version rises
with each change, as the version of the store concerned does (P-220, P-222). Round robin names the store whose turn it
is. Otherwise the SRI names every store that ever granted, present or not, because receivers may still find it.
"""

import attrs

from stablecast.core.errors import MisuseError
from stablecast.core.machine import serial
from stablecast.core.protocol.effects import Effect, Notify, Release, Resend
from stablecast.core.protocol.events import SequenceNumberInfo
from stablecast.core.protocol.history import fold
from stablecast.core.protocol.inputs import Sent
from stablecast.core.protocol.messages import FROM_THE_START, ConsumptionAck, SourceInfo, StableAck, StoreEntry
from stablecast.core.protocol.quorum import Quorums
from stablecast.core.protocol.settings import SourceConfig
from stablecast.core.registration.registration_set import RegistrationSet
from stablecast.core.source import parts
from stablecast.core.source.flight import Flight
from stablecast.core.source.lineage import Lineage
from stablecast.core.source.liveness import Liveness
from stablecast.core.source.parts import offers_late_join
from stablecast.core.source.retransmission import ProactiveRetransmission
from stablecast.core.source.stability import StabilityWindow


@attrs.define
class Announcements:
    """`version` rises with each change; `left` announcements follow, the next when `due` (ns)."""

    config: SourceConfig
    version: int = 0
    left: int = 0
    due: int | None = None

    def on_change(self, now: int) -> None:
        """Announce from now on: a fact in the SRI has changed."""
        self.version += 1
        self.left = self.config.sri_maximum
        self.due = now

    def stop(self) -> None:
        """Stop announcing: another life may have registered with a store, which must not learn of this one now."""
        self.due = None

    def take_due(self, now: int) -> bool:
        """Return whether an announcement is due, and plan the next one if so."""
        if self.due is None or self.due > now:
            return False
        self.left -= 1
        self.due = now + self.config.sri_interval_ns if self.left > 0 else None
        return True

    def info(self, enrollment: RegistrationSet, lineage: Lineage, newest: int) -> SourceInfo:
        """Return the SRI as of now; `newest` is the newest number sent."""
        config = self.config
        stores = tuple(
            StoreEntry(
                index,
                config.stores[index].group,
                r.address,
                r.granted.reg_id,
                r.renewals,
                r.request.known_generation,
            )
            for index, r in enrollment.registrations.items()
            if r.granted is not None and (r.counts or enrollment.rotation is None)
        )
        return SourceInfo(
            config.incarnation,
            config.topic,
            self.version,
            serial.wire(lineage.resume_point),
            serial.wire(newest),
            config.reply_to,
            enrollment.quorums.rules.sizes,
            # A release that waits for confirmations asks for them, also where the application wants no events of them.
            config.confirmations or config.retention.unique_confirmations > 0,
            stores,
            lineage.term,
            fold(lineage.lives),
            offers_late_join(config),
            lineage.founding,
        )


@attrs.define
class Transmission:
    """The messages of one life of a source. `check_at`: when the window is checked next (ns)."""

    config: SourceConfig
    window: StabilityWindow
    flight: Flight
    proactive: ProactiveRetransmission
    liveness: Liveness
    check_at: int | None = None

    @classmethod
    def create(cls, config: SourceConfig, quorums: Quorums) -> "Transmission":
        window = parts.window_of(config, quorums)
        return cls(config, window, parts.flight_of(config), parts.proactive_of(config), Liveness(config.liveness_ns))

    def on_sent(self, event: Sent, now: int, out: list[Effect]) -> None:
        """Add a run. Raises MisuseError if it does not follow the newest one, or its large messages are not in it."""
        window, stop = self.window, event.first + event.count
        if event.first != window.next or event.count < 1:
            raise MisuseError(f"sent {event.count} from {event.first}, expected a run from {window.next}")
        if event.large:
            self._on_large(event, stop, out)
        if parts.keeps_nothing(self.config):
            window.begin(stop)
            out.append(Release(stop))
            return
        window.sent(event.count, event.payload_bytes, out)
        self.proactive.sent(event.first, stop, now)
        if self.check_at is None:
            self._plan_check(now)
        self.flight.review(window, out)

    def _on_large(self, event: Sent, stop: int, out: list[Effect]) -> None:
        at = event.first
        for first, last in event.large:
            if not at <= first < last < stop:
                raise MisuseError(f"a message of {first}..{last} is not one in a run of {event.first}..{stop - 1}")
            at = last + 1
        # All ranges are checked before one is added, so that an error changes nothing.
        for first, last in event.large:
            self.window.large.add(first, last)
            out.append(Notify(SequenceNumberInfo(first, last)))

    def on_blocked(self, count: int, payload_bytes: int, out: list[Effect]) -> None:
        """Remember a send that found no credit (T13)."""
        self.flight.on_blocked(count, payload_bytes, self.window, out)

    def on_stable(self, ack: StableAck, oldest: int, out: list[Effect]) -> bool:
        """Count a store's acknowledgement of numbers from `oldest` on; return whether its range was sent.

        Acknowledgements count by content: a synced message stays synced, whatever becomes of the registration.
        """
        window = self.window
        last = serial.extend(ack.last, window.next)
        first = last - (ack.last - ack.first) % serial.MODULUS
        # An acknowledgement of numbers that were never sent must not make later messages stable.
        if not oldest <= first <= last < window.next:
            return False
        if ack.nack:
            window.on_nacked(ack.store_index, first, last + 1, out)
        else:
            window.on_acked(ack.store_index, first, last + 1, out)
            self.flight.review(window, out)
        return True

    def on_confirmed(self, ack: ConsumptionAck, now: int, out: list[Effect]) -> None:
        """Count that a receiver consumed a range, or everything up to a number."""
        number, first = serial.extend(ack.number, self.window.next), None
        if ack.first != FROM_THE_START:
            first = number - (ack.number - ack.first) % serial.MODULUS
        self.liveness.on_confirmed(ack.receiver_reg_id, ack.session_id, now)
        self.window.on_confirmed(
            ack.receiver_reg_id, number, out, parts.confirm_flags(ack.flags), ack.session_id, first
        )
        self.flight.review(self.window, out)

    def on_stores(self, enrollment: RegistrationSet, out: list[Effect]) -> None:
        """Review the window after stores may have come or gone."""
        self.window.on_stores(*parts.acknowledging(enrollment), out)
        self.flight.review(self.window, out)

    def handle_timeout(self, enrollment: RegistrationSet, now: int, out: list[Effect]) -> None:
        """Send again what stores have not acknowledged in time; give up what took too long."""
        self.liveness.handle_timeout(now, out)
        if self.check_at is None or self.check_at > now:
            return
        for store, first, stop in self.proactive.check(self.window, now):
            address = enrollment.registrations[store].address
            out.append(Resend(address, self.config.incarnation, first, stop - 1, proactive=True))
        if lifetime := parts.lifetime_of(self.config):
            self.window.give_up(now - lifetime, out)
        self.window.review(out)
        self.flight.review(self.window, out)
        self._plan_check(now)

    def next(self) -> int | None:
        """Return when `handle_timeout` is due (ns), or None."""
        if not self.liveness.watched:
            return self.check_at
        due = self.check_at, self.liveness.next()
        return min([deadline for deadline in due if deadline is not None], default=None)

    def stop(self) -> None:
        """Stop all timers."""
        self.check_at = None
        self.liveness.watched.clear()

    def _plan_check(self, now: int) -> None:
        window = self.window
        waits = self.proactive or window.runs or (window.retention.age_ns and window.kept)
        self.check_at = now + self.config.check_ns if waits else None
