"""A repository: the messages that a store received, synced, lost and acknowledged of one source.

Numbers are extended. A message is held by (life, number). Data of a life that is not the registered one, or whose
resume point is unknown, is refused; it is fetched again later (`source_history`). `message_window` decides what is kept
where, `gap_filling` how missing messages are recovered.

* Stability is reported for synced messages in contiguous runs from the resume point. A hole holds back everything above
  it until it is filled or known to be lost (T15). Lost messages are passed over and never acknowledged. Holes below the
  resume point ended with their life; as documented they hold back for ever (formal design, 7.5).
* A duplicate is stored once, and acknowledged again if it is synced, or was and had to go (P-440, T16). A lost message
  that comes unasked is refused for good (P-441); one that answers a request is stored. A message released before a
  restart may have been lost as well, and nobody remembers, so it is refused too.
* A message without room is dropped (C-31). It is asked for again where a sync makes room, and lost otherwise.
* A repository that only keeps state (no cache) drops data, acknowledges nothing and offers nothing (P-101).
* **Receiver-paced** (`paced`): messages that all receivers consumed are released. If one was not acknowledged it is
  then, written or not, and even if it never came here (T19), once its release is synced. While there is less room than
  a flight acknowledgements are withheld, those of resent messages too (C-32). A repository may be full all the same,
  because its source restarted. Then it refuses new messages and asks for them again after a release: its unacknowledged
  messages count as under way (formal design, 7.8).
"""

from collections.abc import Iterable

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.effects import Client, Discard, Effect, Notify
from stablecast.core.protocol.events import HistoryForgotten, LackCause, MessagesDropped
from stablecast.core.protocol.inputs import Data, Lost
from stablecast.core.protocol.messages import Address, Incarnation, LateJoinInfo, SourceInfo
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.resume_point import span
from stablecast.core.protocol.settings import StoreConfig
from stablecast.core.store.ack_batch import AckBatch
from stablecast.core.store.gap_filling import GapFilling
from stablecast.core.store.message_window import MessageWindow
from stablecast.core.store.receiver_pacing import ReceiverPacing
from stablecast.core.store.refill import SourceRefill
from stablecast.core.store.retention_terms import MAX_NUMBERS, Terms
from stablecast.core.store.source_history import SourceHistory
from stablecast.core.store.sync_tickets import SyncTickets


