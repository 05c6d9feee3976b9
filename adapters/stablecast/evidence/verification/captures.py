"""`stablecast verify` for captures: output and exit status."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from stablecast.core.errors import StablecastError
from stablecast.evidence.capture.doctor import Thresholds, parse_thresholds
from stablecast.evidence.capture.files import CaptureError, frames
from stablecast.evidence.capture.judge import DEFAULTS, judged
from stablecast.evidence.capture.judge.findings import CaptureFindings, RuleStanding
from stablecast.evidence.capture.judge.report import points_of, summary_of
from stablecast.evidence.capture.link import is_ipv6, is_read
from stablecast.evidence.rules import RULES
from stablecast.evidence.rules.judges import CAPTURES
from stablecast.evidence.verification.traces import CLEAN, EXPLAINED, UNREADABLE, VIOLATED, Paper, spark_extra, worst
from stablecast.text import plural
from stablecast.text.console import show, spinning
from stablecast.text.exit_status import failed

FOUND: Final = 1
"""Exit status of the doctor if it advises something."""

MEGABYTE: Final = 1 << 20
"""Unit of progress, in bytes."""

LOOKED_AT: Final = 100
"""Frames that are examined to explain why nothing in a capture can be judged."""


def run_judge(
    paths: Sequence[Path], told: list[str], as_json: bool, paper: Paper | None = None, master: str | None = None
) -> int:
    """Judge captures, print the verdicts, and return the gravest exit status.

    `paper` gets what a page shows; `master` names a Spark, where each file is a task.
    """
    paper = Paper() if paper is None else paper
    try:
        outcomes = _here(paths, told, as_json) if master is None else _on_spark(paths, told, as_json, master)
        statuses = [_say(path, found, as_json, paper) for path, found in zip(paths, outcomes, strict=True)]
    except StablecastError as error:
        return failed(error, UNREADABLE)
    return worst(statuses)


def _here(
    paths: Sequence[Path], told: list[str], as_json: bool, thresholds: Thresholds = DEFAULTS
) -> Iterator[CaptureFindings | str]:
    for path in paths:
        with spinning(as_json) as show:

            def watch(what: str, offset: int, path: Path = path, show: Callable[[str], None] = show) -> None:
                show(f"{what} {path}, {offset / MEGABYTE:.0f} MB")

            found = judged(path, told, watch, thresholds)
        yield found


def _on_spark(paths: Sequence[Path], told: list[str], as_json: bool, master: str) -> list[CaptureFindings | str]:
    spark = spark_extra()
    with spinning(as_json) as show:
        found: list[CaptureFindings | str] = spark.judge_on(spark.connect(master), paths, told, show)
    return found


def _say(path: Path, findings: CaptureFindings | str, as_json: bool, paper: Paper) -> int:
    if isinstance(findings, str):
        return failed(findings, UNREADABLE)
    paper.add(summary_of(path, findings), points_of(path, findings))
    show({"file": str(path), **as_object(findings)}, _lines(path, findings), as_json)
    if findings.gravest is RuleStanding.BROKEN:
        return failed(findings.cut, VIOLATED) if findings.cut else VIOLATED
    if findings.cut:
        return failed(findings.cut, UNREADABLE)
    if not findings.standings:
        return failed(f"nothing in {path} can be judged{_why(path, findings)}", UNREADABLE)
    return CLEAN


def _why(path: Path, findings: CaptureFindings) -> str:
    """Return the likeliest reason: unreadable frames, traffic of others, or traffic without rules."""
    if findings.ours:
        ours = plural(findings.ours, "packet", "is ours", "are ours")
        return f": {ours}, and no rule is about that; `stablecast capture decode` shows it"
    if findings.strange:
        shown = "`stablecast capture decode` shows why"
        strange = plural(findings.strange, "packet", "is ours by its port", "are ours by their ports")
        return f": {strange} and cannot be read; {shown}"
    looked_at = list(islice(frames(path), LOOKED_AT))
    links = {frame.link for frame in looked_at}
    if links and not any(map(is_read, links)):
        named = ", ".join(map(str, sorted(links)))
        return f": its frames are of link type {named}, which is not read; capture at another interface"
    if any(is_ipv6(frame.link, frame.octets) for frame in looked_at):
        return ": it has IPv6, and all of this protocol is IPv4; --port may help with the rest"
    return ", by its ports and its bytes; --port may help"


def as_object(findings: CaptureFindings) -> dict[str, Any]:
    verdicts = [
        {"rule": rule, "whose": whose, "verdict": standing.text, "times": findings.asked[rule, whose]}
        for (rule, whose), standing in sorted(findings.standings.items())
    ]
    return {
        **findings.counts(),
        "verdicts": verdicts,
        "findings": [one.as_json() for one in findings.found],
        "advice": [one.as_json() for one in findings.advice],
    }


def _lines(path: Path, findings: CaptureFindings) -> Iterator[str]:
    for (rule, whose), standing in sorted(findings.standings.items()):
        times = plural(findings.asked[rule, whose], "time")
        text = f"{RULES[rule].title} of {whose}: {standing.text}, {CAPTURES.checks[rule]} ({times})"
        yield f"{path}: {text}"
        for one in findings.found:
            if (one.rule, one.whose) == (rule, whose):
                where = f"frame {one.frame}" if one.frame else "in the end"
                yield f"  {where}: {one.standing.text}: {one.text}"
    if findings.gravest is RuleStanding.BROKEN:
        yield EXPLAINED
    yield from advice_lines(path, findings)
    counts = ", ".join(f"{count} {text}" for text, count in findings.counts().items())
    yield f"{path}: {counts}"


def advice_lines(path: Path, findings: CaptureFindings) -> Iterator[str]:
    """Yield the findings of the doctor for people: what the packets show, and what to change."""
    for one in findings.advice:
        where = f" (frames {', '.join(map(str, one.frames))})" if one.frames else ""
        yield f"{path}: advice [{one.code}] {one.whose}: {one.text}{where}"
        yield f"  {one.remedy}"


def run_doctor(paths: Sequence[Path], told: list[str], given: list[str], as_json: bool) -> int:
    """Examine captures and print the findings; return 1 if there is one, 2 if a capture cannot be read, else 0."""
    try:
        thresholds = parse_thresholds(given)
    except CaptureError as error:
        return failed(error, UNREADABLE)
    statuses = []
    for path, found in zip(paths, _here(paths, told, as_json, thresholds), strict=True):
        if isinstance(found, str):
            statuses.append(failed(found, UNREADABLE))
            continue
        if not found.ours:
            statuses.append(failed(f"nothing in {path} can be examined{_why(path, found)}", UNREADABLE))
            continue
        lines = [*advice_lines(path, found), f"{path}: {plural(len(found.advice), 'finding')}"]
        show({"file": str(path), "advice": [one.as_json() for one in found.advice]}, lines, as_json)
        statuses.append(failed(found.cut, UNREADABLE) if found.cut else FOUND if found.advice else CLEAN)
    return worst(statuses)
