"""The plan of a daemon: every option of a configuration in its place, and all problems reported together."""

from pathlib import Path
from typing import Any

import pytest

from stablecast.config import plan, xml_file
from stablecast.config.findings import ConfigFileError
from stablecast.config.options import WRITES
from stablecast.config.plan import LogConfig, MonitorConfig, Plan, StatisticsConfig, StorePlan
from stablecast.config.plan_assembly import build, load
from stablecast.config.toml_file import outline
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.settings import PatternType, RepositoryType
from stablecast.runtime.logs import Frequency
from tests.adapters.config.test_xml_file import GUIDE
from tests.support.configurations import document, options

SOCKETS = "socket buffers have the documented sizes, or the system's (TCP)"
STRINGS = "topics are found by the dictionaries of Python"


def made(store: dict[str, Any] | None = None, *, daemon: dict[str, Any] | None = None, **topic: Any) -> Plan:
    one = {"name": "a", "port": 14567, "interface": "127.0.0.1", "topic": [{"pattern": "t", **topic}], **(store or {})}
    return build(outline({"daemon": daemon or {}, "store": [one]}))


def only(store: dict[str, Any] | None = None, **topic: Any) -> StorePlan:
    return made(store, **topic).stores[0]


def topic(name: str, value: Any, kind: str = "options") -> dict[str, Any]:
    return {"topic": [{"pattern": "t", kind: {name: value}}]}


def problems(*stores: dict[str, Any], **daemon: Any) -> list[str]:
    with pytest.raises(ConfigFileError) as told:
        build(outline({"daemon": daemon, "store": [{"name": "a", "port": 1, **one} for one in stores]}))
    return [f"{one.place}: {one.text}" for one in told.value.problems]


def notices(store: dict[str, Any] | None = None, *, daemon: dict[str, Any] | None = None, **topic: Any) -> list[str]:
    return [one.text for one in made(store, daemon=daemon, **topic).notices]


@pytest.mark.rows("P-210", "P-802", "P-803", "P-807", "P-810", "P-811", "P-812", "P-813", "P-815", "P-848")
def test_the_example_of_the_guide(tmp_path: Path) -> None:
    path = tmp_path / "guide.xml"
    path.write_text(GUIDE)
    whole = load(path)
    assert whole.daemon.log == LogConfig(Path("stored.log"))
    assert whole.daemon.pidfile == Path("stored.pid")
    assert whole.daemon.monitor == MonitorConfig("0.0.0.0", 15304)
    (store,) = whole.stores
    assert (store.name, store.host, store.port, store.context_name) == ("test-store", "0.0.0.0", 14567, "remote-store")
    assert (store.cache_directory, store.state_directory) == (Path("cache"), Path("state"))
    (rule,) = store.config.topics
    kept = rule.repository
    assert (rule.pattern, rule.kind, kept.kind) == ("test*", PatternType.PCRE, RepositoryType.DISK)
    assert (kept.size_threshold, kept.size_limit, kept.disk_limit) == (104857600, 209715200, 1073741824)
    assert kept.source_activity_ns == kept.receiver_activity_ns == 120_000 * MILLISECOND
    assert store.config.repository is None
    assert whole.notices == ()


@pytest.mark.rows("P-108", "P-812", "P-813", "P-820")
def test_the_defaults_of_a_store_and_of_a_profile() -> None:
    store = only()
    assert (store.cache_directory, store.state_directory) == (Path("umestored-cache"), Path("umestored-state"))
    documented = build(outline({"store": [{"name": "a", "port": 1, "topic": [{"pattern": "t"}]}]}), "5.3")
    assert documented.stores[0].config.topics[0].repository.kind is RepositoryType.NO_CACHE
    assert documented.stores[0].disk.buffer_bytes == 65_664


@pytest.mark.rows("P-814", "P-816")
def test_options_of_a_store() -> None:
    """C-13: numbers may have their thousands set apart."""
    options = {"allow-proxy-source": 1, "retransmission-request-processing-rate": "75,000", "context-name": "n-1"}
    store = only({"options": options})
    assert (store.config.allow_proxy, store.config.request_rate, store.context_name) == (True, 75_000, "n-1")


