"""Quorums of two releases: stores that speak as release 0.1.0 beside new ones, judged by the same checkers."""

import json
from typing import Any

import attrs
import pytest

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.messages import (
    ANY_STORE,
    Register,
    Registered,
    RetransmitRequest,
    Role,
    SourceInfo,
    StoreEntry,
    StoreMemory,
)
from stablecast.lab.schedules.faults import Kind
from stablecast.lab.sim.earlier_release import as_earlier
from stablecast.lab.sim.runner import run
from stablecast.lab.sim.schedule import Schedule, draw, with_earlier
from stablecast.lab.sim.setup import STORES, WorldSetup
from stablecast.lab.sim.store import StoreProcess
from stablecast.transports import codec

GRANT = Registered(Role.SOURCE, 0, 1, 7, 3, False, 0, 4, 1000, 2000, memory=StoreMemory.LOST, known=9)


@pytest.mark.parametrize(("count", "first"), [(1, 0), (2, 20)])
def test_mixed_quorums_keep_every_rule(count: int, first: int) -> None:
    for seed in range(first, first + 10):
        report = run(with_earlier(draw(seed), count))
        assert not report.violations, (seed, report.violations[0])


def test_an_earlier_store_sends_and_learns_nothing_newer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The new stores of the same worlds do, so that the comparison means something."""
    sent: dict[bool, list[Any]] = {True: [], False: []}
    perform = StoreProcess._perform

    def watched(self: StoreProcess, effect: fx.StoreEffect) -> None:
        if isinstance(effect, fx.Send) and isinstance(effect.message, Registered):
            message: Registered = self._known(effect.message)  # type: ignore[assignment]
            sent[self.name in STORES[:1]].append((message.store_generation, message.peers, message.memory))
        perform(self, effect)

    monkeypatch.setattr(StoreProcess, "_perform", watched)
    run(with_earlier(draw(3), 1))
    assert set(sent[True]) == {(0, (), StoreMemory.KEPT)}
    assert all(generation for generation, _, _ in sent[False])
    # The new stores learn of each other by the SRIs of the source. None learns of the earlier one.
    learned = {index for _, peers, _ in sent[False] for index, _, generation in peers if generation}
    assert learned <= {1, 2}


def test_only_what_is_newer_is_left_out() -> None:
    newer = attrs.evolve(GRANT, store_generation=5, peers=((1, "10.0.0.4:14567", 6),))
    assert as_earlier(newer) == attrs.evolve(GRANT, memory=StoreMemory.KEPT, known=None)
    asked = Register(Role.SOURCE, 0, 1, 7, 3, 7, "orders", 0, "10.0.0.1:1", "10.0.0.1:2", 1, 2, known_generation=4)
    assert as_earlier(asked) == attrs.evolve(asked, known_generation=0)
    entry = StoreEntry(0, 0, "10.0.0.4:14567", 7, 1, generation=3)
    info = SourceInfo(3, "orders", 1, 0, 4, "10.0.0.1:1", (1,), False, (entry,), founding=True)
    plain = attrs.evolve(info, founding=False, stores=(attrs.evolve(entry, generation=0),))
    assert as_earlier(info) == plain
    refill = RetransmitRequest(Role.RECEIVER, 7, 50, 1, 0, 9, "store:1", store_index=1)
    assert as_earlier(refill) == attrs.evolve(refill, store_index=ANY_STORE)
    assert len(codec.encode(plain)) < len(codec.encode(info)), "they are options, which 0.1.0 ignores"


def test_no_disk_is_lost_in_the_middle_of_an_upgrade() -> None:
    lossy = draw(5, wipe=True)
    mixed = with_earlier(lossy, 2)
    assert mixed.setup.earlier == STORES[:2]
    disks = {Kind.WIPE, Kind.RESTORE, Kind.ROT}
    assert {fault.kind for fault in lossy.faults} & disks
    assert not {fault.kind for fault in mixed.faults} & disks
    assert Schedule.from_json(json.loads(json.dumps(mixed.as_json()))) == mixed
    assert WorldSetup().refills(STORES[0])
    assert not WorldSetup(earlier=STORES[:1]).refills(STORES[0])
