"""The directory against a naive twin: the clients for a source, and the sources for a client."""

import re

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.transports.resolution.srs.directory import AnnouncedSource, Directory, Interest

CLIENTS = [b"a", b"b", b"c"]
TOPICS = ["fx.eur", "fx.usd", "bonds"]
INTERESTS = [
    *map(Interest, TOPICS),
    Interest("^fx", pattern=True),
    Interest("usd|bonds", pattern=True),
    Interest("(x+)+", pattern=True),  # Too dear to match: means everything.
]
STEPS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(CLIENTS), st.integers(0, 3), st.sampled_from(TOPICS), st.integers(0, 1)),
    st.tuples(st.just("remove"), st.integers(0, 3)),
    st.tuples(st.sampled_from(["want", "unwant"]), st.sampled_from(CLIENTS), st.sampled_from(INTERESTS)),
    st.tuples(st.just("flood"), st.sampled_from(CLIENTS), st.booleans()),
)


@attrs.define
class Naive:
    sources: dict[bytes, AnnouncedSource] = attrs.field(factory=dict)
    wants: set[tuple[bytes, Interest]] = attrs.field(factory=set)
    flooded: set[bytes] = attrs.field(factory=set)

    def told(self, client: bytes, source: AnnouncedSource, interests: list[Interest]) -> bool:
        meant = any(
            interest.name == source.topic
            if not interest.pattern
            else interest.name == "(x+)+" or re.search(interest.name, source.topic) is not None
            for interest in interests
        )
        return source.owner != client and (client in self.flooded or meant)

    def of(self, client: bytes) -> list[Interest]:
        return [interest for who, interest in self.wants if who == client]


def check(directory: Directory, naive: Naive) -> None:
    assert directory.sources == naive.sources
    for client in CLIENTS:
        interests = [interest for interest in INTERESTS if (client, interest) in naive.wants]
        expected = {otid for otid, source in naive.sources.items() if naive.told(client, source, interests)}
        meant = directory.meant(client, interests)
        assert {source.otid for source in meant} == expected
        assert len(meant) == len(expected)
    for source in naive.sources.values():
        audience = directory.audience(source)
        assert len(audience) == len(set(audience))
        assert set(audience) == {client for client in CLIENTS if naive.told(client, source, naive.of(client))}


@pytest.mark.rows("T-403", "T-404", "T-405", "T-409")
@given(st.lists(STEPS, max_size=30))
@settings(max_examples=150)
def test_it_does_what_plain_lists_do(steps: list[tuple[object, ...]]) -> None:
    directory, naive = Directory(), Naive()
    for step in steps:
        match step:
            case ("put", bytes(owner), int(name), str(topic), int(version)):
                source = AnnouncedSource(bytes((name,)), topic, bytes((version,)), owner)
                assert directory.put(source) is (naive.sources.get(source.otid) != source)
                naive.sources[source.otid] = source
            case ("remove", int(name)) if bytes((name,)) in naive.sources:
                otid = bytes((name,))
                assert directory.remove(otid) == naive.sources.pop(otid)
            case ("want", bytes(client), Interest() as interest):
                directory.want(client, interest)
                naive.wants.add((client, interest))
            case ("unwant", bytes(client), Interest() as interest) if (client, interest) in naive.wants:
                directory.unwant(client, interest)
                naive.wants.discard((client, interest))
            case ("flood", bytes(client), bool(everything)):
                directory.flood(client, everything)
                (naive.flooded.add if everything else naive.flooded.discard)(client)
        check(directory, naive)


def test_nothing_is_left_of_what_is_gone() -> None:
    directory = Directory()
    directory.put(AnnouncedSource(b"1", "orders", b"", b"a"))
    directory.want(b"b", Interest("orders"))
    directory.want(b"b", Interest("^o", pattern=True))
    directory.want(b"c", Interest("^o", pattern=True))
    directory.remove(b"1")
    directory.unwant(b"b", Interest("orders"))
    directory.unwant(b"b", Interest("^o", pattern=True))
    directory.unwant(b"c", Interest("^o", pattern=True))
    assert directory == Directory()


def test_searches_that_together_cost_too_much_match_everything() -> None:
    """One client may advertise many long topics, and then want many patterns: no request holds the service up."""
    directory = Directory()
    topics = ["a" * 200 + str(number) for number in range(40)]  # 8 million steps each
    for number, topic in enumerate(topics):
        directory.put(AnnouncedSource(bytes([number]), topic, b"", b"hostile"))
    cheap, dear = Interest("^x", pattern=True), Interest(".*.*x", pattern=True)
    for interest in (cheap, dear):
        directory.want(b"c", interest)
    assert directory.meant(b"c", [cheap]) == []
    found = [source.topic for source in directory.meant(b"c", [dear])]
    assert found == topics[-len(found) :]  # The first were searched.
    assert 0 < len(found) < len(topics)