@pytest.mark.rows("P-107", "P-817", "P-818", "P-826", "P-829")
def test_options_of_a_topic_are_for_that_topic_and_those_of_the_disk_for_all() -> None:
    topics = [
        {"pattern": "a", "options": {"repository-type": "memory", "repository-disk-async-buffer-length": 70_000}},
        {"pattern": "^b", "type": "pcre", "options": {"repository-type": "reduced-fd"}},
        {"pattern": "c", "type": "regexp", "options": {"repository-type": "no-cache"}},
    ]
    store = only({"topic": topics})
    kinds = [(rule.kind, rule.repository.kind) for rule in store.config.topics]
    assert kinds == [
        (PatternType.DIRECT, RepositoryType.MEMORY),
        (PatternType.PCRE, RepositoryType.REDUCED_FD),
        (PatternType.REGEXP, RepositoryType.NO_CACHE),
    ]
    assert store.disk.buffer_bytes == 1_024_000


@pytest.mark.rows("P-835", "P-836", "P-838")
def test_the_smallest_value_of_the_topics_holds_for_the_store() -> None:
    topics = [
        {"pattern": "a", "options": {"source-check-interval": 50, "keepalive-interval": 600}},
        {"pattern": "b", "options": {"source-check-interval": 70}, "receiver": {"retransmit_request_interval": 9}},
        {"pattern": "c", "receiver": {"retransmit_request_interval": 9}},
    ]
    whole = made({"topic": topics})
    config = whole.stores[0].config
    assert (config.check_ns, config.keepalive_ns) == (50 * MILLISECOND, 600 * MILLISECOND)
    assert config.retry_ns == 9 * MILLISECOND
    assert [one.text for one in whole.notices] == [
        "source-check-interval holds for the whole store: the smallest value of its topics counts"
    ]


@pytest.mark.rows("P-845", "P-846", "P-852")
def test_options_of_the_library() -> None:
    """Options of receivers and sources for a topic, of the context for a store."""
    relays = "0.0.0.0:0->127.0.0.1:15380, 127.0.0.1:7->127.0.0.1:15381"
    context = {"resolver_unicast_daemon": relays, "request_tcp_port_low": 20_000,
               "request_tcp_port_high": 20_010, "transport_lbtrm_receiver_socket_buffer": 1_048_576,
               "transport_lbtru_rate_interval": 100}  # fmt: skip
    proxies = {"allow-proxy-source": 1}
    whole = made(
        {"port": 0, "context": context, "options": proxies}, source={"ume_flight_size": 7, "transport": "lbtru"}
    )
    store = whole.stores[0]
    assert store.resolver == ("127.0.0.1:15380", "127.0.0.1:15381")
    assert (store.port, store.ports) == (0, (20_000, 20_010))
    rates = {"transport_lbtru_rate_interval": "100"}
    assert store.proxy_options("t") == {**rates, "ume_flight_size": "7", "transport": "lbtru"}
    assert store.transports.lbtru.rates.interval_ns == 100 * MILLISECOND
    assert store.proxy_options("another") == {}
    assert [one.text for one in whole.notices] == [
        f"transport_lbtrm_receiver_socket_buffer has no effect: {SOCKETS}",
        "the local end of 127.0.0.1:7->127.0.0.1:15381 has no effect at a store: its interface is used",
    ]


@pytest.mark.rows("P-805", "P-849")
def test_the_option_file_of_the_daemon_comes_first_and_the_store_overrides_it(tmp_path: Path) -> None:
    file = tmp_path / "lbm.cfg"
    file.write_text(
        "context default_interface 127.0.0.1\ncontext resolver_service 127.0.0.1:27000\n"
        "receiver retransmit_request_interval 70\nreceiver retransmit_request_outstanding_maximum 5\n"
        "hfx anything 1\ncontext typo 1\n"
    )
    table = {"name": "a", "port": 1, "topic": [{"pattern": "t", "receiver": {"retransmit_request_interval": 90}}]}
    whole = build(outline({"daemon": {"lbm-config": str(file)}, "store": [table]}))
    (store,) = whole.stores
    assert (store.host, store.resolver_service) == ("127.0.0.1", ("127.0.0.1:27000",))
    assert (store.config.retry_ns, store.config.window) == (90 * MILLISECOND, 5)
    assert [one.text for one in whole.notices] == [
        "typo is not a documented context option, and the store runs without it: spec/options.md lists them"
    ]


@pytest.mark.rows("P-845")
def test_options_of_resolution_are_followed_and_checked() -> None:
    """As a context's; what has no effect anywhere has none here."""
    group = {"resolver_multicast_interface": "127.0.0.1", "resolver_multicast_ttl": "1"}
    plan = made({"context": {**group, "resolver_string_hash_function": "djb2"}})
    assert plan.stores[0].resolution == group
    assert [one.text for one in plan.notices] == [f"resolver_string_hash_function has no effect: {STRINGS}"]
    with pytest.raises(ConfigFileError, match="resolver_multicast_ttl must lie between 0 and 255"):
        made({"context": {"resolver_multicast_ttl": 256}})


