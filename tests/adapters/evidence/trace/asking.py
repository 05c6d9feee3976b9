"""Rules asked directly, as `stablecast.evidence.trace.watch` asks them: of what they are about, and of nothing else."""

from typing import Any

from stablecast.core.protocol.effects import Broadcast, Effect, Notify, Send
from stablecast.core.protocol.inputs import Arrived, Input
from stablecast.evidence.trace.rule_protocol import Rule


def ask(rule: Rule, record: Input | Effect) -> str | None:
    """What a rule says of an input or effect."""
    what: Any = record
    if isinstance(record, Arrived | Send | Broadcast):
        what = record.message
    elif isinstance(record, Notify):
        what = record.event
    asked = (rule.hears if isinstance(record, Input) else rule.tells).get(type(what))
    return None if asked is None else asked(what)
