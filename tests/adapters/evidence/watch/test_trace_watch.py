"""A watch of running traces names planted faults in time and nothing else, and goes on where an earlier one stopped.

`python -m tests.adapters.evidence.watch` is the long form, with every planted fault.
"""

import shutil
from pathlib import Path

import attrs
import pytest

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.messages import Role
from stablecast.evidence.trace import container
from stablecast.evidence.trace.cross_ground import Told, Witness
from stablecast.evidence.trace.facts import Fact
from stablecast.evidence.watch import fact_ledger, trace_watch, watch_state
from stablecast.evidence.watch.alarms import MAX_NAMED, AlarmBound, AlarmKind, WatchAlarm
from stablecast.evidence.watch.fact_ledger import FactLedger, Standing
from stablecast.evidence.watch.trace_watch import TraceWatch
from stablecast.lab.sim.runner import run
from stablecast.lab.sim.schedule import draw
from tests.adapters.evidence.trace.cross_faults import CROSS_FAULTS, put_world_together, take_world_apart
from tests.adapters.evidence.trace.planted_faults import LIES
from tests.adapters.evidence.trace.test_trace_judge import CORRUPTIONS
from tests.adapters.evidence.trace.traced import first_trace, put_together, take_apart
from tests.adapters.evidence.watch.__main__ import LIMIT_NS, lies
from tests.adapters.evidence.watch.played_traces import PlayedWatch, played

SAMPLE = (
    "calls more stable than is",
    "begins with numbers of an earlier life",
    "delivers a run twice",
    "writes less than it acknowledges",
    "keeps a proxy for a source that is back",
)
"""Lies of each role, some of which only replay finds."""


UNDECIDED = "undecided"


def violations(outcome: PlayedWatch) -> list[WatchAlarm]:
    return [alarm for _, alarm in outcome.named if alarm.kind is not AlarmKind.NOTE]


def test_lies_are_named_in_time(tmp_path: Path) -> None:
    found = [*lies([one for one in LIES if one.name in SAMPLE], tmp_path)]
    assert len(found) == len(SAMPLE)
    assert [one for one in found if one.delay_ns is None or one.delay_ns > LIMIT_NS] == []


@pytest.mark.parametrize("fault", CROSS_FAULTS[:4], ids=lambda fault: fault.__name__)
def test_faults_between_traces_are_named_in_time(whole_world: Path, tmp_path: Path, fault: object) -> None:
    world = take_world_apart(whole_world)
    role, record, rule = fault(world)  # type: ignore[operator] # one of `CROSS_FAULTS`
    put_world_together(tmp_path / "world", world)
    outcome = played(tmp_path / "world", tmp_path / "played")
    delay = outcome.delay(f"{role}-1-{[*world].index(role)}.sct", record, rule)
    assert delay is not None
    assert delay <= LIMIT_NS


@pytest.mark.parametrize("seed", range(2))
def test_a_clean_world_has_no_alarm(tmp_path: Path, seed: int) -> None:
    assert run(draw(seed), tmp_path / "world").violations == ()
    assert violations(played(tmp_path / "world", tmp_path / "played")) == []


def test_killed_endpoints_are_no_alarm(torn: Path, tmp_path: Path) -> None:
    assert violations(played(torn, tmp_path / "played")) == []


def growing_copy(world: Path, into: Path, share: float) -> None:
    """Write the first part of each trace, cut anywhere."""
    into.mkdir(exist_ok=True)
    for path in world.glob("*.sct"):
        octets = path.read_bytes()
        (into / path.name).write_bytes(octets[: int(len(octets) * share)])


def test_a_watch_goes_on_where_another_one_stopped(whole_world: Path, tmp_path: Path) -> None:
    """Each violation is reported once: by the first watch, by the second one, or by the third one."""
    world = take_world_apart(whole_world)
    for fault in CROSS_FAULTS[:6]:
        fault(world)
    put_world_together(tmp_path / "world", world)
    at_once = TraceWatch([tmp_path / "world"], whole=True)
    expected = [alarm for now in range(40) for alarm in at_once.poll(now * SECOND)]
    state, growing, found = tmp_path / "state.json", tmp_path / "growing", list[WatchAlarm]()
    records = []
    for turn, share in enumerate((0.3, 0.62, 1.0)):
        growing_copy(tmp_path / "world", growing, share)
        watch = TraceWatch([growing], whole=True)
        watch_state.read(state, watch, turn * 100 * SECOND)
        for now in range(turn * 100, turn * 100 + (40 if share == 1 else 1)):
            found += watch.poll(now * SECOND)
        watch_state.write(state, watch, {})
        records.append(watch.records)

    def keys(alarms: list[WatchAlarm]) -> list[tuple[str, int, str]]:
        return sorted((one.file.name, one.place, one.rule) for one in alarms if one.kind is AlarmKind.VIOLATION)

    assert keys(found) == keys(expected)
    assert len(keys(found)) >= 6
    assert all(records)


