"""The receiver's side of a session: deliveries, requests, losses."""

import pytest

from stablecast.core.machine import serial
from stablecast.core.machine.units import SECOND
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.reliable import topics as topics_module
from stablecast.transports.reliable.effects import DatagramsLost, LossReason, Received, TopicLost
from stablecast.transports.reliable.high_water_marks import message
from stablecast.transports.reliable.receiver import SessionReception
from stablecast.transports.reliable.settings import LBTRU_RECEIVER, ReceiverSettings
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.headers import Fragment
from tests.transports.reliable import invariants
from tests.transports.reliable.network import block

CONTROL = lbmc.encode(lbmc.Message(lbmc.MessageKind.CONTROL, headers=(Fragment(first_sqn=0, offset=0, len=1),)))
PIECE = lbmc.encode(lbmc.Message(lbmc.MessageKind.DATA, 7, 5, (Fragment(first_sqn=5, offset=0, len=9),), b"piece"))


class Driven:
    """A session that requests at once."""

    def __init__(self, settings: ReceiverSettings = LBTRU_RECEIVER) -> None:
        self.session = SessionReception.of(settings, 1)

    def hear(self, *datagrams: tuple[int, bytes], now: int = 0, again: bool = False, trail: int = 0) -> list[object]:
        for number, payload in datagrams:
            self.session.on_data(number, trail, payload, again, now)
        self.naks = self.session.settle(now)
        invariants.check(self.session)
        return self.take()

    def take(self) -> list[object]:
        effects, self.session.out = self.session.out, []
        return list(effects)


def runs(effects: list[object]) -> list[tuple[int, int, int]]:
    """Return topic, first number and count of the delivered runs."""
    items = [item for effect in effects if isinstance(effect, Received) for item in effect.items]
    return [(item.topic_index, item.first, item.count) for item in items if isinstance(item, Run)]


def test_messages_of_one_read_are_delivered_together_and_runs_are_joined() -> None:
    driven = Driven()
    effects = driven.hear((0, block(7, 0, 3)), (1, block(7, 3, 2)), (2, block(8, 0, 1)))
    assert len(effects) == 1
    assert runs(effects) == [(7, 0, 5), (8, 0, 1)]
    assert driven.session.statistics.lbmc_msgs_rcved == 6


def test_a_series_is_delivered_like_its_datagrams_and_states_the_trail() -> None:
    driven, twin = Driven(), Driven()
    assert driven.session.expected() is None
    for one in (driven, twin):
        one.hear((serial.MODULUS - 1, block(7, 0, 1)), (1, block(7, 2, 1)))
    expected = driven.session.expected()
    assert expected == 2
    driven.session.on_series([block(7, 3, 1), block(7, 4, 1)], 1)
    effects = driven.hear()
    assert effects == twin.hear((expected, block(7, 3, 1)), (expected + 1, block(7, 4, 1)), trail=1)
    assert [effect.reason for effect in effects if isinstance(effect, DatagramsLost)] == [LossReason.WINDOW]
    assert Driven(ReceiverSettings(drop_permille=1)).session.expected() is None


def test_datagrams_go_up_in_the_order_of_arrival_each_once() -> None:
    driven = Driven()
    assert runs(driven.hear((0, block(7, 0, 1)), (2, block(7, 2, 1)))) == [(7, 0, 1), (7, 2, 1)]
    assert driven.naks == [(1,)]
    assert runs(driven.hear((1, block(7, 1, 1)), (1, block(7, 1, 1)), now=1, again=True)) == [(7, 1, 1)]
    assert driven.hear((2, block(7, 2, 1)), now=2) == []


def test_a_session_begins_with_its_first_datagram() -> None:
    driven = Driven()
    driven.hear((50, block(7, 90, 1)))
    driven.hear((49, block(7, 89, 1)))
    assert driven.naks == []
    assert driven.session.statistics.duplicate_data == 1
    other = Driven()
    other.session.on_standing(50, 0, 0)
    other.hear((52, block(7, 0, 1)))
    assert other.naks == [(51,)]


def test_a_retransmission_cannot_begin_a_session() -> None:
    driven = Driven()
    assert driven.hear((5, block(7, 5, 1)), again=True) == []
    assert driven.session.statistics.dgrams_dropped_other == 1
    driven.session.on_refused(0, 1, (5,), 0)
    assert driven.session.gaps.high is None


def test_a_session_message_reveals_a_lost_tail() -> None:
    driven = Driven()
    driven.hear((0, block(7, 0, 1)))
    driven.session.on_standing(2, 2, 5)
    assert driven.session.settle(5) == [(2,)]
    assert driven.take() == [DatagramsLost(1, 1, LossReason.WINDOW)]
    driven.session.on_standing(1, 0, 6)
    assert driven.session.next_timeout() is not None
    driven.hear((2, block(7, 2, 1)), again=True)


