"""Production code feeds each input, performs each effect, sets each setting, and calls each method of a resolver.

A machine whose input no program feeds, or whose output nobody listens to, is a behaviour that users do not have. Each
exception stands in a table with its reason. A table may hold nothing that is wired.
"""

import inspect
import re
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final

import attrs
import pytest

from stablecast.core.protocol import effects as core_effects
from stablecast.core.protocol import events as core_events
from stablecast.core.protocol import inputs as core_inputs
from stablecast.core.protocol import settings as core_settings
from stablecast.resolver import Listeners, Resolver
from stablecast.resolver.combined_resolver import Combined
from stablecast.resolver.srs_resolver import SrsResolver
from stablecast.transports.reliable import effects as reliable_effects
from stablecast.transports.reliable import inputs as reliable_inputs
from stablecast.transports.reliable import settings as reliable_settings
from stablecast.transports.resolution.srs import events as srs_events
from stablecast.transports.resolution.srs import settings as srs_settings
from stablecast.transports.resolution.udp import effects as udp_effects
from stablecast.transports.resolution.udp import inputs as udp_inputs
from stablecast.transports.resolution.udp import settings as udp_settings
from tests.support.tree import ROOT, python_files
from tests.support.wiring import members, production, production_files, uses

INPUTS: Final = (
    core_inputs.Input,
    reliable_inputs.SourceInput,
    reliable_inputs.ReceiverInput,
    udp_inputs.ContextInput,
    udp_inputs.AdvertiserInput,
    udp_inputs.QuerierInput,
    srs_events.ServiceInput,
    srs_events.SrsContextInput,
)
EFFECTS: Final = (
    core_effects.Effect,
    reliable_effects.SourceEffect,
    reliable_effects.ReceiverEffect,
    udp_effects.ContextEffect,
    udp_effects.QuerierEffect,
    udp_effects.NameEffect,
    udp_effects.RelayEffect,
    srs_events.ServiceEffect,
    srs_events.SrsContextEffect,
)
SETTINGS: Final = (core_settings, udp_settings, srs_settings, reliable_settings)
RESOLVERS: Final = (Resolver, SrsResolver, Combined)

UNFED: Final[Mapping[str, str]] = {
    "Blocked": "the client feeds what `Outbox.refuse` returns",
    "RecordsReceived": "a part of the context's machine feeds it to another part, after decoding a datagram",
    "Sent": "the client feeds what `Outbox.report` returns",
}
UNHEARD: Final[Mapping[str, str]] = {
    "ClientJoined": "counters show the clients of LBT-RU; no program acts on one",
    "ClientLeft": "counters show the clients of LBT-RU; no program acts on one",
    "Began": "the start of a session says nothing about a topic",
    "DatagramsLost": "`TopicLost` reports the loss of messages; counters show that of datagrams",
    "Tell": "the context's machine turns it into a datagram",
    "Transmit": "the context's machine turns it into a datagram",
}
BOUND: Final = "a bound against hostile or broken peers, which no option loosens"
FIXED: Final = "no documented option sets it"
UNSET: Final[Mapping[str, str]] = {
    "CacheOptions.forget_after": "documented sources stay for ever (T-015); `most` bounds the cache",
    "CacheOptions.most": BOUND,
    "ClientConfig.grace_ns": FIXED,
    "ClientConfig.lifetime_ns": "three keepalives, and `keepalive_ns` has an option",
    "ClientConfig.retry_max_ns": FIXED,
    "ClientConfig.retry_min_ns": FIXED,
    "PhasePace.sustain_tick": "a grid on which topics share a datagram",
    "PhasePace.tick": "a grid on which topics share a datagram",
    "QueryOptions.until_resolved": "the documented strategies set it in the presets of the transports",
    "RateSettings.repairs_count": "a property of LBT-RM, which its own constant sets",
    "RegistrationTimes.probe_ns": FIXED,
    "ServiceConfig.max_burst": BOUND,
    "ServiceConfig.max_clients": BOUND,
    "ServiceConfig.max_interests": BOUND,
    "ServiceConfig.max_patterns": BOUND,
    "ServiceConfig.max_rate": BOUND,
    "ServiceConfig.max_sources": BOUND,
    "SourceSettings.batch_bytes": "the client collects batches itself, before the transport",
    "SourceSettings.batch_ns": "the client collects batches itself, before the transport",
    "SourceSettings.linger_ns": FIXED,
    "SourceSettings.window_age_ns": "no documented option removes datagrams by age",
    "StoreConfig.history_lives": BOUND,
}
UNCALLED: Final[Mapping[str, str]] = {
    "name_found": "the client sets this listener by its position, `Context.locate`",
    "over_udp": "`Resolution.ask_name` answers by it",
    "unresolved": "`Combined.lost` asks again by it, where no other place of the source is left",
}


