"""Captures judged by the rules: evidence about endpoints that nobody traced.

`capture.statements` translates packets, `persistence_rules` (with `lives` and `holder_rules`) and
`multicast_rules` judge the statements, and `form_rule` judges the packets themselves. `findings` has the verdicts, and
the advice of `capture.doctor`. `verification.captures` has the command.

    findings = judge(path)
    findings.standings    # (rule, whose) -> fine, cannot tell, broken
"""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

from stablecast.evidence.capture.decoder import SKEW_NS, CapturePacket, packets
from stablecast.evidence.capture.doctor import Examination, Thresholds
from stablecast.evidence.capture.doctor.capture_quality import CaptureQuality
from stablecast.evidence.capture.doctor.resolution_history import advertised
from stablecast.evidence.capture.files import CaptureError, CutError, watched
from stablecast.evidence.capture.judge.findings import CaptureFinding, CaptureFindings, RuleStanding
from stablecast.evidence.capture.judge.form_rule import FormRule
from stablecast.evidence.capture.judge.multicast_rules import JITTER_NS, Multicast
from stablecast.evidence.capture.judge.persistence_rules import Persistence
from stablecast.evidence.capture.ports import TrafficKind
from stablecast.evidence.capture.statements import DATAGRAMS, MissingBytes, StatedDatagram, StatementReader
from stablecast.evidence.capture.traffic_survey import survey

__all__ = ["CaptureFinding", "CaptureFindings", "CaptureJudges", "RuleStanding", "judge", "judged"]

DEFAULTS: Final = Thresholds()

Watch = Callable[[str, int], None]
"""Take the stage, "survey" or "judge", and the bytes of the file that were read for it, now and then."""


def judged(
    path: Path, told: Iterable[str] = (), watch: Watch | None = None, thresholds: Thresholds = DEFAULTS
) -> CaptureFindings | str:
    """Return the findings of `judge`, or the sentence of its error."""
    try:
        return judge(path, told, watch, thresholds)
    except CaptureError as error:
        return str(error)


def judge(
    path: Path, told: Iterable[str] = (), watch: Watch | None = None, thresholds: Thresholds = DEFAULTS
) -> CaptureFindings:
    """Judge a capture. If it was cut, judge its whole frames, and note the cut in the findings.

    Args:
        path: The file.
        told: What the caller knows of its ports, as `kind=port` and `kind=low-high`.
        watch: Called with the progress.
        thresholds: The values from which on the doctor advises.

    Raises:
        CaptureError: If the file cannot be read, is no capture or is damaged, or if `told` cannot be read.
    """
    watches = [partial(watch, what) if watch else None for what in ("survey", "judge")]
    plan, judges = survey(path, told, watches[0]), CaptureJudges(CaptureFindings(), thresholds)
    try:
        for packet in watched(packets(path, plan, brief=True), watches[1]):
            judges.judge_packet(packet)
    except CutError as error:
        judges.findings.cut = str(error)
    judges.close()
    return judges.findings


DISORDER: Final = 4
LATENESS: Final = 100
"""Bounds of disorder: if one of 4 steps of time goes back, or one of 100 packets is late, the order is unknown."""


class CaptureJudges:
    """The judges of all rules. A step back in time begins another capture, or the clock was set."""

    def __init__(self, findings: CaptureFindings, thresholds: Thresholds) -> None:
        """Judge with these thresholds of advice, and note the verdicts in `findings`."""
        self.findings = findings
        self._thresholds = thresholds
        self._forms = FormRule(findings)
        self._quality = CaptureQuality()
        self._last_ns, self._back, self._forth, self._late, self._count = 0, 0, 0, 0, 0
        self._begin()

    def _begin(self) -> None:
        self._reader, self._now_ns = StatementReader(), 0
        self._persistence, self._multicast = Persistence(self.findings), Multicast(self.findings)
        self._examination = Examination(self._thresholds, self._quality)

    def judge_packet(self, packet: CapturePacket) -> None:
        self._back += packet.time_ns < self._last_ns
        self._forth += packet.time_ns > self._last_ns
        self._last_ns = packet.time_ns
        if packet.time_ns < self._now_ns - SKEW_NS:
            self._settle()
            self._begin()
        self._late += packet.time_ns < self._now_ns - JITTER_NS
        self._count += 1
        self.findings.now_ns = self._now_ns = max(self._now_ns, packet.time_ns)
        self._examination.add_packet(packet)
        if not (packet.layers or packet.problems or packet.lost or packet.anew):
            return
        self._forms.judge_packet(packet)
        for session in advertised(packet):
            self._multicast.advertised(session, packet.time_ns)
        for statement in self._reader.statements_of(packet):
            if isinstance(statement, StatedDatagram):
                if self._multicast.judge_datagram(statement):
                    self._examination.add_datagram(statement)
                else:
                    self._examination.add_copy(statement)
                continue
            if isinstance(statement, MissingBytes) and packet.kind in DATAGRAMS:
                self._multicast.miss(statement.at.ends)
            if not isinstance(statement, MissingBytes) or packet.kind is not TrafficKind.LBTRM:
                self._persistence.judge_statement(statement)

    def close(self) -> None:
        self._settle()
        self.findings.advice += self._quality.findings(self._thresholds)
        self._forms.close()
        if DISORDER * self._back > self._back + self._forth or LATENESS * self._late > self._count:
            self.findings.doubt("or frames are not in the order of their times: `reordercap` puts them in order")

    def _settle(self) -> None:
        self._persistence.close(self._now_ns)
        self._multicast.close(self._now_ns)
        self.findings.advice += self._examination.findings()
