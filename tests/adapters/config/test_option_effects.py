"""Every documented option of a client is in effect, or a notice or a refusal names the reason why it is not."""

from pathlib import Path

import attrs
import pytest

from stablecast.config import client_files
from stablecast.config.client_files import load
from stablecast.config.documented_options import documented
from stablecast.config.findings import ConfigFileError
from stablecast.config.option_effects import Effect, effect_of
from stablecast.config.option_files import SCOPES
from stablecast.config.option_kinds import OptionError, Value
from stablecast.config.options import apply, notices
from stablecast.config.plan_assembly import build
from stablecast.config.profiles import Profile
from stablecast.config.resolution_options import ResolutionSettings, configured, own
from stablecast.config.toml_file import outline
from stablecast.lab.prove.instance import ProofBounds, instance
from stablecast.resolver.srs.config import parse as parse_srs
from stablecast.transports.resolution.udp.settings import PatternOptions
from tests.support.configurations import option_file
from tests.support.every_option import values_of

NAMES = sorted(documented())
SINGLE = [(scope, name) for scope, name in NAMES if not name.endswith("*")]
FOLLOWED = [(scope, name) for scope, name in NAMES if not documented()[scope, name].reason]
NOT_HERE = [(scope, name) for scope, name in SINGLE if documented()[scope, name].values is not None]


def default_of(scope: str, name: str) -> str:
    """Return the documented default of an option, as the printed configuration of a client has it."""
    row = documented()[scope, name]
    if row.values is not None:
        return row.values[0]
    return "" if row.reason else values_of(scope, name)[0]


@pytest.mark.rows("T-003", "P-850")
def test_each_documented_option_is_in_effect_or_has_a_reason() -> None:
    """Never silent, and never unknown: the option changes the configuration, or a notice or an error tells why not."""
    found = {(scope, name): effect_of(scope, name, default_of(scope, name)) for scope, name in SINGLE}
    assert not [one for one in SINGLE if found[one].effect is Effect.REFUSED]
    assert not [one for one in SINGLE if bool(found[one].reason) is not (found[one].effect is Effect.UNHEEDED)]


@pytest.mark.parametrize(("scope", "name"), FOLLOWED)
def test_each_option_in_effect_changes_what_a_program_gets(scope: str, name: str) -> None:
    """The configurations of a context, a source and a receiver; whatever else a line says, it is never nothing."""
    before, after = (_made(f"{scope} {name} {value}\n") for value in values_of(scope, name))
    assert before != after


def _made(text: str) -> tuple[object, ...]:
    """Return what the options of a file make of a context, its endpoints and its patterns."""
    with option_file(text) as path:
        found = load([path], environment=False)
        client = client_files.load_clients(path)[0]
    resolved, context = found.of_context()
    patterns = own(PatternOptions(), {**_patterns(found.of("context")), **found.of("wildcard_receiver")})[0]
    settings = configured(ResolutionSettings(), resolved)
    return (
        settings,
        context,
        patterns,
        attrs.evolve(client, path="", notices=()),
        own(settings.config.advertise, found.of_endpoint("source"))[0],
        own(settings.config.query, found.of_endpoint("receiver"))[0],
    )


