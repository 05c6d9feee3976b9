"""The elections of a store: which sources have one, and what it means for their registrations."""

import json
from typing import Any

import attrs
import cattrs
import pytest

from stablecast.core.machine.seeded import Seeded
from stablecast.core.protocol.effects import Effect, StopProxy
from stablecast.core.protocol.inputs import ProxyOver, ProxyQuorum
from stablecast.core.protocol.messages import ElectionToken, Role
from stablecast.core.protocol.settings import StoreConfig
from stablecast.core.store.clients import ClientRecord
from stablecast.core.store.proxy_election import MAX_PAST, ElectionState
from stablecast.core.store.proxy_elections import Elections
from tests.core.samples import LIFE, OLDER_LIFE, register
from tests.core.stations import ACTIVITY, CLIENT, fall_silent, lifetime
from tests.support.abstract_states import abstract
from tests.support.invariants import check_invariants

THEIRS = ElectionToken(1, 1, LIFE)


def known(**changes: Any) -> ClientRecord:
    return ClientRecord(attrs.evolve(CLIENT, **changes), lifetime())


def elections(*records: ClientRecord, allow_proxy: bool = True) -> Elections:
    of_store = Elections(StoreConfig("store0:1", seed=1, allow_proxy=allow_proxy), Seeded(1))
    for record in records:
        of_store.enter(record, 0)
    check_invariants(of_store)
    return of_store


@pytest.mark.rows("P-550", "P-814")
@pytest.mark.parametrize(("allow_proxy", "wants_proxy"), [(True, True), (True, False), (False, True), (False, False)])
def test_a_proxy_stands_only_if_store_and_source_want_it(allow_proxy: bool, wants_proxy: bool) -> None:
    """The four-way table."""
    record = known(wants_proxy=wants_proxy)
    of_store = elections(record, allow_proxy=allow_proxy)
    assert bool(of_store.running) is wants_proxy
    fall_silent(record, ACTIVITY)
    out: list[Effect] = []
    expired = of_store.check({50: record}, ACTIVITY, out)
    assert bool(expired) is (wants_proxy and not allow_proxy)
    of_store.check({50: record}, 10 * ACTIVITY, out)
    assert bool(out) is (allow_proxy and wants_proxy)


def test_receivers_have_no_election() -> None:
    receiver = known(role=Role.RECEIVER)
    of_store = elections()
    assert not of_store.enter(receiver, 0)
    assert of_store.running == {}
    out: list[Effect] = []
    of_store.on_registered(register(), receiver, 0, out)
    of_store.forget(receiver, out)
    assert out == []


@pytest.mark.rows("P-545")
def test_one_store_runs_proxies_of_several_sources() -> None:
    """Also of one topic. Each election is on its own; the seed makes their waits differ."""
    records = {reg_id: known(reg_id=reg_id) for reg_id in (50, 51, 52)}
    of_store = elections(*records.values())
    for reg_id in (50, 52):
        fall_silent(records[reg_id], ACTIVITY)
    out: list[Effect] = []
    of_store.check(records, ACTIVITY, out)
    of_store.check(records, 10 * ACTIVITY, out)
    assert [state for _, (state, _, _) in abstract(of_store)] == ["STANDING", "WATCHING", "STANDING"]
    waits = [of_store.running[reg_id].seeded for reg_id in (50, 52)]
    assert waits[0] != waits[1]


@pytest.mark.rows("P-019", "P-541", "P-554")
def test_the_clients_that_may_register() -> None:
    """T6: where the rule of all clients does not decide, the state or the token does."""
    record = known()
    of_store = elections(record)
    source, proxy = register(reg_id=50), register(reg_id=50, election=THEIRS)
    out: list[Effect] = []
    assert of_store.admits(source, record) is None
    assert of_store.admits(proxy, record) is False
    fall_silent(record, ACTIVITY)
    of_store.check({50: record}, ACTIVITY, out)
    assert of_store.admits(source, record) is True
    assert of_store.admits(proxy, record) is True
    record.client = attrs.evolve(record.client, election=THEIRS)
    of_store.on_registered(proxy, record, ACTIVITY, out)
    assert of_store.running[50].state is ElectionState.FOLLOWING
    assert of_store.admits(source, record) is True


