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

Corrupt = Callable[[Frames], Found]
"""Change a trace; return the record and the rule that must be named."""


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


def is_ack(record: Json) -> bool:
    return bool(record["in"].get("message", {}).get("_") == "StableAck")


def is_input(name: str) -> Callable[[Json], bool]:
    return lambda record: bool(record["in"]["_"] == name)


def has(name: str) -> Callable[[Json], bool]:
    return lambda record: any(_named(effect, name) for effect in record["out"])


def _named(effect: Json, name: str) -> bool:
    return name in (effect["_"], effect.get("message", {}).get("_"))


def effect_of(record: Json, name: str) -> Json:
    return next(effect for effect in record["out"] if _named(effect, name))


def edit(want: Callable[[Json], object], change: Callable[[Json], object], rule: str, which: int = 0) -> Corrupt:
    """Return the change of one of the records that are wanted."""

    def corrupt(frames: Frames) -> Found:
        record = [record for record in records(frames) if want(record)][which]
        change(record)
        return record["n"], rule

    return corrupt


def moved(by: float, *way: str, of: str = "") -> Callable[[Json], None]:
    """Return the change of a number by its place in a record, or in its effect of this name."""

    def change(record: Json) -> None:
        holder = effect_of(record, of) if of else record
        for name in way[:-1]:
            holder = holder[name]
        holder[way[-1]] += by

    return change


def fed(event: Json) -> Callable[[Json], None]:
    return lambda record: record.update({"in": event})


def with_effect(effect: Json) -> Callable[[Json], None]:
    return lambda record: record["out"].append(effect)


def pass_over_a_message(record: Json) -> None:
    effect = effect_of(record, "Deliver")
    effect.update(first=effect["first"] + 1, skip=1, count=effect["count"] - 1)


def remove_an_ack(frames: Frames) -> Found:
    gone = next(record for record in records(frames) if is_ack(record))
    for lines in frames:
        if gone in lines:
            lines.remove(gone)
            lines[-1]["records"] -= 1
    return gone["n"], "numbering"


def exchange_two_records(frames: Frames) -> Found:
    lines = next(lines for lines in frames if len(lines) > 4)
    lines[1], lines[2] = lines[2], lines[1]
    return lines[2]["n"], "numbering"


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


def remove_a_frame(frames: Frames, at: int = 1) -> Found:
    del frames[at]
    return 0, "numbering"


def repeat_a_frame(frames: Frames) -> Found:
    frames.insert(1, frames[1])
    return frames[1][0]["first"], "numbering"


def change_the_owner(frames: Frames) -> Found:
    frames[1][0]["endpoint"] = "somebody else"
    return frames[1][0]["first"], "chain"


CORRUPTIONS: dict[str, dict[str, Corrupt]] = {
    "source": {
        "remove_an_ack": remove_an_ack,
        # The stability that it brought stays.
        "deny_an_ack": edit(lambda record: is_ack(record) and record["out"], fed(TICK), "S1", 1),
        "report_stable_before_the_quorum": edit(is_ack, with_effect(GROUP_STABLE), "S1"),
        "report_stable_before_the_quorum_unreplayed": edit(is_ack, with_effect(GROUP_STABLE), "replay"),
        "change_a_sequence_number": edit(is_input("Sent"), moved(1, "in", "first"), "replay"),
        "change_the_number_of_an_ack": edit(is_ack, moved(-1, "in", "message", "last"), "replay"),
        "change_the_incarnation_of_an_ack": edit(is_ack, moved(1, "in", "message", "incarnation"), "replay"),
        "report_another_release": edit(has("Release"), moved(1, "number", of="Release"), "replay"),
        "exchange_two_records": exchange_two_records,
        "turn_back_the_clock": edit(lambda record: record["t"], moved(-3_600_000_000_000, "t"), "time", -1),
        "let_a_frame_begin_too_early": let_a_frame_begin_too_early,
        "ask_for_a_smaller_group": ask_for_a_smaller_group,
        "change_a_snapshot": change_a_snapshot,
        "change_the_first_snapshot": change_the_first_snapshot,
        "change_the_end_of_a_frame": change_the_end_of_a_frame,
        "promise_one_record_more": promise_one_record_more,
        "remove_a_frame": remove_a_frame,
        "remove_the_first_frame": lambda frames: remove_a_frame(frames, 0),
        "repeat_a_frame": repeat_a_frame,
        "change_the_owner": change_the_owner,
        "invent_an_effect": edit(is_ack, with_effect({"_": "Explode", "number": 1}), "schema"),
        "add_a_field": edit(is_ack, lambda record: record["in"]["message"].update(color="red"), "schema"),
        "blur_a_number": edit(is_ack, moved(0.5, "in", "message", "first"), "schema"),
        "feed_what_only_a_store_takes": edit(is_ack, fed({"_": "Persisted", "ticket": 1}), "schema"),
        "forget_the_time": edit(is_ack, lambda record: record.pop("t"), "schema"),
    },
    "store": {
        "deny_a_sync": edit(lambda record: is_input("Persisted")(record) and has("StableAck")(record), fed(TICK), "P1"),
        "acknowledge_what_is_not_synced": edit(has("StableAck"), moved(1000, "message", "last", of="StableAck"), "P1"),
        "keep_an_ack_back": edit(
            lambda record: "StableAck" in str(record["out"][-1:]), lambda record: record["out"].pop(), "replay"
        ),
    },
    "receiver": {
        "deliver_twice": edit(has("Deliver"), lambda record: record["out"].append(effect_of(record, "Deliver")), "D1"),
        "pass_over_a_message": edit(has("Deliver"), pass_over_a_message, "D1", 1),
        "acknowledge_the_unread": edit(has("ConsumptionAck"), moved(1, "message", "number", of="ConsumptionAck"), "A1"),
        "consume_the_undelivered": edit(is_input("Consumed"), moved(1, "in", "last"), "A1", -1),
    },
}
"""Changes of the first trace of a role."""


def corrupted(traces: Path, role: str, corrupt: Corrupt, into: Path) -> tuple[Found, FileReport]:
    """Change the first trace of this role, and return the verification."""
    original = first_trace(traces, role)
    frames = take_apart(original)
    assert verify_file(put_together(into / "same.sct", frames)).clean, "taking apart and putting together is harmless"
    expected = corrupt(frames)
    return expected, verify_file(put_together(into / "changed.sct", frames))


@pytest.mark.parametrize(
    ("role", "corrupt"),
    [pytest.param(role, one, id=name) for role, some in CORRUPTIONS.items() for name, one in some.items()],
)
def test_a_corrupted_trace_is_rejected(traces: Path, tmp_path: Path, role: str, corrupt: Corrupt) -> None:
    expected, report = corrupted(traces, role, corrupt, tmp_path)
    assert expected in [(violation.record, violation.rule) for violation in report.violations]
    assert report.violations[0].record == expected[0], "nothing before it is blamed"
    assert report.error is None


def test_a_violation_says_what_was_expected(traces: Path, tmp_path: Path) -> None:
    _, report = corrupted(traces, "store", CORRUPTIONS["store"]["keep_an_ack_back"], tmp_path)
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
    places = [at for at, record in enumerate(records(take_apart(receiver))) if has("Deliver")(record)]
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
