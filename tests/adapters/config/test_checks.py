"""Each code has a configuration that earns it, and the safe configuration earns none."""

from pathlib import Path
from typing import Any

import attrs
import pytest

from stablecast.config import placement
from stablecast.config.checks import Advice, AdviceLevel, ClientOptions, check
from stablecast.config.options import apply
from stablecast.config.plan import Plan
from stablecast.config.plan_assembly import build
from stablecast.config.profiles import profile
from stablecast.config.toml_file import outline
from stablecast.config.transport_options import split
from stablecast.core.protocol.settings import ReceiverConfig, SourceConfig
from tests.support.tree import ROOT

LASTING = {"source-state-lifetime": 86_400_000, "receiver-state-lifetime": 86_400_000}
QUORUM = "proxy-source-repo-quorum-required"
TOPIC = {"pattern": "t", "options": LASTING}
STORES = "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"


def advice(tmp_path: Path, *clients: ClientOptions, daemon: dict[str, Any] | None = None,
           store: dict[str, Any] | None = None, topics: list[dict[str, Any]] | None = None,
           **options: Any) -> list[Advice]:  # fmt: skip
    directories = {"disk-cache-directory": str(tmp_path), "disk-state-directory": str(tmp_path)}
    found = topics or [{"pattern": "t", "options": {**LASTING, **options}}]
    own = store or {}
    table = {"name": "a", "port": 1, "interface": "127.0.0.1", "topic": found, **own}
    table["options"] = {**directories, **own.get("options", {})}
    return check([build(outline({"daemon": daemon or {}, "store": [table]}))], clients)


def client(receiver: dict[str, Any] | None = None, **source: Any) -> ClientOptions:
    base = attrs.evolve(profile("safe").source, topic="t", late_join=True)
    options = {"ume_store": "0.0.0.0:0," + STORES, "ume_session_id": 1, **source}
    made: SourceConfig = apply("source", base, options)
    other: ReceiverConfig = apply("receiver", profile("safe").receiver, receiver or {})
    return ClientOptions("c.cfg", made, other)


def test_a_good_configuration_earns_nothing(tmp_path: Path) -> None:
    assert advice(tmp_path, client()) == []


PACED: dict[str, Any] = {"repository-allow-receiver-paced-persistence": 1}


