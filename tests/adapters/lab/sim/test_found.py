"""Schedules that the simulator found and shrank: each broke a rule once, and must never again."""

import json
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.machine.serial import FOREVER
from stablecast.core.protocol.generations import NONE
from stablecast.core.subscription.consumption import Consumption
from stablecast.core.subscription.succession import Ranges, Succession
from stablecast.lab.sim.runner import run
from stablecast.lab.sim.schedule import Schedule

FOUND: Final = {
    entry["name"]: Schedule.from_json(entry)
    for entry in map(json.loads, Path(__file__).with_name("found.jsonl").read_text(encoding="utf-8").splitlines())
}
"""Each line of the file has a name, the defect with its rule, and the schedule as `stablecast sim` wrote it."""


@pytest.mark.no_cover
@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_stays_mended(name: str) -> None:
    assert run(FOUND[name]).violations == ()


NEVER_AGAIN = {"client.session.BEFORE_DELIVERY": ()}
"""The fault that a life which was given up for an earlier one is not followed again."""
STAYS_REPLACED = {"core.subscription.subscription.Followed.comes_back": lambda *_: False}
"""The fault that a replaced life which comes back is not followed."""
NO_JUDGE_OF_LIVES = {"lab.sim.receiver_checkers.ReceiverCheckers.on_handed": lambda *_: None}
NO_MARKS = {"core.store.grants.first_lacking": lambda _: None, "core.store.grants.remembers": lambda _: True}
"""The fault that no receiver hears what a store lacks, or may have forgotten."""


EARLY_REPORTS: dict[str, Any] = {
    "core.registration.store_registration.Registration._asked_late": lambda *_: False,
    "core.registration.store_registration.Registration._tries": property(lambda _: 1),
}
"""A client that had not run called its stores silent, and asked them anew."""


def parted_alone(self: Succession, life: int) -> int:
    """Drop only what this life itself uses again."""
    return FOREVER if life == self.machine.config.incarnation else self.machine.arrivals.resume_point


def last_is_right(self: Consumption, reported: dict[int, Ranges]) -> None:
    """Believe the session that ends last."""
    self.lives |= {life: RangeSet(ranges) for life, ranges in reported.items()}


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("name", "planted", "rule"),
    [
        (
            "proxy_that_is_late",
            # Empty disks are part of the run, and today they hold the lives up in which the fault showed.
            {
                "core.subscription.subscription.outranks": lambda *_: False,
                "core.store.registry.Registry.forget": lambda *_: None,
                # The stores of that time counted no generations, and told nobody of an empty disk.
                "lab.sim.store.StoreProcess._earlier": False,
                "lab.sim.store.following": lambda *_: NONE,
                # Nor did they deny requests, or count acknowledgements of the life before, which moves what follows.
                "core.store.retransmission.void_from": lambda *_: None,
                "core.store.source_history.SourceHistory.last_of": lambda *_: None,
                # An announced end of the source leads away from the proxy, too.
                "transports.resolution.udp.settings.AdvertiseOptions.at_end": property(
                    lambda _: False, lambda *_: None
                ),
            }
            | NEVER_AGAIN
            | NO_MARKS
            | EARLY_REPORTS,
            "L1",
        ),
        (
            "used_again_by_a_life_that_nobody_heard_of",
            {"core.subscription.succession.Succession.parting": parted_alone},
            "D1",
        ),
        (
            "consumed_while_a_life_has_another_store",
            EARLY_REPORTS | {"core.subscription.consumption.Consumption.add": last_is_right},
            "D1",
        ),
        ("turn_behind_a_return", {"core.subscription.succession.Succession.low": lambda _, __, wish: wish}, "D1"),
        ("turn_behind_a_cut", {"core.subscription.succession.Succession.low": lambda _, __, wish: wish}, "D1"),
        ("late_life_without_a_past", NEVER_AGAIN, "L1"),
        ("replaced_life_is_followed_again", STAYS_REPLACED, "D1"),
        ("replaced_life_is_followed_again", STAYS_REPLACED | NO_JUDGE_OF_LIVES, "L1"),
        ("life_that_returns_unheard_of", STAYS_REPLACED, "D1"),
        (
            "confirmation_before_a_loss",
            {"core.receiver.delivery_window.DeliveryWindow.confirmed": lambda _, start, stop: [(start, stop)]},
            "A1",
        ),
    ],
)
def test_what_was_mended_is_found_without_it(
    monkeypatch: pytest.MonkeyPatch, name: str, planted: dict[str, Any], rule: str
) -> None:
    for what, fault in planted.items():
        monkeypatch.setattr(f"stablecast.{what}", fault)
    # Today a refill brings back what some of these worlds lost.
    found = attrs.evolve(FOUND[name], setup=attrs.evolve(FOUND[name].setup, refill=False))
    assert {violation.rule for violation in run(found).violations} == {rule}


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("name", "planted", "rule"),
    [
        ("announced_behind_the_source", "core.store.source_history.SourceHistory.is_behind", "S3"),
        ("announced_behind_the_source", "core.source.SourceEndpoint._is_behind", "L1"),
        ("refill_into_a_full_memory", "core.store.repository.Repository.lack", "S3"),
        ("life_before_a_copy", "lab.sim.facts.Facts.on_claimed", "S3"),
        ("overtaken_beside_the_right_one", "core.store.proxy_election.Election.on_over", "E8"),
    ],
)
def test_what_was_mended_beside_a_refill_is_found_without_it(
    monkeypatch: pytest.MonkeyPatch, name: str, planted: str, rule: str
) -> None:
    for place, behaviour in ({planted: lambda *_: False} | EARLY_REPORTS).items():
        monkeypatch.setattr(f"stablecast.{place}", behaviour)
    assert rule in {violation.rule for violation in run(FOUND[name]).violations}


@pytest.mark.no_cover
def test_a_late_request_takes_a_reg_id_if_no_life_ends_at_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stablecast.core.store.clients._ended", lambda *_: ())
    found = run(FOUND["reg_id_of_a_life_that_never_sent"])
    assert {violation.rule for violation in found.violations} == {"R1"}
