"""Traces of a whole world with crashes are clean; whatever was done to them afterwards is found, in the right record.

The corruptions are made by taking a trace apart, changing its lines, and putting it together again with lengths and
checksums that are right: nothing but verification can find them.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from stablecast.core.protocol.quorum import Quorums
from stablecast.evidence.trace import container
from stablecast.evidence.trace.converter import Json
from stablecast.evidence.trace.frames import FrameReader
from stablecast.evidence.trace.reports import MAX_VIOLATIONS, FileReport, TraceViolation
from stablecast.evidence.trace.trace_judge import TraceJudge, verify_file, verify_paths
from tests.adapters.evidence.trace.traced import (
    Frames,
    TracedWorld,
    first_trace,
    play,
    put_together,
    records,
    take_apart,
    tapping,
    texts,
)

GROUP_STABLE = {"_": "Notify", "event": {"_": "Stable", "first": 0, "last": 4, "store_index": 0, "flags": 7}}
TICK = {"_": "Tick"}

Found = tuple[int, str]
"""Number of a record and name of the rule it breaks."""


def test_the_traces_of_a_world_with_crashes_are_clean(traces: Path) -> None:
    summary = verify_paths(sorted(traces.iterdir()))
    assert [violation.text for violation in summary.violations] == []
    assert summary.clean
    roles = sorted(report.role for report in summary.files)
    assert roles == ["receiver"] * 3 + ["source"] * 2 + ["store"] * 4
    assert sum(report.closed for report in summary.files) == 6, "three were killed"
    assert all(report.frames > 1 and report.gaps == 0 for report in summary.files)


def test_progress_is_told(traces: Path) -> None:
    told: list[int] = []
    report = verify_file(first_trace(traces, "store"), told.append)
    assert (len(told), sum(told)) == (report.frames, report.records)


def first_with(frames: Frames, want: Callable[[Json], bool]) -> Json:
    return next(record for record in records(frames) if want(record))


def is_ack(record: Json) -> bool:
    return bool(record["in"].get("message", {}).get("_") == "StableAck")


def is_input(name: str) -> Callable[[Json], bool]:
    return lambda record: bool(record["in"]["_"] == name)


def sends(name: str) -> Callable[[Json], bool]:
    return lambda record: any(effect.get("message", {}).get("_") == name for effect in record["out"])


def delivers(record: Json) -> bool:
    return any(effect["_"] == "Deliver" for effect in record["out"])


def effect_of(record: Json, name: str) -> Json:
    found: Json = next(e for e in record["out"] if name in (e["_"], e.get("message", {}).get("_")))
    return found


# Changes of a trace; each returns the record and the rule that must be named.


def remove_an_ack(frames: Frames) -> Found:
    gone = first_with(frames, is_ack)
    for lines in frames:
        if gone in lines:
            lines.remove(gone)
            lines[-1]["records"] -= 1
    return gone["n"], "numbering"


def deny_an_ack(frames: Frames) -> Found:
    """Remove an acknowledgement and keep the stability that it brought."""
    record = [r for r in records(frames) if is_ack(r) and r["out"]][1]
    record["in"] = TICK
    return record["n"], "S1"


def report_stable_before_the_quorum(frames: Frames) -> Found:
    record = first_with(frames, is_ack)
    record["out"].append(GROUP_STABLE)
    return record["n"], "S1"


def report_stable_before_the_quorum_unreplayed(frames: Frames) -> Found:
    return report_stable_before_the_quorum(frames)[0], "replay"


def change_a_sequence_number(frames: Frames) -> Found:
    record = first_with(frames, is_input("Sent"))
    record["in"]["first"] += 1
    return record["n"], "replay"


def change_the_number_of_an_ack(frames: Frames) -> Found:
    record = first_with(frames, is_ack)
    record["in"]["message"]["last"] -= 1
    return record["n"], "replay"


def change_the_incarnation_of_an_ack(frames: Frames) -> Found:
    record = first_with(frames, is_ack)
    record["in"]["message"]["incarnation"] += 1
    return record["n"], "replay"


def report_another_release(frames: Frames) -> Found:
    record = first_with(frames, lambda r: any(e["_"] == "Release" for e in r["out"]))
    effect_of(record, "Release")["number"] += 1
    return record["n"], "replay"


def exchange_two_records(frames: Frames) -> Found:
    lines = next(lines for lines in frames if len(lines) > 4)
    lines[1], lines[2] = lines[2], lines[1]
    return lines[2]["n"], "numbering"


def turn_back_the_clock(frames: Frames) -> Found:
    record = [r for r in records(frames) if r["t"]][-1]
    record["t"] -= 3_600_000_000_000
    return record["n"], "time"


def let_a_frame_begin_too_early(frames: Frames) -> Found:
    frames[-1][0]["time"] = 0
    return frames[-1][0]["first"], "time"


def ask_for_a_smaller_group(frames: Frames) -> Found:
    """Shrink the group to one store, although the frame ended with three."""
    for lines in frames:
        snapshot = lines[0]["snapshot"]
        snapshot["config"]["groups"]["sizes"] = [1]
        for holder in (snapshot["sending"]["window"], snapshot["enrollment"]):
            holder["quorums"]["rules"]["sizes"] = [1]
    return 0, "replay"


def change_a_snapshot(frames: Frames) -> Found:
    frames[2][0]["snapshot"]["config"]["sri_maximum"] += 1
    return frames[2][0]["first"], "chain"


def change_the_first_snapshot(frames: Frames) -> Found:
    frames[0][0]["snapshot"]["config"]["flight_messages"] += 1
    return 0, "replay"


def change_the_end_of_a_frame(frames: Frames) -> Found:
    frames[1][-1]["digest"] = "0" * 64
    return frames[1][-2]["n"], "replay"


def promise_one_record_more(frames: Frames) -> Found:
    frames[0][-1]["records"] += 1
    return frames[1][0]["first"], "numbering"


def remove_a_frame(frames: Frames) -> Found:
    del frames[1]
    return 0, "numbering"


def remove_the_first_frame(frames: Frames) -> Found:
    del frames[0]
    return 0, "numbering"


def repeat_a_frame(frames: Frames) -> Found:
    frames.insert(1, frames[1])
    return frames[1][0]["first"], "numbering"


def change_the_owner(frames: Frames) -> Found:
    frames[1][0]["endpoint"] = "somebody else"
    return frames[1][0]["first"], "chain"


def invent_an_effect(frames: Frames) -> Found:
    record = first_with(frames, is_ack)
    record["out"].append({"_": "Explode", "number": 1})
    return record["n"], "schema"


def add_a_field(frames: Frames) -> Found:
    record = first_with(frames, is_ack)
    record["in"]["message"]["color"] = "red"
    return record["n"], "schema"


def blur_a_number(frames: Frames) -> Found:
    record = first_with(frames, is_ack)
    record["in"]["message"]["first"] += 0.5
    return record["n"], "schema"


def feed_what_only_a_store_takes(frames: Frames) -> Found:
    record = first_with(frames, is_ack)
    record["in"] = {"_": "Persisted", "ticket": 1}
    return record["n"], "schema"


def forget_the_time(frames: Frames) -> Found:
    record = first_with(frames, is_ack)
    del record["t"]
    return record["n"], "schema"


def deny_a_sync(frames: Frames) -> Found:
    record = first_with(frames, lambda r: is_input("Persisted")(r) and sends("StableAck")(r))
    record["in"] = TICK
    return record["n"], "P1"


def acknowledge_what_is_not_synced(frames: Frames) -> Found:
    record = first_with(frames, sends("StableAck"))
    effect_of(record, "StableAck")["message"]["last"] += 1000
    return record["n"], "P1"


def keep_an_ack_back(frames: Frames) -> Found:
    record = first_with(frames, lambda r: any("StableAck" in str(effect) for effect in r["out"][-1:]))
    record["out"].pop()
    return record["n"], "replay"


def deliver_twice(frames: Frames) -> Found:
    record = first_with(frames, delivers)
    record["out"].append(effect_of(record, "Deliver"))
    return record["n"], "D1"


def pass_over_a_message(frames: Frames) -> Found:
    record = [r for r in records(frames) if delivers(r)][1]
    effect = effect_of(record, "Deliver")
    effect.update(first=effect["first"] + 1, skip=1, count=effect["count"] - 1)
    return record["n"], "D1"


def acknowledge_the_unread(frames: Frames) -> Found:
    record = first_with(frames, sends("ConsumptionAck"))
    effect_of(record, "ConsumptionAck")["message"]["number"] += 1
    return record["n"], "A1"


def consume_the_undelivered(frames: Frames) -> Found:
    record = [r for r in records(frames) if is_input("Consumed")(r)][-1]
    record["in"]["last"] += 1
    return record["n"], "A1"


CORRUPTIONS: dict[str, list[Callable[[Frames], Found]]] = {
    "source": [
        remove_an_ack,
        deny_an_ack,
        report_stable_before_the_quorum,
        report_stable_before_the_quorum_unreplayed,
        change_a_sequence_number,
        change_the_number_of_an_ack,
        change_the_incarnation_of_an_ack,
        report_another_release,
        exchange_two_records,
        turn_back_the_clock,
        let_a_frame_begin_too_early,
        ask_for_a_smaller_group,
        change_a_snapshot,
        change_the_first_snapshot,
        change_the_end_of_a_frame,
        promise_one_record_more,
        remove_a_frame,
        remove_the_first_frame,
        repeat_a_frame,
        change_the_owner,
        invent_an_effect,
        add_a_field,
        blur_a_number,
        feed_what_only_a_store_takes,
        forget_the_time,
    ],
    "store": [
        deny_a_sync,
        acknowledge_what_is_not_synced,
        keep_an_ack_back,
    ],
    "receiver": [
        deliver_twice,
        pass_over_a_message,
        acknowledge_the_unread,
        consume_the_undelivered,
    ],
}
"""Changes of the first trace of a role."""


def corrupted(traces: Path, role: str, corrupt: Callable[[Frames], Found], into: Path) -> tuple[Found, FileReport]:
    """Change the first trace of this role, and return the verification."""
    original = first_trace(traces, role)
    frames = take_apart(original)
    assert verify_file(put_together(into / "same.sct", frames)).clean, "taking apart and putting together is harmless"
    expected = corrupt(frames)
    return expected, verify_file(put_together(into / "changed.sct", frames))


@pytest.mark.parametrize(
    ("role", "corrupt"),
    [pytest.param(role, one, id=one.__name__) for role, some in CORRUPTIONS.items() for one in some],
)
def test_a_corrupted_trace_is_rejected(
    traces: Path, tmp_path: Path, role: str, corrupt: Callable[[Frames], Found]
) -> None:
    expected, report = corrupted(traces, role, corrupt, tmp_path)
    assert expected in [(violation.record, violation.rule) for violation in report.violations]
    assert report.violations[0].record == expected[0], "nothing before it is blamed"
    assert report.error is None


def test_a_violation_says_what_was_expected(traces: Path, tmp_path: Path) -> None:
    _, report = corrupted(traces, "store", keep_an_ack_back, tmp_path)
    violation = next(violation for violation in report.violations if violation.rule == "replay")
    assert violation.expected["message"]["_"] == "StableAck"
    assert violation.found is None
    assert violation.text.startswith(f"record {violation.record}, effect ")
    assert violation.text.endswith("}}, found nothing")


def test_a_wrong_core_is_found_although_replay_agrees_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules are judged without the core: here it calls everything stable that one store holds."""
    monkeypatch.setattr(Quorums, "judge", lambda self, held, _: ([held > 0 for _ in self.members], held > 0))
    play(TracedWorld(wrap=tapping(tmp_path)))
    violations = verify_paths(tmp_path.glob("source-*")).violations
    assert violations
    assert {violation.rule for violation in violations} == {"S1", "C1"}


