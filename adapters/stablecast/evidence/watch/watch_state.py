"""The state file of a watch: how far each trace is judged, and what the rules between traces need to know.

A watch that begins with the state of an earlier one judges the rest. A frame that was judged in part is replayed from
its snapshot without sentences about the records that are known.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.core.errors import StablecastError
from stablecast.core.protocol.messages import Role
from stablecast.evidence.trace.cross_ground import Told, Witness
from stablecast.evidence.trace.facts import Fact
from stablecast.evidence.trace.frame_link import FrameLink
from stablecast.evidence.trace.frames import FrameReader
from stablecast.evidence.trace.trace_judge import TraceJudge
from stablecast.evidence.watch.fact_ledger import FactLedger, Standing
from stablecast.evidence.watch.followed_trace import FollowedTrace
from stablecast.evidence.watch.joint_judgement import JointJudgement, TraceStanding
from stablecast.evidence.watch.trace_watch import TraceWatch
from stablecast.text import refusal, unread
from stablecast.text.json_text import from_json

VERSION: Final = 1
"""Version of the state file; another one is refused."""

Json = dict[str, Any]


class StateError(StablecastError):
    """The state file cannot be read or written."""


def write(path: Path, watch: TraceWatch, more: Json) -> None:
    """Replace the state file. `more` is state of other parts of the watch.

    Raises:
        StateError: If it cannot be written.
    """
    value = {
        "version": VERSION,
        "traces": [trace_state(trace) for trace in watch.traces.values()],
        "sizes": watch.sizes,
        **joint_state(watch.joint),
        **more,
    }
    replace(path, value)


def replace(path: Path, value: Json) -> None:
    """Replace a state file by this value. Raise StateError."""
    scratch = path.with_name(f"{path.name}.new")
    try:
        scratch.write_text(json.dumps(value, separators=(",", ":")), encoding="utf-8")
        scratch.replace(path)
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError) -> StateError:
    """Return the error of a state file or a checkpoint that cannot be written."""
    return StateError(f"the state {path} cannot be written: {refusal(error)}; name another place")


def read(path: Path, watch: TraceWatch, now_ns: int) -> Json:
    """Give the state to a new watch, if there is a file; return the whole content, empty without a file.

    Raises:
        StateError: If the file cannot be read or is no state.
    """
    if not path.exists():
        return {}
    value = content(path)
    with named_errors(path):
        watch.traces = {one["trace"]: followed_trace(one, now_ns) for one in value["traces"]}
        watch.sizes = value["sizes"]
        restore_joint(watch.joint, value, now_ns)
        watch.resume()
    return value


def content(path: Path) -> Json:
    """Return the content of a state file.

    Raises:
        StateError: If it cannot be read, or is of another version.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = unread(path, error) if isinstance(error, OSError) else f"{path} is no state of a watch"
        raise StateError(why) from error
    with named_errors(path):
        value: Json = from_json(text)
        if value["version"] != VERSION:
            raise StateError(f"{path} is of version {value['version']}, and this release reads {VERSION}: remove it")
    return value


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Raise StateError for anything in the body that a forged or foreign file causes."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StateError(f"{path} is no state of a watch: name another file, or remove it") from error


def joint_state(joint: JointJudgement) -> Json:
    """Return the state of the rules between traces."""
    named = [[str(path), place, rule] for path, place, rule in joint.named]
    return {"named": named, "ledger": _ledger(joint.ledger)}


def restore_joint(joint: JointJudgement, value: Json, now_ns: int) -> None:
    """Give a state of `joint_state` to a new judgement."""
    joint.named.update({(Path(path), place, rule): None for path, place, rule in value["named"]})
    _restore(joint.ledger, value["ledger"], now_ns)


def trace_state(trace: FollowedTrace) -> Json:
    """Return how far a trace is judged."""
    judge = trace.judge
    return {
        "trace": judge.trace,
        "path": str(trace.file.path),
        "offset": trace.file.offset,
        "judged": trace.judged,
        "joined": judge.joined,
        "whole": judge.whole,
        "records": trace.records,
        "link": None if judge.link is None or trace.judged else attrs.asdict(judge.link),
    }


def followed_trace(value: Json, now_ns: int) -> FollowedTrace:
    link = None if value["link"] is None else FrameLink(**value["link"])
    judge = TraceJudge(value["trace"], joined=value["joined"], resumed=True, whole=value["whole"], link=link)
    judged, file = value["judged"], FrameReader.at(Path(value["path"]), value["offset"])
    return FollowedTrace(judge, file, silent=judged, records=value["records"] - judged, read_ns=now_ns)


def _ledger(ledger: FactLedger) -> Json:
    return {
        "joined": [[_told(one.told), one.numbers.ranges] for one in ledger.joined.values()],
        "learnt": [_told(one) for one in ledger.learnt()],
        "rounds": [_told(one) for waiting in ledger.rounds for one in waiting.told],
        "accused": [_told(one) for one in ledger.accused],
        "lives": [*ledger.lives],
        "forgotten": [*ledger.forgotten],
        "past": [_standing(one) for one in ledger.past.values()],
        "reported": [*ledger.reported],
    }


def _restore(ledger: FactLedger, value: Json, now_ns: int) -> None:
    for told, ranges in value["joined"]:
        ledger.join(_told_of(told), [(first, stop) for first, stop in ranges])
    for told in value["learnt"]:
        ledger.learn(_told_of(told))
    ledger.accused.extend(_told_of(told) for told in value["accused"])
    ledger.lives.update(dict.fromkeys(value["lives"]))
    ledger.forgotten.update(dict.fromkeys(value["forgotten"]))
    ledger.reported.update(dict.fromkeys(tuple(one) if isinstance(one, list) else one for one in value["reported"]))
    for one in value["past"]:
        ledger.end(_standing_of(one))
    ledger.add((_told_of(one) for one in value["rounds"]), now_ns)


def _told(told: Told) -> list[Any]:
    return [told.trace, told.path, told.offset, *attrs.astuple(told.fact)]


def _told_of(value: Iterable[Any]) -> Told:
    trace, path, offset, *fact = value
    return Told(trace, path, offset, Fact(*fact))


def trace_standing_state(one: TraceStanding) -> Json:
    evidence = None if one.evidence is None else _standing(one.evidence)
    return {**attrs.asdict(one, recurse=False), "path": str(one.path), "evidence": evidence}


def standing_of(value: Json) -> TraceStanding:
    evidence = value["evidence"]
    if evidence is not None:
        evidence = attrs.evolve(_standing_of(evidence), read_ns=value["read_ns"])
    return TraceStanding(**{**value, "path": Path(value["path"]), "evidence": evidence})


def _standing(one: Standing) -> list[Any]:
    return [*attrs.astuple(one.witness), one.whole, one.ended, one.read_ns]


def _standing_of(value: Iterable[Any]) -> Standing:
    trace, role, *rest = value
    *witness, whole, ended, _ = rest
    return Standing(Witness(trace, Role(role), *witness), whole, ended, 0)
