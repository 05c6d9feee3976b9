"""`stablecast trace analyze`: count the inputs and effects of each trace, and measure latencies.

Latencies are those of one machine's clock: at a source from sending to stable, at a receiver from delivery to consumed,
at a store from handing over to the disk to its sync.

`stablecast trace diff`: the first difference of two runs, endpoint by endpoint.

Traces are paired by role and, among those of a role, in the order of their names, numbers in them by value. So a run
and its repetition are compared, whatever ports and process numbers they had. Times differ from run to run and are
compared only on request.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.core.machine.units import MICROSECOND, SECOND
from stablecast.evidence.trace.converter import TAG
from stablecast.evidence.trace.tools.records import TraceRecord, read_records
from stablecast.text import plural

STABLE: Final = 1
"""The flag of an event `Stable` that makes its numbers stable (`StableFlag.STABLE`)."""

MAX_OPEN: Final = 100_000
"""Runs of messages that wait for their end; beyond that the oldest is not measured."""


@attrs.define
class Latency:
    """Spans between two events of numbered messages, in ns; a run counts as often as it has messages."""

    open: dict[int, tuple[int, int]] = attrs.field(factory=dict)
    spans: Counter[int] = attrs.field(factory=Counter)

    def begin(self, first: int, stop: int, time: int) -> None:
        """Begin the spans of numbers first <= n < stop."""
        self.open[first] = (stop, time)
        if len(self.open) > MAX_OPEN:
            del self.open[next(iter(self.open))]

    def end(self, first: int, stop: int, time: int) -> None:
        """End the spans of these numbers; parts of runs count by themselves."""
        for begin in [begin for begin, (until, _) in self.open.items() if begin < stop and first < until]:
            until, began = self.open.pop(begin)
            low, high = max(begin, first), min(until, stop)
            self.spans[time - began] += high - low
            if begin < low:
                self.open[begin] = (low, began)
            if high < until:
                self.open[high] = (until, began)


PERCENTILES: Final = {"p50": 50, "p99": 99, "max": 100}


def percentiles(spans: Counter[int]) -> dict[str, float]:
    """Return median, 99 % and longest of spans (ns) in µs; empty if there are none."""
    total, passed, found = spans.total(), 0, dict[str, float]()
    for span in sorted(spans):
        passed += spans[span]
        for name, share in PERCENTILES.items():
            if name not in found and passed * 100 >= share * total:
                found[name] = span / MICROSECOND
    return found


def percentiles_text(found: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:,.0f} µs" for name, value in found.items())


@attrs.define
class Analysis:
    """Counts and latencies of one trace.

    Attributes:
        inputs: By kind.
        effects: By kind; of messages, events and the rest by their own kind.
        messages: Numbers that were sent, stored or delivered, by their fate.
        bytes: Payload bytes sent or received.
        latencies: By name.
    """

    role: str
    endpoint: str
    records: int = 0
    began: int = 0
    ended: int = 0
    inputs: Counter[str] = attrs.field(factory=Counter)
    effects: Counter[str] = attrs.field(factory=Counter)
    messages: Counter[str] = attrs.field(factory=Counter)
    bytes: int = 0
    latencies: dict[str, Latency] = attrs.field(factory=dict)
    tickets: dict[int, tuple[int, int]] = attrs.field(factory=dict)

    def count_record(self, record: TraceRecord) -> None:
        if not self.records:
            self.began = record.time
        self.records += 1
        self.ended = record.time
        self.inputs[_kind(record.event)] += 1
        self._on_input(record.event, record.time)
        for effect in record.effects:
            self.effects[_kind(effect)] += 1
            self._on_effect(effect, record.time)

    def _on_input(self, event: dict[str, Any], time: int) -> None:
        match event:
            case {"_": "Sent", "first": first, "count": count, "payload_bytes": size}:
                self.messages["sent"] += count
                self.bytes += size
                self._latency("send to stable").begin(first, first + count, time)
            case {"_": "Data", "count": count, "payload_bytes": size, "recovered": recovered}:
                self.messages["recovered" if recovered else "received"] += count
                self.bytes += size
            case {"_": "Consumed" | "Useless", "first": first, "last": last}:
                self._latency("delivery to consumed").end(first, last + 1, time)
            case {"_": "Persisted", "ticket": ticket}:
                for due in [due for due in self.tickets if due <= ticket]:
                    count, began = self.tickets.pop(due)
                    self._latency("write to synced").spans[time - began] += count

    def _on_effect(self, effect: dict[str, Any], time: int) -> None:
        match effect:
            case {"_": "Notify", "event": {"_": "Stable", "first": first, "last": last, "flags": flags}} if (
                flags & STABLE
            ):
                self.messages["stable"] += last - first + 1
                self._latency("send to stable").end(first, last + 1, time)
            case {"_": "Deliver", "first": first, "count": count}:
                self.messages["delivered"] += count
                self._latency("delivery to consumed").begin(first, first + count, time)
            case {"_": "PersistMessages", "count": count, "ticket": ticket}:
                self.messages["stored"] += count
                self.tickets[ticket] = (count, time)

    def _latency(self, name: str) -> Latency:
        return self.latencies.setdefault(name, Latency())

    def as_json(self) -> dict[str, object]:
        """Return the analysis for machines: times in s, latencies in µs."""
        return {
            "role": self.role,
            "endpoint": self.endpoint,
            "records": self.records,
            "seconds": (self.ended - self.began) / SECOND,
            "messages": dict(self.messages),
            "bytes": self.bytes,
            "latencies_us": {name: found for name, one in self.latencies.items() if (found := percentiles(one.spans))},
            "inputs": dict(self.inputs.most_common()),
            "effects": dict(self.effects.most_common()),
        }

    def lines(self) -> Iterator[str]:
        seconds = (self.ended - self.began) / SECOND
        records, octets = plural(self.records, "record"), plural(self.bytes, "payload byte")
        yield f"{self.role} {self.endpoint}: {records} in {seconds:.3f} s, {octets}"
        for title, counted in (("messages", self.messages), ("inputs", self.inputs), ("effects", self.effects)):
            if counted:
                yield f"  {title}: {', '.join(f'{name} {count:,}' for name, count in counted.most_common())}"
        for name, latency in self.latencies.items():
            if found := percentiles(latency.spans):
                yield f"  {name}: {percentiles_text(found)}"


def analyze(paths: Iterable[Path]) -> Iterator[Analysis]:
    """Yield the analysis of each trace. Raise TraceError."""
    for records in read_records(paths):
        analysis = None
        for record in records:
            if analysis is None:
                analysis = Analysis(record.role, record.endpoint)
            analysis.count_record(record)
        if analysis is not None:
            yield analysis


def _kind(value: dict[str, Any]) -> str:
    """Return the kind of an input or effect, with that of the message or event that it carries."""
    inner = next((part for part in value.values() if isinstance(part, dict) and TAG in part), None)
    return str(value.get(TAG, "")) + (f" {inner[TAG]}" if inner is not None else "")


@attrs.frozen
class TraceDifference:
    """The first records of two traces that differ; None if that trace ends before."""

    role: str
    left: TraceRecord | None
    right: TraceRecord | None
    number: int

    def as_json(self) -> dict[str, object]:
        sides = {"left": self.left, "right": self.right}
        return {"role": self.role, "record": self.number} | {
            side: None if record is None else record.as_json() for side, record in sides.items()
        }


def diff(left: Path, right: Path, *, times: bool = False) -> list[TraceDifference]:
    """Return the first difference of each pair of traces. Raise TraceError."""
    found = []
    ours, theirs = _by_role(left), _by_role(right)
    for role in sorted({*ours, *theirs}):
        for one, other in zip_longest(ours.get(role, []), theirs.get(role, [])):
            difference = _first(role, iter(one or ()), iter(other or ()), times)
            if difference is not None:
                found.append(difference)
    return found


def _by_role(path: Path) -> dict[str, list[list[TraceRecord]]]:
    """Return the traces below a path by role, in the order of their names."""
    traces: dict[str, list[list[TraceRecord]]] = defaultdict(list)
    for records in read_records([path]):
        trace = list(records)
        if trace:
            traces[trace[0].role].append(trace)
    for of_role in traces.values():
        of_role.sort(key=lambda trace: _natural(trace[0].path.name))
    return traces


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts the tenth trace of a process after its ninth."""
    parts: list[str] = re.findall(r"\d+|\D+", name)
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


def _first(
    role: str, ours: Iterator[TraceRecord], theirs: Iterator[TraceRecord], times: bool
) -> TraceDifference | None:
    pairs: Iterable[tuple[TraceRecord | None, TraceRecord | None]] = zip_longest(ours, theirs)
    for number, (one, other) in enumerate(pairs):
        if one is None or other is None or _content(one, times) != _content(other, times):
            return TraceDifference(role, one, other, number)
    return None


def _content(record: TraceRecord, times: bool) -> tuple[object, ...]:
    return (record.event, record.effects, record.time if times else None)
