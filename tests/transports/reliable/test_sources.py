"""The sessions of a context: they share the rate limit."""

import pytest

from stablecast.core.errors import MisuseError
from stablecast.core.units import MILLISECOND
from stablecast.transports.reliable import sources as module
from stablecast.transports.reliable.effects import SourceClosed, Unblocked
from stablecast.transports.reliable.inputs import Submit
from stablecast.transports.reliable.packets import Data
from stablecast.transports.reliable.settings import RateSettings, SourceSettings
from stablecast.transports.reliable.sources import Sources
from tests.transports.reliable.network import block

MS = MILLISECOND
SINGLE = SourceSettings(batch_bytes=1, linger_ns=0)


def opened(rates: RateSettings, *numbers: int) -> Sources:
    sources = Sources.of(rates)
    for number in numbers:
        sources.open(number, SINGLE, 20)
    return sources


def submit(sources: Sources, number: int, count: int = 1, now: int = 0) -> None:
    sources.submit(Submit(number, block(7, 0, count)), now)


def sent(sources: Sources) -> list[tuple[int, int]]:
    return [(said.session, said.packet.number) for said in sources.take_said() if isinstance(said.packet, Data)]


def test_one_session_at_the_limit_blocks_all_of_the_context() -> None:
    """And `Unblocked` comes once, with the interval in which the last that waited leaves."""
    sources = opened(RateSettings(10 * MS, 60 * 8 * 100), 1, 2)
    submit(sources, 1, 3)
    assert sources.blocked
    with pytest.raises(MisuseError, match="Unblocked"):
        submit(sources, 2)
    assert sources.next_timeout() == 10 * MS
    assert sources.handle_timeout(10 * MS) == []
    sources.check_invariants()
    assert sources.handle_timeout(20 * MS) == [Unblocked()]
    assert sent(sources) == [(1, 0), (1, 1), (1, 2)]
    submit(sources, 2, now=30 * MS)
    assert not sources.blocked


def test_repairs_that_waited_leave_with_the_interval() -> None:
    sources = opened(RateSettings(10 * MS, 1 << 40, repair_bits=60 * 8 * 100), 1)
    submit(sources, 1, 2)
    sources.get(1).on_nak((0, 1), "", 0)
    assert sources.statistics(1)["rctlr_rx_msgs"] == 1
    sources.handle_timeout(10 * MS)
    assert sent(sources) == [(1, 0), (1, 1), (1, 0), (1, 1)]


def test_a_session_that_ended_is_gone_and_nothing_waits_for_it() -> None:
    sources = opened(RateSettings(10 * MS), 1, 2)
    sources.get(1).close(True, 0)
    assert sources.handle_timeout(0) == [SourceClosed(1)]
    with pytest.raises(MisuseError, match="no session 1"):
        sources.get(1)
    assert sources.next_timeout() is None
    sources.open(1, SINGLE, 20)


def test_a_number_taken_and_a_session_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SESSIONS", 1)
    sources = opened(RateSettings(10 * MS), 1)
    with pytest.raises(MisuseError, match="already"):
        sources.open(1, SINGLE, 20)
    with pytest.raises(MisuseError, match="at most 1"):
        sources.open(2, SINGLE, 20)


def test_the_statistics_tell_what_is_held_and_what_waits() -> None:
    sources = opened(RateSettings(10 * MS, 60 * 8 * 100), 1)
    submit(sources, 1, 3)
    found = sources.statistics(1, clients=2)
    names = ("msgs_sent", "txw_msgs", "txw_bytes", "rctlr_data_msgs", "rctlr_rx_msgs", "num_clients")
    assert [found[name] for name in names] == [1, 3, 96, 2, 0, 2]