@attrs.define
class Repository:
    """One source's messages at one store: `acked` is next to be acknowledged, `noticed` the trail last reported."""

    repairs: Repair
    reg_id: int
    life: SourceHistory
    window: MessageWindow
    filling: GapFilling
    acks: AckBatch
    paced: ReceiverPacing | None = None
    acked: int = 0
    dropped: int = 0
    noticed: int = 0
    refill: SourceRefill | None = None

    @classmethod
    def create(
        cls,
        config: StoreConfig,
        reg_id: int,
        store_index: int,
        source: Address,
        incarnation: Incarnation,
        terms: Terms | None = None,
    ) -> "Repository":
        """Return a repository that holds nothing."""
        terms = terms or Terms()
        return cls(
            config.repairs,
            reg_id,
            SourceHistory(config.repairs, incarnation, history_lives=config.history_lives),
            MessageWindow(reg_id, terms),
            GapFilling.create(config, reg_id, incarnation),
            AckBatch(terms.ack_minimum, terms.ack_interval_ns, source, store_index, incarnation),
            ReceiverPacing() if terms.paced else None,
            refill=SourceRefill.create(config, reg_id, incarnation) if config.refill and terms.keeps else None,
        )

    @classmethod
    def recover(cls, config: StoreConfig, client: Client, trail: int, terms: Terms | None = None) -> "Repository":
        """Return a repository from its source's record, still without messages (`restore`)."""
        repository = cls.create(config, client.reg_id, client.store_index, client.reply_to, client.incarnation, terms)
        repository.life = SourceHistory.recover(config.repairs, client, config.history_lives)
        # The journal may still hold freed messages, and a new receiver must not begin at them (formal 7.8).
        freed = client.freed if Repair.PACED in config.repairs else 0
        repository.window.trail = repository.window.released = repository.noticed = max(trail, freed)
        repository.begin_acks()
        return repository

    @property
    def terms(self) -> Terms:
        """The limits agreed with the source."""
        return self.window.terms

    @property
    def trail(self) -> int:
        """The oldest number that may still be kept."""
        return self.window.trail

    @property
    def newest(self) -> int:
        """The newest number held; one below the trail when there is none."""
        return self.window.lead

    @property
    def held(self) -> RangeSet:
        """The numbers that the store keeps."""
        return self.window.held

    def available(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Return the parts of [start, stop) that can be sent again; none while a dead tail may be among them."""
        return [] if self.resume_point is None else self.held.within(start, stop)

    @property
    def incarnation(self) -> Incarnation:
        """The source's current life."""
        return self.life.incarnation

    @property
    def resume_point(self) -> int | None:
        """The first number of the current life; None: not known yet."""
        return self.life.resume_point

    # A source's life.

    def begin_life(self, incarnation: Incarnation, source: Address, store_index: int) -> None:
        """Begin a life at its registration; nothing is accepted until its resume point is known."""
        self.acks.address(source, store_index, incarnation)
        self.filling.begin_life(incarnation, self.trail, new=self.life.begin(incarnation))
        if self.refill is not None:
            self.refill.begin_life(incarnation)

    def on_info(self, info: SourceInfo, tickets: SyncTickets, now: int, out: list[Effect]) -> int | None:
        """Process an SRI; if it set the resume point, return the number from which older lives' messages are cut."""
        cut = None
        if self.resume_point is None:
            number, high = span(info.low, info.high, self.life.near(info, self.newest))
            cut, forgotten = self.life.resume(number, info, self.newest)
            if self.newest >= cut:
                if forgotten:
                    out.append(Notify(HistoryForgotten(self.reg_id, cut, self.newest)))
                self.window.cut(cut, tickets, out)
            if not self.held:
                self.window.begin(number)
            self.begin_acks()
            self._acknowledge(now, out)
        else:
            high = serial.extend(info.high, self.newest)
        self._learn(high, now, out)
        return cut

    def begin_acks(self) -> None:
        """Acknowledge everything from the resume point on."""
        if self.resume_point is not None:
            self.acked = max(self.resume_point, self.trail)
            if self.paced is None:
                self.filling.lost.add(self.resume_point, self.trail)
            # The documented rule waits for holes of dead lives, which nobody can fill (formal 7.5).
            if Repair.HOLES not in self.repairs and self.held.missing(self.trail, self.acked):
                self.acked = self.held.contiguous_from(self.trail)
            self.filling.high = max(self.newest, self.resume_point - 1)

    # Messages.

    def on_data(self, data: Data, tickets: SyncTickets, now: int, out: list[Effect]) -> None:
        """Process a run that arrived."""
        window, life = self.window, self.life
        lead, trail, resumed = window.lead, window.trail, life.resume_point
        first = serial.extend(data.wire_first, lead)
        stop = first + data.count
        # A later life reuses numbers, so the number alone does not identify a message (formal 7.3).
        if resumed is None or first < resumed or not life.is_current(data.incarnation):
            if resumed is None or not data.recovered or not self._refill(data, first, stop, tickets, now, out):
                out.append(Discard(data.token))
        elif not window.terms.keeps:
            window.trail = self.acked = max(trail, stop)
            out.append(Discard(data.token))
        elif first < trail:
            out.append(Discard(data.token))
            self._refuse(data, first, min(stop, trail), out)
            self._acknowledge_again(first, min(stop, trail), now, out)
        # All pacing receivers consumed the run before it came here, so it needs no write (T19).
        elif self.paced is not None and stop <= self.paced.floor(stop):
            out.append(Discard(data.token))
            self._release(stop, tickets, now, out)
        else:
            self._keep(data, first, stop, lead + 1, tickets, now, out)
            self.settle(tickets, now, out)

    def _keep(
        self, data: Data, first: int, stop: int, end: int, tickets: SyncTickets, now: int, out: list[Effect]
    ) -> None:
        window, filling = self.window, self.filling
        if first - end > filling.burst:
            self._lose_burst(end, first, now, out)
        parts = window.held.missing(first, stop)
        # A lost message that arrives unasked is refused for good (P-441).
        if data.proactive:
            self._refuse(data, first, stop, out)
            parts = [part for low, high in parts for part in filling.lost.missing(low, high)]
        filling.requests.got(first, stop)
        if not parts:
            out.append(Discard(data.token))
            self._acknowledge_again(first, stop, now, out)
        elif fitting := window.fitting(data, parts, out):
            window.store(data, first, fitting, now, tickets, out)
            kept = fitting[-1][1]
            if filling.lost.ranges:
                filling.lost.remove(first, kept)
            if self.refill is not None and self.refill.lacking:  # Live messages may come late, too.
                self.refill.got(first, kept, written=window.terms.written)
            if not window.terms.written:
                self._on_synced(first, kept, now, out)
            if fitting is not parts:
                self._drop([(max(low, kept), high) for low, high in parts if high > kept], now, out)
        else:
            out.append(Discard(data.token))
            self._drop(parts, now, out)
        if first > end or data.recovered:
            self._learn(first - 1, now, out)
            self.filling.issue(self.acks.source, now, out)

    def on_synced(
        self, incarnation: Incarnation, start: int, stop: int, tickets: SyncTickets, now: int, out: list[Effect]
    ) -> None:
        """Count [start, stop), or its release, as on disk."""
        self.acks.owed.remove(start, stop)
        if self.refill is not None and self.refill.unsynced.ranges:
            self.refill.on_synced(start, stop)
        if self.life.resume_point is not None and self.life.is_current(incarnation):
            self._on_synced(start, stop, now, out)
        else:
            # From the resume point on, an older life's messages were cut, and their numbers are reused (formal 7.3).
            self.window.on_synced(start, stop if self.resume_point is None else min(stop, self.resume_point))
        self._ask_again(now, out)
        self.settle(tickets, now, out)

    def on_lost(self, lost: Lost, now: int, out: list[Effect]) -> None:
        """Process a loss of the transport: ask the source at once, except for bursts (T30, P-917)."""
        if self.resume_point is None or not self.terms.keeps:
            return
        first = serial.extend(lost.wire_first, self.newest)
        stop = first + lost.count
        if lost.burst or lost.count > self.filling.burst:
            self._lose_burst(max(first, self._bottom), stop, now, out)
        self._learn(stop - 1, now, out)

    def on_damaged(self, first: int, stop: int, now: int, out: list[Effect]) -> None:
        """[first, stop) cannot be read: a hole like any other, which the source may still fill.

        Acknowledgements that wait for others must not go out any more: nothing here bears them out. They become due
        again when the hole is filled, when it is known to be lost, or when all receivers have consumed it.
        """
        spoilt = self.window.spoil(first, stop)
        self.lack(spoilt, LackCause.DAMAGED, now, out)
        for low, high in spoilt:
            for unsent, _ in self.acks.withdraw(low, high):
                self.acked = min(self.acked, unsent)
        if spoilt:  # Else they were cut meanwhile, and may be numbers that the current life has not reached.
            first = spoilt[0][0]
            self.on_lost(Lost(self.incarnation, serial.wire(first), spoilt[-1][1] - first), now, out)

    # Refill.

    def lack(self, ranges: Iterable[tuple[int, int]], cause: LackCause, now: int, out: list[Effect]) -> None:
        """Record that these messages should be here, except what is held, what a rule released, and what is to come."""
        if self.refill is None or self.resume_point is None:
            return
        bottom, end = self.first_own, max(self.filling.high or 0, self.newest) + 1
        wanted = [part for low, high in ranges for part in self.held.missing(max(low, bottom), min(high, end))]
        self.refill.lack(wanted, cause, now, out)

    def lack_history(self, cause: LackCause, now: int, out: list[Effect]) -> None:
        """Record what is missing of older lives, once the current one announced where it resumes.

        All numbers that the announcement ascribes to other lives than before were cut, so their messages are wanted.
        """
        if self.refill is not None and self.resume_point is not None:
            self.refill.forget(self.resume_point, max(self.newest, self.resume_point) + MAX_NUMBERS)
            self.lack([(self.first_own, self.resume_point)], cause, now, out)

    def lack_losses(self, known: int, now: int, out: list[Effect]) -> None:
        """Record what the source could not send: a lost disk had the messages up to `known`. Others may have all."""
        if self.refill is not None and self.resume_point is not None:
            self.refill.seen = self.filling.given_up
            for stop, cause in (known + 1, LackCause.EMPTY), (self.newest + MAX_NUMBERS, LackCause.AWAY):
                self.lack(self.filling.lost.within(self._bottom, stop), cause, now, out)

    @property
    def first_own(self) -> int:
        """The lowest number that may be kept: no rule released it, and a known life wrote it."""
        lives = self.life.lives
        assert self.resume_point is not None
        oldest = min(lives[0][1], self.resume_point) if lives else self.resume_point
        # A span of 2**31 numbers or more would be ambiguous on the wire (P-127).
        return max(self.window.released, oldest, self.newest - MAX_NUMBERS)

    def _refill(self, data: Data, first: int, stop: int, tickets: SyncTickets, now: int, out: list[Effect]) -> bool:
        """Keep messages of older lives that are lacking; return False if there is none in the run, or no room."""
        refill, window = self.refill, self.window
        assert self.resume_point is not None
        stop = min(stop, self.resume_point)
        if refill is None or not refill.lacking or first >= stop or now < refill.yields_until:
            return False
        bottom = window.released if self.paced is None else max(window.released, self.paced.floor(stop))
        parts = [
            part
            for low, high in refill.lacks(max(first, bottom), stop)
            for part in refill.owned(low, high, data.incarnation, self.life.lives)
        ]
        parts = window.fitting(data, parts, out)
        if not parts:
            return False
        window.trail = min(window.trail, parts[0][0])
        window.store(data, first, parts, now, tickets, out)
        for low, high in parts:
            refill.got(low, high, written=window.terms.written)
        self.settle(tickets, now, out)
        return True

    def on_late_join(self, info: LateJoinInfo, now: int, out: list[Effect]) -> None:
        """Process the range that the source retains."""
        if self.resume_point is not None:
            self.filling.on_late_join(info, self.held, self._bottom, self.acks.source, now, out)
            self._acknowledge(now, out)

    def restore(self, first: int, stop: int, payload_bytes: int) -> None:
        """Add [first, stop), found on disk at a restart: held, synced, and acknowledged again on request."""
        self.window.restore(first, stop, payload_bytes)
        self.begin_acks()
        if self.paced is None:
            self.acked = self.window.synced.contiguous_from(self.acked)

    def acknowledge_all(self, now: int, out: list[Effect]) -> None:
        """Acknowledge again after a registration: acknowledgements may have been lost with a connection."""
        if self.resume_point is not None:
            self._advance()
            oldest = max(self.resume_point, self.acked - serial.HALF + 1)  # One acknowledgement cannot span more.
            self._acknowledge_again(oldest, self.acked, now, out)

    # Time and space.

    def handle_timeout(self, tickets: SyncTickets, now: int, out: list[Effect]) -> None:
        """Do what is due; an early call is harmless."""
        if self.filling.handle_timeout(self.acks.source, now, out):
            self._acknowledge(now, out)
        if self.filling.high is not None:
            self._learn(self.filling.high, now, out)
        self.filling.issue(self.acks.source, now, out)
        self.window.write_delayed(self.incarnation, now, tickets, out)
        self.acks.flush(now, out)
        self.settle(tickets, now, out)

    def next_timeout(self) -> int | None:
        """Return when `handle_timeout` is due (ns); None: not before another input."""
        times = (self.acks.due, self.filling.next_timeout(), self.window.next_timeout())
        return None if times == (None, None, None) else min(time for time in times if time is not None)

    def settle(self, tickets: SyncTickets, now: int, out: list[Effect]) -> None:
        """Release what exceeds the limits, or what all receivers consumed."""
        window = self.window
        if self.paced is None:
            if (number := window.overflow(now)) > window.trail:
                self._overflow(number, tickets, now, out)
            window.shrink(0, now, out)
            return
        window.shrink(self.terms.flight_bytes, now, out)
        stop = window.lead + 1
        self._release(self.paced.floor(stop), tickets, now, out)
        if not self._has_room():
            missing = self.paced.missing(self.terms, window.kept.messages)
            crowded = max(window.short_of(self.terms.flight_bytes), window.trail + missing)
            self._release(min(crowded, self.paced.required_floor(stop)), tickets, now, out)

    def on_receivers(self, receivers: list[Client], tickets: SyncTickets, now: int, out: list[Effect]) -> None:
        """Review the pace after a receiver came, went, or acknowledged."""
        if self.paced is not None:
            self.paced.update(receivers)
            self.settle(tickets, now, out)

    def _overflow(self, number: int, tickets: SyncTickets, now: int, out: list[Effect]) -> None:
        """Release everything below `number` by a limit; what is missing there is lost."""
        if self.life.resume_point is not None:
            for low, high in self.window.held.missing(self._bottom, number):
                self.filling.give_up(low, high)
            self._acknowledge(now, out)
        self._let_go(number, tickets, out)
        self._ask_again(now, out)

    def _release(self, number: int, tickets: SyncTickets, now: int, out: list[Effect]) -> None:
        """Release everything below `number`, which the receivers that pace have consumed: so it is stable."""
        if number <= self.window.trail:
            return
        withheld = max(self.acked, self.window.trail)
        unwritten = self.window.unwritten(withheld, number)
        self._let_go(number, tickets, out)
        repaired = Repair.PACED in self.repairs
        # After a crash nobody remembers a spared write, so its acknowledgement waits for the sync (formal 7.8).
        if repaired and self.resume_point is not None:
            self.acks.owe(unwritten, self.reg_id, tickets)
        self._acknowledge_again(withheld, number, now, out)
        if repaired:
            # There is room again for messages that were dropped, so they are requested now (formal 7.8).
            self.filling.paused = False
            self._learn(number - 1, now, out)
            self._acknowledge(now, out)

    def _let_go(self, number: int, tickets: SyncTickets, out: list[Effect]) -> None:
        self.filling.requests.got(self.window.trail, number)
        if self.refill:
            self.refill.forget(self.window.released, number)
        self.window.let_go(number, tickets, out)
        self.filling.tidy(number)
        self.acked = max(self.acked, number)

    def _drop(self, parts: list[tuple[int, int]], now: int, out: list[Effect]) -> None:
        """Drop messages without room (C-31), and give them up, unless a release, a sync or a refill makes room."""
        self.dropped += sum(high - low for low, high in parts)
        out.append(Notify(MessagesDropped(self.reg_id, parts[0][0], parts[-1][1] - 1)))
        yields = not self.paced and self.refill and self.refill.yields(now)
        waits = Repair.PACED in self.repairs if self.paced else yields or (self.terms.written and self.window.memory)
        if waits:
            self.filling.pause()
        for low, high in () if waits else parts:
            self.filling.give_up(low, high)
        if waits or not self.paced:
            self._learn(parts[-1][1] - 1, now, out)
        if not waits:
            self.lack(parts, LackCause.NO_ROOM, now, out)
            self._acknowledge(now, out)

    def _ask_again(self, now: int, out: list[Effect]) -> None:
        """Ask for what found no room, once what a refill or others put in its place is on disk or gone."""
        if self.filling.paused and not self.paced and not (self.refill and self.refill.unsynced):
            self.filling.paused = False
            self._learn(self.newest, now, out)

    @property
    def _bottom(self) -> int:
        assert self.resume_point is not None
        return max(self.resume_point, self.trail)

    def _learn(self, high: int, now: int, out: list[Effect]) -> None:
        if self.resume_point is not None and self.terms.keeps:
            self.filling.learn(high, self.held, self._bottom, self.acks.source, now, out)

    def _lose_burst(self, first: int, stop: int, now: int, out: list[Effect]) -> None:
        gaps = self.held.missing(first, stop)
        if gaps:
            self.filling.lose_burst(gaps, out)
            self._acknowledge(now, out)

    def _on_synced(self, start: int, stop: int, now: int, out: list[Effect]) -> None:
        self.window.on_synced(start, stop)
        if start < self.acked:
            self._acknowledge_again(start, stop, now, out)  # Only a message that came after it had been given up.
        self._acknowledge(now, out)

    def _has_room(self) -> bool:
        paced, window = self.paced, self.window
        return paced is None or paced.has_room(window.terms, window.free_bytes(), window.kept.messages)

    def _advance(self) -> int:
        """Pass over newly stable messages in contiguous order, while there is room (T17); return where that began."""
        first, stop = self.acked, self.window.contiguous_from(self.acked, self.filling.lost)
        if stop > first and (self.paced is None or self._has_room()):
            self.acked = stop
        return first

    def _acknowledge(self, now: int, out: list[Effect]) -> None:
        first = self._advance()
        if first < self.acked:
            self._acknowledge_again(first, self.acked, now, out)

    def _acknowledge_again(self, start: int, stop: int, now: int, out: list[Effect]) -> None:
        """Acknowledge the stable part of [start, stop) if not withheld; released messages were stable unless lost."""
        resumed, acked, trail = self.life.resume_point, self.acked, self.window.trail
        if resumed is None or start >= acked or not self.window.terms.keeps:
            return
        if start < resumed or stop > acked:
            start, stop = max(start, resumed), min(stop, acked)
        if start < trail:
            for low, high in self.filling.lost.missing(start, min(stop, trail)):
                self.acks.add(low, high, now, out)
            start = trail
        for low, high in self.window.synced.within(start, stop):
            self.acks.add(low, high, now, out)

    def _refuse(self, data: Data, start: int, stop: int, out: list[Effect]) -> None:
        for low, high in self.filling.lost.within(start, stop) if data.proactive else ():
            self.acks.refuse(low, high, out)

    def abstract(self) -> tuple[object, ...]:
        """Return what the stability model sees of a store: life, resume point, held, synced, acknowledged."""
        return (self.incarnation, self.resume_point, tuple(self.held), tuple(self.window.synced), self.acked)
