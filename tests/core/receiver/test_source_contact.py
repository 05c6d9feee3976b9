"""Source contact: the requests of a receiver to its source, and the novelty of SRIs."""

from typing import Any

import attrs
import pytest

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.messages import MAX_STORES, LateJoinRequest, SourceInfoRequest, StoreEntry
from stablecast.core.protocol.settings import ReceiverConfig
from stablecast.core.receiver.source_contact import SourceContact, SourceNews
from tests.core.drivers import code
from tests.core.samples import LIFE, drain, events, info, sends


def contact(**changes: Any) -> SourceContact:
    spans = {"sri_request_interval_ns": 100, "sri_request_maximum": 2}
    return SourceContact(ReceiverConfig("topic", LIFE, "me:1", "source:1", **{**spans, **changes}))


@pytest.mark.rows("P-227")
def test_the_sri_is_asked_for_so_many_times() -> None:
    machine, out = contact(), list[fx.Effect]()
    assert not machine.expired(10**9)
    machine.begin(100)
    assert (machine.expired(99), machine.expired(100)) == (False, True)
    assert machine.ask_info(100, out) == ""
    assert sends(drain(out)) == [("source:1", SourceInfoRequest(LIFE))]
    assert machine.due == 200
    machine.ask_info(200, drain(out))
    assert machine.ask_info(300, out) == "no SRI after 2 requests to source:1"
    assert out == []
    assert not machine.expired(10**9)


@pytest.mark.rows("P-411")
def test_the_range_of_a_late_join_is_asked_for_so_many_times() -> None:
    machine, out = contact(), list[fx.Effect]()
    machine.on_info(info(request="elsewhere:1"), out)
    machine.begin(0)
    for request in (1, 2):
        assert machine.ask_range(0, out) == ""
        assert sends(drain(out)) == [("elsewhere:1", LateJoinRequest(LIFE, request, "me:1"))]
    assert machine.ask_range(0, out).startswith("no answer to 2 late join requests to elsewhere:1")
    assert machine.due is None


@pytest.mark.rows("P-411")
def test_requests_of_a_range_are_counted_anew_after_those_of_the_sri() -> None:
    machine, out = contact(), list[fx.Effect]()
    machine.begin(100)
    machine.ask_info(100, out)
    machine.on_info(info(request="elsewhere:1"), out)
    drain(out)
    machine.begin(200)
    for request in (1, 2):
        assert machine.ask_range(200, out) == ""
        assert sends(drain(out)) == [("elsewhere:1", LateJoinRequest(LIFE, request, "me:1"))]


@pytest.mark.rows("P-223")
def test_the_highest_version_is_the_newest() -> None:
    """In any order."""
    machine, out = contact(), list[fx.Effect]()
    machine.begin(100)
    assert machine.on_info(info(version=3), out) is SourceNews.FIRST
    assert machine.due is None
    assert machine.on_info(info(version=2), out) is SourceNews.NOTHING
    assert machine.on_info(info(version=3, high=5), out) is SourceNews.SAME
    assert machine.on_info(info(version=4), out) is SourceNews.NEWER
    assert machine.source.version == 4
    assert out == []


def test_an_sri_with_impossible_stores_is_dropped() -> None:
    machine, out = contact(), list[fx.Effect]()
    for index in (-1, MAX_STORES):
        stores = (StoreEntry(index, 0, "x:1", 50, 1),)
        assert machine.on_info(info(stores=stores), out) is SourceNews.NOTHING
    twice = info(1).stores * 2
    assert machine.on_info(info(stores=twice), out) is SourceNews.NOTHING
    assert code(events(out)) == ["wild-info"] * 3
    assert machine.info is None


def test_stores_count_if_they_are_to_be_used() -> None:
    for use_store, stores, persistent in [(True, (1,), True), (False, (1,), False), (True, (), False)]:
        machine = contact(use_store=use_store)
        machine.on_info(info(*stores), [])
        assert machine.persistent is persistent


@pytest.mark.rows("P-411")
def test_recovery_needs_both_sides() -> None:
    for ours, theirs in [(True, True), (True, False), (False, True)]:
        machine = contact(late_join=ours)
        machine.on_info(attrs.evolve(info(), late_join=theirs), [])
        assert machine.recovers is (ours and theirs)
