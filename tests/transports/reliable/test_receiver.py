"""A receiver's session without a protocol: decoding, requests, counters, and the end."""

from collections.abc import Sequence
from enum import IntEnum

import attrs

from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.reliable.effects import Received, ReceiverEffect, SendDatagrams
from stablecast.transports.reliable.inputs import LeaveSession, SessionDatagrams
from stablecast.transports.reliable.packets import Datagram, NakRefusal, SessionStatus, SourcePacket
from stablecast.transports.reliable.receiver import OtherDatagram, ReceiverMachine
from stablecast.transports.reliable.settings import ReceiverSettings
from stablecast.transports.wire.errors import WireError
from tests.transports.reliable import invariants
from tests.transports.reliable.network import block

SETTINGS = ReceiverSettings(initial_backoff_ns=0)
ASIDES = {b"F": OtherDatagram.FOREIGN, b"O": OtherDatagram.OTHER, b"R": OtherDatagram.RESET}


class Phase(IntEnum):
    """The states of the simplest session."""

    HERE = 0
    GONE = 1


@attrs.define
class Plain(ReceiverMachine):
    """The simplest protocol: `D5` is the datagram 5, `S7` states that 7 is the newest, `N5` refuses 5."""

    FINAL = Phase.GONE
    settings: ReceiverSettings = SETTINGS
    state: Phase = Phase.HERE
    due: int | None = None
    woken: list[int] = attrs.field(factory=list)
    signs: list[int] = attrs.field(factory=list)

    def parse(self, octets: bytes) -> SourcePacket | OtherDatagram:
        if octets in ASIDES:
            return ASIDES[octets]
        if not octets[1:].isdigit():
            raise WireError("no number")
        number = int(octets[1:])
        match octets[:1]:
            case b"D":
                return Datagram(number, 0, block(7, number, 1))
            case b"S":
                return SessionStatus(0, number, 0)
            case _:
                return NakRefusal(0, 1, (number,))

    def series(self, datagrams: Sequence[bytes | memoryview], number: int) -> tuple[list[bytes | memoryview], int]:
        found: list[bytes | memoryview] = []
        for place, octets in enumerate(datagrams):
            if octets != b"D%d" % (number + place):
                break
            found.append(block(7, number + place, 1))
        return found, 0

    def nak(self, numbers: tuple[int, ...]) -> bytes:
        return repr(numbers).encode()

    def on_heard(self, now: int) -> None:
        self.signs.append(now)

    def on_reset(self, now: int) -> None:
        self.state = Phase.GONE

    def on_leave(self, now: int) -> None:
        self.state = Phase.GONE

    def on_time(self, now: int) -> None:
        self.woken.append(now)

    def next_duty(self) -> int | None:
        return self.due


def hear(machine: Plain, *datagrams: bytes, now: int = 0) -> list[ReceiverEffect]:
    machine.receive(SessionDatagrams(datagrams), now)
    invariants.check(machine)
    return machine.take_effects()


def test_a_read_is_delivered_together_and_gaps_are_requested() -> None:
    machine = Plain("a:1", 5, 1, 3)
    assert machine.heard_at == 3
    received, asked = hear(machine, b"D0", b"D2", now=9)
    assert isinstance(received, Received)
    assert [item.first for item in received.items if isinstance(item, Run)] == [0, 2]
    assert asked == SendDatagrams(0, "a:1", (b"(1,)",))
    assert (machine.heard_at, invariants.abstract(machine)) == (9, ("HERE", 2, (1,)))


def test_session_messages_and_refusals_are_signs_of_life_and_what_is_not_ours_is_none() -> None:
    machine = Plain("a:1", 5, 1, 0)
    hear(machine, b"S3", b"N2", now=1)
    assert machine.session.gaps.high == 3
    hear(machine, b"F", b"O", b"?", b"\1oo", now=2)
    found = machine.statistics
    assert machine.signs == [1, 1]
    assert (found.dgrams_dropped_sid, found.dgrams_dropped_other, found.dgrams_dropped_size) == (1, 1, 2)
    assert (found.msgs_rcved, found.bytes_rcved, found.ncfs_ignored) == (6, 10, 1)


def test_after_the_end_nothing_is_taken_and_nothing_is_due() -> None:
    """Datagrams before a reset in the same read are delivered."""
    machine = Plain("a:1", 5, 1, 0)
    (received,) = hear(machine, b"D0", b"R", b"D1")
    assert isinstance(received, Received)
    assert machine.next_timeout() is None
    machine.handle_timeout(5)
    assert machine.woken == []
    assert hear(machine, b"D2") == []
    left = Plain("a:1", 5, 1, 0)
    left.receive(LeaveSession(), 0)
    assert left.over


def test_the_earliest_duty_is_the_timeout() -> None:
    machine = Plain("a:1", 5, 1, 0)
    assert machine.next_timeout() is None
    machine.due = 1 << 60
    hear(machine, b"D0", b"D2", now=0)
    due = machine.next_timeout()
    assert due is not None
    assert due < 1 << 60
    machine.handle_timeout(due)
    assert machine.woken == [due]
    assert machine.take_effects() == [SendDatagrams(0, "a:1", (b"(1,)",))]


def test_artificial_loss_is_counted_before_anything_is_read() -> None:
    machine = Plain("a:1", 5, 1, 0, ReceiverSettings(drop_permille=1000))
    assert hear(machine, b"D0") == []
    assert (machine.statistics.dgrams_dropped_test, machine.statistics.msgs_rcved) == (1, 0)


def test_datagrams_that_continue_the_session_are_handled_at_once() -> None:
    """After the series breaks, each datagram is handled alone."""
    machine = Plain("a:1", 5, 1, 0)
    hear(machine, b"D0", now=1)
    (received,) = hear(machine, b"D1", b"D2", b"S3", b"D3", now=2)
    assert isinstance(received, Received)
    assert invariants.abstract(machine) == ("HERE", 3, ())
    assert (machine.statistics.msgs_rcved, machine.statistics.bytes_rcved, machine.heard_at) == (5, 10, 2)
    assert machine.signs == [1, 2, 2], "the series is no change of its state"
