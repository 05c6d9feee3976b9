"""Captures of several hosts, read to actors: where each was made, what passed it, and what the doctor advises."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs

from stablecast.core.protocol.messages import Role
from stablecast.evidence.capture.decoder import packets
from stablecast.evidence.capture.doctor import CaptureAdvice, Examination
from stablecast.evidence.capture.files import CaptureError, CutError, frames
from stablecast.evidence.capture.judge.findings import CaptureFindings
from stablecast.evidence.capture.judge.multicast_rules import Multicast
from stablecast.evidence.capture.statements import StatedDatagram, StatementReader
from stablecast.evidence.capture.traffic_survey import survey
from stablecast.evidence.incident.actors import Actor
from stablecast.evidence.incident.captured import CapturedActor, CapturedActs
from stablecast.evidence.incident.datagram_paths import DatagramLedger
from stablecast.evidence.incident.witness import CaptureWitness, host_of


@attrs.define
class ReadCapture:
    """A capture that was read to its end.

    Attributes:
        advice: The findings of the doctor.
        times: Times of the packets that the advice names, ns.
    """

    witness: CaptureWitness
    actors: list[CapturedActor]
    ledger: DatagramLedger
    advice: list[CaptureAdvice]
    times: dict[int, int] = attrs.field(factory=dict)


def read_captures(paths: Iterable[Path], told: Sequence[str] = ()) -> tuple[list[ReadCapture], list[str]]:
    """Return what captures show, and a sentence for each file that could not be read to its end.

    `told` is what the caller knows of ports, as `kind=port`.
    """
    found: list[ReadCapture] = []
    unread: list[str] = []
    hosts: dict[Path, str] = {}
    for path in paths:
        try:
            hosts[path] = host_of(path)
        except CaptureError as error:
            unread.append(str(error))
    for path, host in hosts.items():
        address = host or host_of(path, hosts.values())
        one = _read(CaptureWitness(path, address), told, unread)
        if one.witness.packets:
            found.append(one)
    return found, unread


def _read(witness: CaptureWitness, told: Sequence[str], unread: list[str]) -> ReadCapture:
    path = witness.path
    plan, reader = survey(path, told), StatementReader()
    acts, ledger = CapturedActs(witness, plan), DatagramLedger(witness)
    examination, copies = Examination(), Multicast(CaptureFindings())
    try:
        for packet in packets(path, plan, brief=True, on_segment=acts.add_segment):
            witness.pulse.beat(packet.time_ns, packet.number)
            examination.add_packet(packet)
            if not packet.layers:
                continue
            acts.add_packet(packet)
            for statement in reader.statements_of(packet):
                if isinstance(statement, StatedDatagram):
                    acts.add_datagram(statement)
                if not isinstance(statement, StatedDatagram):
                    acts.add(statement, packet)
                elif copies.judge_datagram(statement):
                    examination.add_datagram(statement)
                    ledger.add(statement)
                else:
                    examination.add_copy(statement)
    except CutError as error:
        unread.append(str(error))
    advice = [*examination.findings(), *examination.quality.findings(examination.thresholds)]
    return ReadCapture(witness, [*acts.actors()], ledger, advice, _times(path, advice))


def _times(path: Path, advice: Iterable[CaptureAdvice]) -> dict[int, int]:
    wanted = {number for one in advice for number in one.frames}
    found: dict[int, int] = {}
    if wanted:
        last = max(wanted)
        for frame in frames(path):
            if frame.number in wanted:
                found[frame.number] = frame.time_ns
            if frame.number >= last:
                break
    return found


def chosen(traced: Sequence[Actor], captured: Iterable[CapturedActor]) -> list[Actor]:
    """Return the best evidence of each endpoint: its trace, else the capture of its host, else another capture."""
    known = {_key(one) for one in traced}
    views: dict[Any, dict[Path, list[CapturedActor]]] = defaultdict(lambda: defaultdict(list))
    for one in captured:
        if _key(one) not in known:
            views[_key(one)][one.path].append(one)
    best = [max(some.values(), key=_worth) for some in views.values()]
    return [*traced, *(one for some in best for one in some)]


def _key(one: Actor) -> tuple[object, ...]:
    match one.role:
        case Role.STORE:
            return one.role, one.address
        case Role.SOURCE:
            return one.role, one.life
        case _:
            return one.role, one.host, one.life


def _worth(some: Sequence[CapturedActor]) -> tuple[bool, bool, int]:
    return some[0].own, not some[0].witness.address, some[0].witness.packets
