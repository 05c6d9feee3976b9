"""Faults planted in the machines, each for the rules that must see it."""

from collections.abc import Callable
from typing import Any

import pytest

from stablecast.core import clients, receiver, repository, source
from stablecast.core.acknowledging import Acknowledger
from stablecast.core.delivery import DeliveryWindow
from stablecast.core.effects import Cut, Deliver
from stablecast.core.quorum import Consensus, Group
from stablecast.core.repository import Repository
from stablecast.core.requests import RequestWindow
from stablecast.core.resume import receiver_low, resume_point
from stablecast.core.stability import StabilityWindow
from stablecast.core.store import StoreEndpoint

Plant = Callable[[pytest.MonkeyPatch], None]


def ack_before_sync(patch: pytest.MonkeyPatch) -> None:
    receive = Repository.on_data

    def on_data(self: Repository, data: Any, ticket: int, now: int, out: list[Any]) -> list[tuple[int, int]]:
        parts = receive(self, data, ticket, now, out)
        for first, stop in parts:
            self.on_synced(data.incarnation, first, stop, out)
        return parts

    patch.setattr(Repository, "on_data", on_data)


def grant_before_sync(patch: pytest.MonkeyPatch) -> None:
    persist = StoreEndpoint._persist_and_answer

    def answer(self: StoreEndpoint, record: Any, request: Any, old: bool) -> None:
        persist(self, record, request, old)
        self._answer(self.tickets.waiting.pop())

    patch.setattr(StoreEndpoint, "_persist_and_answer", answer)


def quorum_off_by_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Group, "stable", lambda self, mask: mask.bit_count() >= self.needed - 1)


def registered_off_by_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Group, "registered", lambda self, mask: mask.bit_count() >= self.needed - 1)


def resume_at_lowest(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(source, "resume_point", lambda answers, _, size: resume_point(answers, Consensus.LOWEST, size))


def no_cut_back(patch: pytest.MonkeyPatch) -> None:
    resume = Repository._resume

    def keep(self: Repository, number: int, info: Any, ticket: int, out: list[Any]) -> int:
        held, synced = self.held.copy(), self.synced.copy()
        cut = resume(self, number, info, ticket, out)
        self.held, self.synced = held, synced
        out[:] = [effect for effect in out if not isinstance(effect, Cut)]
        return cut

    patch.setattr(Repository, "_resume", keep)


def histories_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(repository, "divergence", lambda ours, theirs: None)


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

    patch.setattr(receiver, "receiver_low", low)


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
    patch.setattr(source, "overtaken", lambda ours, theirs: False)


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
