"""A store that asked in vain has its due if no store has what it asked for, and if none of that was stable."""

from typing import Any

import attrs
import pytest

from stablecast.core.machine import serial
from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.effects import Effect, Send
from stablecast.core.protocol.messages import LateJoinInfo, RetransmitRequest
from stablecast.core.store.refill import SourceRefill
from stablecast.core.store.repository import Repository
from stablecast.core.store.retransmission import RetransmissionService
from stablecast.lab.schedules.faults import Fault, Kind
from stablecast.lab.whole import conductor
from stablecast.lab.whole.copies import StoreCopies, Vain, asked_in_vain, has_its_due, reported_stable
from stablecast.lab.whole.runner import run
from stablecast.lab.whole.schedule import Setup, WorldSchedule
from stablecast.store.store_log import ASKED, VAIN, WHOLE

ASKS = f"store at S: source 5: the store was away or too slow, and lacks 1 message; {ASKED}"
IN_VAIN = f"store at S: source 5: the store was away or too slow, and lacks 1 message of 3..3, and {VAIN}; they are"
ROTTEN = f"store at S: source 5: the disk cannot read 1,002 messages of 7..1200, and {VAIN}; they are"
HAS_ALL = f"store at S: source 5: {WHOLE}, 3 messages came back"
OTHER = ASKS.replace("source 5", "source 6")
ME = ("orders", 11)

LOST_ON_THE_WAY = WorldSchedule(
    1,
    Setup(options=(("transport", "lbtrm"),), pause_ms=10),
    (Fault(1_000, Kind.MUTE, "source", 10), Fault(1_015, Kind.KILL, "source", 500)),
    horizon_ms=2_000,
)
AWAY = WorldSchedule(4, Setup(), (Fault(1_500, Kind.KILL, "store1", 700),))


def holding(reg_id: int, *ranges: tuple[int, int]) -> StoreCopies:
    return StoreCopies({reg_id: RangeSet(list(ranges))}, {reg_id: ME})


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ([], []),
        ([ASKS], []),
        ([ASKS, IN_VAIN], [Vain(5, 1, 3, 3)]),
        ([ASKS, IN_VAIN, HAS_ALL], []),
        ([ASKS, IN_VAIN, HAS_ALL, ASKS], []),
        ([ASKS, IN_VAIN, OTHER], []),
        ([ASKS, IN_VAIN, IN_VAIN], [Vain(5, 1, 3, 3)]),
        ([ASKS, IN_VAIN, ROTTEN], [Vain(5, 1, 3, 3), Vain(5, 1_002, 7, 1_200)]),
    ],
)
def test_a_store_has_asked_in_vain_once_no_question_is_open(output: list[str], found: list[Vain]) -> None:
    assert asked_in_vain(output) == found


@pytest.mark.parametrize(
    ("own", "other", "stable", "due"),
    [
        ([(0, 3), (4, 9)], [(0, 3), (4, 9)], [(0, 3)], True),
        ([(0, 3), (4, 9)], [(0, 9)], [(0, 3)], False),  # Another store has it.
        ([(0, 3), (4, 9)], [(0, 3), (4, 9)], [(0, 4)], False),  # It was reported stable, and no store has it any more.
        ([(0, 3), (4, 9)], [(0, 3), (4, 10)], [(0, 3)], True),  # It does not know yet that its disk cannot read 9.
        ([(0, 9)], [(0, 9)], [(0, 3)], False),  # The store asks for what it holds.
    ],
)
def test_only_what_exists_nowhere_and_was_never_stable_is_excused(
    own: list[tuple[int, int]], other: list[tuple[int, int]], stable: list[tuple[int, int]], due: bool
) -> None:
    promised = {ME: RangeSet(stable)}
    assert has_its_due([Vain(5, 1, 3, 3)], [holding(5, *own)], [holding(8, *other)], promised) is due


