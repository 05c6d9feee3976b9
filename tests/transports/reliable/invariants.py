"""Invariants of the reliable transports, to be checked between inputs."""

from stablecast.transports.reliable.receiver import ReceiverMachine, SessionReception
from stablecast.transports.reliable.settings import MAX_MISSING
from stablecast.transports.reliable.source_session import SourceSession
from stablecast.transports.reliable.sources import SourceSessions


def check(machine: ReceiverMachine | SessionReception | SourceSession | SourceSessions) -> None:
    """Assert what must hold between inputs."""
    match machine:
        case ReceiverMachine():
            _check_reception(machine.session)
        case SessionReception():
            _check_reception(machine)
        case SourceSession():
            _check_session(machine)
        case SourceSessions():
            for session in machine.sessions.values():
                _check_session(session)
            queued = {item.session for item in (*machine.limiter.data, *machine.limiter.repairs)}
            assert queued <= set(machine.sessions)


def _check_reception(session: SessionReception) -> None:
    gaps = session.gaps
    assert not session.arrived
    assert not gaps.missing or gaps.high is not None
    assert list(gaps.missing) == sorted(gaps.missing)
    assert all(gaps.trail <= number <= (gaps.high or 0) for number in gaps.missing)
    wanted = {(gap.due, number) for number, gap in gaps.missing.items() if gap.due is not None}
    assert wanted <= set(gaps.deadlines)
    assert len(gaps.missing) <= MAX_MISSING


def _check_session(session: SourceSession) -> None:
    window = session.window
    assert window.trail - 1 <= window.sent <= window.lead
    assert list(window.datagrams) == list(range(window.trail, window.lead + 1))
    assert window.payload_bytes == sum(map(len, window.datagrams.values()))
    assert session.batcher.size == sum(map(len, session.batcher.pending)) <= session.batcher.room
    assert all(number <= window.sent for answers in session.answers.values() for number in answers.sent)


def abstract(machine: ReceiverMachine | SourceSession) -> tuple[object, ...]:
    """Return state, newest number and gaps of a receiver; or state, trail, newest number and queue of a source."""
    if isinstance(machine, ReceiverMachine):
        return (machine.state.name, machine.session.gaps.high, tuple(machine.session.gaps.missing))
    window = machine.window
    return (machine.state.name, window.trail, window.sent, window.lead - window.sent)
