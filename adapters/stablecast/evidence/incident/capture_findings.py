"""Findings that only captures show: datagrams that were lost between two hosts, and what the doctor advises."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from stablecast.evidence.capture.doctor import CaptureAdvice
from stablecast.evidence.incident.actors import Proof
from stablecast.evidence.incident.capture_contents import ReadCapture
from stablecast.evidence.incident.datagram_paths import DATA, NAKS, PathLoss
from stablecast.evidence.incident.gaps import Gap
from stablecast.evidence.incident.incident_finding import IncidentFinding, clock

LOSSY: Final = 0.01
"""Share of datagrams of one kind between two hosts that must be lost to be reported."""

WEIGHTS: Final = {"early-exit": 2800.0, "unrepaired": 90.0, "storm": 80.0}
"""Weights of findings of the doctor that lose messages; the others explain, and follow what they explain."""

PATH_WEIGHT: Final = 60.0
ADVICE_WEIGHT: Final = 15.0

ADDRESS: Final = re.compile(r"\d+\.\d+\.\d+\.\d+")


def of_paths(lost: Iterable[PathLoss]) -> Iterator[IncidentFinding]:
    for one in lost:
        if one.share >= LOSSY:
            text = (
                f"{_sentence(one)}, from {clock(one.since)} to {clock(one.until)}: the path from {one.sender} to "
                f"{one.receiver} loses datagrams"
            )
            yield IncidentFinding(
                "path", one.since, one.until, PATH_WEIGHT + one.share, text[0].upper() + text[1:], (), one.proofs
            )


def on_the_way(gap: Gap, lost: Sequence[PathLoss]) -> str:
    """Return the losses between a source and a receiver in a gap, as the end of a sentence."""
    source, reader = gap.source.host, gap.reader.lives[0].host if gap.reader is not None else ""
    found = [
        _sentence(one)
        for one in lost
        if (one.sender, one.receiver) == ((reader, source) if one.kind == NAKS else (source, reader))
        and one.since <= gap.until
        and gap.since <= one.until
        and one.share >= LOSSY
    ]
    return "".join(f"; {text}" for text in found)


def _sentence(one: PathLoss) -> str:
    kind = one.kind if one.kind != DATA else "datagrams"
    return f"{one.lost:,} of {one.left:,} {kind} from {one.sender} did not come to {one.receiver}"


def of_advice(captures: Iterable[ReadCapture]) -> Iterator[IncidentFinding]:
    """Yield the findings of the doctor with their packets, each once: by the capture of the host that it is about."""
    found: dict[tuple[str, str], tuple[bool, ReadCapture, CaptureAdvice]] = {}
    for capture in captures:
        for one in capture.advice:
            hosts = ADDRESS.findall(one.whose)
            near = bool(hosts) and hosts[-1] == capture.witness.address
            before = found.get((one.code, one.whose))
            if before is None or (near and not before[0]):
                found[one.code, one.whose] = near, capture, one
    for _, capture, one in found.values():
        yield _advised(capture, one)


def _advised(capture: ReadCapture, one: CaptureAdvice) -> IncidentFinding:
    proofs = tuple(
        Proof(capture.witness.path, frame, capture.witness.wall(capture.times[frame]))
        for frame in one.frames
        if frame in capture.times
    )
    since = min((proof.time for proof in proofs), default=0)
    until = max((proof.time for proof in proofs), default=0)
    text = f"{one.text[0].upper()}{one.text[1:]} ({one.whose})"
    return IncidentFinding(one.code, since, until, WEIGHTS.get(one.code, ADVICE_WEIGHT), text, (one.remedy,), proofs)
