"""The receiver's side of one session, addresses and connections apart.

Datagrams go up in the order of arrival, those that were sent again included, each one once; what one read brings goes
up together. A session begins with the first datagram, or session message, that is heard: nothing before it is missing.
A datagram that is sent again cannot begin one, for it says nothing of where the source is.
"""

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.seeded import Seeded
from stablecast.core.machine.timers import soonest
from stablecast.transports.codec.lbttcp import Run, StreamDecoder
from stablecast.transports.reliable.effects import Received, ReceiverEffect
from stablecast.transports.reliable.gaps import Gaps
from stablecast.transports.reliable.high_water_marks import marks
from stablecast.transports.reliable.settings import MAX_MISSING, MAX_NUMBERS, ReceiverSettings
from stablecast.transports.reliable.statistics import ReceiverStatistics
from stablecast.transports.reliable.topics import Topics
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.headers import Tsni
from stablecast.transports.wire.lbmc import Message, MessageKind

PERMILLE = 1_000


@attrs.define
class SessionReception:
    """One session.

    Attributes:
        gaps: What is missing of the session.
        topics: What is missing of its topics.
        arrived: Payloads of new datagrams of this read.
    """

    settings: ReceiverSettings
    seeded: Seeded
    gaps: Gaps
    topics: Topics
    statistics: ReceiverStatistics
    out: list[ReceiverEffect] = attrs.field(factory=list)
    arrived: list[bytes | memoryview] = attrs.field(factory=list)

    @classmethod
    def of(cls, settings: ReceiverSettings, seed: int) -> "SessionReception":
        """Nothing was heard yet."""
        statistics = ReceiverStatistics()
        seeded = Seeded(seed)
        return cls(
            settings,
            seeded,
            Gaps(settings, seeded, statistics),
            Topics(settings.generation_ns, settings.loss_check_ns),
            statistics,
        )

    def drops(self) -> bool:
        """Whether a datagram is to be dropped, for tests."""
        chance = self.settings.drop_permille
        if not chance or self.seeded.below(PERMILLE) >= chance:
            return False
        self.statistics.dgrams_dropped_test += 1
        return True

    def expected(self) -> int | None:
        """The wire number behind the newest; None: nothing was heard yet, or artificial loss looks at each datagram."""
        high = self.gaps.high
        return None if high is None or self.settings.drop_permille else serial.wire(high + 1)

    def on_series(self, payloads: list[bytes | memoryview], trail: int) -> None:
        """Datagrams of messages with the expected number and those behind it; the trail is that of the last."""
        gaps = self.gaps
        assert gaps.high is not None
        gaps.high += len(payloads)
        gaps.advance(serial.extend(trail, gaps.high), self.out)
        self.arrived += payloads

    def on_data(self, sqn: int, trail: int, payload: bytes | memoryview, again: bool, now: int) -> None:
        """A datagram of messages; numbers are those of the wire."""
        gaps = self.gaps
        if gaps.high is None:
            if again:
                self.statistics.dgrams_dropped_other += 1
                return
            gaps.begin(serial.extend(sqn, 0) - 1)
            assert gaps.high is not None
        number = serial.extend(sqn, gaps.high)
        gaps.advance(serial.extend(trail, number), self.out)
        if gaps.take(number, again, now, self.out):
            self.arrived.append(payload)

    def on_standing(self, lead: int, trail: int, now: int) -> None:
        """A session message."""
        gaps = self.gaps
        if gaps.high is None:
            gaps.begin(serial.extend(lead, 0))
            return
        newest = serial.extend(lead, gaps.high)
        gaps.advance(serial.extend(trail, newest), self.out)
        if newest > gaps.high:
            gaps.extend(newest, now, self.out)

    def on_refused(self, trail: int, reason: int, numbers: tuple[int, ...], now: int) -> None:
        """An NCF."""
        self.statistics.refused(reason, len(numbers))
        gaps = self.gaps
        if gaps.high is not None:
            near = gaps.high
            gaps.advance(serial.extend(trail, near), self.out)
            gaps.refuse([serial.extend(number, near) for number in numbers], now)

    def settle(self, now: int) -> list[tuple[int, ...]]:
        """Ends a read, or a timeout: what came goes up, what is old is lost.

        Returns the wire numbers to ask for, those of each NAK.
        """
        self.gaps.expire(now, self.out)
        if self.arrived:
            payloads, self.arrived = self.arrived, []
            items = self._items(payloads)
            welcome = [item for item in items if self._count(item, now)]
            if welcome:
                self.out.append(Received(welcome))
        self.topics.look(now, self.out)
        asked = [serial.wire(number) for number in self.gaps.ask(now)]
        naks = [tuple(asked[start : start + MAX_NUMBERS]) for start in range(0, len(asked), MAX_NUMBERS)]
        self.statistics.naks_sent += len(asked)
        self.statistics.nak_pckts_sent += len(naks)
        return naks

    def end(self) -> None:
        """The session is over: what topics lack will not come."""
        self.topics.end(self.out)
        self.gaps.missing.clear()
        self.gaps.deadlines.clear()

    def check_invariants(self) -> None:
        """What must hold between inputs (used by tests)."""
        gaps = self.gaps
        assert not self.arrived
        assert not gaps.missing or gaps.high is not None
        assert list(gaps.missing) == sorted(gaps.missing)
        assert all(gaps.trail <= number <= (gaps.high or 0) for number in gaps.missing)
        wanted = {(gap.due, number) for number, gap in gaps.missing.items() if gap.due is not None}
        assert wanted <= set(gaps.deadlines)
        assert len(gaps.missing) <= MAX_MISSING

    def next_timeout(self) -> int | None:
        """When `settle` is due, in nanoseconds."""
        return soonest(self.gaps.next(), self.topics.look_at)

    def _items(self, payloads: list[bytes | memoryview]) -> list[Run | Message]:
        items = _split(b"".join(payloads))
        if items is not None:
            return items
        found: list[Run | Message] = []
        for payload in payloads:
            items = _split(bytes(payload))
            if items is None:
                self.statistics.dgrams_dropped_other += 1
            else:
                found += items
        return found

    def _count(self, item: Run | Message, now: int) -> bool:
        """Notes what an item says of its topic; returns whether it goes up."""
        if isinstance(item, Run):
            self.statistics.lbmc_msgs_rcved += item.count
            return self.topics.on_run(item.topic_index, item.first, item.count, now)
        self.statistics.lbmc_msgs_rcved += 1
        if item.kind is MessageKind.DATA:
            return self.topics.on_run(item.topic_index, item.sequence, 1, now)
        for index, high in marks(item):
            self.topics.on_mark(index, high, now)
        return not all(isinstance(header, Tsni) for header in item.headers)  # Marks are the session's own business.


def _split(payload: bytes) -> list[Run | Message] | None:
    """The messages of a payload; None if it is not made of whole ones."""
    decoder = StreamDecoder()
    try:
        items = decoder.feed(payload)
    except WireError:
        return None
    return None if decoder.pending else items
