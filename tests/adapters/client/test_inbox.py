"""The queue between sessions and the application, and the batches in it."""

import attrs
import pytest

from stablecast.client import inbox as module
from stablecast.client.batch import ArrivalTime, Batch
from stablecast.client.inbox import BATCH_BYTES, TOPIC_TURN_MESSAGES, FairInbox, Inbox
from stablecast.client.message import Message
from stablecast.client.redelivery import Redeliverer
from stablecast.core.machine import serial
from stablecast.core.subscription.succession import Succession
from stablecast.transports.codec.lbttcp import Run
from tests.adapters.runtime.peers import data


def idle(inbox: Inbox[Batch]) -> Redeliverer:
    """Return a redeliverer that has nothing to do."""
    return Redeliverer(inbox, inbox.put, None, "", lambda *_: None, explicit=True)


@attrs.define
class Told:
    """A session that remembers what it was told."""

    consumptions: list[tuple[int, int]] = attrs.field(factory=list)
    acknowledged: list[tuple[int, int]] = attrs.field(factory=list)
    topic: str = "orders"
    source_name: str = "1000@store"
    arrival: ArrivalTime = attrs.field(factory=ArrivalTime)
    redeliverer: Redeliverer = attrs.field(factory=lambda: idle(Inbox(lambda: None)))

    succession: Succession = attrs.field(init=False)

    def check_thread(self) -> None:
        """Any will do."""

    def dropped(self, count: int) -> None:
        """Not noted."""

    def acknowledge_now(self) -> None:
        self.acknowledged.append((-1, -1))

    def consumed(self, first: int, last: int) -> None:
        self.consumptions.append((first, last))

    def acknowledge(self, first: int, number: int) -> None:
        self.acknowledged.append((first, number))


def batch_of(count: int, first: int = 0, told: Told | None = None, skip: int = 0) -> Batch:
    block = b"".join(data(serial.wire(first - skip + place)) for place in range(skip + count))
    run = Run(7, serial.wire(first - skip), skip + count, skip + count, block)
    return Batch(run, skip, count, first, 99, told or Told())


def test_topics_take_turns() -> None:
    """The backlog of a topic keeps no other waiting, and each topic keeps its order, whatever comes back."""
    inbox: FairInbox[Batch] = FairInbox(lambda: None)
    many, few, other = Told(topic="many"), Told(topic="few"), Told(topic="other")
    for batch in (
        batch_of(2 * TOPIC_TURN_MESSAGES, told=many),
        batch_of(1, 2 * TOPIC_TURN_MESSAGES, told=many),
        batch_of(2, told=few),
        batch_of(1, told=other),
        batch_of(1, 2, told=few),
    ):
        inbox.put(batch)

    def taken(most: int | None = None) -> tuple[str, list[tuple[int, int]]]:
        batch = inbox.next_batch(most)
        assert batch is not None
        return batch.owner.topic, batch.spans(0, batch.count)

    assert taken() == ("many", [(0, TOPIC_TURN_MESSAGES)])
    assert taken(1) == ("few", [(0, 1)])
    assert taken() == ("other", [(0, 1)])
    assert taken() == ("many", [(TOPIC_TURN_MESSAGES, 2 * TOPIC_TURN_MESSAGES)])
    inbox.put_first(batch_of(1, TOPIC_TURN_MESSAGES, told=many))
    assert taken() == ("many", [(TOPIC_TURN_MESSAGES, TOPIC_TURN_MESSAGES + 1)])
    assert taken() == ("few", [(1, 2)])
    dropped = inbox.drop(lambda batch: (0, 1 << 40) if batch.owner is few else None)
    assert [(first, stop) for _, first, stop in dropped] == [(2, 3)]
    assert len(inbox) == 1
    assert taken() == ("many", [(2 * TOPIC_TURN_MESSAGES, 2 * TOPIC_TURN_MESSAGES + 1)])
    assert inbox.next_batch() is None


def test_first_in_first_out() -> None:
    inbox: Inbox[Batch] = Inbox(lambda: None)
    batches = [batch_of(1), batch_of(2)]
    for batch in batches:
        inbox.put(batch)
    assert len(inbox) == 2
    assert [inbox.next_batch(), inbox.current, inbox.next_batch(), inbox.next_batch()] == [
        batches[0],
        batches[0],
        batches[1],
        None,
    ]
    assert (inbox.current, inbox.handed, inbox.rest) == (batches[1], 2, 0)


