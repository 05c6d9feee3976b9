"""Domains in network namespaces that only a router reaches, with each kind of resolution and each transport."""

import json
from pathlib import Path

import pytest

from tests.support.namespaces import reason_to_skip
from tests.support.program import Program
from tests.support.routed_domains import Reading, RoutedDomains, Sending, routed_domains

WHY_NOT = reason_to_skip()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

COUNT = 40
KINDS = ("multicast", "relay", "service")
TRANSPORTS = ("tcp", "lbtrm", "lbtru")
KILLS = 2
BETWEEN_KILLS = 200
"""Messages of a source, which take about as long as the start of a router."""


def sendings(stores: tuple[str, ...]) -> list[Sending]:
    """Return sources over each transport: with each store, with late join, with neither, and of a pattern."""
    found = []
    for transport in TRANSPORTS:
        options = {"transport": transport}
        found += [Sending(f"{kind}.{transport}", options) for kind in ("plain", "many")]
        found.append(Sending(f"late.{transport}", {**options, "late_join": 1}))
        found += [Sending(f"kept-{place}.{transport}", options, (store,)) for place, store in enumerate(stores)]
    return found


def readings(sources: list[Sending]) -> list[Reading]:
    topics = [source.topic for source in sources if not source.topic.startswith("many")]
    return [*(Reading(topic, COUNT) for topic in topics), Reading("^many[.]", COUNT, len(TRANSPORTS))]


def check(receiver: Program, expected: list[Reading]) -> None:
    """Check that each reading ends, without a gap, and from the first number on where something is kept."""
    lines = [json.loads(receiver.line() or "[]") for _ in expected]
    assert sorted(topic for topic, _ in lines) == sorted(reading.topic for reading in expected)
    for _, found in lines:
        for topic, numbers in found.items():
            assert numbers == list(range(numbers[0], numbers[0] + COUNT)), topic
            assert numbers[0] == 0 or topic.startswith(("plain", "many")), topic


def begin(domains: RoutedDomains, *stores: str) -> list[Reading]:
    """Start sources in the first domain, and return what late receivers of all of them read."""
    sources = sendings(stores)
    assert domains.program(1, "source", *sources).line() == "ready"
    return readings(sources)


@pytest.mark.rows("M-001", "R-054", "R-180", "R-220")
@pytest.mark.parametrize(
    ("here", "there", "leaving"),
    [
        (here, there, TRANSPORTS[(row + column) % len(TRANSPORTS)])
        for row, here in enumerate(KINDS)
        for column, there in enumerate(KINDS)
    ],
)
def test_everything_passes_between_two_networks(here: str, there: str, leaving: str, tmp_path: Path) -> None:
    """Each two of both kinds of resolution and the transport meet once; the function runs all 27 combinations.

    Both portals of the first case have the same group: what one of them hears must not reach the other.
    """
    with routed_domains(tmp_path, here, there) as domains:
        domains.router(leaving, leaving)
        expected = begin(domains, domains.store(1), f"2:{domains.store(2)}")
        check(domains.program(2, "receiver", *expected), expected)


@pytest.mark.rows("R-058")
def test_two_networks_get_what_a_third_one_sends(tmp_path: Path) -> None:
    with routed_domains(tmp_path, "multicast", "relay", "service") as domains:
        domains.router("tcp", "lbtru", "lbtrm")
        expected = begin(domains, domains.store(1), f"3:{domains.store(3)}")
        receivers = [domains.program(domain, "receiver", *expected) for domain in (2, 3)]
        for receiver in receivers:
            check(receiver, expected)


@pytest.mark.rows("R-130", "R-180", "R-220")
def test_everything_passes_a_chain_of_three_linked_routers(tmp_path: Path) -> None:
    """From the first domain to the last one, with a store in either; the router between is killed before it is used."""
    with routed_domains(tmp_path, "relay", "multicast", "service") as domains:
        _, between, _ = [domains.linked(number, "tcp") for number in (1, 2, 3)]
        between.process.kill()
        between.process.wait()
        domains.linked(2, "lbtrm")
        expected = begin(domains, domains.store(1), f"3:{domains.store(3)}")
        check(domains.program(3, "receiver", *expected), expected)


@pytest.mark.rows("R-062")
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_nothing_that_stores_keep_is_lost_or_twice_when_the_router_is_killed(transport: str, tmp_path: Path) -> None:
    """Of each topic, receivers get every number once and in order; the last ones were sent after the last kill."""
    with routed_domains(tmp_path, "relay", "relay") as domains:
        router = domains.router(transport, transport)
        stores = [domains.store(1), f"2:{domains.store(2)}"]
        # Sources whose store is behind the router must not give it up before the router is back.
        options = {"transport": transport, "ume_store_activity_timeout": 60_000}
        kept = [(f"kept-{kill}.{side}", kill, store) for kill in range(KILLS + 1) for side, store in enumerate(stores)]
        sources = [Sending(topic, options, (store,)) for topic, _, store in kept]
        assert domains.program(1, "source", *sources).line() == "ready"
        readings = [Reading(topic, COUNT + kill * BETWEEN_KILLS) for topic, kill, _ in kept]
        receiver = domains.program(2, "receiver", *readings)
        done: dict[str, list[int]] = {}
        for kill in range(KILLS + 1):
            expected = {f"kept-{kill}.{side}" for side in range(len(stores))}
            while (
                not expected <= done.keys()
            ):  # On a busy machine a topic of the next turn may come before one of these.
                topic, found = json.loads(receiver.line() or "[]")
                (done[topic],) = found.values()
            for numbers in map(done.__getitem__, expected):
                assert numbers == list(range(numbers[0], numbers[0] + COUNT + kill * BETWEEN_KILLS))
            if kill < KILLS:
                router.process.kill()
                router.process.wait()
                router = domains.router(transport, transport)
