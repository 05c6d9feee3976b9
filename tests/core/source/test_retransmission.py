"""Retransmission: the answers of a source to requests for messages that it has sent before."""

import pytest

from stablecast.core.machine.serial import MODULUS, wire
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.messages import LateJoinInfo, LateJoinRequest, RetransmitRequest, Role
from stablecast.core.protocol.quorum import GroupRules, Quorums
from stablecast.core.protocol.settings import Retention
from stablecast.core.source.retransmission import resend, send_range
from stablecast.core.source.stability import StabilityWindow
from tests.core.samples import LIFE

FIRST = MODULUS - 3


def sent() -> StabilityWindow:
    """Ten messages across the wrap, the first two of which are gone."""
    window = StabilityWindow.create(Quorums.of(GroupRules((1,)), [0]), Retention(), 1)
    window.begin(FIRST)
    for count in (2, 8):
        window.sent(count, 0, [])
    window.on_acked(0, FIRST, FIRST + 2, [])
    return window


def request(first: int, last: int, by: Role = Role.STORE) -> RetransmitRequest:
    return RetransmitRequest(by, LIFE, 0, 1, wire(first), wire(last), "asker:1")


@pytest.mark.rows("P-317")
@pytest.mark.parametrize(
    ("asked", "given"),
    [((0, 4), (2, 4)), ((2, 4), (2, 4)), ((3, 3), (3, 3)), ((8, 20), (8, 9)), ((0, 1), None), ((10, 11), None)],
)
def test_retained_messages_are_sent_again(asked: tuple[int, int], given: tuple[int, int] | None) -> None:
    """C-26."""
    out: list[fx.Effect] = []
    resend(request(FIRST + asked[0], FIRST + asked[1]), sent(), True, out)
    expected: list[fx.Effect] = [fx.Resend("asker:1", LIFE, FIRST + given[0], FIRST + given[1])] if given else []
    gone = fx.Send("asker:1", LateJoinInfo(LIFE, 1, wire(FIRST + 2), wire(FIRST + 9)))
    assert out == [*expected, *([gone] if asked[0] < 2 else [])]


@pytest.mark.rows("P-411")
def test_without_late_join_receivers_get_nothing_and_stores_do() -> None:
    for by, late_join, served in [
        (Role.RECEIVER, False, False),
        (Role.RECEIVER, True, True),
        (Role.STORE, False, True),
    ]:
        out: list[fx.Effect] = []
        resend(request(FIRST + 2, FIRST + 4, by), sent(), late_join, out)
        assert bool(out) is served


@pytest.mark.rows("P-411", "P-503")
@pytest.mark.parametrize(
    ("asker", "late_join", "low"), [("store:1", False, 2), ("receiver:1", True, 2), ("receiver:1", False, 10)]
)
def test_the_retained_range_is_answered(asker: str, late_join: bool, low: int) -> None:
    """An empty range where there is nothing for the asker."""
    out: list[fx.Effect] = []
    send_range(LateJoinRequest(LIFE, 9, asker), sent(), ["store:1"], late_join, out)
    assert out == [fx.Send(asker, LateJoinInfo(LIFE, 9, wire(FIRST + low), wire(FIRST + 9)))]
