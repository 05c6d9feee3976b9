"""High-water marks of idle topics."""

from typing import Any

import pytest

from stablecast.core.errors import MisuseError
from stablecast.core.machine.units import SECOND
from stablecast.transports.reliable import high_water_marks as module
from stablecast.transports.reliable.high_water_marks import TopicMark, TopicMarks, marks, message, room_for
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.headers import Batch, Tsni


def told(octets: bytes) -> list[tuple[int, int]]:
    return list(marks(lbmc.decode(octets)[0])) if octets else []


def played(found: TopicMarks, until: int) -> list[tuple[int, list[tuple[int, int]]]]:
    """Return the announced topics with their instants, in seconds."""
    done = []
    while found.next is not None and found.next <= until:
        now = found.next
        done += [(now // SECOND, pairs) for pairs in [told(found.due_message(now))] if pairs]
    return done


def test_an_idle_topic_is_announced_every_interval_while_it_is_active() -> None:
    """After 5 s, then every 5 s, for 60 s."""
    found = TopicMarks(5 * SECOND, 60 * SECOND, 100)
    found.on_data(7, 41, 0)
    assert played(found, 200 * SECOND) == [(at, [(7, 41)]) for at in range(5, 65, 5)]
    assert found.next is None


def test_active_0_is_for_ever_and_interval_0_never() -> None:
    for_ever = TopicMarks(5 * SECOND, 0, 100)
    for_ever.on_data(7, 41, 0)
    assert len(played(for_ever, 200 * SECOND)) == 40
    never = TopicMarks(0, 60 * SECOND, 100)
    never.on_data(7, 41, 0)
    assert never.next is None


def test_data_puts_a_mark_off() -> None:
    found = TopicMarks(5 * SECOND, 60 * SECOND, 100)
    found.on_data(7, 41, 0)
    found.on_data(7, 42, 3 * SECOND)
    assert found.due_message(4 * SECOND) == b""
    assert played(found, 9 * SECOND) == [(8, [(7, 42)])]


def test_topics_due_at_once_share_a_message_as_far_as_there_is_room() -> None:
    found = TopicMarks(5 * SECOND, 60 * SECOND, 40)
    for topic in range(50):
        found.on_data(topic, topic, 0)
    first, second = found.due_message(5 * SECOND), found.due_message(5 * SECOND)
    assert told(first) + told(second) == [(topic, topic) for topic in range(50)]
    assert len(told(first)) == 40
    assert found.next == 10 * SECOND


def test_many_topics_are_looked_through_once_for_all_their_messages() -> None:
    """Thousands of idle topics share a session, and a message has room for 150."""
    looks = list[object]()

    class Looked(dict[int, TopicMark]):
        def items(self) -> Any:
            looks.append(self)
            return super().items()

    found = TopicMarks(SECOND, 0, 3, Looked())
    for topic in range(100):
        found.on_data(topic, 41, 0)
    messages = []
    while one := found.due_message(SECOND):
        messages.append(told(one))
    assert [topic for part in messages for topic, _ in part] == list(range(100))
    assert len(messages) == 34
    assert len(looks) == 1


def test_a_topic_that_has_data_or_is_closed_meanwhile_is_left_out() -> None:
    found = TopicMarks(SECOND, 0, 1)
    for topic in range(4):
        found.on_data(topic, 41, 0)
    assert told(found.due_message(SECOND)) == [(0, 41)]
    found.on_data(1, 42, SECOND)
    found.forget(2)
    assert told(found.due_message(SECOND)) == [(3, 41)]
    assert not found.due_message(SECOND)


def test_a_closed_topic_is_not_announced() -> None:
    found = TopicMarks(5 * SECOND, 60 * SECOND, 40)
    found.on_data(1, 1, 0)
    found.on_data(2, 2, 0)
    found.forget(1)
    found.forget(99)
    assert told(found.due_message(5 * SECOND)) == [(2, 2)]


def test_a_topic_too_many_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TOPICS", 1)
    found = TopicMarks(5 * SECOND, 60 * SECOND, 40)
    found.on_data(1, 1, 0)
    found.on_data(1, 2, 0)
    with pytest.raises(MisuseError, match="at most 1 topics"):
        found.on_data(2, 2, 0)


@pytest.mark.parametrize("room", [480, 1400, 8000])
def test_as_many_as_there_is_room_for_fit(room: int) -> None:
    count = room_for(room)
    assert room * 0.8 < len(message([(n, n) for n in range(count)])) <= room


def test_other_headers_hold_no_marks() -> None:
    batch = lbmc.Message(lbmc.MessageKind.DATA, 1, 1, (Batch(flags=Batch.START), Tsni.of((3, 4))), b"x")
    assert list(marks(batch)) == [(3, 4)]
