"""A recorded source under its own configuration does what it did; under another one what that says."""

from pathlib import Path

import attrs
import pytest

from stablecast.config.options import OptionError
from stablecast.core.protocol.inputs import Sent
from stablecast.evidence.trace.tools.analysis import analyze
from stablecast.evidence.whatif.replay import Recording, WhatIfError, Wish, _wished, configured, recordings, replay
from tests.adapters.evidence.trace.traced import FIRST_LIFE, TracedWorld, play, tapping


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("world")
    play(TracedWorld(wrap=tapping(directory, kill=False)))
    return directory


@pytest.fixture(scope="module")
def recording(world: Path) -> Recording:
    """Return the first life: 16 runs of 5 messages at three stores, one of which dies and returns."""
    return next(one for one in recordings([world]) if one.config.incarnation == FIRST_LIFE)


def test_as_recorded_it_does_what_it_did(world: Path, recording: Recording) -> None:
    outcome = replay(recording, recording.config)
    assert (outcome.messages, outcome.sent, outcome.stable) == (80, 80, 80)
    assert outcome.waits == {0: 80}
    measured = next(one for one in analyze([recording.path]))
    assert outcome.latencies == measured.latencies["send to stable"].spans


def test_a_recording_has_what_came_from_outside(recording: Recording) -> None:
    assert sum(wish.count for wish in recording.wishes) == 80
    assert {answer.store_index for wish in recording.wishes for answer in wish.answers} == {0, 1, 2}
    assert all(answer.delay > 0 for wish in recording.wishes for answer in wish.answers)
    assert recording.others[0][0] <= recording.wishes[0].time <= recording.ended


def test_a_smaller_flight_exposes_less_and_makes_messages_wait(recording: Recording) -> None:
    free, bound = (replay(recording, configured(recording, {"ume_flight_size": size})) for size in (1000, 2))
    assert bound.most_exposed == 2 < free.most_exposed
    assert bound.stable == free.stable == 80
    assert max(bound.waits) > max(free.waits) == 0
    assert 0 < bound.exposure < free.exposure


@pytest.mark.rows("P-313")
def test_a_message_that_was_cut_counts_once_in_the_flight(recording: Recording) -> None:
    cut = attrs.evolve(recording, wishes=tuple(attrs.evolve(wish, cut=True) for wish in recording.wishes))
    outcome = replay(cut, configured(recording, {"ume_flight_size": 2}))
    assert (outcome.sent, outcome.stable, outcome.waits) == (80, 80, {0: 80})


def test_a_run_is_divided_at_messages_that_were_cut() -> None:
    event = Sent(10, 10, 1000, ((12, 14), (15, 18)))
    wishes = list(_wished(7, event))
    assert wishes == [
        Wish(7, 10, 2, 200),
        Wish(7, 12, 3, 300, cut=True),
        Wish(7, 15, 4, 400, cut=True),
        Wish(7, 19, 1, 100),
    ]
    assert list(_wished(7, Sent(0, 3, 100))) == [Wish(7, 0, 3, 100)]


def test_all_stores_of_a_group_take_longer_than_a_quorum(recording: Recording) -> None:
    everyone = {"ume_retention_intragroup_stability_behavior": "all"}
    quorum, strict = replay(recording, recording.config), replay(recording, configured(recording, everyone))
    assert max(strict.latencies) > max(quorum.latencies)
    assert strict.exposure > quorum.exposure


def test_an_option_that_there_is_not_is_told(recording: Recording) -> None:
    with pytest.raises(OptionError, match="ume_flight_size"):
        configured(recording, {"ume_flight_sise": 2})


def test_traces_of_others_are_no_recordings(world: Path) -> None:
    with pytest.raises(WhatIfError, match="none of these is the trace of a source"):
        recordings(list(world.glob("store-*.sct")))
