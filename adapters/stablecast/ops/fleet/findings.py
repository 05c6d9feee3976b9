"""A look at a fleet, and its findings: each once, named by its stores and topics, the most urgent first."""

from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import attrs

from stablecast.core.machine.units import SECOND
from stablecast.ops.fleet.copies import FleetSource, joined
from stablecast.ops.fleet.next_steps import step
from stablecast.ops.fleet.survey import Survey, SurveyedRouter, SurveyedStore
from stablecast.ops.monitor import figures
from stablecast.ops.monitor.health import Urgency
from stablecast.text import plural

FAR_BEHIND: Final = 1000
"""Messages that a store may lack of what another store has synced."""

CLOCK_NS: Final = 1 * SECOND
"""Difference of two hosts' clocks that confuses people who compare logs, in ns."""


@attrs.frozen
class FleetFinding:
    """A finding: its level, stable code, what it is about, one sentence, and the command to type next, if any."""

    level: Urgency
    code: str
    subjects: tuple[str, ...]
    text: str
    step: str = ""

    @property
    def line(self) -> str:
        return f"{figures.among(self.subjects[0], len(self.subjects))}: {self.text}"

    def as_json(self) -> dict[str, Any]:
        record = {"level": self.level.name, "code": self.code, "subjects": [*self.subjects], "text": self.text}
        return record | ({"step": self.step} if self.step else {})


def findings(surveyed: Survey, sources: Sequence[FleetSource]) -> list[FleetFinding]:
    """Return all findings, those of equal text joined, the most urgent first."""
    found = [*_of_monitors(surveyed), *_of_stores(surveyed.stores), *_of_clocks(surveyed.stores)]
    found += _of_routers(surveyed.routers)
    for source in sources:
        found += _of_source(source)
    together: dict[tuple[Urgency, str, str], list[FleetFinding]] = {}
    for one in found:
        together.setdefault((one.level, one.code, one.text), []).append(one)
    joined = [
        attrs.evolve(ones[0], subjects=tuple(dict.fromkeys(name for one in ones for name in one.subjects)))
        for ones in together.values()
    ]
    return sorted(joined, key=lambda one: -one.level)


def silent_stores(surveyed: Survey, monitor: str) -> tuple[str, ...]:
    """Return the stores of a monitor that does not answer: from an earlier answer, or as the sources name them."""
    if monitor in surveyed.remembered:
        return surveyed.remembered[monitor]
    answered = {store.record["address"] for store in surveyed.stores}
    named = {one for store in surveyed.stores for source in store.sources for one in source.get("stores", ())}
    host = urlsplit(monitor).hostname
    return tuple(sorted(one for one in named - answered if one.rpartition(":")[0] == host))


def _of_monitors(surveyed: Survey) -> Iterator[FleetFinding]:
    """Yield the monitors that do not answer, by their stores."""
    for monitor, text in surveyed.silent.items():
        stores = tuple(f"store {name}" for name in silent_stores(surveyed, monitor))
        subjects = stores or (f"a store whose monitor is {monitor}",)
        sentence = f"it is down, or cannot be reached: {text}"
        yield FleetFinding(Urgency.CRITICAL, "silent", subjects, sentence, step("silent", monitor))


def _of_stores(stores: Sequence[SurveyedStore]) -> Iterator[FleetFinding]:
    """Yield what stores know of themselves, and of their sources and receivers."""
    for store in stores:
        clients: list[tuple[str, dict[str, Any]]] = [(f"store {store.name}", store.record)]
        for source in store.sources:
            clients.append((f"topic {source['topic']}", source))
            clients += [(f"topic {source['topic']}, receiver {one['reg_id']}", one) for one in source["receivers"]]
        for name, client in clients:
            for one in client["findings"]:
                command = step(one["code"], store.where, client.get("reg_id", 0))
                yield FleetFinding(Urgency[one["level"]], one["code"], (name,), one["text"], command)


def _of_routers(routers: Sequence[SurveyedRouter]) -> Iterator[FleetFinding]:
    """Yield what the portals of routers know of themselves."""
    for router in routers:
        for portal in router.record["portals"]:
            for one in portal["findings"]:
                subject = f"router {router.name}, portal {portal['name']}"
                yield FleetFinding(Urgency[one["level"]], one["code"], (subject,), one["text"])