def test_options_that_a_proxy_has_from_its_source_are_not_followed() -> None:
    assert notices(source={"ume_session_id": 5}) == [
        "ume_session_id has no effect: a proxy uses the value of its source"
    ]


@pytest.mark.rows("P-824", "P-825")
def test_old_names_and_unfollowed_options_have_a_notice() -> None:
    assert notices(options={"repository-disk-max-async-cbs": 7, "repository-disk-max-write-async-cbs": 2}) == [
        "option repository-disk-max-async-cbs is an old name: write repository-disk-max-read-async-cbs",
        f"option {WRITES} is not followed: there is one write at a time, for all waiting messages",
    ]  # fmt: skip
    assert only(options={"repository-disk-max-async-cbs": 7}).disk.reads == 7
    assert only({"options": {"proxy-source-repo-quorum-required": 1}}).config.proxy_quorum


@pytest.mark.rows("P-810", "P-815", "P-817", "P-827", "P-829", "P-845")
@pytest.mark.parametrize(
    ("store", "told"),
    [
        ({"options": {"repository-type": "disk"}}, "option 'repository-type' belongs to a topic, not to a store"),
        ({"options": {"colour": 1}}, "option 'colour' is not a store option"),
        (topic("context-name", "x"), "option 'context-name' belongs to a store, not to a topic"),
        (topic("colour", 1), "option 'colour' is not a topic option"),
        ({"source": 1}, "there is no 'source' here"),
        ({"topic": [{"pattern": "t", "context": {}}]}, "there is no 'context' here"),
        (topic("repository-type", "tape"), "option repository-type must be one of"),
        (topic("repository-disk-file-size-limit", 196_991), "must lie between 196992"),
        (topic("repository-disk-async-buffer-length", 65_663), "must lie between 65664"),
        (topic("source-check-interval", "soon"), "source-check-interval must be a whole"),
        ({"topic": [{"pattern": "t", "type": "glob"}]}, "a pattern must be direct, PCRE or regexp, not 'glob'"),
        ({"topic": [{"pattern": "(", "type": "PCRE"}]}, "'(' is not an expression"),
        (topic("ume_flight_size", "x", "source"), "option ume_flight_size wants a whole number"),
        (topic("use_late_join", 0, "receiver"), "a store works only with use_late_join 1: take it out"),
        ({"topic": [{"pattern": "t", "restore-last": 337}]}, "restore-last must be a whole number from 0 to 336"),
        ({"options": {"allow-proxy-source": 2}}, "option allow-proxy-source must be 0 or 1"),
        ({"options": {"context-name": "n" * 129}}, "must be 1 to 128 letters, digits, hyphens and underscores"),
        ({"options": {"context-name": "a b"}}, "context-name 'a b' must be"),
        ({"options": {"disk-cache-directory": "d" * 231}}, "disk-cache-directory must have 1 to 230 characters"),
        ({"options": {"disk-state-directory": ""}}, "disk-state-directory must have 1 to 230 characters"),
        ({"port": 65_536}, "port must be a whole number from 0 to 65535, not '65536'"),
        ({"name": ""}, "a store needs a name"),
        ({"limits": {"colours": 1}}, "there is no limit 'colours': there are sources, clients, disk-bytes, room-bytes"),
        ({"limits": {"sources": "x"}}, "sources must be a whole number from 0 to"),
        ({"interface": "nowhere0"}, "'nowhere0' is not an interface"),
        ({"context": {"request_tcp_port_low": 9, "request_tcp_port_high": 8}}, "request_tcp_port_low 9 is above"),
    ],
)  # fmt: skip
def test_problems_of_a_store_are_reported(store: dict[str, Any], told: str) -> None:
    assert any(told in one for one in problems(store)), problems(store)


@pytest.mark.rows("P-845")
def test_the_type_of_an_option_decides_its_place() -> None:
    wrong = GUIDE.replace(
        'type="store" name="context-name" value="remote-store"', 'type="lbm-source" name="a" value="b"'
    )
    wrong = wrong.replace('type="store" name="repository-type" value="disk"', 'type="lbm-context" name="a" value="b"')
    with pytest.raises(ConfigFileError) as told:
        build(xml_file.parse(wrong.encode(), "f.xml"))
    assert str(told.value).splitlines() == [
        "f.xml:13: <option>: options of type lbm-source belong to a topic, not to a store",
        "f.xml:18: <option>: options of type lbm-context belong to a store, not to a topic",
    ]


