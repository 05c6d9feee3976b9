"""Faults planted in the machines, each for the rules that must see it."""

from collections.abc import Callable
from typing import Any

import pytest

from stablecast.core import clients, enlistment, lifeline, lineage
from stablecast.core.acknowledging import Acknowledger
from stablecast.core.delivery import DeliveryWindow
from stablecast.core.effects import Deliver, PersistMessages
from stablecast.core.quorum import Consensus, Quorums
from stablecast.core.registry import Registry
from stablecast.core.repository import Repository
from stablecast.core.requests import RequestWindow
from stablecast.core.resume import receiver_low, resume_point
from stablecast.core.stability import StabilityWindow
from stablecast.core.store import StoreEndpoint
from stablecast.core.window import Window

Plant = Callable[[pytest.MonkeyPatch], None]


def ack_before_sync(patch: pytest.MonkeyPatch) -> None:
    receive = Repository.on_data

    def on_data(self: Repository, data: Any, tickets: Any, now: int, out: list[Any]) -> None:
        before = len(out)
        receive(self, data, tickets, now, out)
        for written in [effect for effect in out[before:] if isinstance(effect, PersistMessages)]:
            self.on_synced(data.incarnation, written.first, written.first + written.count, tickets, now, out)

    patch.setattr(Repository, "on_data", on_data)


def grant_before_sync(patch: pytest.MonkeyPatch) -> None:
    persist = Registry._persist_and_answer

    def answer(self: Registry, record: Any, request: Any, old: bool, out: list[Any]) -> None:
        persist(self, record, request, old, out)
        self.answer(self.tickets.waiting.pop(), 0, out)

    patch.setattr(Registry, "_persist_and_answer", answer)


def quorum_off_by_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Quorums, "stable", lambda self, held, registered: held > 0)


def registered_off_by_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Quorums, "registered", lambda self, mask: mask > 0)


def resume_at_lowest(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lineage, "resume_point", lambda answers, _, quorums: resume_point(answers, Consensus.LOWEST, quorums))


def no_cut_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Window, "cut", lambda self, number, tickets, out: None)


def histories_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lifeline, "divergence", lambda ours, theirs: None)


def deliver_twice(patch: pytest.MonkeyPatch) -> None:
    run = DeliveryWindow.on_run

    def on_run(self: DeliveryWindow, first: int, stop: int, token: int, recovered: bool, out: list[Any]) -> None:
        run(self, first, stop, token, recovered, out)
        last = out[-1] if out else None
        if isinstance(last, Deliver) and last.done:
            last.done = False
            out.append(Deliver(last.token, last.skip, last.count, last.first, last.recovered, True))

    patch.setattr(DeliveryWindow, "on_run", on_run)


def ack_beyond_consumed(patch: pytest.MonkeyPatch) -> None:
    tell = Acknowledger.tell_store
    patch.setattr(
        Acknowledger,
        "tell_store",
        lambda self, registration, number, out: tell(self, registration, number + 1, out),
    )


def reg_id_for_two(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(clients, "_same", lambda client, request: True)


def release_unsettled(patch: pytest.MonkeyPatch) -> None:
    def keep(self: StabilityWindow) -> None:
        while self.runs:
            run = self.runs.popleft()
            self.unsettled_bytes -= run.payload_bytes
            self.kept.append(run)

    patch.setattr(StabilityWindow, "_keep_settled", keep)


def never_recover(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DeliveryWindow, "missing", lambda self: [])


def begin_too_late(patch: pytest.MonkeyPatch) -> None:
    def low(answers: Any, consensus: Consensus, near: int) -> int:
        return receiver_low(answers, consensus, near) + 1

    patch.setattr(enlistment, "receiver_low", low)


def give_up_at_once(patch: pytest.MonkeyPatch) -> None:
    def issue(self: RequestWindow, targets: Any, now: int, out: list[Any]) -> None:
        pick = self._pick(self.window, now)
        if pick is not None:
            pick.since -= self.give_up_ns
            pick.deadline = now
            self.asked.append(pick)

    patch.setattr(RequestWindow, "issue", issue)


def crash_on_keepalive(patch: pytest.MonkeyPatch) -> None:
    def fail(self: StoreEndpoint, message: Any, now: int) -> None:
        raise ValueError("planted")

    patch.setattr(StoreEndpoint, "_on_keepalive", fail)


def forget_a_returning_life(patch: pytest.MonkeyPatch) -> None:
    """Stores take a life that was replaced for a new one, and so does the life itself."""
    patch.setattr(lineage, "overtaken", lambda ours, theirs: False)


PLANTED: list[tuple[Plant, str, int]] = [
    (ack_before_sync, "P1", 0),
    (grant_before_sync, "P1", 0),
    (quorum_off_by_one, "S1", 0),
    (registered_off_by_one, "S2", 5),
    (resume_at_lowest, "S2", 5),
    (no_cut_back, "P1", 0),
    (histories_not_compared, "D1", 12),
    (deliver_twice, "D1", 0),
    (ack_beyond_consumed, "A1", 0),
    (reg_id_for_two, "R1", 2),
    (release_unsettled, "C1", 0),
    (never_recover, "L1", 14),
    (begin_too_late, "D1", 2),
    (give_up_at_once, "S3", 14),
    (forget_a_returning_life, "S3", 155),
    (crash_on_keepalive, "X1", 0),
]