def _of_clocks(stores: Sequence[SurveyedStore]) -> Iterator[FleetFinding]:
    ordered = sorted(stores, key=lambda store: store.clock_ns)
    if len(ordered) > 1:
        first, last = ordered[0], ordered[-1]
        apart = last.clock_ns - first.clock_ns
        if apart - first.error_ns - last.error_ns > CLOCK_NS:
            text = f"its clock is {figures.span(apart)} ahead of that of {first.name}: set both by one time service"
            yield FleetFinding(Urgency.WARNING, "clock", (f"store {last.name}",), text, step("clock", last.where))


def _of_source(source: FleetSource) -> Iterator[FleetFinding]:
    topic = (f"topic {source.topic}",)
    if source.active and not source.groups:
        text = "no store knows the groups of its stores yet: its quorum is not judged"
        yield FleetFinding(Urgency.NOTICE, "groups-unknown", topic, text)
    if source.active:
        yield from _of_groups(source, topic)
    if source.unknown and not (source.active and (source.spare or 0) < 0):
        which = f"{source.unknown} of its {plural(source.replicas, 'store')}"
        text = f"nothing is known about {which}: no answer, or not asked"
        yield FleetFinding(Urgency.NOTICE, "unknown-store", topic, text)
    ahead = max(copy.synced for copy in source.copies)
    for copy in source.copies:
        if ahead - copy.synced > FAR_BEHIND:
            text = f"store {copy.store.name} lacks {ahead - copy.synced:,} messages that another store has synced"
            yield FleetFinding(Urgency.WARNING, "behind", topic, text, step("behind", copy.store.where))


def _of_groups(source: FleetSource, topic: tuple[str]) -> Iterator[FleetFinding]:
    """Yield the groups without a quorum, and those that the loss of one more store leaves without one."""
    groups = source.groups
    for index, group in enumerate(groups):
        which = f"group {index}: " if len(groups) > 1 else ""
        stores = f"{group.serving} of {plural(group.size, 'store')} serve it, and {group.needed} are needed"
        if group.spare < 0:
            away = group.size - len(group.copies)
            known = f"; {away} of them are not among those that answered" if away else ""
            others = any(other.spare >= 0 for other in groups)
            # The rule between groups is known to the source only. By the default, any group suffices.
            end = "there; other groups suffice only by the rule `any`" if others else "by a majority"
            text = f"{which}{stores}: nothing more becomes stable {end}{known}"
            yield FleetFinding(Urgency.CRITICAL, "no-quorum", topic, text)
        elif not group.spare and group.needed < group.size:
            text = f"{which}{stores}: if one more fails, nothing more becomes stable{' there' if which else ''}"
            yield FleetFinding(Urgency.WARNING, "last-quorum", topic, text)


def worst(found: Sequence[FleetFinding]) -> Urgency:
    return max((one.level for one in found), default=Urgency.OK)


@attrs.frozen
class FleetLook:
    """A survey with its joined sources and its findings; `number` counts the looks."""

    surveyed: Survey
    sources: list[FleetSource]
    findings: list[FleetFinding]
    number: int = 0

    @classmethod
    def of(cls, surveyed: Survey, number: int = 0) -> "FleetLook":
        sources = joined(surveyed)
        return cls(surveyed, sources, findings(surveyed, sources), number)

    @property
    def level(self) -> Urgency:
        return worst(self.findings)

    def as_json(self) -> dict[str, Any]:
        return {
            "level": self.level.name,
            "findings": [one.as_json() for one in self.findings],
            "silent": self.surveyed.silent,
            "stores": [
                {"name": one.name, "monitor": one.monitor, "level": one.record["level"]} for one in self.surveyed.stores
            ],
            "routers": [
                {"name": one.name, "monitor": one.monitor, "level": one.record["level"], "domains": one.domains}
                for one in self.surveyed.routers
            ],
            "sources": [one.as_json() for one in self.sources],
        }
