"""The judges, and the rules that each is registered for with the part of the rule that it can see.

Each judge has an implementation of its own. A test compares this table with the ids that the implementations report.
"""

from typing import Final

from stablecast.evidence.rules.catalogue import PROPERTIES, TABLES
from stablecast.evidence.rules.rule import RuleJudge


def _judge(name: str, checks_of: str | None = None) -> RuleJudge:
    """Return a declared judge; one judge may check what another one checks, by other means."""
    declared = TABLES["judges"][name]
    checks = TABLES["judges"][checks_of or name]["checks"]
    return RuleJudge(name, declared["place"], declared["run"], checks)


def _models() -> RuleJudge:
    """Return the judge whose checks are the properties of the models."""
    paths: dict[str, list[str]] = {}
    for one in PROPERTIES:
        paths.setdefault(one.rule, []).append(one.path)
    declared = TABLES["judges"]["models"]
    return RuleJudge("models", declared["place"], declared["run"], {rule: ", ".join(paths[rule]) for rule in paths})


ONE_TRACE: Final = _judge("one trace")
TRACE_FORM: Final = _judge("trace form")
TRACES_TOGETHER: Final = _judge("traces together")
SQL: Final = _judge("traces together in SQL", checks_of="traces together")
CAPTURES: Final = _judge("captures")
SIMULATOR: Final = _judge("simulator")
MODELS: Final = _models()
TORTURE: Final = _judge("torture")

JUDGES: Final = (ONE_TRACE, TRACE_FORM, TRACES_TOGETHER, SQL, CAPTURES, SIMULATOR, MODELS, TORTURE)


def judges_of(rule: str) -> list[RuleJudge]:
    """Return the judges that are registered for a rule."""
    return [judge for judge in JUDGES if rule in judge.checks]
