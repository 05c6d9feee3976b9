"""The receiver's side of a session: deliveries, requests, losses."""

from stablecast.core.machine import serial
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.reliable.effects import DatagramsLost, LossReason, Received
from stablecast.transports.reliable.high_water_marks import message
from stablecast.transports.reliable.receiver import SessionReception
from stablecast.transports.reliable.settings import LBTRU_RECEIVER, ReceiverSettings
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.headers import Fragment
from tests.transports.reliable import invariants
from tests.transports.reliable.network import block

CONTROL = lbmc.encode(lbmc.Message(lbmc.MessageKind.CONTROL, headers=(Fragment(first_sqn=0, offset=0, len=1),)))


class Driven:
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


def test_a_nak_fits_a_frame() -> None:
    driven = Driven()
    driven.hear((0, block(7, 0, 1)), (1001, block(7, 1, 1)))
    assert [len(numbers) for numbers in driven.naks] == [340, 340, 320]
    found = driven.session.statistics
    assert (found.nak_pckts_sent, found.naks_sent) == (3, 1000)


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
