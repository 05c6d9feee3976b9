"""Rules asked directly, as `stablecast.trace.watching` asks them: of what they are about, and of nothing else."""

from stablecast.core.effects import Effect
from stablecast.core.inputs import Input
from stablecast.trace.rules import Rule
from stablecast.trace.watching import WITHIN


def ask(rule: Rule, record: Input | Effect) -> str | None:
    """What a rule says of an input or effect."""
    inner = WITHIN.get(type(record))
    what = record if inner is None else inner(record)
    heard = isinstance(record, Input)
    if type(what) not in (rule.hears if heard else rule.tells):
        return None
    return rule.on_input(what) if heard else rule.on_effect(what)