@pytest.mark.rows("P-121", "P-124", "P-837")
@pytest.mark.parametrize(
    ("options", "code", "level"),
    [
        ({"repository-size-threshold": 100, "repository-size-limit": 100}, "threshold-above-limit", AdviceLevel.ERROR),
        ({"repository-disk-file-size-limit": 196_992}, "buffer-above-limit", AdviceLevel.WARNING),
        ({"repository-type": "no-cache"}, "keeps-nothing", AdviceLevel.WARNING),
        ({"repository-disk-write-delay": 5}, "needs-receiver-pacing", AdviceLevel.WARNING),
        ({"repository-allow-ack-on-reception": 1}, "needs-receiver-pacing", AdviceLevel.WARNING),
        ({**PACED, "repository-type": "memory"}, "paced-in-memory", AdviceLevel.WARNING),
        ({**PACED, "repository-allow-ack-on-reception": 1}, "ack-on-reception", AdviceLevel.WARNING),
        ({**PACED, "source-flight-size-bytes-maximum": 1 << 40}, "flight-above-repository", AdviceLevel.ERROR),
        ({**PACED, "repository-size-threshold": 4_194_304}, "threshold-below-flight", AdviceLevel.WARNING),
        ({**PACED, "repository-size-limit": 100_000_000}, "limit-near-disk", AdviceLevel.WARNING),
        ({"source-activity-timeout": 900}, "activity-below-keepalive", AdviceLevel.WARNING),
        ({"receiver-activity-timeout": 50}, "activity-below-check", AdviceLevel.WARNING),
        ({"source-state-lifetime": 29_999}, "lifetime-below-activity", AdviceLevel.WARNING),
        ({"repository-type": "memory", "repository-size-limit": 0}, "memory-unbounded", AdviceLevel.WARNING),
        ({"repository-type": "memory", "repository-disk-file-preallocate": 1}, "needs-disk", AdviceLevel.WARNING),
        ({"source-state-lifetime": 0}, "no-lifetime", AdviceLevel.WARNING),
        ({"receiver-state-lifetime": 0}, "no-lifetime", AdviceLevel.WARNING),
        ({**PACED, "receiver-state-lifetime": 4_294_967_295}, "unlimited-lifetime", AdviceLevel.ADVICE),
        ({"receiver-new-registration-rollback": 0}, "no-rollback", AdviceLevel.ADVICE),
    ],
)
def test_relations_of_a_topic(options: dict[str, Any], code: str, level: AdviceLevel, tmp_path: Path) -> None:
    """P-121, P-124, P-837, T30 and the store's own sanity checks."""
    found = advice(tmp_path, **options)
    assert (code, level) in {(one.code, one.level) for one in found}
    assert all('store "a" topic "t"' in one.where for one in found)


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"store": {"options": {"disk-cache-directory": "/nowhere/at/all"}}}, "no-directory"),
        ({"store": {"options": {"allow-proxy-source": 1}}}, "proxy-unfindable"),
        ({"topics": [{**TOPIC, "receiver": {"delivery_control_maximum_burst_loss": 1024}}]}, "burst-limit"),
        ({"topics": [TOPIC, TOPIC]}, "unreached-pattern"),
        ({"topics": [{**TOPIC, "pattern": ".*", "type": "PCRE"}, TOPIC]}, "unreached-pattern"),
        ({"daemon": {"web-monitor": "*:1"}}, "monitor-exposed"),
        ({"daemon": {"web-monitor": {"address": "*:1", "permission": "read-write"}}}, "monitor-writable"),
        ({"daemon": {"pidfile": "p"}}, "no-log-file"),
        ({"daemon": {"log": "/nowhere/at/all/l"}}, "no-directory"),
        ({"daemon": {"daemon-monitor": {"default": 3}}}, "statistics-unfindable"),
        ({"store": {"options": {QUORUM: 1}}}, "quorum-without-proxies"),
        ({"store": {"options": {QUORUM: 1}}, "proxy-election-interval": 500}, "election-short"),
    ],
)  # fmt: skip
def test_relations_of_a_store_and_its_daemon(settings: dict[str, Any], code: str, tmp_path: Path) -> None:
    assert code in {one.code for one in advice(tmp_path, **settings)}


@pytest.mark.parametrize(("registration", "told"), [(None, False), (400, False), (600, True)])
def test_an_election_lasts_longer_than_a_proxy_needs_to_register(
    registration: int | None, told: bool, tmp_path: Path
) -> None:
    """C-40: the proxies have the options of their topic."""
    source = {} if registration is None else {"ume_registration_interval": registration}
    topics = [{"pattern": "t", "options": {**LASTING, "proxy-election-interval": 600}, "source": source}]
    found = advice(tmp_path, topics=topics, store={"options": {QUORUM: 1}})
    assert ("election-short" in {one.code for one in found}) is told


def test_a_sound_configuration_has_no_findings(tmp_path: Path) -> None:
    topics = [{"pattern": "t", "options": LASTING}, {"pattern": "t", "type": "PCRE", "options": LASTING}]
    daemon = {"web-monitor": {"address": "127.0.0.1:1", "permission": "read-write"}, "log": "l", "pidfile": "p"}
    proxies = {"options": {"allow-proxy-source": 1}, "context": {"resolver_service": "127.0.0.1:27000"}}
    assert advice(tmp_path, topics=topics, daemon=daemon, store=proxies) == []
    multicast = {**proxies, "context": {"resolver_multicast_interface": "127.0.0.1"}}
    assert advice(tmp_path, topics=topics, daemon=daemon, store=multicast) == []
    assert advice(tmp_path, **{**PACED, "repository-disk-file-size-limit": 1 << 30}) == []


