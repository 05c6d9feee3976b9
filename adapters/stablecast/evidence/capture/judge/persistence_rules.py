"""The rules of persistence in packets: P7, A4, A1, D3, S2 and C1; `holder_rules` has R1 and P2.

Endpoints are inferred: stores from the registrations that reach them, lives of sources from their streams, SRIs and
registrations, receivers from their registrations and acknowledgements. A capture may begin late, show one direction, or
lose packets. So a missing packet may have existed, and a rule is broken only if it is in every case.
"""

from collections import deque
from typing import Any, Final

import attrs

from stablecast.core.machine import serial
from stablecast.core.protocol import messages as msg
from stablecast.evidence.capture import statements
from stablecast.evidence.capture.decoder import SKEW_NS
from stablecast.evidence.capture.ip import endpoint_text
from stablecast.evidence.capture.judge.findings import CaptureFindings, RuleStanding
from stablecast.evidence.capture.judge.holder_rules import CopyRelease, RegIdHolders, Releases
from stablecast.evidence.capture.judge.lives import CapturedLife

MAX_KNOWN: Final = 1 << 16
"""Connections, lives, stores and RegIDs of each kind that are remembered; the oldest are dropped for new ones."""

EACH: Final = 1 << 10
"""Statements between two checks of these bounds."""

_LOOSE: Final = msg.AckFlag.EXPLICIT | msg.AckFlag.ARRIVAL_ORDER
"""Acknowledgements that may go back: of the application itself, or in arrival order."""


@attrs.define
class Claim:
    """A mention of a number that had not been seen on the stream.

    `proved`: it had not been sent, because the connection continued with the next number, not above this one. Nothing
    less proves it: captures often lose the last packets, to which somebody had an answer.
    """

    rule: str
    whose: str
    at: statements.At
    life: CapturedLife
    number: int
    proved: bool = False


