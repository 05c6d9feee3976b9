"""The sessions of a context, which share the rate limit and use a given protocol."""

import attrs
import pytest

from stablecast.core.errors import MisuseError
from stablecast.core.machine.units import MILLISECOND
from stablecast.transports.reliable import sources as module
from stablecast.transports.reliable.effects import SendDatagrams, SourceClosed, SourceEffect, Unblocked
from stablecast.transports.reliable.inputs import (
    CloseSession,
    DatagramsReceived,
    Flush,
    ForgetTopic,
    OpenSession,
    Submit,
)
from stablecast.transports.reliable.packets import Datagram, DatagramSeries, SourcePacket
from stablecast.transports.reliable.settings import RateSettings, SourceSettings
from stablecast.transports.reliable.source_session import SourceSession
from stablecast.transports.reliable.sources import SourceSessions
from tests.transports.reliable import invariants
from tests.transports.reliable.network import block

MS = MILLISECOND
SINGLE = SourceSettings(batch_bytes=1, linger_ns=0)
HALF = RateSettings(10 * MS, 60 * 8 * 100)
"""One datagram in each interval."""


@attrs.define
class Plain(SourceSessions):
    """The simplest protocol: a datagram is a letter and a number, for "all"; input is a number to repeat."""

    over: list[int] = attrs.field(factory=list)

    def begin(self, event: OpenSession) -> None:
        assert event.session in self.sessions

    def hear(self, session: SourceSession, octets: bytes, sender: str, now: int) -> bool:
        session.on_nak((int(octets),), sender, now)
        return True

    def encode(self, number: int, packet: SourcePacket) -> list[bytes]:
        if isinstance(packet, DatagramSeries):
            return [b"D%d" % (packet.number + place) for place in range(len(packet.payloads))]
        return [b"D%d" % packet.number if isinstance(packet, Datagram) else type(packet).__name__.encode()]

    def audience(self, number: int, to: str) -> tuple[str, ...]:
        return (to or "all",)

    def part(self, number: int) -> None:
        self.over.append(number)


def opened(rates: RateSettings, *numbers: int, settings: SourceSettings = SINGLE) -> Plain:
    sources = Plain(rates)
    for number in numbers:
        sources.receive(OpenSession(number, "", 1, settings=settings), 0)
    return sources


def submit(sources: SourceSessions, number: int, count: int = 1, now: int = 0) -> None:
    sources.receive(Submit(number, block(7, 0, count)), now)


def sent(effects: list[SourceEffect]) -> list[tuple[int, str, bytes]]:
    return [(one.session, one.to, b" ".join(one.datagrams)) for one in effects if isinstance(one, SendDatagrams)]


def timeout(sources: SourceSessions, now: int) -> list[SourceEffect]:
    sources.handle_timeout(now)
    invariants.check(sources)
    return sources.take_effects()


def test_one_session_at_the_limit_blocks_all_of_the_context() -> None:
    """`Unblocked` comes once, in the interval in which the last waiting datagram leaves."""
    sources = opened(HALF, 1, 2)
    submit(sources, 1, 3)
    assert sources.blocked
    with pytest.raises(MisuseError, match="Unblocked"):
        submit(sources, 2)
    assert sent(sources.take_effects()) == [(1, "all", b"D0")]
    assert sources.next_timeout() == 10 * MS
    assert sent(timeout(sources, 10 * MS)) == [(1, "all", b"D1")]
    *those, last = timeout(sources, 20 * MS)
    assert (sent(those), last) == ([(1, "all", b"D2")], Unblocked())
    submit(sources, 2, now=30 * MS)
    assert not sources.blocked


def test_packets_to_one_addressee_leave_together() -> None:
    sources = opened(RateSettings(10 * MS), 1, 2)
    submit(sources, 1, 3)
    submit(sources, 2)
    sources.receive(DatagramsReceived(2, ((b"0", "a"), (b"0", "b"))), 0)
    assert sent(sources.take_effects()) == [
        (1, "all", b"D0 D1 D2"),
        (2, "all", b"D0"),
        (2, "a", b"D0"),
        (2, "b", b"D0"),
    ]
    assert sources.take_effects() == []


def test_repairs_that_waited_leave_with_the_interval() -> None:
    sources = opened(RateSettings(10 * MS, 1 << 40, repair_bits=60 * 8 * 100), 1)
    submit(sources, 1, 2)
    sources.receive(DatagramsReceived(1, ((b"0", "a"), (b"1", "a"))), 0)
    assert sources.statistics(1)["rctlr_rx_msgs"] == 1
    sources.take_effects()
    assert sent(timeout(sources, 10 * MS)) == [(1, "a", b"D1")]


def test_a_session_that_ended_is_gone_and_nothing_waits_for_it() -> None:
    sources = opened(RateSettings(10 * MS), 1, 2)
    sources.receive(CloseSession(1), 0)
    assert timeout(sources, 0) == [SourceClosed(1)]
    assert sources.over == [1]
    with pytest.raises(MisuseError, match="no session 1"):
        submit(sources, 1)
    assert sources.next_timeout() is None
    sources.receive(OpenSession(1, "", 1), 0)


def test_messages_wait_for_a_flush_and_a_topic_may_go() -> None:
    sources = opened(RateSettings(10 * MS), 1, settings=SourceSettings())
    submit(sources, 1)
    assert sources.take_effects() == []
    sources.receive(ForgetTopic(1, 7), 0)
    sources.receive(Flush(1), 0)
    assert sent(sources.take_effects()) == [(1, "all", b"D0")]
    assert sources.get(1).marks.topics == {}


def test_a_number_taken_and_a_session_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SESSIONS", 1)
    sources = opened(RateSettings(10 * MS), 1)
    with pytest.raises(MisuseError, match="already"):
        sources.receive(OpenSession(1, "", 1), 0)
    with pytest.raises(MisuseError, match="at most 1"):
        sources.receive(OpenSession(2, "", 1), 0)


def test_the_statistics_count_the_window_and_the_queues() -> None:
    sources = opened(HALF, 1)
    submit(sources, 1, 3)
    found = sources.statistics(1)
    names = ("msgs_sent", "txw_msgs", "txw_bytes", "rctlr_data_msgs", "rctlr_rx_msgs")
    assert [found[name] for name in names] == [1, 3, 96, 2, 0]
