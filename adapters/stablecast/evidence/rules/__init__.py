"""The catalogue of rules: each invariant once, and the judges that decide it.

`stablecast rules` prints it, `spec/rules.md` is rendered from it, and reports name rules by it.
"""

from stablecast.evidence.rules.catalogue import RULES
from stablecast.evidence.rules.judges import JUDGES, judges_of
from stablecast.evidence.rules.rule import InvariantRule, ModelProperty, RuleJudge

__all__ = ["JUDGES", "RULES", "InvariantRule", "ModelProperty", "RuleJudge", "judges_of"]