@pytest.mark.rows("P-550")
def test_a_source_that_wished_for_no_proxy_gets_none_from_another_store_either() -> None:
    record = known(wants_proxy=False)
    of_store = elections(record)
    assert of_store.admits(register(reg_id=50), record) is None
    assert of_store.admits(register(reg_id=50, election=THEIRS), record) is False


def test_a_proxy_may_be_the_first_that_a_store_hears_of_a_source() -> None:
    """A wiped store helps the receivers as any other."""
    of_store = elections()
    assert of_store.admits(register(reg_id=50), None) is None
    assert of_store.admits(register(reg_id=50, election=THEIRS), None) is True
    record = known(election=THEIRS, wants_proxy=False)
    assert of_store.enter(record, 0)
    of_store.on_registered(register(reg_id=50, election=THEIRS), record, 0, [])
    assert abstract(of_store) == ((50, ("FOLLOWING", THEIRS.rank, LIFE)),)


def test_a_store_without_state_admits_no_proxy_that_needs_a_quorum() -> None:
    """C-40: only stores that have state take part; the source itself may still register there."""
    of_store = Elections(StoreConfig("store0:1", seed=1, allow_proxy=True, proxy_quorum=True), Seeded(1))
    assert of_store.admits(register(reg_id=50), None) is None
    assert of_store.admits(register(reg_id=50, election=THEIRS), None) is False


def test_what_becomes_of_a_proxy_is_told_to_the_election_of_its_source() -> None:
    """C-40: of one that is gone by then it is no news."""
    record = known()
    of_store = Elections(StoreConfig("store0:1", seed=1, allow_proxy=True, proxy_quorum=True), Seeded(1))
    of_store.enter(record, 0)
    fall_silent(record, ACTIVITY)
    out: list[Effect] = []
    of_store.check({50: record}, ACTIVITY, out)
    of_store.check({50: record}, 10 * ACTIVITY, out)
    token = of_store.running[50].holder
    assert token is not None
    of_store.on_proxy(ProxyQuorum(50, token, True), {50: record}, 10 * ACTIVITY, out)
    assert of_store.running[50].backed
    of_store.on_proxy(ProxyQuorum(51, token, True), {50: record}, 10 * ACTIVITY, out)
    of_store.on_proxy(ProxyOver(51, token), {50: record}, 10 * ACTIVITY, out)
    assert of_store.running[50].ours
    of_store.on_proxy(ProxyOver(50, token), {50: record}, 10 * ACTIVITY, out)
    assert not of_store.running[50].ours


def test_a_restart_resumes_with_what_the_journal_kept() -> None:
    """C-37; formal design, 7.9: the source's lives that are over are known again."""
    lives = tuple((life, 10 * life) for life in range(100, 120))
    plain, followed = known(lives=((OLDER_LIFE, 0), (LIFE, 5))), known(reg_id=51, lives=lives, election=THEIRS)
    of_store = elections(plain, followed)
    assert [state for _, (state, _, _) in abstract(of_store)] == ["WATCHING", "FOLLOWING"]
    assert of_store.running[50].past == [OLDER_LIFE]
    assert of_store.running[51].past == [life for life, _ in lives][-MAX_PAST:]


@pytest.mark.rows("P-587")
def test_the_proxy_of_a_source_that_is_forgotten_ends() -> None:
    """T7."""
    record = known()
    record.lifetime = lifetime(10 * ACTIVITY)
    of_store = elections(record)
    fall_silent(record, ACTIVITY)
    out: list[Effect] = []
    of_store.check({50: record}, ACTIVITY, out)
    assert of_store.check({50: record}, 10 * ACTIVITY - 1, out) == []
    assert of_store.check({50: record}, 10 * ACTIVITY, out) == [record]
    of_store.forget(record, out)
    assert StopProxy(50) in out
    assert of_store.running == {}


def test_a_snapshot_goes_on_alike() -> None:
    """Plain state: traces rest on it."""
    record = known()
    of_store = elections(record, known(reg_id=51, election=THEIRS))
    fall_silent(record, ACTIVITY)
    plain = cattrs.Converter()
    outs: list[list[Effect]] = []
    for machine in (of_store, plain.structure(json.loads(json.dumps(plain.unstructure(of_store))), Elections)):
        out: list[Effect] = []
        for now in (ACTIVITY, 2 * ACTIVITY):
            machine.check({50: record, 51: known(reg_id=51)}, now, out)
        outs.append(out)
    assert outs[0] == outs[1] != []