def test_a_waiting_reader_is_woken_once() -> None:
    inbox: Inbox[Batch] = Inbox(lambda: None)
    woken: list[int] = []
    inbox.wake = lambda: woken.append(len(inbox))
    inbox.put(batch_of(1))
    inbox.put(batch_of(1))
    assert woken == [1]


def test_full_and_half_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    room: list[int] = []
    size = batch_of(1).size + BATCH_BYTES
    monkeypatch.setattr(module, "MAX_QUEUED_BYTES", 4 * size)
    inbox: Inbox[Batch] = Inbox(lambda: room.append(len(inbox)))
    fullness: list[bool] = []
    for _ in range(5):
        inbox.put(batch_of(1))
        fullness.append(inbox.full)
    for _ in range(4):
        inbox.next_batch()
        fullness.append(inbox.full)
    assert fullness == [False] * 4 + [True] * 3 + [False] * 2
    assert room == [2]


def test_messages_that_the_application_settles_itself_take_room(monkeypatch: pytest.MonkeyPatch) -> None:
    room: list[int] = []
    size = batch_of(1).size + BATCH_BYTES
    monkeypatch.setattr(module, "MAX_QUEUED_BYTES", 4 * size)
    inbox: Inbox[Batch] = Inbox(lambda: room.append(len(inbox)))
    held = [batch_of(1) for _ in range(4)]
    for batch in held:
        inbox.hold(batch)
    inbox.put(batch_of(1))
    inbox.next_batch()
    fullness = [inbox.full]
    for batch in held[:2]:
        assert inbox.release(batch)
        fullness.append(inbox.full)
    assert (fullness, room) == ([True, True, False], [0])
    assert not inbox.release(held[0])


def test_dropped_messages_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    room: list[int] = []
    size = batch_of(1).size + BATCH_BYTES
    monkeypatch.setattr(module, "MAX_QUEUED_BYTES", 2 * size)
    inbox: Inbox[Batch] = Inbox(lambda: room.append(len(inbox)))
    for number in range(3):
        inbox.put(batch_of(1, first=number))
    assert inbox.full
    inbox.drop(lambda batch: (1, 9))
    assert (inbox.full, room, inbox._bytes) == (False, [1], size)


def test_a_batch_is_taken_in_parts() -> None:
    told = Told()
    inbox: Inbox[Batch] = Inbox(lambda: None)
    inbox.put(batch_of(5, first=10, told=told, skip=2))
    parts = []
    while (part := inbox.next_batch(2)) is not None:
        parts.append((part.first, len(part), part.payloads()))
        part.consumed()
    assert parts == [(10, 2, [b"x"] * 2), (12, 2, [b"x"] * 2), (14, 1, [b"x"])]
    assert told.consumptions == [(10, 11), (12, 13), (14, 14)]
    assert inbox._bytes == 0


def test_messages_that_were_not_handed_over_wait_again() -> None:
    inbox: Inbox[Batch] = Inbox(lambda: None)
    inbox.put(batch_of(5, first=10))
    inbox.next_batch()
    inbox.handed = 2
    assert inbox.rest == 3
    inbox.return_rest()
    assert (inbox.rest, len(inbox)) == (0, 1)
    rest = inbox.next_batch()
    assert rest is not None
    assert (rest.first, len(rest)) == (12, 3)


def test_an_acknowledgement_settles_no_message_that_was_not_handed_over() -> None:
    """Of the batch in hand, and of nobody else's."""
    told, inbox = Told(), Inbox[Batch](lambda: None)
    inbox.put(batch_of(5, first=10, told=told))
    inbox.next_batch()
    inbox.handed = 2
    inbox.settle_in_hand(Told(), 10, 14)
    inbox.settle_in_hand(told, 20, 24)
    assert told.consumptions == []
    inbox.settle_in_hand(told, 10, 14)
    assert told.consumptions == [(10, 11)]


def test_clearing_drops_what_was_not_handed_over() -> None:
    inbox: Inbox[Batch] = Inbox(lambda: None)
    for _ in range(2):
        inbox.put(batch_of(3))
    inbox.next_batch()
    inbox.handed = 1
    inbox.clear()
    assert (inbox.rest, inbox.next_batch()) == (0, None)


