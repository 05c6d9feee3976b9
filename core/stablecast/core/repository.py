"""What a store holds of one source: received, synced, lost, acknowledged.

Numbers are extended. Rules that live here and nowhere else:

* A message is held by (incarnation, number). Data of another incarnation than the registered one is refused, and so is
  data of one whose resume point is not known yet: it is fetched again once it is.
* **Resume point.** When the SRI of a new incarnation says where it resumes, everything an older one left there or above
  is cut back before anything new is stored: those numbers are used again. If the source's history says that lives were
  missed here, the cut is where the histories part (formal design, 7.3, 7.4). Until then nothing is offered.
* Stability is reported for what is synced, in contiguous runs from the resume point: a hole holds back everything
  behind it until it is filled or known to be lost (T15). What is lost is passed over and never acknowledged.
* A duplicate is acknowledged again if it is synced, and stored once (T16).
* Gaps are filled from the source's retention: the source says what it still has (late join), what lies below is lost.
"""

import attrs

from stablecast.core import serial
from stablecast.core.clients import ClientRecord
from stablecast.core.effects import Client, Cut, Discard, Effect, PersistMessages, Send
from stablecast.core.history import continued, divergence, fold, unfold
from stablecast.core.inputs import Data
from stablecast.core.lives import MAX_LIVES
from stablecast.core.messages import (
    Address,
    Incarnation,
    LateJoinInfo,
    LateJoinRequest,
    Life,
    Registered,
    Role,
    SourceInfo,
    StableAck,
)
from stablecast.core.ranges import RangeSet
from stablecast.core.requests import RequestWindow, Target
from stablecast.core.resume import span
from stablecast.core.settings import StoreConfig
from stablecast.core.units import milliseconds


