"""The merged records of several services, against a naive twin."""

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.resolution.srs.known_sources import OWN, KnownSource, KnownSources

TOPICS = ["orders", "trades"]
HOLDERS = [OWN, 0, 1]
STEPS = st.tuples(
    st.sampled_from(["put", "release", "sweep", "lost", "drop"]),
    st.integers(0, 2),
    st.sampled_from(HOLDERS),
    st.sampled_from(TOPICS),
    st.integers(0, 1),
)


def entry(name: int, topic: str, version: int = 0) -> KnownSource:
    return KnownSource(bytes((name,)), topic, "TCP", SourceRecord(f"10.0.0.1:{version + 1}", 1, name))


@pytest.mark.rows("T-401")
@given(st.lists(STEPS, max_size=30))
@settings(max_examples=200)
def test_it_does_what_a_plain_table_does(steps: list[tuple[str, int, int, str, int]]) -> None:
    """A source is known while a service holds it on a live connection."""
    known = KnownSources()
    said: dict[bytes, dict[int, int]] = {}
    shown: dict[bytes, tuple[str, SourceRecord]] = {}
    live = {OWN: 0, 0: 1, 1: 1}

    def left(otid: bytes) -> bool:
        held = any(live.get(holder) == number for holder, number in said[otid].items())
        if not held:
            del said[otid], shown[otid]
        return not held

    for step, name, holder, topic, version in steps:
        new = entry(name, topic, version)
        otid = new.otid
        if step == "put":
            assert known.put(new, holder, live[holder]) is (shown.get(otid) != (topic, new.record))
            shown[otid] = (topic, new.record)
            said.setdefault(otid, {})[holder] = live[holder]
        elif step == "release":
            gone = known.release(otid, holder, live)
            held = said.get(otid, {}).pop(holder, None) is not None
            assert (gone is not None) is (held and left(otid))
        elif step == "lost":
            live[holder] += holder != OWN
        elif step == "sweep":
            swept = {found.otid for found in known.sweep(holder, live)}
            older = [otid for otid, holders in said.items() if holders.get(holder, live[holder]) != live[holder]]
            for old in older:
                del said[old][holder]
            assert swept == {old for old in older if left(old)}
        elif otid in said:
            known.drop(otid)
            del said[otid], shown[otid]
        assert {found.otid: (found.topic, found.record) for found in known.entries.values()} == shown
        for each in TOPICS:
            assert {found.otid for found in known.of(each)} == {o for o, (name, _) in shown.items() if name == each}


def test_a_service_without_a_connection_keeps_nothing_alive() -> None:
    """Its earlier record does not outweigh a service that is connected."""
    known = KnownSources()
    known.put(entry(1, "orders"), 0, 1)
    known.put(entry(1, "orders"), 1, 1)
    assert known.release(b"\1", 0, {OWN: 0, 0: 1}) is not None
    assert known == KnownSources()


def test_a_changed_record_is_news_and_stays_held() -> None:
    known = KnownSources()
    assert known.put(entry(1, "orders"), 0, 1)
    assert not known.put(entry(1, "orders"), 1, 1)
    assert known.put(entry(1, "trades"), 1, 1)
    assert [attrs.asdict(found)["holders"] for found in known.of("trades")] == [{0: 1, 1: 1}]
    assert list(known.of("orders")) == []


@pytest.mark.rows("T-401")
def test_one_service_takes_nothing_away_from_the_other() -> None:
    """Nor does a service that never announced the source."""
    known = KnownSources()
    live = {OWN: 0, 0: 1, 1: 1}
    known.put(entry(1, "orders"), 0, 1)
    assert known.release(b"\1", 1, live) is None
    assert known.release(b"\2", 1, live) is None
    known.put(entry(1, "orders"), 1, 1)
    assert known.release(b"\1", 0, live) is None
    assert known.sweep(1, {**live, 1: 2}) == [entry(1, "orders")]
