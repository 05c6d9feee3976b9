"""The judges, and the rules that each is registered for with the part of the rule that it can see.

Each judge has an implementation of its own. A test compares this table with the ids that the implementations report.
"""

from collections.abc import Mapping
from typing import Final

from stablecast.evidence.rules.catalogue import PROPERTIES, TABLES
from stablecast.evidence.rules.rule import RuleJudge


def _judge(name: str, checks: Mapping[str, str] | None = None) -> RuleJudge:
    """Return a declared judge, with its own checks or these."""
    declared = TABLES["judges"][name]
    return RuleJudge(name, declared["place"], declared["run"], declared["checks"] if checks is None else checks)


ONE_TRACE: Final = _judge("one trace")
TRACE_FORM: Final = _judge("trace form")
TRACES_TOGETHER: Final = _judge("traces together")
CAPTURES: Final = _judge("captures")
SIMULATOR: Final = _judge("simulator")
MODELS: Final = _judge(
    "models", {one.rule: ", ".join(other.path for other in PROPERTIES if other.rule == one.rule) for one in PROPERTIES}
)
TORTURE: Final = _judge("torture")

JUDGES: Final = (ONE_TRACE, TRACE_FORM, TRACES_TOGETHER, CAPTURES, SIMULATOR, MODELS, TORTURE)


def judges_of(rule: str) -> list[RuleJudge]:
    return [judge for judge in JUDGES if rule in judge.checks]