def everything(inbox: Inbox[Batch]) -> list[tuple[int, int]]:
    """The messages that are not consumed."""
    return [(first, stop) for _, first, stop in inbox.unconsumed()]


def test_every_message_in_work_and_every_run_that_waits_is_unconsumed() -> None:
    inbox: Inbox[Batch] = Inbox(lambda: None)
    inbox.held = dict.fromkeys((batch_of(1, 0), batch_of(1, 1)))
    inbox.put(batch_of(2, 2))
    inbox.put(batch_of(2, 4))
    assert everything(inbox) == [(0, 1), (1, 2), (2, 4), (4, 6)]


def test_unconsumed_messages_wait_or_are_in_hand() -> None:
    inbox: Inbox[Batch] = Inbox(lambda: None)
    assert everything(inbox) == []
    for first in (10, 20):
        inbox.put(batch_of(5, first=first))
    batch = inbox.next_batch()
    assert batch is not None
    batch.consumed(2)
    assert everything(inbox) == [(12, 15), (20, 25)]


@pytest.mark.parametrize(
    ("handed", "bounds", "left", "dropped"),
    [
        (5, (0, 99), [(10, 15)], [(20, 25)]),
        (2, (0, 99), [(10, 12)], [(12, 15), (20, 25)]),
        (2, (13, 22), [(10, 13), (22, 25)], [(13, 15), (20, 22)]),
        (2, (11, 13), [(10, 12), (13, 15), (20, 25)], [(12, 13)]),
        (5, (21, 23), [(10, 15), (20, 21), (23, 25)], [(21, 23)]),
        (2, (15, 20), [(10, 15), (20, 25)], []),
        (2, None, [(10, 15), (20, 25)], []),
    ],
)
def test_messages_that_were_handed_over_are_not_dropped(
    handed: int, bounds: tuple[int, int] | None, left: list[tuple[int, int]], dropped: list[tuple[int, int]]
) -> None:
    inbox: Inbox[Batch] = Inbox(lambda: None)
    for first in (10, 20):
        inbox.put(batch_of(5, first=first))
    inbox.next_batch()
    inbox.handed = handed
    gone = [(first, stop) for _, first, stop in inbox.drop(lambda _: bounds)]
    assert (everything(inbox), gone) == (left, dropped)
    assert inbox.current is not None
    assert inbox.current.first == 10


def test_a_batch_reports_each_message_once() -> None:
    told = Told()
    batch = batch_of(5, first=serial.MODULUS - 2, told=told, skip=3)
    assert (len(batch), batch.sequence_number, batch.payloads()) == (5, serial.MODULUS - 2, [b"x"] * 5)
    batch.consumed(0)
    batch.consumed(2)
    batch.consumed(1)
    batch.consumed()
    batch.consumed(9)
    assert told.consumptions == [(serial.MODULUS - 2, serial.MODULUS - 1), (serial.MODULUS, serial.MODULUS + 2)]


def test_a_message_knows_its_number() -> None:
    told = Told()
    message = Message(b"abc", batch_of(5, first=serial.MODULUS - 2, told=told), 3)
    assert (message.sequence_number, message.incarnation, message.recovered, message.otr) == (1, 99, False, False)
    message.consumed()
    assert told.consumptions == [(serial.MODULUS - 2, serial.MODULUS + 1)]
    assert repr(message) == "<Message 'orders' 4294967297 of 1000@store, 3 bytes: b'abc'>"


@pytest.mark.rows("P-346", "P-347", "P-348")
def test_acknowledging_oneself() -> None:
    """A message, a batch, and by a handle any number at any time; wire numbers will do."""
    told = Told()
    batch = batch_of(5, first=serial.MODULUS - 2, told=told)
    message = Message(b"abc", batch, 3)
    message.ack()
    batch.ack()
    handle = message.ack_handle()
    del message, batch
    handle.ack()
    handle.ack(serial.MODULUS - 1)
    handle.ack(0)
    handle.ack(serial.MODULUS + 100)
    top = serial.MODULUS
    assert told.acknowledged == [
        (top - 2, top + 1),
        (top - 2, top + 2),
        (top - 2, top + 1),
        (top - 2, top - 1),
        (top - 2, top),
        (top + 100, top + 100),
        (top - 2, top + 1),
    ]
    assert told.consumptions == []