@pytest.mark.rows("P-339", "P-525", "P-526")
@pytest.mark.parametrize(
    ("source", "code", "level"),
    [
        ({"ume_store_group": "0:1"}, "backup-stores", AdviceLevel.ERROR),
        ({"ume_store": f"{STORES},127.0.0.1:4"}, "even-group", AdviceLevel.ADVICE),
        ({"ume_source_liveness_timeout": 5}, "liveness", AdviceLevel.ERROR),
        ({"ume_store_activity_timeout": 2_000}, "store-timeout-short", AdviceLevel.WARNING),
        ({"ume_message_stability_lifetime": 20_000}, "stability-lifetime-short", AdviceLevel.WARNING),
        ({"ume_store_group": "0:3,1:3"}, "any-of-groups", AdviceLevel.WARNING),
        ({"ume_store": "0.0.0.0:0"}, "no-stores", AdviceLevel.ADVICE),
    ],
)
def test_relations_of_a_client(source: dict[str, Any], code: str, level: AdviceLevel) -> None:
    found = check([], [client(**source)])
    assert (code, level) in {(one.code, one.level) for one in found}
    assert {one.where for one in found} == {"c.cfg"}


@pytest.mark.parametrize(("length", "interval", "told"), [(2000, 5, True), (2000, 0, False), (1000, 5, False)])
def test_a_batch_above_the_flight_is_found(length: int, interval: int, told: bool) -> None:
    options: dict[str, Any] = {
        "implicit_batching_minimum_length": length,
        "implicit_batching_interval": interval,
    }
    batching = attrs.evolve(client(ume_flight_size_bytes=1000), transport=split(options)[0])
    assert ("batch-above-flight" in {one.code for one in check([], [batching])}) is told


@pytest.mark.rows("P-111", "P-840", "P-841")
@pytest.mark.parametrize(
    ("options", "source", "code"),
    [
        ({"stability-ack-minimum-number": 501}, {}, "stop-and-go"),
        ({}, {"ume_store_activity_timeout": 500}, "store-timeout-below-keepalive"),
        ({}, {"ume_repository_size_limit": 1 << 40}, "wish-above-store"),
        ({"repository-disk-write-delay": 999}, {"ume_write_delay": 1000}, "wish-above-store"),
        ({}, {"ume_repository_size_limit": 1 << 20}, "threshold-above-limit"),
        ({}, {"ume_repository_size_limit": 1 << 20, "ume_repository_size_threshold": 1 << 20}, "threshold-above-limit"),
        ({}, {"ume_receiver_paced_persistence": 1, "ume_flight_size_bytes": 1}, "pacing-refused"),
        ({}, {"ume_receiver_paced_persistence": 1, "ume_flight_size_bytes": 1 << 40}, "flight-above-store"),
        ({}, {"ume_proxy_source": 1}, "proxy-refused"),
        ({}, {"ume_flight_size_bytes": 1 << 40}, "flight-above-limit"),
    ],
)
def test_relations_between_a_client_and_a_store(
    options: dict[str, Any], source: dict[str, Any], code: str, tmp_path: Path
) -> None:
    found = advice(tmp_path, client(**source), **options)
    assert code in {one.code for one in found if one.where.startswith("c.cfg at")}


@pytest.mark.rows("P-111", "P-592")
def test_wishes_within_the_limits_of_a_store_pass(tmp_path: Path) -> None:
    wishes: dict[str, Any] = {
        "ume_repository_size_threshold": 1 << 19,
        "ume_repository_size_limit": 1 << 20,
        "ume_repository_disk_file_size_limit": 1 << 25,
        "ume_write_delay": 1000,
    }
    permitted: dict[str, Any] = {"repository-disk-write-delay": 1000}
    found = advice(tmp_path, client(**wishes), **permitted)
    assert {"wish-above-store", "threshold-above-limit"}.isdisjoint(one.code for one in found)


