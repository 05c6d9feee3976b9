"""Captures judged: what the packets of endpoints that nobody traced say about the rules.

`statements` says what packets state, `persistence` (with `lives` and `holders`) and `multicast` apply rules to that,
`findings` has the rules and the verdicts, `command` is what `stablecast verify` does with captures.

    findings = judge(path)
    findings.standings    # (rule, whose) -> fine, cannot tell, broken
"""

from collections.abc import Iterable
from pathlib import Path

from stablecast.capture.decoding import packets
from stablecast.capture.judging.findings import RULES, Finding, Findings, Standing
from stablecast.capture.judging.multicast import Multicast
from stablecast.capture.judging.persistence import SKEW_NS, Persistence
from stablecast.capture.judging.statements import Datagram, Gap, Reader
from stablecast.capture.ports import Kind
from stablecast.capture.surveying import survey

__all__ = ["RULES", "Finding", "Findings", "Standing", "judge"]


def judge(path: Path, told: Iterable[str] = ()) -> Findings:
    """Judges a capture.

    Args:
        path: The file.
        told: What the caller knows of its ports, as `kind=port` and `kind=low-high`.

    Raises:
        CaptureError: If the file is no capture, ends before its end, or if `told` cannot be read.
        OSError: If the file cannot be read.
    """
    plan, findings = survey(path, told), Findings()
    reader, persistence, multicast = Reader(), Persistence(findings), Multicast(findings)
    now_ns = 0
    for packet in packets(path, plan):
        if packet.time_ns < now_ns - SKEW_NS:  # Another capture begins, or the clock was set.
            persistence.close(now_ns)
            multicast.close(now_ns)
            reader, persistence, multicast, now_ns = Reader(), Persistence(findings), Multicast(findings), 0
        findings.now_ns = now_ns = max(now_ns, packet.time_ns)
        for statement in reader.read(packet):
            if isinstance(statement, Datagram):
                multicast.take(statement)
            elif isinstance(statement, Gap) and packet.kind is Kind.LBTRM:
                multicast.miss(statement.at.ends)
            else:
                persistence.take(statement)
    persistence.close(now_ns)
    multicast.close(now_ns)
    return findings
