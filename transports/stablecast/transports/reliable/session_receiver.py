"""The receiver's side of one session, without addresses and connections.

Datagrams are delivered in the order of arrival, retransmitted ones included, each of them once. The datagrams of one
read are delivered together. A session begins with the first datagram or session message: nothing before it is missing.
A retransmitted datagram cannot begin a session, because it does not show the position of the source.
"""

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.seeded import Seeded
from stablecast.core.machine.timers import soonest
from stablecast.transports.codec.lbttcp import Run, StreamDecoder
from stablecast.transports.reliable.effects import Received, ReceiverEffect
from stablecast.transports.reliable.gaps import Gaps
from stablecast.transports.reliable.high_water_marks import marks
from stablecast.transports.reliable.settings import MAX_NUMBERS, ReceiverSettings
from stablecast.transports.reliable.statistics import ReceiverStatistics
from stablecast.transports.reliable.topics import Topics
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.headers import Tsni
from stablecast.transports.wire.lbmc import Message, MessageKind

PERMILLE = 1_000


@attrs.define
class SessionReception:
    """The reception of one session.

    Attributes:
        gaps: Missing datagrams of the session.
        topics: Missing messages of its topics.
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
        """Return the state before the first datagram."""
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
        """Return whether to drop a datagram artificially, for tests."""
        chance = self.settings.drop_permille
        if not chance or self.seeded.below(PERMILLE) >= chance:
            return False
        self.statistics.dgrams_dropped_test += 1
        return True

    def expected(self) -> int | None:
        """Return the next wire number; None before the first datagram, or if artificial loss must see each datagram."""
        high = self.gaps.high
        return None if high is None or self.settings.drop_permille else serial.wire(high + 1)

    def on_series(self, payloads: list[bytes | memoryview], trail: int) -> None:
        """Handle datagrams with the expected number and the next ones; the trail is that of the last."""
        gaps = self.gaps
        assert gaps.high is not None
        gaps.high += len(payloads)
        gaps.advance(serial.extend(trail, gaps.high), self.out)
        self.arrived += payloads

    def on_data(self, sqn: int, trail: int, payload: bytes | memoryview, again: bool, now: int) -> None:
        """Handle a datagram of messages, with wire numbers."""
        gaps = self.gaps
        if gaps.high is None:
            if again:
                self.statistics.dgrams_dropped_other += 1
                return
            # The first datagram is itself new, so the session begins before it.
            gaps.begin(serial.extend(sqn, 0) - 1)
            assert gaps.high is not None
        number = serial.extend(sqn, gaps.high)
        gaps.advance(serial.extend(trail, number), self.out)
        if gaps.on_datagram(number, again, now, self.out):
            self.arrived.append(payload)

    def on_standing(self, lead: int, trail: int, now: int) -> None:
        """Handle a session message."""
        gaps = self.gaps
        if gaps.high is None:
            gaps.begin(serial.extend(lead, 0))
            return
        newest = serial.extend(lead, gaps.high)
        gaps.advance(serial.extend(trail, newest), self.out)
        if newest > gaps.high:
            gaps.extend(newest, now, self.out)

    def on_refused(self, trail: int, reason: int, numbers: tuple[int, ...], now: int) -> None:
        """Handle an NCF, with wire numbers."""
        self.statistics.refused(reason, len(numbers))
        gaps = self.gaps
        if gaps.high is not None:
            near = gaps.high
            gaps.advance(serial.extend(trail, near), self.out)
            gaps.refuse([serial.extend(number, near) for number in numbers], now)

    def settle(self, now: int) -> list[tuple[int, ...]]:
        """Finish a read or a timeout: deliver new messages, and give up old gaps.

        Returns:
            The wire numbers to request, for each NAK.
        """
        self.gaps.expire(now, self.out)
        if self.arrived:
            payloads, self.arrived = self.arrived, []
            items = self._items(payloads)
            welcome = [item for item in items if self._count(item, now)]
            if welcome:
                self.out.append(Received(welcome))
        self.topics.look(now, self.out)
        # After delivery, so that repairs in this read are not requested again.
        asked = [serial.wire(number) for number in self.gaps.ask(now)]
        naks = [tuple(asked[start : start + MAX_NUMBERS]) for start in range(0, len(asked), MAX_NUMBERS)]
        self.statistics.naks_sent += len(asked)
        self.statistics.nak_pckts_sent += len(naks)
        return naks

    def end(self) -> None:
        """End the session: the gaps of its topics are lost."""
        self.topics.end(self.out)
        self.gaps.missing.clear()
        self.gaps.deadlines.clear()

    def next_timeout(self) -> int | None:
        """Return when `settle` is due, in nanoseconds."""
        return soonest(self.gaps.next(), self.topics.look_at)

    def _items(self, payloads: list[bytes | memoryview]) -> list[Run | Message]:
        # Datagrams hold whole messages, so all of them are usually decoded in one pass.
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
        """Note the numbers of an item for its topic, and return whether to deliver the item."""
        if isinstance(item, Run):
            self.statistics.lbmc_msgs_rcved += item.count
            return self.topics.on_run(item.topic_index, item.first, item.count, now)
        self.statistics.lbmc_msgs_rcved += 1
        if item.kind is MessageKind.DATA:
            return self.topics.on_run(item.topic_index, item.sequence, 1, now)
        for index, high in marks(item):
            self.topics.on_mark(index, high, now)
        return not all(isinstance(header, Tsni) for header in item.headers)  # the application has no use for marks


def _split(payload: bytes) -> list[Run | Message] | None:
    """Return the messages of a payload; None if it does not consist of whole messages."""
    decoder = StreamDecoder()
    try:
        items = decoder.feed(payload)
    except WireError:
        return None
    return None if decoder.pending else items