def classes(unions: tuple[Any, ...]) -> set[type]:
    return {member for union in unions for member in members(union)}


def fields(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Yield `Class.field` and the field of each record of settings that the module defines."""
    for name, found in vars(module).items():
        if inspect.isclass(found) and attrs.has(found) and found.__module__ == module.__name__:
            yield from ((f"{name}.{field.name}", field.name) for field in attrs.fields(found))


def test_production_code_feeds_each_input() -> None:
    assert {one.__name__ for one in classes(INPUTS) - production().called} == UNFED.keys()


def test_production_code_performs_each_effect() -> None:
    """A `case` names the class; one that only stands in a union is not performed."""
    assert {one.__name__ for one in classes(EFFECTS) - production().named} == UNHEARD.keys()


def test_a_store_reports_each_of_its_events() -> None:
    store = uses(tuple(python_files("adapters/stablecast/store")))
    assert classes((core_events.StoreEvent,)) <= store.named


@pytest.mark.parametrize("union", [core_events.SourceEvent, core_events.ReceiverEvent])
def test_a_machine_produces_each_event_and_its_chapter_describes_it(union: Any) -> None:
    """The client hands every event of a source or receiver to the application's `on_event`."""
    machines = uses(tuple(python_files("core/stablecast/core")))
    found = classes((union,))
    from_client = {core_events.NoSource, core_events.EndOfSource, core_events.HotNumbersMissed}
    from_client.add(core_events.SharesChanged)
    assert found - machines.called - from_client == set()
    assert found & from_client <= production().called
    chapter = (ROOT / "spec" / "events.md").read_text(encoding="utf-8")
    described = set(re.findall(r"^\| `?(\w+)`? \|", chapter, re.MULTILINE))
    assert {one.__name__ for one in found} <= described


def test_an_option_or_a_program_sets_each_setting() -> None:
    """A table of options names a field by its path, a program by a keyword."""
    paths = {part for text in production().texts for part in text.split(".") if text.replace(".", "_").isidentifier()}
    known = production().attributes | paths
    unset = {full for module in SETTINGS for full, field in fields(module) if field.lstrip("_") not in known}
    assert unset == UNSET.keys()


def test_programs_call_each_method_of_a_resolver_and_set_each_listener() -> None:
    outside = uses(tuple(path for path in production_files() if path.parent.name != "resolver"))
    public = {name for kind in RESOLVERS for name in dir(kind) if not name.startswith("_")}
    public |= {field.name for field in attrs.fields(Listeners)}
    assert public - outside.attributes == UNCALLED.keys()


def test_code_that_feeds_nothing_is_found() -> None:
    """A union in an annotation is no use of its members, and an import is none either."""
    nothing = uses((ROOT / "tests" / "support" / "tree.py",))
    assert classes(INPUTS) - nothing.called == classes(INPUTS)
    unions_only = uses((ROOT / "core" / "stablecast" / "core" / "protocol" / "inputs.py",))
    assert classes(INPUTS) - unions_only.called == classes(INPUTS)
