"""The option chapter of the specification is rendered from the option table."""

import os
from collections.abc import Iterable

from stablecast.config.client_options import RECEIVER_OPTIONS, SOURCE_OPTIONS
from stablecast.config.disk_options import DISK_OPTIONS
from stablecast.config.option import Option
from stablecast.config.options import ALIASES
from stablecast.config.profiles import DIFFERENCES, REASONS, profile
from stablecast.config.store_options import STORE_OPTIONS, TOPIC_OPTIONS
from stablecast.config.transport_options import TRANSPORT_OPTIONS
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
"""Each section: the scope whose configuration has the options, and the options."""

INTRODUCTION = """# Options

This chapter lists every option with its type, its default in each profile, and its meaning. Set options by their
documented names: as `options={"name": value}` in Python, and as `--option name=value` on the command line. A flag is 0
or 1. A list takes several entries in one value, with blanks or commas between them, and appends them to earlier
entries. Other options replace earlier values. Documented options of a context are options of sources or receivers here.

There are three profiles of defaults; `stablecast.config.profiles.profile(name)` returns one.

* `safe` is the default. It has the documented values of release 5.3, except where a model or a trap refutes them. The
  end of this chapter lists the differences.
* `5.3` follows the guide of that release exactly, without the [repairs](decisions.md).
* `6.17` follows the later documentation, without the repairs.

Options of *topic* and *disk* may be set for a store as well. They then apply to all topics that do not set them.
Options of *disk* are documented for topics, but apply to the one journal of a store. The journal uses the largest
buffer and the most reads of all topics, and a flag is on if one topic sets it. Options of *transport* may be set for
sources and for receivers. Each uses those that apply to it ([transports](transports.md#options-and-timers)).

The chapter is rendered from the option table: `STABLECAST_REWRITE=1 pytest tests/test_options_spec.py`.
[The chapter of the daemon](store_daemon.md#options-and-tests) names the test of each option of a store.
"""
ELSEWHERE = """## Not options here

| documented option | here |
|---|---|
| ume_registration_extended_function | the argument `reg_id` of `Context.receiver` |
| ume_recovery_sequence_number_info_function | the argument `start_at` of `Context.receiver` |
| ume_force_reclaim_function | the event `Reclaimed` with `forced` |
| request_tcp_bind_request_port | every context has a request port |
| disk-cache-directory, disk-state-directory, context-name | of a store in a [configuration](store_daemon.md) file |
"""


def row(cells: Iterable[str]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |"


def table(*head: str) -> list[str]:
    """Return the first lines of a table."""
    return [row(head), "|" + "---|" * len(head)]


def section(title: str) -> list[str]:
    """Return the table of a scope's options, and their relations to other options."""
    scope, options = SECTIONS[title]
    lines = [f"## {title}\n", *table("option", "type", "unit", "values", *PROFILES, "meaning")]
    for option in options:
        defaults = [option.show(getattr(found, scope)) for found in PROFILES.values()]
        kind = option.kind
        lines.append(row([option.name, kind.type, kind.unit, kind.allowed, *defaults, option.summary]))
    relations = [f"* {option.name}: {option.relation}." for option in options if option.relation]
    return [*lines, "", f"Relations of {title} options:\n", *relations, ""]


def render() -> str:
    """Return the chapter."""
    lines = [INTRODUCTION]
    for title in SECTIONS:
        lines += section(title)
    lines += ["## Old names\n", "Old names are accepted with a notice.\n", *table("scope", "old name", "name")]
    lines += [row([scope, old, new]) for scope, names in ALIASES.items() for old, new in names.items()]
    lines += ["", ELSEWHERE, "## Differences between safe and 5.3\n", *table("scope", "option", "reason")]
    lines += [row([*place, reason]) for place, reason in REASONS.items()]
    return "\n".join(lines) + "\n"


def test_the_chapter_is_rendered_from_the_table() -> None:
    """P-853: the chapter lists every option of the table."""
    if os.environ.get("STABLECAST_REWRITE") == "1":
        CHAPTER.write_text(render(), encoding="utf-8")
    assert CHAPTER.read_text(encoding="utf-8") == render()


def test_every_default_is_shown() -> None:
    """An option with an effect has a default in every profile, except that lists start empty."""
    for scope, options in SECTIONS.values():
        for option in options:
            shown = {name: option.show(getattr(found, scope)) for name, found in PROFILES.items()}
            empty = option.field is None or option.kind.type == "list"
            assert all((value == "") == empty for value in shown.values()), (option.name, shown)