def test_a_store_that_counts_too_many_messages_is_not_excused() -> None:
    copies = holding(5, (0, 3), (4, 6), (7, 9))
    assert has_its_due([Vain(5, 2, 3, 6)], [copies], [copies], {})
    assert not has_its_due([Vain(5, 3, 3, 6)], [copies], [copies], {})
    assert not has_its_due([Vain(6, 2, 3, 6)], [copies], [copies], {}), "no source has this RegID"


def test_fragments_that_a_source_reported_stable_are_due_until_it_deregisters() -> None:
    line = {"is": "stable", "owner": "source/1", "topic": "orders", "first": 3, "last": 4, "large": True}
    left = {**line, "owner": "source"}
    assert reported_stable([line, left, {"is": "quiet"}], {("source/1", "orders"): ("orders", 111)}) == {
        ("orders", 111): RangeSet([(3, 5)])
    }


@pytest.fixture
def verdicts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[Vain], bool]]:
    """What a store had asked for in vain at each look of the judge, and whether that was excused."""
    found: list[tuple[list[Vain], bool]] = []

    def judged(vain: list[Vain], *rest: Any) -> bool:
        found.append((vain, has_its_due(vain, *rest)))
        return found[-1][1]

    monkeypatch.setattr(conductor, "has_its_due", judged)
    return found


def hangs(schedule: WorldSchedule, store: str) -> bool:
    (violation,) = run(schedule).violations
    return violation.startswith(f"hang: 90 s after the last fault {store} lacks messages")


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "setup", [{}, {"daemon": True}, {"ids": "regid"}, {"handles": 2, "topics": ("orders", "trades")}, {"named": True}]
)
def test_a_message_that_reached_no_store_keeps_no_world_waiting(
    setup: dict[str, Any], verdicts: list[tuple[list[Vain], bool]]
) -> None:
    """Not in each world is a number lost in the ten milliseconds."""
    for seed in (2, 3):
        kind = attrs.evolve(LOST_ON_THE_WAY.setup, **setup)
        assert run(attrs.evolve(LOST_ON_THE_WAY, seed=seed, setup=kind)).violations == ()
    assert any(excused for _, excused in verdicts)


@pytest.mark.no_cover
def test_a_stable_message_that_no_store_has_any_more_is_found(
    verdicts: list[tuple[list[Vain], bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: the source had reported the message stable that reached no store."""
    assert run(LOST_ON_THE_WAY).violations == ()
    number = verdicts[-1][0][0].first
    verdicts.clear()
    monkeypatch.setattr(conductor, "reported_stable", lambda *_: {ME: RangeSet([(number, number + 1)])})
    assert hangs(LOST_ON_THE_WAY, "store0")
    assert {excused for _, excused in verdicts} == {False}


@pytest.mark.no_cover
def test_stores_that_deny_what_they_have_are_found(
    verdicts: list[tuple[list[Vain], bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: a store denies every refill. The one that was away says that no other store sent them."""
    usual = RetransmissionService.on_request

    def deny(
        self: RetransmissionService,
        request: RetransmitRequest,
        repository: Repository,
        out: list[Effect],
        *,
        refill: bool = False,
    ) -> None:
        if not refill:
            usual(self, request, repository, out)
            return
        end, index = serial.wire(repository.newest + 1), repository.acks.store_index
        out.append(Send(request.reply_to, LateJoinInfo(request.incarnation, request.request, end, end, index)))

    monkeypatch.setattr(RetransmissionService, "on_request", deny)
    assert hangs(AWAY, "store1")
    assert {excused for _, excused in verdicts} == {False}


@pytest.mark.no_cover
def test_a_store_that_asks_for_what_it_got_is_found(
    verdicts: list[tuple[list[Vain], bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: a message that came back counts as lacking all the same."""
    monkeypatch.setattr(SourceRefill, "_drop", lambda *_: 0)
    assert hangs(AWAY, "store1")
    assert {excused for _, excused in verdicts} == {False}
