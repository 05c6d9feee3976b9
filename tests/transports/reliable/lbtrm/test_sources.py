"""The LBT-RM sources of a context: bytes to the group, NAKs from any receiver."""

from typing import Any

import pytest

from stablecast.core.errors import MisuseError
from stablecast.core.machine.units import MILLISECOND, SECOND
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
from stablecast.transports.reliable.lbtrm import LbtrmSources
from stablecast.transports.reliable.settings import LBTRM_RATES, RateSettings, SourceSettings
from stablecast.transports.wire import lbtrm
from stablecast.transports.wire.reliable_packets import Format, Reason
from tests.transports.reliable import invariants
from tests.transports.reliable.network import GROUP, NAK_PORT, SESSION_ID, block

MS = MILLISECOND
SINGLE = SourceSettings(batch_bytes=1, linger_ns=SECOND)
NAMES: dict[str, Any] = {"nak_port": NAK_PORT, "session_id": SESSION_ID}


def opened(rates: RateSettings = LBTRM_RATES, settings: SourceSettings = SINGLE) -> LbtrmSources:
    machine = LbtrmSources(rates)
    machine.receive(OpenSession(1, GROUP, SESSION_ID, NAK_PORT, settings), 0)
    return machine


def submit(machine: LbtrmSources, first: int, count: int = 1, now: int = 0, session: int = 1) -> None:
    machine.receive(Submit(session, block(7, first, count)), now)
    invariants.check(machine)


def packets(effects: list[SourceEffect]) -> list[lbtrm.Packet]:
    return [lbtrm.decode(octets) for sent in effects if isinstance(sent, SendDatagrams) for octets in sent.datagrams]


def nak(*numbers: int, form: int = Format.SELECTIVE, **other: int) -> bytes:
    return lbtrm.encode(lbtrm.Nak(**{**NAMES, **other}, sqns=numbers, format=form))


def test_data_is_what_the_product_sends() -> None:
    """As observed: unicast NAKs, group size 3, symbol sqn mod 8; a retransmission differs in one flag."""
    machine = opened()
    for first in range(10):
        submit(machine, first)
    *_, last = packets(machine.take_effects())
    assert last == lbtrm.Data(**NAMES, sqn=9, trail=0, flags=0x80, symbol=1, payload=block(7, 9, 1))
    machine.receive(DatagramsReceived(1, ((nak(9), "10.0.0.9:5000"),)), 0)
    (again,) = packets(machine.take_effects())
    assert again == lbtrm.Data(**NAMES, sqn=9, trail=0, flags=0xA0, symbol=1, payload=block(7, 9, 1))


def test_everything_goes_to_the_group_in_as_few_effects_as_sessions_take_turns() -> None:
    machine = opened()
    machine.receive(OpenSession(2, "224.10.10.11:14400", 5, 14391, SINGLE), 0)
    submit(machine, 0, 3)
    submit(machine, 0, session=2)
    sent = machine.take_effects()
    assert [(e.session, e.to, len(e.datagrams)) for e in sent if isinstance(e, SendDatagrams)] == [
        (1, GROUP, 3),
        (2, "224.10.10.11:14400", 1),
    ]
    assert machine.take_effects() == []


def test_session_messages_and_ncfs() -> None:
    """T29."""
    machine = opened()
    submit(machine, 0)
    for now in (0, 1):
        machine.receive(DatagramsReceived(1, ((nak(0), "a"),)), now)
    assert packets(machine.take_effects())[-1] == lbtrm.Ncf(**NAMES, trail=0, reason=Reason.IGNORED, sqns=(0,))
    assert machine.next_timeout() == 200 * MS
    machine.handle_timeout(200 * MS)
    assert packets(machine.take_effects()) == [lbtrm.SessionMessage(**NAMES, sm_sqn=0, lead=0, trail=0)]


def test_other_datagrams_than_own_naks_are_dropped_and_counted() -> None:
    machine = opened()
    submit(machine, 0)
    machine.take_effects()
    strange = (
        b"?",
        nak(0, session_id=1),
        nak(0, nak_port=1),
        nak(0, form=Format.PARITY),
        lbtrm.encode(lbtrm.SessionMessage(**NAMES, sm_sqn=0, lead=0, trail=0)),
    )
    machine.receive(DatagramsReceived(1, tuple((octets, "a") for octets in strange)), 0)
    assert machine.take_effects() == []
    assert machine.statistics(1)["dgrams_dropped"] == len(strange)


def test_messages_wait_for_a_flush() -> None:
    machine = opened(settings=SourceSettings())
    submit(machine, 0)
    assert machine.take_effects() == []
    machine.receive(Flush(1), 0)
    assert len(packets(machine.take_effects())) == 1


def test_a_closed_topic_is_no_longer_announced() -> None:
    machine = opened()
    submit(machine, 0)
    machine.take_effects()
    machine.receive(ForgetTopic(1, 7), 0)
    while (due := machine.next_timeout()) is not None and due < 30 * SECOND:
        machine.handle_timeout(due)
    assert not any(isinstance(packet, lbtrm.Data) for packet in packets(machine.take_effects()))


def test_at_the_rate_limit_the_context_is_blocked() -> None:
    machine = opened(RateSettings(10 * MS, 60 * 8 * 100))
    submit(machine, 0, 2)
    assert machine.blocked
    with pytest.raises(MisuseError):
        submit(machine, 2)
    machine.handle_timeout(10 * MS)
    effects = machine.take_effects()
    assert [getattr(packet, "sqn", None) for packet in packets(effects)] == [0, 1]
    assert effects[-1] == Unblocked()
    assert not machine.blocked


def test_repairs_that_waited_leave_with_the_interval_and_are_counted() -> None:
    machine = opened(RateSettings(10 * MS, 1 << 40, repair_bits=60 * 8 * 100))
    submit(machine, 0, 2)
    machine.receive(DatagramsReceived(1, ((nak(0), "a"), (nak(1), "a"))), 0)
    found = machine.statistics(1)
    names = ("msgs_sent", "txw_msgs", "txw_bytes", "rctlr_data_msgs", "rctlr_rx_msgs")
    assert [found[name] for name in names] == [2, 2, 64, 0, 1]
    machine.take_effects()
    machine.handle_timeout(10 * MS)
    (again,) = packets(machine.take_effects())
    assert isinstance(again, lbtrm.Data)
    assert (again.sqn, again.flags) == (1, 0xA0)


def test_a_number_taken_and_a_session_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SESSIONS", 1)
    machine = opened()
    for number, text in ((1, "already"), (2, "at most 1")):
        with pytest.raises(MisuseError, match=text):
            machine.receive(OpenSession(number, GROUP, SESSION_ID), 0)


def test_a_session_leaves_in_silence() -> None:
    """As observed, there is no message for the end. The session ends after it lingered."""
    machine = opened()
    submit(machine, 0)
    machine.take_effects()
    machine.receive(CloseSession(1), 0)
    assert machine.take_effects() == []
    machine.handle_timeout(SECOND)
    effects = machine.take_effects()
    assert effects[-1] == SourceClosed(1)
    assert machine.groups == {}
    assert machine.next_timeout() is None
    with pytest.raises(MisuseError, match="no session"):
        machine.receive(DatagramsReceived(1, ()), 0)