@pytest.mark.parametrize("text", ["", "[]", '{"version": 0}', '{"version": 1}', "\udcff"])
def test_a_file_that_is_no_state_is_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(watch_state.StateError, match=r"state\.json"):
        watch_state.read(path, TraceWatch([tmp_path]), 0)


def test_traces_that_run_are_judged_from_now_on(whole_world: Path, tmp_path: Path) -> None:
    """The watch claims nothing about earlier records."""
    growing_copy(whole_world, tmp_path / "world", 0.5)
    watch = TraceWatch([tmp_path / "world"])
    alarms = watch.poll(0)
    growing_copy(whole_world, tmp_path / "world", 1)
    alarms += [alarm for now in range(1, 40) for alarm in watch.poll(now * SECOND)]
    assert [one for one in alarms if one.kind is not AlarmKind.NOTE] == []
    total = TraceWatch([whole_world], whole=True)
    total.poll(0)
    assert 0 < watch.records < total.records


def test_a_damaged_trace_is_reported_once(traces: Path, tmp_path: Path) -> None:
    octets = first_trace(traces, "source").read_bytes()
    (tmp_path / "source-x-1-0.sct").write_bytes(octets[:-9] + bytes(9))
    watch = TraceWatch([tmp_path], whole=True)
    found = [alarm for now in range(3) for alarm in watch.poll(now * SECOND)]
    assert [one.kind for one in found if one.kind is not AlarmKind.NOTE] == [AlarmKind.DAMAGE]


@pytest.mark.parametrize("step", [250, 3000])
@pytest.mark.parametrize("corrupt", ["deny_an_ack", "change_the_end_of_a_frame", "invent_an_effect"])
def test_a_fault_in_a_file_that_is_being_copied_is_no_damage(
    traces: Path, tmp_path: Path, corrupt: str, step: int
) -> None:
    """The rest of the frame is missing when a record is doubted, and the frame is read again."""
    frames = take_apart(first_trace(traces, "source"))
    expected = CORRUPTIONS["source"][corrupt](frames)
    octets = put_together(tmp_path / "whole", frames).read_bytes()
    copy = tmp_path / "source-x-1-0.sct"
    watch, found = TraceWatch([copy], whole=True), list[WatchAlarm]()
    for now, end in enumerate(range(step, len(octets) + step, step)):
        copy.write_bytes(octets[:end])
        found += watch.poll(now * SECOND)
    assert expected in [(one.place, one.rule) for one in found]
    assert {one.kind for one in found} <= {AlarmKind.VIOLATION, AlarmKind.NOTE}


