"""The log of a store."""

from collections import Counter

import attrs
import pytest

from stablecast.core.protocol.events import (
    ClientForgotten,
    Event,
    Farewell,
    LostAtStore,
    MessagesDropped,
    Oddity,
    ProxyEnded,
    ProxyStarted,
    ReleasedUnread,
    RequestsDropped,
    Wakeup,
)
from stablecast.core.protocol.messages import Pace, Refusal, Refused, Registered, Role, Wishes
from stablecast.core.protocol.refusals import difference
from stablecast.runtime.line_budget import LINES
from stablecast.store.journal import JournalError
from stablecast.store.limits import OverLimit
from stablecast.store.log_lines import Severity
from stablecast.store.store_log import EVERY, NAMED_DAMAGES, StoreLog
from tests.core.samples import register
from tests.support.tree import ROOT


class Bench:
    def __init__(self) -> None:
        self.lines: list[tuple[Severity, str, str, str]] = []
        self.oddities: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.teller = StoreLog("a", lambda *line: self.lines.append(line), self.oddities, self.events)

    def codes(self) -> list[str]:
        return [code for _, _, code, _ in self.lines]


@pytest.mark.rows("P-122", "P-680", "P-917")
@pytest.mark.parametrize(
    ("event", "code", "severity"),
    [
        (ReleasedUnread(5, 6, 70), "released-unread", Severity.WARNING),
        (LostAtStore(5, 1, 2), "loss", Severity.WARNING),
        (LostAtStore(5, 1, 2000, burst=True), "burst-loss", Severity.WARNING),
        (ProxyStarted(5), "proxy-started", Severity.INFO),
        (ProxyEnded(5, "it is back"), "proxy-ended", Severity.INFO),
        (MessagesDropped(5, 1, 2), "messages-dropped", Severity.WARNING),
        (RequestsDropped(5), "requests-dropped", Severity.WARNING),
        (Oddity("late-ack", "text"), "late-ack", Severity.INFO),
    ],
)
def test_events_become_lines(event: Event, code: str, severity: Severity) -> None:
    bench = Bench()
    bench.teller.event(event)
    assert [(line[0], line[1], line[2]) for line in bench.lines] == [(severity, "a", code)]


def test_endless_events_are_logged_now_and_then_and_always_counted() -> None:
    bench = Bench()
    for _ in range(EVERY + 1):
        bench.teller.event(Oddity("late-ack", "text"))
        bench.teller.event(RequestsDropped(1))
    assert bench.codes() == ["late-ack", "requests-dropped"] * 2
    assert (bench.oddities["late-ack"], bench.events["RequestsDropped"]) == (EVERY + 1, EVERY + 1)


def test_events_of_no_interest_are_only_counted() -> None:
    bench = Bench()
    bench.teller.event(Wakeup())
    assert (bench.lines, bench.events) == ([], {"Wakeup": 1})


def test_answers_to_registrations_are_told() -> None:
    bench = Bench()
    for old in (False, True):
        bench.teller.granted(Registered(Role.SOURCE, 0, 1, 50, 7, old, 0, 0, 0, 0), "10.0.0.1:14391", "orders")
    refused = Refused(Role.RECEIVER, 0, 1, 51, 7, Refusal.NO_PATTERN)
    asked = register(topic="orders", pace=Pace.RECEIVERS)
    bench.teller.denied(refused, "10.0.0.2:14391", asked)
    bench.teller.denied(refused, "10.0.0.2:14391", None)
    paced = attrs.evolve(refused, role=Role.SOURCE, reason=Refusal.INCOMPATIBLE, permitted=Wishes())
    bench.teller.denied(paced, "10.0.0.2:14391", asked)
    unfit = f"{Refusal.INCOMPATIBLE.text}: {difference(asked, paced)}"
    why = "RegID 51 is refused: no topic pattern of the store matches"
    assert [(code, text) for _, _, code, text in bench.lines] == [
        ("source-registered", "10.0.0.1:14391 for topic 'orders': RegID 50 registered, life 0x7"),
        ("source-registered", "10.0.0.1:14391 for topic 'orders': RegID 50 registered again, life 0x7"),
        ("receiver-refused", f"10.0.0.2:14391 for topic 'orders': {why}"),
        ("receiver-refused", f"10.0.0.2:14391: {why}"),
        ("source-refused", f"10.0.0.2:14391 for topic 'orders': RegID 51 is refused: {unfit}"),
    ]


def test_damage_is_named_at_first_and_counted_always() -> None:
    bench = Bench()
    for number in range(2 * EVERY + 1):
        bench.teller.damaged(5, number, number + 2, JournalError("check the disk"))
    assert bench.oddities == {"damaged": 2 * EVERY + 1}
    assert len(bench.lines) == NAMED_DAMAGES + 2
    assert bench.lines[1] == (
        Severity.ERROR,
        "a",
        "damaged",
        "source 5: 1..3 are not kept any more, 2 such runs so far: check the disk",
    )


CODES = [
    "resources-failed", "ready", "stopped", "restart", "resolution", "disk-failed", "damaged", "daemon-failed",
    "source-registered",
    "receiver-registered", "source-refused", "receiver-refused", "client-deleted", "released-unread", "loss",
    "burst-loss", "messages-dropped", "requests-dropped", "proxy-started", "proxy-ended", "proxy-failed",
]  # fmt: skip


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_in_the_chapter(code: str) -> None:
    assert f"| {code} |" in (ROOT / "spec" / "store_daemon.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("role", "why", "severity", "expired"),
    [
        (Role.SOURCE, Farewell.EXPIRED, Severity.WARNING, (1, 5)),
        (Role.RECEIVER, Farewell.EXPIRED, Severity.WARNING, (0, 0)),
        (Role.SOURCE, Farewell.DEREGISTERED, Severity.INFO, (0, 0)),
    ],
)
def test_messages_that_went_for_their_age_are_a_warning_and_those_of_sources_count(
    role: Role, why: Farewell, severity: Severity, expired: tuple[int, int]
) -> None:
    bench = Bench()
    bench.teller.event(ClientForgotten(role, 4, 3, "orders", 5, 9, 10**9, why))
    ((told, _, code, text),) = bench.lines
    assert (told, code) == (severity, "client-deleted")
    assert ("of source 3" in text) is (role is Role.RECEIVER)
    assert (bench.teller.expired, bench.teller.expired_messages) == expired


def test_a_stranger_that_registers_without_end_does_not_fill_the_log() -> None:
    bench = Bench()
    for number in range(LINES + 5):
        answer = Refused(Role.SOURCE, 0, 1, number, 5, Refusal.INCOMPATIBLE)
        bench.teller.refused(register(reg_id=number), OverLimit("why", answer))
    assert len(bench.lines) == LINES
