"""The option chapter of the specification says what the option table says."""

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

Documented names, as `options={"name": value}` in Python and `--option name=value` on the command line. A flag is 0 or
1. A list takes several entries in one value, with blanks or commas between them, and appends them. Later options win
over earlier ones. What is documented for a context is an option of its sources or receivers here.

There are three sets of defaults. `safe` is what everything starts with: the documented values of release 5.3, except
where a model or a trap refutes them (see the end). `5.3` is the guide of that release to the letter and `6.17` the
later documentation, both without the [repairs](decisions.md); `stablecast.config.profiles.profile(name)` gives them.
The options of *topic* and *disk* may be set for a store as well: then they are for all topics that have none of their
own. Those of *disk* are documented for topics, and count for the one journal of a store: of what its topics ask for the
largest buffer, the most reads, and a yes of one is a yes for all. Those of *transport* may be given to sources and to
receivers; each follows what concerns it ([transports](transports.md#options-and-timers)).

This chapter is made from the option table; `STABLECAST_REWRITE=1 pytest tests/test_options_spec.py` writes it again.
Which test shows what an option of a store does is in [the chapter of the daemon](store_daemon.md#options-and-tests).
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
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


def table(*head: str) -> list[str]:
    """The first lines of a table."""
    return [row(head), "|" + "---|" * len(head)]


def section(title: str) -> list[str]:
    """The options of a scope, and what they have to do with others."""
    scope, options = SECTIONS[title]
    lines = [f"## {title}\n", *table("option", "type", "unit", "values", *PROFILES, "meaning")]
    for option in options:
        defaults = [option.show(getattr(found, scope)) for found in PROFILES.values()]
        kind = option.kind
        lines.append(row([option.name, kind.type, kind.unit, kind.allowed, *defaults, option.summary]))
    relations = [f"* {option.name}: {option.relation}." for option in options if option.relation]
    return [*lines, "", f"Relations of {title} options:\n", *relations, ""]


def render() -> str:
    """The chapter."""
    lines = [INTRODUCTION]
    for title in SECTIONS:
        lines += section(title)
    lines += ["## Old names\n", "Taken, with a notice.\n", *table("scope", "old name", "name")]
    lines += [row([scope, old, new]) for scope, names in ALIASES.items() for old, new in names.items()]
    lines += ["", ELSEWHERE, "## Where safe is not 5.3, and why\n", *table("scope", "option", "reason")]
    lines += [row([*place, reason]) for place, reason in REASONS.items()]
    return "\n".join(lines) + "\n"


def test_the_chapter_is_the_table() -> None:
    """P-853."""
    if os.environ.get("STABLECAST_REWRITE") == "1":
        CHAPTER.write_text(render(), encoding="utf-8")
    assert CHAPTER.read_text(encoding="utf-8") == render()


def test_every_default_is_shown() -> None:
    """An option with an effect has a default in every profile; lists start empty."""
    for scope, options in SECTIONS.values():
        for option in options:
            shown = {name: option.show(getattr(found, scope)) for name, found in PROFILES.items()}
            empty = option.field is None or option.kind.type == "list"
            assert all((value == "") == empty for value in shown.values()), (option.name, shown)
