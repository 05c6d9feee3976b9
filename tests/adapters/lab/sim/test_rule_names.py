"""A rule that a model states as well has the same name there."""

from stablecast.lab.sim.rules import RULES
from tests.support.evidence import rows, section
from tests.support.tree import ROOT

WIDER = {"E1"}
"""It is two of the models' properties in one."""


def test_a_rule_and_the_property_with_its_id_have_one_name() -> None:
    text = (ROOT / "spec" / "models.md").read_text(encoding="utf-8")
    named: dict[str, set[str]] = {}
    for number, name, *_ in rows(section(text, "Properties")):
        named.setdefault(number, set()).add(name)
    assert {
        rule: name for rule, name in RULES.items() if rule in named.keys() - WIDER and name not in named[rule]
    } == {}