def test_a_trace_of_several_parts_is_followed_through_them(whole_world: Path, tmp_path: Path) -> None:
    """Cut a trace between its frames into parts, as its recorder would."""
    original = first_trace(whole_world, "source")
    places, octets = container.offsets(original), original.read_bytes()
    middle = places[len(places) // 2]
    (tmp_path / "source-x-1-0.sct").write_bytes(octets[:middle])
    watch = TraceWatch([tmp_path], whole=True)
    watch.poll(0)
    (tmp_path / "source-x-1-0.1.sct").write_bytes(octets[middle:])
    alarms = watch.poll(SECOND)
    whole = TraceWatch([original], whole=True)
    whole.poll(0)
    assert watch.records == whole.records
    assert [one for one in alarms if one.rule != UNDECIDED] == []


def test_parts_that_were_deleted_are_reported(whole_world: Path, tmp_path: Path) -> None:
    original = first_trace(whole_world, "source")
    places, octets = container.offsets(original), original.read_bytes()
    middle = places[len(places) // 2]
    first = tmp_path / "source-x-1-0.sct"
    first.write_bytes(octets[: places[1]])
    watch = TraceWatch([tmp_path], whole=True)
    watch.poll(0)
    first.unlink()
    (tmp_path / "source-x-1-0.1.sct").write_bytes(octets[middle:])
    alarms = watch.poll(SECOND)
    assert [(one.kind, one.text) for one in alarms if one.rule != UNDECIDED] == [
        (AlarmKind.NOTE, "its recorder deleted records before they were judged")
    ]
    shutil.rmtree(tmp_path)
    assert [one.text for one in watch.poll(2 * SECOND)] in (
        [],
        ["the trace was removed, and is no longer followed"],
    )


def told(trace: str, kind: str, first: int, last: int, peer: str = "", life: int = 7) -> Told:
    return Told(trace, trace, 0, Fact(kind, first, first, life, peer, first, last))


def standing(trace: str, role: Role, read_ns: int, life: int = 7, *, ended: bool = False) -> Standing:
    return Standing(Witness(trace, role, f"{trace}:1", life, False, 0, 0), True, ended, read_ns)


def test_a_round_waits_for_the_traces_that_may_confirm_it() -> None:
    ledger = FactLedger()
    ledger.add([told("source", "sent", 0, 9), told("receiver", "delivered", 0, 19)], 0)
    reading = [standing("source", Role.SOURCE, 0), standing("receiver", Role.RECEIVER, 0)]
    assert ledger.judge(reading, SECOND).suspects == []
    ledger.add([told("source", "sent", 10, 19)], SECOND)
    reading = [standing("source", Role.SOURCE, 2 * SECOND), standing("receiver", Role.RECEIVER, 2 * SECOND)]
    assert ledger.judge(reading, 2 * SECOND).suspects == []
    assert not ledger.rounds


def test_a_trace_that_goes_silent_confirms_nothing_and_is_reported_once() -> None:
    ledger = FactLedger()
    reading = [standing("source", Role.SOURCE, 0)]
    for start in (0, 10):
        ledger.add([told("receiver", "delivered", start, start + 9)], start * SECOND)
        found = ledger.judge(reading, (start + 15) * SECOND)
        assert found.suspects == []
        assert len(found.notes) == (start == 0)


def test_judged_rounds_are_forgotten() -> None:
    ledger = FactLedger()
    for number in range(2000):
        now = number * SECOND
        ledger.add(
            [
                told("source", "sent", number * 10, number * 10 + 9),
                told("store", "said", number * 10, number * 10 + 9, "store:1"),
                told("source", "acked", number * 10, number * 10 + 9, "store:1"),
                told("source", "stable", number * 10, number * 10 + 9),
            ],
            now,
        )
        found = ledger.judge([standing("source", Role.SOURCE, now), standing("store", Role.STORE, now, 0)], now)
        assert found.suspects == []
    assert len(ledger.rounds) <= 2
    assert {key[0]: len(one.numbers.ranges) for key, one in ledger.joined.items()} == {
        "sent": 1,
        "said": 1,
        "stable": 1,
    }


def test_lives_and_traces_beyond_the_bounds_are_forgotten_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fact_ledger, "MAX_LIVES", 5)
    monkeypatch.setattr(fact_ledger, "MAX_TRACES", 5)
    ledger, notes = FactLedger(), list[str]()
    for life in range(1, 20):
        ledger.end(standing(f"source{life}", Role.SOURCE, 0, life, ended=True))
        ledger.add([told(f"source{life}", "sent", 0, 9, life=life)], life * 100 * SECOND)
        notes += ledger.judge([], life * 100 * SECOND).notes
    assert len(notes) == 2
    assert len(ledger.lives) == len(ledger.past) == len(ledger.joined) == 5
    ledger.add([told("receiver", "delivered", 50, 59, life=1)], 9000 * SECOND)
    assert ledger.judge([], 9100 * SECOND).suspects == [], "nothing is claimed about a forgotten life"


def test_control_messages_beyond_their_bound_may_be_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fact_ledger, "MAX_FEW", 5)
    ledger = FactLedger()
    ledger.add([told("source", "spoke", digest, digest, "source:1") for digest in range(20)], 0)
    (spoken,) = ledger.small.values()
    assert -1 in [one.fact.first for one in spoken.values()]
    assert len(spoken) <= 6


def test_traces_beyond_their_bound_are_given_up_and_reported(
    whole_world: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(trace_watch, "MAX_FOLLOWED", 2)
    growing_copy(whole_world, tmp_path / "world", 0.5)
    watch = TraceWatch([tmp_path / "world"], whole=True)
    notes = [one.text for one in watch.poll(0) if "no longer followed" in one.text]
    assert len(watch.traces) == 2
    assert len(notes) == len([*whole_world.glob("*.sct")]) - 2
    assert [one for one in watch.poll(SECOND) if "no longer followed" in one.text] == []


def test_a_flood_of_sentences_is_bounded() -> None:
    bound, alarm = AlarmBound(), WatchAlarm(AlarmKind.VIOLATION, "S1", Path("a"), "", 1, "")
    assert sum(bound.admit(attrs.evolve(alarm, place=place)) for place in range(1000)) == MAX_NAMED