def test_an_ncf_silences_what_it_names() -> None:
    driven = Driven()
    driven.hear((0, block(7, 0, 1)), (2, block(7, 2, 1)))
    driven.session.on_refused(0, 1, (1,), 0)
    due = driven.session.next_timeout()
    assert due is not None
    driven.session.topics.look_at = None
    assert driven.session.next_timeout() == SECOND
    assert driven.session.settle(SECOND) == [(1,)]
    assert driven.session.statistics.ncfs_ignored == 1


def test_a_nak_fits_a_frame() -> None:
    driven = Driven()
    driven.hear((0, block(7, 0, 1)), (1001, block(7, 1, 1)))
    assert [len(numbers) for numbers in driven.naks] == [340, 340, 320]
    found = driven.session.statistics
    assert (found.nak_pckts_sent, found.naks_sent) == (3, 1000)


def test_datagrams_and_topics_are_given_up_each_for_itself() -> None:
    """Worked example of the reference: the datagram after the generation interval, the topic after its mark."""
    driven = Driven()
    driven.hear((0, block(7, 0, 1)))
    driven.session.on_standing(1, 0, SECOND // 5)
    driven.session.settle(SECOND // 5)
    driven.hear((2, message([(7, 1)])), now=5 * SECOND)
    instants = []
    while (due := driven.session.next_timeout()) is not None:
        driven.session.settle(due)
        instants += [(due / SECOND, effect) for effect in driven.take()]
    assert instants == [(10.2, DatagramsLost(1, 1, LossReason.TIME)), (15.0, TopicLost(7, 1, 1))]


def test_pieces_and_control_messages_go_up_as_they_are() -> None:
    driven = Driven()
    driven.hear((0, block(7, 3, 1)))
    (effect,) = driven.hear((1, CONTROL + PIECE))
    assert isinstance(effect, Received)
    assert [item.kind for item in effect.items] == [lbmc.MessageKind.CONTROL, lbmc.MessageKind.DATA]
    assert driven.session.topics.topics[7].missing.ranges == [(4, 5)]


def test_marks_do_not_go_up() -> None:
    """Marks belong to the session. An application's end would count them as malformed."""
    driven = Driven()
    driven.hear((0, block(7, 0, 1)))
    assert driven.hear((1, message([(7, 0), (8, 4)]))) == []
    assert driven.session.statistics.lbmc_msgs_rcved == 2
    both = driven.hear((2, message([(7, 0)]) + CONTROL))
    assert [len(effect.items) for effect in both if isinstance(effect, Received)] == [1]


def test_a_broken_datagram_does_not_spoil_its_neighbours() -> None:
    driven = Driven()
    whole = block(7, 0, 1)
    effects = driven.hear((0, whole), (1, whole[:-1]), (2, b"\xff\xff\xff\xff"), (3, block(7, 1, 1)))
    assert runs(effects) == [(7, 0, 1), (7, 1, 1)]
    assert driven.session.statistics.dgrams_dropped_other == 2


def test_messages_of_a_topic_too_many_do_not_go_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics_module, "MAX_TOPICS", 1)
    driven = Driven()
    assert runs(driven.hear((0, block(7, 0, 1) + block(8, 0, 1)))) == [(7, 0, 1)]
    assert driven.hear((1, block(8, 1, 1))) == []


def test_artificial_loss_is_of_the_rate_asked_for() -> None:
    driven = Driven(ReceiverSettings(drop_permille=100))
    dropped = sum(driven.session.drops() for _ in range(2000))
    assert 150 < dropped < 250
    assert driven.session.statistics.dgrams_dropped_test == dropped
    assert not Driven().session.drops()


def test_at_the_end_what_topics_lack_is_lost() -> None:
    driven = Driven()
    driven.hear((0, block(7, 0, 1)), (2, block(7, 4, 1)))
    driven.session.end()
    assert driven.take() == [TopicLost(7, 1, 3)]
    assert driven.session.next_timeout() is None


def test_the_numbers_of_a_session_wrap() -> None:
    driven = Driven()
    last = serial.MODULUS - 1
    driven.hear((last, block(7, 0, 1)), (1, block(7, 1, 1)), trail=last)
    assert driven.naks == [(0,)]
    driven.session.on_refused(last, 1, (0,), 0)
    driven.hear((0, block(7, 2, 1)), trail=0)
    assert not driven.session.gaps.missing
