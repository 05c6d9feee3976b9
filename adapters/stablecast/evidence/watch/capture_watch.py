"""A capture that is judged while it grows, with the rules of `verify` and the advice of `capture doctor`.

The judges of captures decide some questions at the end of a capture only. So every few seconds a copy of the process
ends the capture there, and its verdicts come back through a pipe. A verdict must be right wherever a capture ends, so
it is right there, too. The copy costs little, because the system copies only pages that change.

After `EPOCH_NS` the capture is ended in earnest, and the judges begin anew, as with a capture that begins there. So
their memory is bounded, and a trouble that lasts is reported again.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.evidence.capture.decoder import CaptureDecoder
from stablecast.evidence.capture.doctor import Thresholds
from stablecast.evidence.capture.files import CaptureError, CaptureFrame, CaptureRing
from stablecast.evidence.capture.judge import CaptureFindings, CaptureJudges, RuleStanding
from stablecast.evidence.capture.ports import PortPlan
from stablecast.evidence.capture.traffic_survey import FrameSurvey
from stablecast.evidence.watch.alarms import AlarmKind, WatchAlarm

EPOCH_NS: Final = 600 * SECOND
"""Time of a capture that is judged as one."""

VERDICT_NS: Final = 2 * SECOND
"""Time between two verdicts on the capture so far."""

MAX_HELD: Final = 1 << 16
"""Frames that wait for the survey of later ones, at most."""


@attrs.define
class CaptureWatch:
    """A ring of captures and its judges.

    The survey is one reading ahead of the judges, because a flow is often known only after its first packets.

    Attributes:
        ring: The files.
        plan: The known ports.
        thresholds: The thresholds of advice.
        frames: The number of judged frames.
        reported: Verdicts of this epoch that were reported.
    """

    ring: CaptureRing
    plan: PortPlan
    thresholds: Thresholds = attrs.field(factory=Thresholds)
    frames: int = 0
    reported: set[tuple[object, ...]] = attrs.field(factory=set)
    _held: list[tuple[Path, CaptureFrame]] = attrs.field(factory=list)
    _survey: FrameSurvey = attrs.field(init=False)
    _decoder: CaptureDecoder = attrs.field(init=False)
    _judges: CaptureJudges = attrs.field(init=False)
    _learned: tuple[int, ...] = ()
    _began_ns: int | None = None
    _verdict_ns: int = -VERDICT_NS
    _decided: int = 0
    _lost: int = 0
    _file: Path = Path()
    _next: int = 1
    _broken: bool = False

    def __attrs_post_init__(self) -> None:
        self._survey = FrameSurvey(self.plan)
        self._decoder = CaptureDecoder(self.plan, brief=True)
        self._judges = CaptureJudges(CaptureFindings(), self.thresholds)

    def poll(self, now_ns: int) -> list[WatchAlarm]:
        """Judge the frames of the reading before, and return new sentences; `now_ns` is any clock that rises."""
        if self._broken:
            return []
        ready, self._held = self._held, []
        alarms = list[WatchAlarm]()
        try:
            for path, frame in self.ring.read():
                self._survey.add_frame(frame)
                self._held.append((path, frame))
                if len(self._held) > MAX_HELD:
                    self._judge(ready)
                    ready, self._held = self._held, []
        except CaptureError as error:
            self._broken = True
            alarms.append(WatchAlarm(AlarmKind.DAMAGE, "", self.ring.path, "", 0, str(error)))
        self._judge(ready)
        if self.ring.lost > self._lost:
            self._lost = self.ring.lost
            text = "files of the ring were deleted before they were judged: give the ring more or larger files"
            alarms.append(WatchAlarm(AlarmKind.NOTE, "", self.ring.path, "", 0, text))
        if self._began_ns is None and self.frames:
            self._began_ns = now_ns
        if self._began_ns is not None and now_ns - self._began_ns >= EPOCH_NS:
            alarms += self._end_epoch()
        elif self.frames > self._decided and now_ns - self._verdict_ns >= VERDICT_NS:
            self._verdict_ns, self._decided = now_ns, self.frames
            alarms += self._new(self._verdict_of_copy())
        return alarms

    @property
    def read(self) -> bool:
        return bool(self.frames or self._held)

    def as_json(self) -> dict[str, Any]:
        """Return the place of the next frame for the state file."""
        path, number = self._file, self._next
        if self._held:
            path, number = self._held[0][0], self._held[0][1].number
        return {"ring": str(self.ring.path), "file": str(path), "number": number}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on where an earlier watch stopped, if its file is still there."""
        if Path(state["file"]).is_file():
            self.ring.resume(Path(state["file"]), int(state["number"]))

    def _judge(self, ready: list[tuple[Path, CaptureFrame]]) -> None:
        if not ready:
            return
        self._survey.settle()
        plan = self.plan
        learned = (len(plan.endpoints), len(plan.flows), len(plan.groups), len(plan.topics))
        if learned != self._learned:
            self._learned = learned
            self._decoder.refresh()
        for path, frame in ready:
            self._file, self._next = path, frame.number + 1
            for packet in self._decoder.decode_frame(frame):
                self._judges.judge_packet(packet)
        self.frames += len(ready)

    def _end_epoch(self) -> Iterator[WatchAlarm]:
        self._judges.close()
        yield from self._new(_verdict(self._judges.findings))
        self._judges = CaptureJudges(CaptureFindings(), self.thresholds)
        self._began_ns = None
        self.reported.clear()

    def _verdict_of_copy(self) -> list[dict[str, Any]]:
        """Return the verdict if the capture ended here, from a copy of the process."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.close(reading)
                self._judges.close()
                with os.fdopen(writing, "w") as pipe:
                    json.dump(_verdict(self._judges.findings), pipe)
                status = 0
            finally:
                os._exit(status)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            text = pipe.read()
        os.waitpid(child, 0)
        found: list[dict[str, Any]] = json.loads(text) if text else []
        return found

    def _new(self, verdict: list[dict[str, Any]]) -> Iterator[WatchAlarm]:
        """Yield the sentences of a verdict that were not reported in this epoch."""
        for one in verdict:
            key = one["kind"], one["rule"], one["whose"], one["place"] if one["kind"] == AlarmKind.VIOLATION else 0
            if key not in self.reported:
                self.reported.add(key)
                yield WatchAlarm(**{**one, "kind": AlarmKind(one["kind"]), "file": self._file})


def _verdict(findings: CaptureFindings) -> list[dict[str, Any]]:
    """Return the broken rules and the advice as fields of sentences."""
    broken = [
        {
            "kind": AlarmKind.VIOLATION.value,
            "rule": one.rule,
            "whose": one.whose,
            "place": one.frame,
            "text": f"frame {one.frame}: {one.text}",
            "time_ns": one.time_ns,
            "wall_ns": one.time_ns,
        }
        for one in findings.found
        if one.standing is RuleStanding.BROKEN
    ]
    advice = [
        {
            "kind": AlarmKind.ADVICE.value,
            "rule": one.code,
            "whose": one.whose,
            "place": one.frames[0] if one.frames else 0,
            "text": one.text,
            "remedy": one.remedy,
        }
        for one in findings.advice
    ]
    return broken + advice