@pytest.mark.rows("P-815", "M-028")
def test_boundaries_of_a_name() -> None:
    assert only({"options": {"context-name": "n" * 128}}).context_name == "n" * 128


@pytest.mark.rows("P-125")
def test_two_stores_share_nothing() -> None:
    same = {"name": "a", "port": 1, "interface": "127.0.0.1", "options": {"context-name": "n"}}
    told = [one.partition(": ")[2] for one in problems(same, same)]
    assert told == [
        f"store 0 and store 1 have the same {what}"
        for what in ("name", "disk-cache-directory", "disk-state-directory", "port", "context-name")
    ]
    options = {"disk-cache-directory": "c", "disk-state-directory": "s"}
    two = [
        {"name": "a", "port": 0, "interface": "127.0.0.1"},
        {"name": "b", "port": 0, "interface": "127.0.0.1", "options": options},
    ]
    assert len(build(outline({"store": two})).stores) == 2


@pytest.mark.rows("P-803", "P-804", "P-806", "P-807", "P-808", "M-026")
def test_entries_of_the_daemon() -> None:
    whole = made(
        daemon={
            "log": {"path": "a.log", "frequency": "hourly", "size": "5"}, "uid": 65_534, "gid": 65_533,
            "lbm-license-file": "x", "lbm-password-file": "y",
            "web-monitor": {"address": "127.0.0.1:0", "permission": "read-write", "token-file": "t"},
        }
    )  # fmt: skip
    daemon = whole.daemon
    assert daemon.log == LogConfig(Path("a.log"), Frequency.HOURLY, 5)
    assert (daemon.uid, daemon.gid) == (65_534, 65_533)
    assert daemon.monitor == MonitorConfig("127.0.0.1", 0, True, Path("t"))
    assert [one.text for one in whole.notices] == [
        "lbm-license-file is read and not used: no licence is needed",
        "lbm-password-file is read and not used: there is no queue browser",
    ]


@pytest.mark.rows("P-855")
def test_the_last_of_repeated_entries_counts() -> None:
    twice = GUIDE.replace("<log>stored.log</log>", "<log>a</log><log>b</log>")
    whole = build(xml_file.parse(twice.encode(), "f.xml"))
    assert whole.daemon.log.path == Path("b")
    assert [one.text for one in whole.notices] == ["log is repeated: the last one counts"]


@pytest.mark.rows("P-802")
def test_a_log_is_required_but_in_the_newest_version() -> None:
    without = GUIDE.replace("<log>stored.log</log>", "")
    with pytest.raises(ConfigFileError, match="log is missing"):
        build(xml_file.parse(without.encode(), "f.xml"))
    newest = without.replace('"1.2"', '"1.3"')
    assert build(xml_file.parse(newest.encode(), "f.xml")).daemon.log.path is None


@pytest.mark.parametrize(
    ("daemon", "told"),
    [
        ({"uid": "me"}, "daemon.uid: uid must be a whole number from 0 to 4294967294, not 'me'"),
        ({"log": {"type": "file"}}, "the type of a log is 'console', or 'file' with the name of the file"),
        ({"log": {"path": "a", "frequency": "weekly"}}, "the frequency of a log is one of disable, daily, hourly"),
        ({"log": {"path": "a", "size": "-1"}}, "the size of a log in MiB must be a whole number"),
        ({"web-monitor": "15304"}, "the monitor listens at address:port, * for any address, not at '15304'"),
        ({"web-monitor": "*:web"}, "the port of the monitor must be a whole number"),
        ({"web-monitor": "no.such.interface.invalid:1"}, "'no.such.interface.invalid' is not an interface"),
        ({"web-monitor": {"address": "*:1", "permission": "all"}}, "is read-only or read-write, not 'all'"),
    ],
)  # fmt: skip
def test_problems_of_the_daemon_are_reported(daemon: dict[str, Any], told: str) -> None:
    assert any(told in one for one in problems(**daemon))


def test_a_log_on_the_console() -> None:
    assert made(daemon={"log": {"type": "console"}}).daemon.log == LogConfig()


def test_limits_of_a_store() -> None:
    limits = {"sources": 5, "disk-bytes": "1,000,000"}
    assert only({"limits": limits}).limits == plan.StoreLimits(sources=5, disk_bytes=1_000_000)


