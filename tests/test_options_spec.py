"""The option chapter of the specification has the contents of the option table."""

import os
from collections.abc import Iterable

import pytest

from stablecast.config.client_options import RECEIVER_OPTIONS, SOURCE_OPTIONS
from stablecast.config.disk_options import DISK_OPTIONS
from stablecast.config.option import Option
from stablecast.config.options import ALIASES
from stablecast.config.profiles import DIFFERENCES, profile
from stablecast.config.store_options import STORE_OPTIONS, TOPIC_OPTIONS
from stablecast.config.transport_options import TRANSPORT_OPTIONS
from tests.support.option_values import show, type_of, unit_of
from tests.support.profile_reasons import REASONS
from tests.support.tree import ROOT

CHAPTER = ROOT / "spec" / "options.md"
PROFILES = {name: profile(name) for name in DIFFERENCES}
SECTIONS: dict[str, tuple[str, tuple[Option, ...]]] = {
    "source": ("source", SOURCE_OPTIONS),
    "receiver": ("receiver", RECEIVER_OPTIONS),
    "store": ("store", STORE_OPTIONS),
    "topic": ("store", tuple(option.below("repository") for option in TOPIC_OPTIONS)),
    "disk": ("disk", DISK_OPTIONS),
    "transport": ("transport", TRANSPORT_OPTIONS),
}
"""The scope whose configuration has the options, and the options, of each section."""

INTRODUCTION = """# Options

This chapter lists every option of sources, receivers, stores and transports with its type, allowed values, defaults and
meaning. Options have their documented names. Set them as `options={"name": value}` in Python and as
`--option name=value` on the command line, for example:

    stablecast send orders --resolver-service 127.0.0.1:27000 --store 127.0.0.1:14567 --option ume_flight_size=500

A flag is 0 or 1. A list accepts several entries in one value, separated by blanks or commas, and appends them. Later
options override earlier ones. Options that are documented for a context are options of its sources or receivers here.

A profile is a set of defaults. There are three profiles, and `stablecast.config.profiles.profile(name)` returns one:

* `safe` is the default. It has the documented values of release 5.3, except values that a model or a known trap refutes
  (see the end of this chapter).
* `5.3` has exactly the values of that release's guide, without the [repairs](decisions.md).
* `6.17` has the values of the later documentation, without the repairs.

Options of *topic* and *disk* may also be set for a store. They then hold for all topics that do not set them. Options
of *disk* are documented for topics, but a store has one journal. It uses the largest buffer and the most reads of its
topics, and a flag is set if one topic sets it. Options of *transport* may be set for sources and receivers, and each
uses those that concern it ([transports](transports.md#options-and-timers)).

This chapter is generated from the option table by `STABLECAST_REWRITE=1 pytest tests/test_options_spec.py`. The
[chapter of the daemon](store_daemon.md#options-and-tests) names the test of each store option.
"""
ELSEWHERE = """## Other documented options

[Configuration files](configuration.md#no-option-is-silent) lists the options of contexts, those without effect, and
those that are not here. The directories and the name of a store are entries of its [configuration](store_daemon.md).
"""


def row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def table(*head: str) -> list[str]:
    return [row(head), "|" + "---|" * len(head)]


def section(title: str) -> list[str]:
    scope, options = SECTIONS[title]
    lines = [f"## {title}\n", *table("option", "type", "unit", "values", *PROFILES, "meaning")]
    for option in options:
        defaults = [show(option, getattr(found, scope)) for found in PROFILES.values()]
        kind = option.kind
        lines.append(row([option.name, type_of(kind), unit_of(kind), kind.allowed, *defaults, option.summary]))
    relations = [f"* {option.name}: {option.relation}." for option in options if option.relation]
    return [*lines, "", f"Relations of {title} options:\n", *relations, ""]


def render() -> str:
    lines = [INTRODUCTION]
    for title in SECTIONS:
        lines += section(title)
    lines += ["## Old names\n", "These names are accepted with a notice.\n", *table("scope", "old name", "name")]
    lines += [row([scope, old, new]) for scope, names in ALIASES.items() for old, new in names.items()]
    lines += ["", ELSEWHERE, "## Differences of safe from 5.3, and the reasons\n", *table("scope", "option", "reason")]
    lines += [row([*place, reason]) for place, reason in REASONS.items()]
    return "\n".join(lines) + "\n"


@pytest.mark.rows("P-853")
def test_the_chapter_has_the_contents_of_the_table() -> None:
    if os.environ.get("STABLECAST_REWRITE") == "1":
        CHAPTER.write_text(render(), encoding="utf-8")
    assert CHAPTER.read_text(encoding="utf-8") == render()


def test_every_default_is_shown() -> None:
    """An option with an effect has a default in every profile; lists start empty."""
    for scope, options in SECTIONS.values():
        for option in options:
            shown = {name: show(option, getattr(found, scope)) for name, found in PROFILES.items()}
            empty = option.field is None or type_of(option.kind) == "list"
            assert all((value == "") == empty for value in shown.values()), (option.name, shown)
