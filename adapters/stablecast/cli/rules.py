"""`stablecast rules`: print the catalogue of rules, or one of them."""

from textwrap import fill
from typing import Any, Final

import attrs

from stablecast.evidence.rules import RULES, InvariantRule, judges_of
from stablecast.text.console import say
from stablecast.text.exit_status import failed

UNKNOWN: Final = 2
"""Exit status: there is no rule of that id."""
WIDTH: Final = 100
"""Columns of a paragraph."""


def run(rule_id: str | None, as_json: bool) -> int:
    """Print all rules, or the one of this id or name; return the exit status."""
    wanted = [
        rule for rule in RULES.values() if rule_id is None or rule_id.lower() in (rule.id.lower(), rule.name.lower())
    ]
    if not wanted:
        return failed(f"there is no rule {rule_id!r}; `stablecast rules` lists all of them", UNKNOWN)
    if as_json:
        say([as_object(rule) for rule in wanted])
        return 0
    for rule in wanted:
        if rule_id is None:
            say(fill(rule.statement, WIDTH, initial_indent=f"{rule.title:<28}  ", subsequent_indent=" " * 30))
        else:
            say(page(rule))
    return 0


def as_object(rule: InvariantRule) -> dict[str, Any]:
    judged_by = [
        {"judge": judge.name, "place": judge.place, "command": judge.run, "checks": judge.checks[rule.id]}
        for judge in judges_of(rule.id)
    ]
    return {**attrs.asdict(rule), "judged_by": judged_by}


def page(rule: InvariantRule) -> str:
    """Return everything about one rule for people."""
    parts = [
        rule.title,
        _paragraph("", rule.statement),
        _paragraph("Needs: ", rule.needs),
        _paragraph("Broken by: ", rule.breaks),
        _paragraph("When it is broken: ", rule.remedy),
        "  Judged by:",
    ]
    parts += [_paragraph(f"  {judge.name} ({judge.run}): ", judge.checks[rule.id]) for judge in judges_of(rule.id)]
    return "\n".join(parts)


def _paragraph(label: str, text: str) -> str:
    return fill(label + text, WIDTH, initial_indent="  ", subsequent_indent="    ")
