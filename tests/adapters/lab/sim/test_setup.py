"""Setups: half of the worlds are plain, the others deviate, in JSON and back, step by step towards the plain one."""

import json
from collections import Counter

import attrs
import pytest

from stablecast.core.protocol.quorum import GroupRules, Intergroup, Intragroup
from stablecast.core.protocol.settings import AckMode
from stablecast.lab.schedules.reduction import plainer
from stablecast.lab.sim.setup import STORES, Habit, Leaving, WorldSetup, draw_setup

MANY = 1000


def test_about_half_of_the_worlds_are_plain_and_the_others_have_everything() -> None:
    drawn = [draw_setup(seed) for seed in range(MANY)]
    plain = sum(attrs.evolve(setup, brief=False, habit=Habit.PROMPT) == WorldSetup() for setup in drawn)
    assert 0.4 < plain / MANY < 0.6
    deviations = Counter(name for setup in drawn for name in setup.as_json())
    assert set(deviations) == set(WorldSetup.__annotations__) - {"documented", "refill", "earlier"}
    assert {setup.leaving for setup in drawn} == set(Leaving)
    assert {setup.habit for setup in drawn} == set(Habit)
    assert {setup.ack_mode for setup in drawn} == set(AckMode)
    assert {setup.rules.sizes for setup in drawn} == {(), (3,), (1, 1, 1), (2, 1), (1, 2)}


def test_what_cannot_go_together_does_not() -> None:
    for setup in map(draw_setup, range(MANY)):
        assert not (setup.proxies and setup.named)
        assert not (setup.paced and (setup.notify or setup.unique))
        assert setup.unique < 2 or setup.leaving is not Leaving.RECEIVER
        assert setup.rules.sizes or not (setup.paced or setup.proxies or setup.unique or setup.turns)
        assert not (setup.turns and (setup.paced or setup.proxies or setup.rules != GroupRules((3,))))
        assert not (setup.memory and setup.size_limit) or setup.notify or setup.paced


def test_setups_survive_json() -> None:
    for setup in map(draw_setup, range(MANY)):
        assert WorldSetup.from_json(json.loads(json.dumps(setup.as_json()))) == setup


@pytest.mark.parametrize("value", [{"moon": 1}, {"rules": [[2], "ALL", "ANY"]}, {"rules": [[3], "SOME", "ANY"]}])
def test_what_is_no_setup_is_refused(value: dict[str, object]) -> None:
    with pytest.raises((TypeError, KeyError, ValueError)):
        WorldSetup.from_json(value)


def test_the_plain_one_is_tried_first_and_then_one_thing_less() -> None:
    setup = WorldSetup(paced=True, lossy=5)
    assert list(plainer(setup)) == [WorldSetup(), WorldSetup(lossy=5), WorldSetup(paced=True)]
    assert list(plainer(WorldSetup(lossy=5))) == [WorldSetup()]
    assert list(plainer(WorldSetup())) == []


def test_every_store_has_a_group() -> None:
    rules = GroupRules((1, 2), Intragroup.ALL_ACTIVE, Intergroup.ALL_ACTIVE)
    assert WorldSetup(rules=rules).groups == [0, 1, 1]
    assert len(WorldSetup().groups) == len(STORES)
    assert WorldSetup(memory=True).volatile
    assert WorldSetup(on_reception=True).volatile
    assert not WorldSetup().volatile
    assert WorldSetup(retained=(0, 1)).limited
    assert not WorldSetup().limited
