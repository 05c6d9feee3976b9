"""Captures judged: what the packets of endpoints that nobody traced say about the rules.

`statements` says what packets state, `persistence` (with `lives`, `releases` and `holders`) and `multicast` apply rules
to that, and `forms` to the packets themselves. `findings` has the rules and the verdicts, `command` is what
`stablecast verify` does with captures.

    findings = judge(path)
    findings.standings    # (rule, whose) -> fine, cannot tell, broken
"""

from collections.abc import Iterable
from pathlib import Path

from stablecast.capture.decoding import Packet, packets
from stablecast.capture.errors import CutError
from stablecast.capture.judging.findings import RULES, Finding, Findings, Standing
from stablecast.capture.judging.forms import Forms
from stablecast.capture.judging.multicast import Multicast
from stablecast.capture.judging.persistence import SKEW_NS, Persistence
from stablecast.capture.judging.statements import Datagram, Gap, Reader
from stablecast.capture.ports import Kind
from stablecast.capture.surveying import survey

__all__ = ["RULES", "Finding", "Findings", "Standing", "judge"]


def judge(path: Path, told: Iterable[str] = ()) -> Findings:
    """Judges a capture. If it was cut, its whole frames are judged, and the findings say so.

    Args:
        path: The file.
        told: What the caller knows of its ports, as `kind=port` and `kind=low-high`.

    Raises:
        CaptureError: If the file is no capture or is damaged, or if `told` cannot be read.
        OSError: If the file cannot be read.
    """
    plan, judges = survey(path, told), _Judges(Findings())
    try:
        for packet in packets(path, plan):
            judges.take(packet)
    except CutError as error:
        judges.findings.cut = str(error)
    judges.close()
    return judges.findings


class _Judges:
    """Those of all rules. Where times go back another capture begins, or the clock was set."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self._forms = Forms(findings)
        self._begin()

    def _begin(self) -> None:
        self._reader, self._now_ns = Reader(), 0
        self._persistence, self._multicast = Persistence(self.findings), Multicast(self.findings)

    def take(self, packet: Packet) -> None:
        """The next packet."""
        if packet.time_ns < self._now_ns - SKEW_NS:
            self._settle()
            self._begin()
        self.findings.now_ns = self._now_ns = max(self._now_ns, packet.time_ns)
        self._forms.take(packet)
        for statement in self._reader.read(packet):
            if isinstance(statement, Datagram):
                self._multicast.take(statement)
            elif isinstance(statement, Gap) and packet.kind is Kind.LBTRM:
                self._multicast.miss(statement.at.ends)
            else:
                self._persistence.take(statement)

    def close(self) -> None:
        """The capture ends."""
        self._settle()
        self._forms.close()

    def _settle(self) -> None:
        self._persistence.close(self._now_ns)
        self._multicast.close(self._now_ns)