@pytest.mark.rows("P-592")
@pytest.mark.parametrize(("paced", "level"), [(1, AdviceLevel.ERROR), (0, AdviceLevel.ADVICE)])
def test_a_wish_above_the_store_is_an_error_only_with_pacing_by_receivers(
    paced: int, level: AdviceLevel, tmp_path: Path
) -> None:
    pace: dict[str, Any] = {"ume_receiver_paced_persistence": paced, "ume_flight_size_bytes": 1000}
    found = advice(tmp_path, client(ume_write_delay=100, **pace))
    (wish,) = {(one.level, one.text) for one in found if one.code == "wish-above-store"}
    assert wish[0] is level
    assert "ume_write_delay 100, but the store allows repository-disk-write-delay 0" in wish[1]


def test_every_code_is_in_the_chapter() -> None:
    chapter = (ROOT / "spec" / "store_daemon.md").read_text(encoding="utf-8")
    source = (ROOT / "adapters" / "stablecast" / "config" / "checks.py").read_text(encoding="utf-8")
    codes = {part.partition('"')[0] for part in source.split('yield ("')[1:]}
    assert codes
    assert [code for code in sorted(codes) if f"| {code} |" not in chapter] == []


def three(tmp_path: Path, *, apart: bool = False) -> list[Plan]:
    """Three stores of this host, in one daemon or each in its own."""
    tables = []
    for index in range(3):
        place = tmp_path / f"{index}"
        place.mkdir()
        options = {"disk-cache-directory": str(place), "disk-state-directory": str(place), "context-name": f"S{index}"}
        tables.append(
            {"name": f"s{index}", "port": index + 1, "interface": "127.0.0.1", "topic": [TOPIC], "options": options}
        )
    groups = [[table] for table in tables] if apart else [tables]
    return [build(outline({"daemon": {}, "store": group})) for group in groups]


@pytest.mark.parametrize("stores", ["127.0.0.1:1,127.0.0.1:2,127.0.0.1:3", ""])
def test_stores_of_one_quorum_that_one_fault_ends(stores: str, tmp_path: Path) -> None:
    named = {"ume_store": stores} if stores else {"ume_store": "0.0.0.0:0", "ume_store_name": "S0,S1,S2"}
    source = apply("source", attrs.evolve(profile("safe").source, topic="t"), named)
    found = check(three(tmp_path), [ClientOptions("c.cfg", source, profile("safe").receiver)])
    texts = {one.code: one for one in found if one.code.startswith("quorum-")}
    assert {code: one.level for code, one in texts.items()} == {
        "quorum-in-one-daemon": AdviceLevel.WARNING,
        "quorum-on-one-disk": AdviceLevel.WARNING,
    }
    assert texts["quorum-in-one-daemon"].text.startswith('"s0" and "s1" and "s2" are stores of one daemon')


def test_daemons_on_one_file_system_are_found_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = apply("source", attrs.evolve(profile("safe").source, topic="t"), {"ume_store": "127.0.0.1:1,127.0.0.1:2"})
    clients = [ClientOptions("c.cfg", source, profile("safe").receiver)]
    plans = three(tmp_path, apart=True)
    assert {one.code for one in check(plans, clients) if one.code.startswith("quorum-")} == {"quorum-on-one-disk"}
    monkeypatch.setattr(placement, "_device", hash)
    assert not [one for one in check(plans, clients) if one.code.startswith("quorum-")]


def test_stores_of_two_groups_may_be_neighbours(tmp_path: Path) -> None:
    stores = {"ume_store": "127.0.0.1:1:0:0,127.0.0.1:2:0:1", "ume_store_group": "0:1,1:1"}
    source = apply("source", attrs.evolve(profile("safe").source, topic="t"), stores)
    found = check(three(tmp_path), [ClientOptions("c.cfg", source, profile("safe").receiver)])
    assert not [one for one in found if one.code.startswith("quorum-")]


def test_a_daemon_of_several_stores_is_advised(tmp_path: Path) -> None:
    plans = three(tmp_path)
    found = [one for one in check(plans, []) if one.code == "stores-together"]
    assert [one.level for one in found] == [AdviceLevel.ADVICE, AdviceLevel.ADVICE]
    alone = [attrs.evolve(plan, stores=plan.stores[:1]) for plan in plans]
    assert not [one for one in check(alone, []) if one.code == "stores-together"]