def test_a_flood_of_violations_is_bounded(traces: Path, tmp_path: Path) -> None:
    frames = take_apart(first_trace(traces, "store"))
    report = verify_file(put_together(tmp_path / "flood.sct", [frames[0]] * (MAX_VIOLATIONS + 1)))
    assert len(report.violations) == MAX_VIOLATIONS


def without_frame(frames: Frames, at: int) -> int:
    """Leave out a frame, as a recorder does whose disk is slow; return the number of its records."""
    dropped = frames.pop(at)
    for lines in frames[at:]:
        lines[0]["frame"] = lines[-1]["end"] = lines[0]["frame"] - 1
    frames[at][0]["gap"] = len(dropped) - 2
    return len(dropped) - 2


def test_missing_records_are_no_violation_when_the_recorder_says_so(traces: Path, tmp_path: Path) -> None:
    """The rules begin anew behind each gap, because they did not see what was dropped."""
    store = max(traces.glob("store-*"), key=lambda path: path.stat().st_size)
    for at in range(1, len(take_apart(store)) - 1):
        frames = take_apart(store)
        dropped = without_frame(frames, at)
        report = verify_file(put_together(tmp_path / "gap.sct", frames))
        assert report.clean
        assert report.gaps == dropped


def test_rules_begin_anew_behind_a_record_that_nobody_can_read(traces: Path, tmp_path: Path) -> None:
    """What was delivered there is not passed over, and the rest of its frame is not judged."""
    receiver = first_trace(traces, "receiver")
    places = [at for at, record in enumerate(records(take_apart(receiver))) if delivers(record)]
    assert len(places) > 3
    for at in places:
        frames = take_apart(receiver)
        record = [*records(frames)][at]
        del record["t"]
        report = verify_file(put_together(tmp_path / "unread.sct", frames))
        assert [(one.record, one.rule) for one in report.violations] == [(record["n"], "schema")]


