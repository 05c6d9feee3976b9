"""The choice of a relay: turns, silence, and keepalives."""

from collections import Counter
from itertools import pairwise

import pytest

from stablecast.core.errors import MisuseError
from stablecast.core.machine.seeded import Seeded
from stablecast.core.machine.units import SECOND
from stablecast.transports.resolution.udp.carriers import MAX_RELAYS, PROOF_INTERVAL, Relays
from stablecast.transports.resolution.udp.effects import Remark
from stablecast.transports.resolution.udp.settings import RelayTimes
from tests.transports.resolution.virtual import MS

A, B, C = "10.0.0.1:15380", "10.0.0.2:15380", "10.0.0.3:15380"
TIMES = RelayTimes()


def started(*addresses: str, times: RelayTimes = TIMES) -> Relays:
    relays = Relays(addresses, times, Seeded(1))
    relays.start(0)
    return relays


def kept_alive(relays: Relays, now: int) -> list[str]:
    due = relays.take_keepalives(now)
    for address in due:
        relays.sent(address, now)
    return due


def test_nothing_to_do_before_the_start_and_after_the_stop() -> None:
    relays = Relays((A, B))
    assert (relays.next(), relays.take_keepalives(0), relays.running) == (None, [], False)
    relays.on_heard(A, 0)
    relays.handle_timeout(100 * SECOND)
    relays.start(0)
    relays.stop()
    relays.on_heard(A, 1)
    assert (relays.next(), relays.take_keepalives(0), relays.running) == (None, [], False)


@pytest.mark.rows("T-215")
def test_keepalives_go_to_all_relays_at_once_and_when_nothing_else_was_sent() -> None:
    relays = started(A, B)
    assert relays.next() == 0
    assert kept_alive(relays, 0) == [A, B]
    assert kept_alive(relays, TIMES.keepalive - 1) == []
    assert relays.next() == TIMES.keepalive
    relays.sent(A, TIMES.keepalive - 1)
    relays.on_heard(A, TIMES.keepalive - 1)
    assert kept_alive(relays, TIMES.keepalive) == [B]
    assert kept_alive(relays, 2 * TIMES.keepalive - 1) == [A]


def test_a_relay_that_is_only_sent_to_is_asked_for_a_sign_of_life() -> None:
    """It answers keepalives only, and would count as inactive."""
    relays = started(A)
    kept_alive(relays, 0)
    relays.on_heard(A, 100 * MS)
    relays.sent(A, 400 * MS)
    assert relays.next() == 600 * MS
    relays.sent(A, 500 * MS)
    assert kept_alive(relays, 600 * MS) == [A]
    relays.on_heard(A, 700 * MS)
    relays.sent(A, 1000 * MS)
    assert relays.next() == 1200 * MS


def test_a_relay_gets_its_proof_back_at_once_and_again_in_time() -> None:
    """A busy context would else send no keepalive until the relay has forgotten it. A restart has another proof."""
    relays = started(A)
    kept_alive(relays, 0)
    for proof in (b"proof-01", b"proof-02"):
        relays.on_answer(A, proof)
        assert (relays.proof(A), kept_alive(relays, 100 * MS)) == (proof, [A])
    relays.on_answer(A, b"proof-02")
    relays.on_answer(B, b"stranger")
    assert (relays.proof(B), kept_alive(relays, 101 * MS)) == (None, [])
    for now in range(200 * MS, 100 * MS + PROOF_INTERVAL, 100 * MS):
        relays.on_heard(A, now)
        relays.sent(A, now)
        assert kept_alive(relays, now) == []
    assert kept_alive(relays, 100 * MS + PROOF_INTERVAL) == [A]
    relays.stop()
    assert relays.proof(A) is None


@pytest.mark.rows("T-218")
def test_active_relays_are_used_in_turn() -> None:
    """Each datagram to one of them, another one after 100 to 300 ms."""
    relays = started(A, B, C)
    used: Counter[str] = Counter()
    changes = [0]
    before = ""
    for now in range(20_000):
        if now % 100 == 0:
            relays.on_heard(A, now * MS)
            relays.on_heard(C, now * MS)
        picked = relays.pick(now * MS)
        used[picked] += 1
        if picked != before:
            changes.append(now)
            before = picked
    assert set(used) == {A, C}
    assert abs(used[A] - used[C]) < 2_000
    assert {100 <= later - earlier <= 300 for earlier, later in pairwise(changes[2:])} == {True}


def test_all_relays_are_tried_twice_as_fast_while_none_is_active() -> None:
    relays = started(A, B)
    turns = [relays.pick(now * MS) for now in range(10_000)]
    changes = [now for now, (earlier, later) in enumerate(pairwise(turns)) if earlier != later]
    assert {50 <= later - earlier <= 150 for earlier, later in pairwise(changes)} == {True}


def test_the_first_one_that_answers_is_used() -> None:
    relays = started(A, B, C)
    relays.on_heard(B, 5)
    relays.on_heard(C, 6)
    assert relays.pick(7) == B


@pytest.mark.rows("T-219")
def test_a_silent_relay_is_inactive_and_logged() -> None:
    """Two of three may fail."""
    relays = started(A, B, C)
    for address in (A, B, C):
        relays.on_heard(address, 0)
    relays.on_heard(C, 500 * MS)
    kept_alive(relays, 900 * MS)
    assert relays.next() == TIMES.activity_timeout
    relays.handle_timeout(TIMES.activity_timeout - 1)
    assert relays.take_remarks() == []
    relays.handle_timeout(TIMES.activity_timeout)
    assert relays.take_remarks() == [
        Remark(f"unicast resolver {address} went inactive", warning=True) for address in (A, B)
    ]
    assert {relays.pick(TIMES.activity_timeout + offset * MS) for offset in range(600)} == {C}
    assert relays.complaint() == ""


def test_without_any_active_relay_records_go_to_inactive_ones() -> None:
    relays = started(A)
    relays.on_heard(A, 0)
    relays.handle_timeout(2 * SECOND)
    texts = [remark.text for remark in relays.take_remarks()]
    assert texts == [
        f"unicast resolver {A} went inactive",
        "no active resolver instances, sending via inactive instance",
    ]
    assert relays.pick(3 * SECOND) == A
    assert relays.complaint() == f"no relay answers at {A}"
    relays.on_heard(A, 4 * SECOND)
    assert relays.complaint() == ""


@pytest.mark.parametrize("times", [RelayTimes(activity_timeout=0), RelayTimes(check=0)])
def test_relays_may_be_believed_for_ever(times: RelayTimes) -> None:
    relays = started(A, B, times=times)
    relays.on_heard(A, 0)
    kept_alive(relays, 0)
    relays.handle_timeout(10**6 * SECOND)
    assert (relays.take_remarks(), relays.next()) == ([], TIMES.keepalive)


def test_strangers() -> None:
    assert not started(A).accepts(B)
    open_to_all = started(A, times=RelayTimes(only_ours=False))
    assert open_to_all.accepts(B)
    open_to_all.on_heard(B, 0)
    assert open_to_all.complaint() != ""


@pytest.mark.parametrize("count", [0, MAX_RELAYS + 1])
def test_no_relay_and_too_many_relays_are_refused(count: int) -> None:
    with pytest.raises(MisuseError, match=f"not {count}"):
        Relays(tuple(f"10.0.0.{number}:15380" for number in range(count)))