@attrs.define
class Repository:
    """One source's messages at one store. `trail` is the oldest number still kept, `acked` the next to acknowledge."""

    reg_id: int
    store_index: int
    source: Address
    incarnation: Incarnation
    requests: RequestWindow
    resume_point: int | None = None
    lives: list[Life] = attrs.field(factory=list)
    lives_term: int = 0
    trail: int = 0
    acked: int = 0
    held: RangeSet = attrs.field(factory=RangeSet)
    synced: RangeSet = attrs.field(factory=RangeSet)
    lost: RangeSet = attrs.field(factory=RangeSet)
    high: int | None = None
    asked_at: int | None = None

    @classmethod
    def create(
        cls, config: StoreConfig, reg_id: int, store_index: int, source: Address, incarnation: Incarnation
    ) -> "Repository":
        """A repository that holds nothing."""
        requests = RequestWindow(
            Role.STORE, incarnation, config.address, config.window, config.retry_ns, config.give_up_ns
        )
        return cls(reg_id, store_index, source, incarnation, requests)

    @classmethod
    def recover(cls, config: StoreConfig, client: Client, trail: int) -> "Repository":
        """A repository as it is known from its source's record, still without messages (`restore`)."""
        repository = cls.create(config, client.reg_id, client.store_index, client.reply_to, client.incarnation)
        repository.lives, repository.lives_term = list(client.lives), client.lives_term
        repository.trail = trail
        for incarnation, first in client.lives:
            if incarnation == client.incarnation:
                repository.resume_point = first
                repository.acked = max(first, trail)
                repository.high = first - 1
        return repository

    @property
    def newest(self) -> int:
        """The newest number held; one below the trail when there is none."""
        last = self.held.last
        return self.trail - 1 if last is None else last

    def begin_life(self, incarnation: Incarnation, source: Address, store_index: int) -> None:
        """The source registered: nothing is accepted until its resume point is known."""
        self.source, self.store_index = source, store_index
        if incarnation == self.incarnation:
            self.lost = RangeSet()  # Given up while the source was away: it may still have it.
            return
        self.incarnation = incarnation
        self.resume_point = self.asked_at = self.high = None
        self.requests = attrs.evolve(
            self.requests, incarnation=incarnation, wanted=RangeSet(), retrying=[], asked=[], outstanding=0
        )

    def on_info(self, info: SourceInfo, ticket: int, now: int, out: list[Effect]) -> int | None:
        """Take an SRI; if it set the resume point, returns from where on what older lives left is cut back."""
        cut = None
        if self.resume_point is None:
            resume, high = span(info.low, info.high, self.newest)
            cut = self._resume(resume, info, ticket, out)
        else:
            high = serial.extend(info.high, self.newest)
        self._learn(high, now, out)
        return cut

    def on_data(self, data: Data, ticket: int, now: int, out: list[Effect]) -> list[tuple[int, int]]:
        """A run arrived; returns the parts that go to disk under `ticket`."""
        if self.resume_point is None or data.incarnation != self.incarnation:
            out.append(Discard(data.token))
            return []
        first = serial.extend(data.wire_first, self.newest)
        stop = first + data.count
        if first < max(self.resume_point, self.trail):
            out.append(Discard(data.token))
            return []
        expected = self.newest + 1
        parts = self.held.add(first, stop)
        if self.requests:
            self.requests.got(first, stop)
        if not parts:
            out.append(Discard(data.token))
            self._acknowledge_again(first, stop, out)
            return []
        for low, high in parts:
            out.append(
                PersistMessages(
                    ticket,
                    self.reg_id,
                    self.incarnation,
                    data.token,
                    low - first,
                    high - low,
                    low,
                    high == parts[-1][1],
                )
            )
        self.lost.remove(first, stop)
        if first > expected:
            self._learn(first - 1, now, out)
        if data.recovered:
            self._issue(now, out)
        return parts

    def on_synced(self, incarnation: Incarnation, start: int, stop: int, out: list[Effect]) -> None:
        """[start, stop) reached the disk."""
        current = incarnation == self.incarnation
        if self.resume_point is not None and not current:
            stop = min(stop, self.resume_point)
        for low, high in self.held.within(start, stop):
            self.synced.add(low, high)
        if self.resume_point is not None and current:
            self._acknowledge_again(start, stop, out)  # Only what came after it had been given up.
            self._acknowledge(out)

    def acknowledge_all(self, out: list[Effect]) -> None:
        """The source registered again: acknowledgements may have been lost with a connection."""
        if self.resume_point is not None:
            oldest = max(self.resume_point, self.acked - serial.HALF + 1)  # One ack cannot span more.
            self._acknowledge_again(oldest, self.acked, out)

    def on_late_join(self, info: LateJoinInfo, now: int, out: list[Effect]) -> None:
        """The source says what it can still send."""
        if self.asked_at is None or self.high is None or self.resume_point is None:
            return
        self.asked_at = None
        low = serial.extend(info.low, self.high)
        for first, stop in self._missing():
            if first < low:
                self._lose(first, min(stop, low), out)
            if stop > low:
                self.requests.want(max(first, low), stop)
        self._issue(now, out)

    def handle_timeout(self, now: int, retry_ns: int, out: list[Effect]) -> None:
        """Repeat what was not answered; what could not be had in time is lost."""
        if self.asked_at is not None and now - self.asked_at >= retry_ns:
            self._ask(now, out)
        for first, stop in self.requests.handle_timeout(now):
            self._lose(first, stop, out)
        if self.high is not None:
            self._learn(self.high, now, out)
        self._issue(now, out)

    def restore(self, first: int, stop: int) -> None:
        """[first, stop) was found on disk at a restart: held, synced, and to be acknowledged again when asked."""
        self.held.add(max(first, self.trail), stop)
        self.synced.add(max(first, self.trail), stop)
        if self.resume_point is not None:
            self.high = max(self.newest, self.resume_point - 1)
            self.acked = self.synced.contiguous_from(max(self.resume_point, self.trail))

    def grant(self, record: ClientRecord, generation: int, old: bool) -> Registered:
        """The answer to the source, or to one of its receivers: what is held here."""
        client = record.client
        source = client.role is Role.SOURCE
        low = self.trail if source else client.acknowledged + 1
        return Registered(
            client.role,
            client.store_index,
            generation,
            client.reg_id,
            client.incarnation,
            old,
            serial.wire(low),
            serial.wire(max(self.newest, low - 1)),
            milliseconds(record.lifetime.activity_ns),
            milliseconds(record.lifetime.lifetime_ns),
            client.term,
            fold(self.lives) if source else (),
            self.lives_term if source else 0,
        )

    def evict(self, number: int) -> None:
        """The journal let go of everything below `number`."""
        self.trail = max(self.trail, number)
        self.acked = max(self.acked, self.trail)
        for kept in (self.held, self.synced, self.lost):
            kept.forget(self.trail)

    def available(self, start: int, stop: int) -> list[tuple[int, int]]:
        """The parts of [start, stop) that can be sent again; none while a dead tail may be among them."""
        return [] if self.resume_point is None else self.held.within(start, stop)

    def _resume(self, number: int, info: SourceInfo, ticket: int, out: list[Effect]) -> int:
        theirs = unfold(info.lives, number) or continued(self.lives, self.incarnation, number)
        parting = divergence(self.lives, theirs)
        newest = self.newest
        cut = number if parting is None else min(parting, number)
        if parting is None and self.lives[-1:] == [(self.incarnation, number)]:
            cut = newest + 1  # Another life registered meanwhile and never sent: what is held is this one's own.
        if not self.held:
            self.trail = number
        self.lost = RangeSet()
        if newest >= cut:
            self.held.remove(cut, newest + 1)
            self.synced.remove(cut, newest + 1)
            out.append(Cut(ticket, self.reg_id, cut))
        self.resume_point = self.acked = number
        self.high = number - 1
        self.lives, self.lives_term = theirs[-MAX_LIVES:], info.term
        return cut

    def _learn(self, high: int, now: int, out: list[Effect]) -> None:
        """Numbers up to `high` exist; what is missing is asked for."""
        self.high = high if self.high is None else max(self.high, high)
        if self.asked_at is None and not self.requests and self._missing():
            self._ask(now, out)

    def _missing(self) -> list[tuple[int, int]]:
        assert self.resume_point is not None
        assert self.high is not None
        gaps = self.held.missing(max(self.resume_point, self.trail), self.high + 1)
        return [gap for low, high in gaps for gap in self.lost.missing(low, high)]

    def _ask(self, now: int, out: list[Effect]) -> None:
        self.asked_at = now
        request = LateJoinRequest(self.incarnation, self.reg_id, self.requests.reply_to)
        out.append(Send(self.source, request))

    def _issue(self, now: int, out: list[Effect]) -> None:
        if self.requests:
            self.requests.issue([Target(self.source, 0)], now, out)

    def _lose(self, start: int, stop: int, out: list[Effect]) -> None:
        self.lost.add(start, stop)
        self._acknowledge(out)

    def _acknowledge(self, out: list[Effect]) -> None:
        """Report what is newly stable in contiguous order."""
        at = self.acked
        while True:
            stop = self.lost.contiguous_from(self.synced.contiguous_from(at))
            if stop == at:
                break
            at = stop
        first, self.acked = self.acked, at
        self._acknowledge_again(first, at, out)

    def _acknowledge_again(self, start: int, stop: int, out: list[Effect]) -> None:
        for low, high in self.synced.within(start, min(stop, self.acked)):
            ack = StableAck(self.store_index, self.incarnation, serial.wire(low), serial.wire(high - 1))
            out.append(Send(self.source, ack))

    def check_invariants(self) -> None:
        """What must hold between inputs (used by tests)."""
        assert all(self.held.within(low, high) == [(low, high)] for low, high in self.synced)
        assert all(not self.held.within(low, high) for low, high in self.lost)
        assert self.resume_point is None or self.acked >= self.resume_point

    def abstract(self) -> tuple[object, ...]:
        """What the stability model sees of a store: life, resume point, held, synced, acknowledged."""
        return (self.incarnation, self.resume_point, tuple(self.held), tuple(self.synced), self.acked)