@attrs.define
class Persistence:
    """The judge of statements in order; `close` settles the rest.

    Attributes:
        findings: Findings of all rules.
        lives: The lives of sources.
        stores: The address of a store, by life and index.
        processes: The reply address of the process behind a connection to a store.
        following: The next number on a connection of a stream.
        consumed: The last acknowledgement on a connection, by RegID and life.
        kin: Lives that had the same RegID at a store, in order.
        granted: Stores and RegIDs of each life.
        claims: Claims that may still turn out, in order.
        claimed: The highest number of them, by rule, endpoint and life.
        unproved: Those that the next message of their life proves, or clears, by life.
        taken: Statements so far.
        releases: Numbers that sources do not keep any more and that were not stable yet.
    """

    findings: CaptureFindings
    lives: dict[msg.Incarnation, CapturedLife] = attrs.field(factory=dict)
    stores: dict[tuple[msg.Incarnation, int], msg.Address] = attrs.field(factory=dict)
    processes: dict[statements.Ends, msg.Address] = attrs.field(factory=dict)
    following: dict[tuple[statements.Ends, msg.Incarnation], int] = attrs.field(factory=dict)
    consumed: dict[tuple[statements.Ends, int, msg.Incarnation], int] = attrs.field(factory=dict)
    kin: dict[tuple[msg.Address, int], list[msg.Incarnation]] = attrs.field(factory=dict)
    granted: dict[msg.Incarnation, set[tuple[msg.Address, int]]] = attrs.field(factory=dict)
    claims: deque[Claim] = attrs.field(factory=deque)
    claimed: dict[tuple[str, str, msg.Incarnation], int] = attrs.field(factory=dict)
    unproved: dict[msg.Incarnation, list[Claim]] = attrs.field(factory=dict)
    taken: int = 0
    releases: Releases = attrs.field(default=attrs.Factory(lambda self: Releases(self.findings), takes_self=True))
    holders: RegIdHolders = attrs.field(
        default=attrs.Factory(lambda self: RegIdHolders(self.findings), takes_self=True)
    )

    def judge_statement(self, statement: statements.Statement) -> None:
        match statement:
            case statements.SentStatement():
                self._on_sent(statement)
            case statements.RepeatedRun():
                life = self._life(statement.life)
                life.reach(life.extended(statement.wire_number) + statement.count - 1)
            case statements.NewConnection(at=at):
                self._begin(at.ends)
            case statements.MissingBytes(at=at):
                self._on_gap(at.ends)
            case statements.StatedMessage(at=at, message=message):
                self._on_said(at, message)
        self._settle(statement.at.time_ns)
        self.releases.settle(statement.at.time_ns - SKEW_NS)
        self.taken += 1
        if not self.taken % EACH:
            self._forget()

    def _forget(self) -> None:
        for table in (self.lives, self.stores, self.processes, self.following, self.consumed, self.kin, self.granted):
            forget_oldest(table, MAX_KNOWN)
        forget_oldest(self.holders.grants, MAX_KNOWN)

    def close(self, now_ns: int) -> None:
        """Settle all claims at the end of the capture."""
        self._settle(None)
        self.releases.close(now_ns)

    def _life(self, incarnation: msg.Incarnation) -> CapturedLife:
        life = self.lives.get(incarnation)
        if life is None:
            life = self.lives[incarnation] = CapturedLife(incarnation)
        return life

    def _on_sent(self, sent: statements.SentStatement) -> None:
        life, key = self._life(sent.life), (sent.at.ends, sent.life)
        number, whose = life.extended(sent.wire_number), endpoint_text(sent.at.ends[0])
        last = number + sent.count - 1
        if sent.stream:
            expected = self.following.get(key)
            self.following[key] = last + 1
            if number == expected and sent.life in self.unproved:
                for claim in self.unproved.pop(sent.life):
                    claim.proved |= number <= claim.number
            if expected in (None, number):
                self.findings.fine("D3", whose, sent.count)
            else:
                self.findings.broken("D3", whose, sent.at.frame, f"number {number} is sent, {expected} comes next")
            self._reuse(sent, whose, number, last)
        self.findings.timeline.add(("source", whose), "sent", sent.life, sent.at.time_ns, last)
        life.payload += sent.size if life.newest is None or last > life.newest else 0
        life.first = number if life.first is None else life.first
        life.reach(last)

    def _reuse(self, sent: statements.SentStatement, whose: str, first: int, last: int) -> None:
        """Judge S2: no older life of this source has this number stable."""
        for key in self.granted.get(sent.life, ()):
            lives = self.kin.get(key, [])
            if sent.life not in lives:
                continue
            for older in lives[: lives.index(sent.life)]:
                one = self._life(older)
                had = [number for held in one.acked.values() for number, _ in held.within(first, last + 1)]
                if not had:
                    self.findings.fine("S2", whose, sent.count)
                    continue
                sure = [number for number in had if one.stable(number, number + 1) is RuleStanding.FINE]
                text = f"life {sent.life:#x} sends number {min(sure or had)}, which life {older:#x} had"
                if sure:
                    self.findings.broken("S2", whose, sent.at.frame, f"{text} acknowledged by all stores")
                else:
                    self.findings.cannot_tell("S2", whose, sent.at.frame, f"{text} acknowledged by some stores")

    def _begin(self, ends: statements.Ends) -> int:
        """Forget a connection that begins again; return the number of lives on it."""
        streams = [key for key in self.following if key[0] == ends]
        for key in streams:
            del self.following[key]
        for last in [key for key in self.consumed if key[0] == ends]:
            del self.consumed[last]
        return len(streams)

    def _on_gap(self, ends: statements.Ends) -> None:
        """Forget the state of a connection with missing bytes."""
        for _ in range(self._begin(ends)):
            self.findings.cannot_tell("D3", endpoint_text(ends[0]), 0, "some of its stream is not in the capture")
        for life in self.lives.values():
            life.doubt(ends)

    def _on_said(self, at: statements.At, message: object) -> None:
        match message:
            case msg.SourceInfo():
                self._on_information(message)
                for entry in message.stores:
                    self.stores[message.incarnation, entry.index] = entry.address
            case msg.Register():
                self.stores[message.incarnation, message.store_index] = endpoint_text(at.ends[1])
                self.processes[at.ends] = message.reply_to
            case msg.Registered():
                self._on_granted(at, message)
            case msg.Deregistered():
                store = self._store(message.incarnation, message.store_index)
                self.holders.forget(store, message.reg_id)
                self.kin.pop((store, message.reg_id), None)
            case msg.StableAck(nack=False):
                self._on_stable(at, message)
            case msg.ConsumptionAck():
                self._on_consumed(at, message)
            case msg.Keepalive():
                self.holders.use(at, endpoint_text(at.ends[1]), message.reg_id, self.processes.get(at.ends))
            case msg.LateJoinInfo(store_index=msg.ANY_STORE):
                self._on_retained(at, message)

    def _on_information(self, info: msg.SourceInfo) -> None:
        life = self._life(info.incarnation)
        life.inform(info)
        high = life.extended(info.high)
        for claim in self.unproved.get(info.incarnation, ()):
            claim.proved |= high < claim.number

    def _store(self, life: msg.Incarnation, index: int) -> msg.Address:
        return self.stores.get((life, index), f"store {index} of life {life:#x}")

    def _on_granted(self, at: statements.At, granted: msg.Registered) -> None:
        store = self._store(granted.incarnation, granted.store_index)
        life = self._life(granted.incarnation)
        self.holders.grant(at, store, endpoint_text(at.ends[1]), granted, life.extended(granted.low))
        if granted.role is msg.Role.SOURCE:
            high = life.extended(granted.high) if granted.low != (granted.high + 1) % serial.MODULUS else None
            life.answer(at, granted.store_index, high)
        lives = self.kin.setdefault((store, granted.reg_id), [])
        if granted.role is msg.Role.SOURCE and granted.incarnation not in lives:
            lives.append(granted.incarnation)
            self.granted.setdefault(granted.incarnation, set()).add((store, granted.reg_id))

    def _on_stable(self, at: statements.At, ack: msg.StableAck) -> None:
        life = self._life(ack.incarnation)
        first, last = life.extended(ack.first), life.extended(ack.last)
        store = self._store(ack.incarnation, ack.store_index)
        self.findings.timeline.add(("store", store), "held", ack.incarnation, at.time_ns, last)
        self._claim("P7", store, at, life, last)
        life.acknowledge(at, ack.store_index, first, last)

    def _on_consumed(self, at: statements.At, ack: msg.ConsumptionAck) -> None:
        life = self._life(ack.incarnation)
        number, key = life.extended(ack.number), (at.ends, ack.receiver_reg_id, ack.incarnation)
        process = self.processes.get(at.ends)
        who = "receiver", process or endpoint_text(at.ends[0])
        whose = " ".join(who)
        before = self.consumed.get(key, number)
        repeats = ack.first != msg.FROM_THE_START  # Confirmations are ranges, repeated where a connection broke.
        if key in self.consumed and not (repeats or ack.flags & _LOOSE):
            if number < before:
                self.findings.broken("A1", whose, at.frame, f"number {number} is acknowledged after number {before}")
            else:
                self.findings.fine("A1", whose)
        self.consumed[key] = max(number, before)
        self.findings.timeline.add(who, "consumed", life.incarnation, at.time_ns, number)
        self._claim("A4", whose, at, life, number)
        if not ack.flags & msg.AckFlag.USER_REG_ID:  # Several receivers may have one number of their users.
            self.holders.use(at, endpoint_text(at.ends[1]), ack.receiver_reg_id, process, number)

    def _on_retained(self, at: statements.At, info: msg.LateJoinInfo) -> None:
        """Judge C1; acknowledgements of messages before the capture are unknown."""
        life = self._life(info.incarnation)
        low = life.extended(info.low)
        if life.first is not None and low > life.first:
            self.releases.judge_release(CopyRelease(endpoint_text(at.ends[0]), at, life, life.first, low, life.payload))

    def _claim(self, rule: str, whose: str, at: statements.At, life: CapturedLife, number: int) -> None:
        if life.newest is not None and number <= life.newest:
            self.findings.fine(rule, whose)
        elif number > self.claimed.get((rule, whose, life.incarnation), number - 1):
            claim = Claim(rule, whose, at, life, number)
            self.claims.append(claim)
            self.unproved.setdefault(life.incarnation, []).append(claim)
            self.claimed[rule, whose, life.incarnation] = number

    def _settle(self, now: int | None) -> None:
        """Settle the claims that are old enough, or all of them at the end."""
        while self.claims and (now is None or now - self.claims[0].at.time_ns > SKEW_NS):
            self._conclude(self.claims.popleft())

    def _conclude(self, claim: Claim) -> None:
        key = claim.rule, claim.whose, claim.life.incarnation
        if self.claimed.get(key) == claim.number:
            del self.claimed[key]
        waiting = self.unproved.get(claim.life.incarnation, [])
        if waiting and waiting[0] is claim:
            del waiting[0]
        if not waiting:
            self.unproved.pop(claim.life.incarnation, None)
        newest, text = claim.life.newest, f"number {claim.number} is acknowledged"
        if newest is None or claim.number > newest:
            if claim.proved:
                text += f", and the newest that was sent is {newest}"
                self.findings.broken(claim.rule, claim.whose, claim.at.frame, text)
            else:
                text += ", and the capture does not show whether it was sent"
                self.findings.cannot_tell(claim.rule, claim.whose, claim.at.frame, text)
        elif claim.proved:
            text += " before it is sent, or the capture is of several places"
            self.findings.cannot_tell(claim.rule, claim.whose, claim.at.frame, text)


def forget_oldest(table: dict[Any, Any], most: int) -> None:
    """Drop the oldest entry of a table beyond its bound."""
    if len(table) > most:
        del table[next(iter(table))]
