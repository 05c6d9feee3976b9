"""The documented options of resolution, each with its effect on the settings."""

import os
import re

import attrs
import pytest

from stablecast.config.option import Option
from stablecast.config.option_files import Setting
from stablecast.config.option_kinds import ChoiceKind, OptionError, Value
from stablecast.config.resolution_options import CONTEXT, ResolutionSettings, configured, own, strategy
from stablecast.config.setting_checks import option_notices
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.runtime.address import AddressError
from stablecast.runtime.multicast import MulticastSettings
from stablecast.transports.resolution.udp.presets import PRESETS
from stablecast.transports.resolution.udp.settings import AdvertiseOptions, PatternOptions, QueryOptions
from tests.support.option_values import show, type_of, unit_of
from tests.support.tree import ROOT

NOTHING = ResolutionSettings()
CHAPTER = ROOT / "spec" / "resolution.md"


def field(settings: object, path: str) -> object:
    for part in path.split("."):
        settings = getattr(settings, part)
    return settings


@pytest.mark.parametrize("option", CONTEXT, ids=lambda option: option.name)
def test_every_option_sets_its_field_and_shows_it(option: Option) -> None:
    values: dict[str, Value] = {
        "flag": 1,
        "number": 777 if unit_of(option.kind) == "bytes" else 77,
        "choice": option.kind.words[-1][0] if isinstance(option.kind, ChoiceKind) else "",
        "address": "239.1.1.1",
        "text": "eth0",
    }
    base = attrs.evolve(NOTHING, multicast=MulticastSettings())
    if type_of(option.kind) == "list":
        after = option.set(base, "10.0.0.1:7 10.0.0.2:7")
        assert len(after.relays + after.services) == 2
        assert option.set(after, "0.0.0.0:0") == base
    else:
        after = option.set(base, values[type_of(option.kind)])
        assert show(option, after) == ("" if option.field is None else str(values[type_of(option.kind)]))


@pytest.mark.rows("T-022", "T-117")
@pytest.mark.parametrize(
    ("name", "value", "path", "expected"),
    [
        ("resolver_advertisement_sustain_interval", "1250", "config.advertise.pace.sustain", 1250 * MILLISECOND),
        ("resolver_advertisement_minimum_sustain_duration", 60, "config.advertise.pace.sustaining", 60 * SECOND),
        ("resolver_query_minimum_duration", 0, "config.patterns.pace.initial", 0),
        ("resolver_initial_advertisements_per_second", 10, "config.limits.initial_advertisements.records", 10),
        ("resolver_wildcard_query_bps", 10, "config.limits.pattern_queries.bits", 10),
        ("resolver_unicast_force_alive", 1, "config.relays.force_alive", True),
        ("resolver_disable_udp_topic_resolution", 1, "udp", False),
        ("resolver_multicast_ttl", 3, "multicast.ttl", 3),
        ("resolver_multicast_address", "239.1.1.1", "multicast.group", "239.1.1.1"),
        ("resolver_multicast_port", 7, "multicast.port", 7),
        ("resolver_multicast_outgoing_address", "239.1.1.1", "multicast.outgoing", "239.1.1.1:12965"),
        ("resolver_multicast_outgoing_port", 7, "multicast.outgoing", "224.9.10.11:7"),
    ],
)
def test_units_and_places(name: str, value: Value, path: str, expected: object) -> None:
    assert field(configured(NOTHING, {name: value}), path) == expected


@pytest.mark.rows("T-023", "T-210", "T-411")
def test_lists_are_appended_to_and_cleared() -> None:
    settings = configured(
        NOTHING, {"resolver_unicast_daemon": "10.0.0.1:15380,10.0.0.2:15380", "resolver_service": "test1.example.com:7"}
    )
    assert settings.relays == ("10.0.0.1:15380", "10.0.0.2:15380")
    assert settings.services == ("test1.example.com:7",)
    cleared = configured(settings, {"resolver_unicast_daemon": "0.0.0.0:0", "resolver_service": "0.0.0.0:0"})
    assert (cleared.relays, cleared.services) == ((), ())


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"resolver_cach": 1}, OptionError, "did you mean 'resolver_cache'"),
        ({"resolver_cache": 2}, OptionError, "resolver_cache"),
        ({"resolver_multicast_incoming_address": "x"}, OptionError, "wants an IPv4 address, not 'x'"),
        ({"resolver_unicast_daemon": "lbmrd"}, AddressError, "not an address"),
        ({"resolution_number_of_sources_query_threshold": 0}, OptionError, "between 1 and"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Value], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        configured(NOTHING, options)


@pytest.mark.rows("T-003")
def test_options_of_one_topic() -> None:
    options: dict[str, Value] = {"resolver_advertisement_sustain_interval": 500, "ume_flight_size": 7}
    advertise, others = own(AdvertiseOptions(), options)
    assert (advertise.pace.sustain, others) == (500 * MILLISECOND, {"ume_flight_size": 7})
    query, others = own(QueryOptions(), {"resolution_number_of_sources_query_threshold": 2})
    assert (query.enough, others) == (2, {})
    pattern, _ = own(PatternOptions(), {"resolver_no_source_linger_timeout": 5})
    assert pattern.linger == 5 * MILLISECOND


@pytest.mark.rows("T-301", "T-303", "T-305", "T-307", "T-310")
def test_strategies_by_name() -> None:
    for name, preset in PRESETS.items():
        settings = strategy(name)
        assert settings.udp is (preset.config is not None)
        assert preset.config is None or settings.config is preset.config
    with pytest.raises(OptionError, match="choose one of safe, default, query-centric"):
        strategy("best")


def row(option: Option) -> str:
    kind, base = option.kind, attrs.evolve(NOTHING, multicast=MulticastSettings())
    cells = (
        option.name,
        type_of(kind),
        unit_of(kind),
        kind.allowed,
        show(option, base),
        option.summary,
        option.relation,
    )
    return f"| {' | '.join(cells)} |\n"


def test_the_chapter_has_every_option() -> None:
    """STABLECAST_REWRITE=1 writes the table anew."""
    head = "| option | type | unit | values | safe | meaning | beside others |\n|---|---|---|---|---|---|---|\n"
    table = head + "".join(map(row, CONTEXT))
    block = re.compile(r"(<!-- resolver options -->\n).*?(<!-- end -->)", re.DOTALL)
    text = CHAPTER.read_text(encoding="utf-8")
    wished = block.sub(lambda found: f"{found[1]}\n{table}\n{found[2]}", text)
    if os.environ.get("STABLECAST_REWRITE") == "1":
        CHAPTER.write_text(wished, encoding="utf-8")
    assert CHAPTER.read_text(encoding="utf-8") == wished
    assert "| resolver_cache | flag |" in wished


@pytest.mark.rows("T-014")
def test_the_size_of_the_receivers_table_has_no_effect() -> None:
    """The table grows as needed, and a notice says so."""
    told = option_notices(Setting("context", "resolver_receiver_map_tablesz", "77", 1))
    assert told == ["resolver_receiver_map_tablesz has no effect: tables grow as needed"]