def _patterns(options: dict[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in options.items() if ("wildcard_receiver", name) in documented()}


def test_the_whole_printed_configuration_at_its_defaults_passes() -> None:
    """Programs print all their options; the print is a configuration that asks for nothing, with empty values too."""
    lines = "".join(f"{scope} {name} {default_of(scope, name)}\n" for scope, name in SINGLE)
    with option_file(lines) as path:
        found = load([path], environment=False)
    told = {notice.text.split()[0] for notice in found.notices if " has no effect: " in notice.text}
    assert told == {name for scope, name in SINGLE if documented()[scope, name].reason}


@pytest.mark.parametrize(("scope", "name"), NOT_HERE)
def test_an_option_that_is_not_here_is_refused_only_if_it_asks_for_something(scope: str, name: str) -> None:
    reason = documented()[scope, name].reason
    with option_file(f"{scope} {name} wanted\n") as path, pytest.raises(ConfigFileError) as refused:
        load([path], environment=False)
    assert f"{path}:1: <{name}>: {name} wanted is not here: {reason}" == str(refused.value)


def test_every_program_gives_the_same_answer(tmp_path: Path) -> None:
    """A file of a client, an option of a call, a store, a service and a proof."""
    wanted = "use_tls 1 is not here: TLS is one setting of a whole system"
    stores = {"store": [{"name": "a", "port": 1, "context": {"use_tls": 1}, "topic": [{"pattern": "."}]}]}
    path = tmp_path / "um.cfg"
    path.write_text("context use_tls 1\n")
    for read in (
        lambda: load([path], environment=False),
        lambda: build(outline(stores)),
        lambda: parse_srs({"daemon": {"monitor": {"context": {"use_tls": 1}}}}, "srs.toml"),
        lambda: instance([path], ["ume_store=10.0.0.1:1"], "safe", ProofBounds()),
    ):
        with pytest.raises(ConfigFileError, match=wanted):
            read()
    asked = {"message_selector": "price > 5"}
    with pytest.raises(OptionError, match="message_selector price > 5 is not here: a receiver gets each message"):
        apply("receiver", Profile().receiver, asked)


def test_an_option_of_a_call_without_effect_is_noticed_like_one_of_a_file() -> None:
    options = {"smart_src_max_message_length": 1400, "transport_tcp_nodelay": 1, "delivery_control_loss_tablesz": 5}
    source = {name: value for name, value in options.items() if not name.startswith("delivery")}
    assert apply("source", Profile().source, source) == Profile().source
    assert notices("source", source) == (
        "smart_src_max_message_length has no effect: there are no smart sources: Context.source makes the only kind",
        "transport_tcp_nodelay has no effect: TCP_NODELAY is always set",
    )
    assert notices("receiver", {"delivery_control_loss_tablesz": 5}) == (
        "delivery_control_loss_tablesz has no effect: tables grow as needed",
    )


@pytest.mark.parametrize(
    ("scope", "name", "reason"),
    [
        ("context", "resolver_cach", "there is no context option 'resolver_cach': did you mean 'resolver_cache'?"),
        ("source", "use_late_join", "use_late_join is an option of the scope receiver, not source"),
        ("receiver", "nothing_like_it", "there is no receiver option 'nothing_like_it': spec/options.md lists them"),
        ("context", "umx_flavour", "there is no context option 'umx_flavour': spec/options.md lists them"),
    ],
)
def test_an_unknown_option_has_the_nearest_known_one_of_its_family(scope: str, name: str, reason: str) -> None:
    assert effect_of(scope, name).effect is Effect.REFUSED
    assert effect_of(scope, name).reason == reason


@pytest.mark.parametrize(
    ("line", "family"),
    [
        ("context mim_incoming_address 0.0.0.0", "there are no immediate messages without a topic"),
        ("source smart_src_max_message_length 1400", "there are no smart sources"),
        ("receiver transport_lbtipc_activity_timeout 5000", "messages do not pass through shared memory"),
        ("context umq_flight_size 7", "there are no queues"),
        ("event_queue queue_size_warning 5", "there are no event queues"),
        ("hfx ordered_delivery 1", "no receiver spans several contexts"),
    ],
)
def test_each_option_of_a_family_that_is_not_here_has_a_notice(line: str, family: str) -> None:
    with option_file(f"{line}\n") as path:
        (notice,) = load([path], environment=False).notices
    assert f"{line.split()[1]} has no effect: {family}" in notice.text


def test_no_remedy_leads_to_another_family() -> None:
    """An advice that is followed must not change what the context hears (the group of resolution)."""
    for scope in SCOPES:
        for name in ("mim_incoming_addres", "umq_queue_nam", "transport_lbtsmx_i", "transport_lbtipc_idd"):
            assert "did you mean" not in effect_of(scope, name).reason