def test_a_daemon_without_stores_and_a_store_without_topics_have_a_notice() -> None:
    assert [one.text for one in build(outline({})).notices] == ["there are no stores: the daemon serves nothing"]
    assert notices({"topic": []}) == ["store 'a' has no topics: it will refuse every source"]


def test_each_topic_has_its_age_of_restoring() -> None:
    topics = [
        {"pattern": "a"},
        {"pattern": "b", "restore-last": 0},
        {"pattern": "^c", "type": "PCRE", "restore-last": 3},
    ]
    store = only({"topic": topics, "restore-last": 2})
    assert [store.restore_last_ns(topic) // plan.HOUR_NS for topic in ("a", "b", "cc", "d")] == [2, 0, 3, 0]
    never = '<restore-last behavior="none" value="4"/>'
    newest = GUIDE.replace('"1.2"', '"1.3"').replace('type="PCRE">', f'type="PCRE">{never}')
    assert build(xml_file.parse(newest.encode(), "f.xml")).stores[0].restore_last_ns("test") == 0


def test_unfollowed_options_of_statistics_have_a_notice() -> None:
    """A request for remote control has a notice; one that is switched off has none."""
    asked = {"topic": "t", "default": 3, "remote-snapshot-request": 1, "remote-config-changes-request": 0}
    found = build(outline({"daemon": {"daemon-monitor": asked}, "store": []}))
    assert found.daemon.statistics == StatisticsConfig("t", {"default": 3})
    told = [one.text for one in found.notices if "remote" in one.text]
    assert told == [
        (
            "remote-snapshot-request is read and not used: such requests are immediate messages without a topic, "
            "whose format is not documented in public: ask the monitor, whose /api and /metrics have the same figures"
        )
    ]
    found = build(outline({"daemon": {"daemon-monitor": {}}, "store": []}))
    assert any("daemon-monitor has no publishing-interval" in one.text for one in found.notices)
    with pytest.raises(ConfigFileError, match="there are no statistics 'disc': there are default, store, source"):
        build(outline({"daemon": {"daemon-monitor": {"disc": 3}}}))


@pytest.mark.rows("P-805")
def test_an_option_file_that_is_not_there_is_one_problem_among_others() -> None:
    """With the name of the entry, and not instead of what else is wrong."""
    tables = {"daemon": {"lbm-config": "missing.cfg"}, "store": [{"name": "a", "port": 70_000}]}
    with pytest.raises(ConfigFileError) as raised:
        build(outline(tables))
    assert "missing.cfg cannot be read: No such file or directory; correct the path" in str(raised.value)
    assert "port must be" in str(raised.value)


@pytest.mark.rows("P-808", "P-849")
def test_the_xml_file_of_the_daemon_lies_below_its_option_file(tmp_path: Path) -> None:
    """The application that the daemon names, and its context with the name of the store."""
    xml, flat = tmp_path / "um.xml", tmp_path / "um.cfg"
    ports = options("context", request_tcp_port_low=20_000, request_tcp_port_high=20_010)
    waits = options("receiver", retransmit_request_interval=70)
    of_store = f'<context name="a">{ports}{waits}</context>'
    xml.write_text(
        document("", f'<application name="stores"><contexts><context/>{of_store}</contexts></application>'),
        encoding="utf-8",
    )
    flat.write_text("context request_tcp_port_high 20020\n", encoding="utf-8")
    daemon = {"xml-config": {"path": str(xml), "application-name": "stores"}, "lbm-config": str(flat)}
    table = {"name": "a", "port": 1, "topic": [{"pattern": "t"}]}
    (store,) = build(outline({"daemon": daemon, "store": [table]})).stores
    assert (store.ports, store.config.retry_ns) == ((20_000, 20_020), 70 * MILLISECOND)
    daemon["xml-config"] = {"path": str(xml), "application-name": "other"}
    with pytest.raises(ConfigFileError, match="there is no application 'other': it has stores"):
        build(outline({"daemon": daemon, "store": [table]}))


@pytest.mark.rows("P-845")
@pytest.mark.parametrize("allowed", [False, True])
def test_options_of_proxies_are_noticed_at_a_store_that_allows_none(allowed: bool) -> None:
    """Such an option, also one of the context, would have neither effect nor notice."""
    plan = made({"context": {"transport_lbtrm_rate_interval": 50}, "options": {"allow-proxy-source": int(allowed)}})
    told = [one.text for one in plan.notices]
    text = "transport_lbtrm_rate_interval: options of sources have effect in proxies only, which this store does not"
    assert (not told) is allowed
    assert all(one.startswith(text) for one in told)