def test_a_rule_is_named_once_for_a_frame_however_it_grows(traces: Path, tmp_path: Path) -> None:
    frames = take_apart(first_trace(traces, "source"))
    acks = [record for record in records(frames) if is_ack(record)]
    for record in acks:
        record["out"].append(GROUP_STABLE)
    path = put_together(tmp_path / "changed.sct", frames)
    judge, found = TraceJudge(str(path)), list[TraceViolation]()
    for portion in FrameReader.at(path).read():
        rest = portion
        while rest.body.count(b"\n") > 1:
            first, rest = rest.cut(1)
            judge.judge(path, first)
        judge.judge(path, rest)
        found += judge.found
        judge.forget()
    assert [(one.record, one.rule) for one in found] == [(one.record, one.rule) for one in verify_file(path).violations]


def test_records_that_are_not_a_line_each_cannot_be_read(traces: Path, tmp_path: Path) -> None:
    """Although every value in them is right, and there are as many lines as records."""
    path, end = tmp_path / "lines.sct", 0
    with path.open("wb") as file:
        for text in texts(first_trace(traces, "store")):
            lines = text.split(b"\n")
            if len(lines) > 6:
                lines[1:4] = lines[1].replace(b",", b",\n", 1), lines[2] + lines[3]
            end = container.append(file.fileno(), end, b"\n".join(lines))
    report = verify_file(path)
    assert report.violations == []
    assert f"{path}, frame {report.frames}: a line is not JSON" in (report.error or "")


@pytest.mark.parametrize("share", [0.3, 0.6, 0.999])
def test_a_truncated_trace_gets_one_sentence(traces: Path, tmp_path: Path, share: float) -> None:
    whole = first_trace(traces, "store").read_bytes()
    path = tmp_path / "cut.sct"
    path.write_bytes(whole[: int(len(whole) * share)])
    summary = verify_paths([path])
    assert not summary.clean
    assert summary.as_json()["truncated"] == [str(path)]
    (error,) = summary.as_json()["errors"]
    assert error.startswith(f"{path} is truncated at byte {int(len(whole) * share)}, in ")
    assert summary.violations == [], "what came before is judged all the same"
