"""Clients as records: there and back, the newest counts, nonsense is told."""

import json
from collections.abc import Callable

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import ElectionToken, Pace, Role, StoreEntry, Wishes
from stablecast.store.client_records import (
    RecordError,
    client_record,
    clients_of,
    forget_record,
    generation_of,
    memory_of,
)

SOURCE = Client(
    role=Role.SOURCE,
    reg_id=5,
    store_index=1,
    topic="orders",
    session_id=1 << 63,
    incarnation=1 << 60,
    source_reg_id=5,
    reply_to="127.0.0.1:14391",
    transport="127.0.0.1:14371",
    activity_timeout_ms=1_000,
    state_lifetime_ms=60_000,
    acknowledged=0,
    lives=((7, 0), (8, 100)),
    term=2,
    lives_term=2,
)
RECEIVER = attrs.evolve(SOURCE, role=Role.RECEIVER, reg_id=6, lives=(), acknowledged=99, has_acknowledged=True)


@given(st.text(), st.lists(st.tuples(st.integers(), st.integers())).map(tuple), st.sampled_from(Role))
def test_a_client_comes_back_as_it_was(topic: str, lives: tuple[tuple[int, int], ...], role: Role) -> None:
    client = attrs.evolve(SOURCE, role=role, topic=topic, lives=lives)
    assert clients_of([client_record(client)]) == {5: client}


FULL = attrs.evolve(
    SOURCE,
    context=3,
    pace=Pace.RECEIVERS,
    wishes=Wishes(size_limit=5, write_delay_ms=0),
    wants_proxy=True,
    stores=(StoreEntry(0, 0, "127.0.0.1:14567", 5, 1),),
    group_sizes=(3, 1),
    election=ElectionToken(5, 1),
    freed=7,
)


def test_everything_that_a_client_may_have_comes_back() -> None:
    assert clients_of([client_record(FULL)]) == {5: FULL}


def test_a_client_of_the_first_format_is_read() -> None:
    """As the release before wrote it, all its fields and no others."""
    fields = attrs.asdict(RECEIVER, recurse=False)
    later = ("context", "pace", "wishes", "wants_proxy", "stores", "group_sizes", "election", "freed")
    record = json.dumps({"client": {name: value for name, value in fields.items() if name not in later}}).encode()
    assert clients_of([record]) == {6: RECEIVER}


def test_the_newest_record_counts() -> None:
    later = attrs.evolve(RECEIVER, acknowledged=100)
    records = [client_record(SOURCE), client_record(RECEIVER), client_record(later)]
    assert clients_of(records) == {5: SOURCE, 6: later}
    assert clients_of([*records, forget_record(5)]) == {6: later}
    assert clients_of([*records, forget_record(6), client_record(RECEIVER)]) == {5: SOURCE, 6: RECEIVER}
    assert clients_of([forget_record(5)]) == {}


def _without_topic() -> bytes:
    record = json.loads(client_record(SOURCE))
    del record["client"]["topic"]
    return json.dumps(record).encode()


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (b'{"customer": 1}', "names neither client nor forget but ['customer']"),
        (b'{"client": 1}', "a client record cannot be read"),
        (b'{"client": {"role": 0, "lives": [1]}}', "a client record cannot be read"),
        (_without_topic(), "topic"),
    ],
)
def test_a_record_that_is_not_ours_is_told_with_the_remedy(record: bytes, told: str) -> None:
    with pytest.raises(RecordError) as error:
        clients_of([record])
    assert told in str(error.value)
    assert str(error.value).endswith("; start the release that wrote the journal, or a store on an empty directory")


@pytest.mark.parametrize(
    ("read", "record"),
    [
        *((read, record) for read in (clients_of, generation_of, memory_of) for record in (b"", b"{", b"[1]", b"\xff")),
        (generation_of, b'{"memory":1,"generation":"x"}'),
        (generation_of, b'{"memory":1,"declared":[]}'),
        (memory_of, b'{"memory":[]}'),
        (clients_of, b'{"forget":[]}'),
    ],
)
def test_a_record_that_another_program_wrote_is_told(read: Callable[[list[bytes]], object], record: bytes) -> None:
    """The checksum of a journal tells only that the bytes are those that somebody wrote."""
    with pytest.raises(RecordError):
        read([record])
