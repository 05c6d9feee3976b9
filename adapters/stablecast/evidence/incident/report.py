"""The report of a night: what happened, the cause first, and the record beside each sentence."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.messages import Role
from stablecast.core.protocol.quorum import quorum_of
from stablecast.evidence.incident import causes
from stablecast.evidence.incident.actors import Actor, EndpointLives, Notice, Proof, participants, read
from stablecast.evidence.incident.capture_contents import chosen, read_captures
from stablecast.evidence.incident.capture_findings import of_advice, of_paths, on_the_way
from stablecast.evidence.incident.captured import CapturedActor
from stablecast.evidence.incident.captured_routers import AWAY
from stablecast.evidence.incident.causes import Because, Cause
from stablecast.evidence.incident.clocks import FAR_NS, HostOffset, align
from stablecast.evidence.incident.datagram_paths import PathLoss, losses
from stablecast.evidence.incident.gaps import Gap, undelivered, unstable
from stablecast.evidence.incident.incident_finding import IncidentFinding, clock
from stablecast.evidence.incident.logs import LogLine, read_logs
from stablecast.evidence.trace.converter import TAG
from stablecast.text import plural
from stablecast.transports.codec.domains import split_domain

THRESHOLD_NS: Final = SECOND
"""Wait of a message for stability or delivery that counts as a gap, ns."""

NEAR_NS: Final = 2 * SECOND
"""Time around a gap in which lines of logs belong to it, ns."""

MAX_LINES: Final = 5
"""Lines of logs that are shown with one finding."""


MAX_NAMES: Final = 10
"""Names of files of no known kind that are shown."""


def not_read(names: Sequence[str]) -> str:
    """Return the sentence about files of no known kind, with the names of the first.

    >>> not_read(["a.log"])
    '1 file was not read, neither a trace, a capture, nor a log of stablecast: a.log'
    """
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    what = f"{plural(len(names), 'file', 'was', 'were')} not read, neither a trace, a capture, nor a log of stablecast"
    return f"{what}: {', '.join(names[:MAX_NAMES])}{more}"


@attrs.frozen
class Incident:
    """All findings, the heaviest first, with the endpoints, the clocks, and the files that were not read to the end.

    `foreign` are files of no kind that is known here.
    """

    happenings: list[IncidentFinding]
    members: list[EndpointLives]
    clocks: list[HostOffset]
    unread: list[str]
    packets: int = 0
    foreign: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "findings": [one.as_json() for one in self.happenings],
            "endpoints": [
                {
                    "name": one.name,
                    "lives": [
                        {"since": life.wall(life.began), "until": life.wall(life.ended), "closed": life.closed}
                        for life in one.lives
                    ],
                }
                for one in self.members
            ],
            "clocks": [attrs.asdict(one) for one in self.clocks],
            "unread": self.unread,
            "foreign": list(self.foreign),
        }

    def lines(self) -> Iterator[str]:
        for one in self.happenings:
            yield one.text
            yield from (f"  {text}" for text in one.more)
            if one.proofs:
                yield f"  proof: {', '.join(dict.fromkeys(proof.text for proof in one.proofs))}"
            yield from (f"  log: {line.text}" for line in one.lines)
        if not self.happenings:
            lives = [life for one in self.members for life in one.lives if not isinstance(life, CapturedActor)]
            seen = [plural(sum(life.records for life in lives), "record")] if lives else []
            seen += [plural(self.packets, "packet")] if self.packets else []
            yield f"nothing happened: {' and '.join(seen)} of {plural(len(self.members), 'endpoint')}"
        yield from self.clock_lines()
        yield from (f"not read to the end: {text}" for text in self.unread)
        if self.foreign:
            yield not_read(self.foreign)

    def clock_lines(self) -> Iterator[str]:
        """Yield how well the clocks of the hosts are known."""
        unknown = [one.host for one in self.clocks if one.error < 0]
        known = [one for one in self.clocks if one.error >= 0]
        if known:
            worst = max(one.error for one in known)
            hosts = plural(len(known), "host")
            yield f"clocks of {hosts} are aligned to {worst / MILLISECOND:.1f} ms by their messages"
        if unknown:
            yield f"clocks of {', '.join(unknown)} are not aligned: no messages in both directions"


def examine(
    paths: Iterable[Path],
    logs: Iterable[Path] = (),
    threshold: int = THRESHOLD_NS,
    captures: Sequence[Path] = (),
    told: Sequence[str] = (),
) -> Incident:
    """Return what happened, by these traces, captures and logs.

    Args:
        paths: Traces, and directories with traces. None: there are captures only.
        logs: Log files of stores, of which the lines near a finding are shown.
        threshold: Wait of a message that counts as a gap, ns.
        captures: Captures of any of the hosts.
        told: What the caller knows of ports in captures, as `kind=port`.

    Raises:
        TraceError: If there is no trace, and no capture.
        CaptureError: If a text of `told` cannot be read.
    """
    paths = [*paths]
    traced, unread = read(paths) if paths or not captures else ([], [])
    seen, cut = read_captures(captures, told)
    unread += cut
    actors = chosen(traced, [actor for one in seen for actor in one.actors])
    clocks = align([*actors, *(one.witness for one in seen)])
    members = participants(actors)
    lines = read_logs(logs)
    lost = [*losses(one.ledger for one in seen)]
    stores = {one.lives[0].address: one for one in members if one.role is Role.STORE}
    readers = [one for one in members if one.role is Role.RECEIVER]
    found: list[IncidentFinding] = []
    explained: list[Cause] = []
    for source in (one for one in actors if one.role is Role.SOURCE):
        stalls = unstable(source, threshold)
        found += [_of_stability(gap, stores, explained) for gap in stalls]
        for reader in readers:
            late = undelivered(source, reader, threshold)
            found += [_of_delivery(gap, reader, members, stalls, explained, lost) for gap in late]
    found += _of_absences(members, explained, threshold)
    found += _of_notices(actors)
    found += of_paths(lost)
    found += of_advice(seen)
    found += _of_clocks(clocks)
    found = [attrs.evolve(one, lines=_near(lines, one)) for one in _together(found)]
    packets = sum(one.witness.packets for one in seen)
    return Incident(sorted(found, key=lambda one: (-one.weight, one.since)), members, clocks, unread, packets)


def _near(lines: Sequence[LogLine], one: IncidentFinding) -> tuple[LogLine, ...]:
    if one.kind == "clock":
        return ()
    return tuple(at for at in lines if one.since - NEAR_NS <= at.time <= one.until + NEAR_NS)[:MAX_LINES]


def _together(found: Iterable[IncidentFinding]) -> list[IncidentFinding]:
    """Join findings with the same sentence, such as those of two sources of one context."""
    kept: dict[str, IncidentFinding] = {}
    for one in found:
        before = kept.get(one.text)
        kept[one.text] = one if before is None else attrs.evolve(before, more=before.more + one.more)
    return [*kept.values()]


def _of_stability(gap: Gap, stores: dict[str, EndpointLives], explained: list[Cause]) -> IncidentFinding:
    source = gap.source
    found = {
        index: causes.of_store(stores.get(split_domain(address)[1]), address, gap)
        for index, address in source.stores.items()
    }
    because = [one for one in found.values() if one is not None]
    explained += because
    well = [index for index, one in found.items() if one is None]
    groups = [(members, needed) for members, needed in source.needs if sum(at in well for at in members) < needed]
    span = f"{gap.still / 1e9:.1f} s"
    why = _sentence(because) if because else "the traces do not show why"
    strict = _strict(groups, well)
    if strict:
        needed, there, of = strict
        head = (
            f"Nothing stable for {span}, although {there} of {plural(of, 'store')} did their part: the option "
            f"ume_retention_intragroup_stability_behavior demands {needed}, and {why}"
        )
    elif source.stores and len(because) == len(source.stores) and _alone(because):
        head = (
            f"Nothing stable for {span}: source {source.endpoint} at {source.host} was cut off from all of its stores"
        )
        head += f" {_during(because)}{_behind(because)}"
    elif groups and gap.still >= THRESHOLD_NS * 0.8 and gap.still > 0.5 * gap.span:
        head = f"No quorum for {span}: {why}"
    else:
        head = f"Stability late by up to {gap.longest / 1e9:.1f} s for {gap.span / 1e9:.1f} s: {why}"
    return IncidentFinding(
        "stability",
        gap.since,
        gap.until,
        (1000 if gap.ended else 2000) + gap.span / SECOND,
        head,
        tuple(_stability_details(gap, groups, well)),
        (*gap.proofs, *(proof for one in because for proof in one.proofs)),
    )


def _stability_details(gap: Gap, groups: list[tuple[list[int], int]], well: list[int]) -> Iterator[str]:
    source = gap.source
    end = "were stable by" if gap.ended else "were not stable by"
    yield (
        f"topic {source.endpoint}: messages {gap.first} to {gap.last}, sent from {clock(gap.since)}, {end} "
        f"{clock(gap.until)}; the longest wait was {gap.longest / 1e9:.2f} s"
    )
    for members, needed in groups:
        there = sum(at in well for at in members)
        yield f"{needed} of {plural(len(members), 'store')} must hold a message; {there} did their part"
    if strict := _strict(groups, well):
        yield f"with the behavior `quorum`, {strict[1]} stores would have been enough, and no message would have waited"


def _strict(groups: Sequence[tuple[list[int], int]], well: Sequence[int]) -> tuple[int, int, int] | None:
    """Return the demand, the stores that did their part and the size of a group that asks for more than its quorum."""
    for members, needed in groups:
        there = sum(at in well for at in members)
        if needed > quorum_of(len(members)) and there >= quorum_of(len(members)):
            return needed, there, len(members)
    return None


def _alone(because: Sequence[Cause]) -> bool:
    return {one.because for one in because} <= {Because.CUT_TO, Because.CUT_FROM}


def _of_delivery(
    gap: Gap,
    reader: EndpointLives,
    members: Sequence[EndpointLives],
    stalls: Sequence[Gap],
    explained: list[Cause],
    lost: Sequence[PathLoss],
) -> IncidentFinding:
    source, because = gap.source, causes.of_reader(reader, gap)
    weight = 500 if gap.ended else 3000
    gone = next((one for one in members if source in one.lives), None)
    ended = source.wall(source.ended)
    if not gap.ended and ended < gap.until and source is (gone.lives[-1] if gone else source):
        how = f"ended ({source.ending})" if source.ending else "ended" if source.closed else "was killed"
        head = (
            f"Messages {gap.first} to {gap.last} never reached {reader.name}: the source {source.endpoint} {how} at "
            f"{clock(ended)} before it could send them again"
        )
    elif because is not None:
        explained.append(because)
        head = f"No delivery to {reader.name} for {gap.still / 1e9:.1f} s: {_sentence([because])}"
        if because.because is Because.LOSS:
            head = (
                f"Delivery to {reader.name} late by up to {gap.longest / 1e9:.1f} s: messages were lost on their way "
                f"and repaired; {because.text}"
            )
    else:
        head = f"Delivery to {reader.name} late by up to {gap.longest / 1e9:.1f} s: the traces do not show why"
    if because is None or because.because is Because.LOSS:
        head += on_the_way(gap, lost)
    if any(stall.since <= gap.until and gap.since <= stall.until for stall in stalls):
        weight -= 100
    end = "had been delivered by" if gap.ended else "had not all been delivered by"
    details = f"messages {gap.first} to {gap.last}, sent from {clock(gap.since)}, {end} {clock(gap.until)}"
    proofs = (*gap.proofs, *(because.proofs if because else ()))
    return IncidentFinding("delivery", gap.since, gap.until, weight + gap.span / SECOND, head, (details,), proofs)


def _of_absences(
    members: Iterable[EndpointLives], explained: Sequence[Cause], threshold: int
) -> Iterator[IncidentFinding]:
    """Yield the times for which an endpoint was down, if no gap named them."""
    known = {(one.who, one.since) for one in explained if one.because is Because.DOWN}
    for member in members:
        for since, until, before in member.downs():
            # A receiver has a life for each life of its source, so only killed ones were absent.
            if until - since <= threshold or (member.name, since) in known:
                continue
            if before.role is Role.RECEIVER and before.closed:
                continue
            gone = "silent" if before.ending == AWAY else "down"
            how = before.ending or ("ended in order" if before.closed else "was killed")
            text = (
                f"{member.name[0].upper()}{member.name[1:]} was {gone} for {(until - since) / 1e9:.1f} s, from "
                f"{clock(since)} to {clock(until)}: {how if before.ending else f'it {how}'}"
            )
            if before.role is Role.SOURCE:
                text += "; nothing of it was sent meanwhile"
            proof = Proof(before.path, before.records - 1, since)
            weight = (until - since) / SECOND + 100
            yield IncidentFinding("absence", since, until, weight, text, (), (proof,))


_LOSSES: Final = {
    "UnrecoverableLoss": "{who} reported messages {first} to {last} as lost for ever",
    "LostAtStore": "{who} gave up messages {first} to {last}: they have one copy less",
    "MessagesDropped": "{who} dropped messages {first} to {last} at a size limit",
    "ReleasedUnread": "{who} deleted messages before {number} that a receiver had not acknowledged",
    "RegistrationError": "{who} could not register: {text}",
}
"""The sentence of each reported event that stands for itself."""

TRANSIENT: Final = 20
"""Weight of an event that had no effect in the end."""

_HEAVY: Final = {"UnrecoverableLoss": 2500, "RegistrationError": 1500, "LostAtStore": 50, "MessagesDropped": 200}


def _of_notices(actors: Iterable[Actor]) -> Iterator[IncidentFinding]:
    """Yield what endpoints reported, once for each endpoint and kind of event over all of its lives."""
    found: dict[tuple[str, str, str], list[tuple[Actor, Notice]]] = defaultdict(list)
    for actor in actors:
        for one in actor.notices:
            if one.kind in _LOSSES:
                found[actor.name, actor.host, one.kind].append((actor, one))
    for (name, _, kind), those in found.items():
        owner, first = those[0]
        time, until = owner.wall(first.time), those[-1][0].wall(those[-1][1].time)
        fields = {key: value for key, value in first.fields.items() if key != TAG}
        text = _LOSSES[kind].format(who=name, **fields).removesuffix(".")
        more = f"; {plural(len(those) - 1, 'more report')}" if len(those) > 1 else ""
        sentence = f"{text[0].upper()}{text[1:]} (first at {clock(time)}{more})"
        proof = Proof(first.path, first.record, time)
        # A refusal that ended is a detail of a restart.
        went_on = kind == "RegistrationError" and those[-1][0].registered
        weight = TRANSIENT if went_on else _HEAVY.get(kind, 100)
        yield IncidentFinding(kind, time, until, weight, sentence, (), (proof,))


def _of_clocks(clocks: Iterable[HostOffset]) -> Iterator[IncidentFinding]:
    for one in clocks:
        if abs(one.ahead) - one.error > FAR_NS:
            side = "ahead" if one.ahead > 0 else "behind"
            text = (
                f"The wall clock of {one.host} is {abs(one.ahead) / 1e9:.2f} s {side}, known to "
                f"{one.error / MILLISECOND:.1f} ms from {plural(one.matched, 'message')}: correct its time service"
            )
            yield IncidentFinding("clock", 0, 0, 10, text)


def _sentence(because: Sequence[Cause]) -> str:
    """Return the causes in one sentence, those of one kind together."""
    parts = []
    for kind in Because:
        those = [one for one in because if one.because is kind]
        if not those:
            continue
        who, were = _names(those), "were" if len(those) > 1 else "was"
        match kind:
            case Because.DOWN:
                how = {one.text for one in those}
                told = f" ({how.pop()})" if len(how) == 1 and how != {""} else ""
                parts.append(f"{who} {were} down {_during(those)}{told}")
            case Because.NO_TRACE:
                parts.append(f"of {who} there is no trace")
            case Because.REFUSED:
                parts.append(f"{who} refused the source: {those[0].text}")
            case Because.SILENT:
                parts.append(f"{who} {were} stopped {_during(those)}")
            case Because.SLOW_DISK:
                disks = "the disks of" if len(those) > 1 else "the disk of"
                parts.append(f"{disks} {who} {were} slow, {those[0].text}, {_during(those)}")
            case Because.CUT_TO:
                parts.append(f"nothing reached {who} {_during(those)}, although {_they(those)} ran: {_path(those)}")
            case Because.CUT_FROM:
                parts.append(f"acknowledgements of {who} did not arrive {_during(those)}: {_path(those)}")
            case Because.UNANSWERED:
                parts.append(f"{who} {those[0].text} {_during(those)}")
            case Because.LATE:
                took = those[0].text.rpartition(" up to ")[2]
                parts.append(f"acknowledgements of {who} came up to {took} after the messages, {_during(those)}")
            case Because.LOSS:
                parts.append(f"{who}: {those[0].text}")
    return "; ".join(parts)


def _path(those: Sequence[Cause]) -> str:
    return "a path was cut" + _behind(those)


def _behind(those: Sequence[Cause]) -> str:
    """Return whose absence explains why nothing passed to or from other domains."""
    routers = sorted({one.router for one in those} - {""})
    if routers:
        return f", or the {plural(len(routers), 'router').partition(' ')[2]} at {' and '.join(routers)} did not work"
    domains = sorted({one.domain for one in those} - {0})
    names = " and ".join(map(str, domains))
    return (
        f", or the router to {plural(len(domains), 'domain').partition(' ')[2]} {names} did not work" if domains else ""
    )


def _they(those: Sequence[Cause]) -> str:
    return "they" if len(those) > 1 else "it"


def _names(those: Sequence[Cause]) -> str:
    names = [one.who for one in those]
    if len(names) > 1 and all(name.startswith("store ") for name in names):
        addresses = [name.removeprefix("store ") for name in names]
        return f"stores {', '.join(addresses[:-1])} and {addresses[-1]}"
    return " and ".join(names)


def _during(those: Sequence[Cause]) -> str:
    return f"from {clock(min(one.since for one in those))} to {clock(max(one.until for one in those))}"
