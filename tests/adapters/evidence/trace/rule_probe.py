"""Ask a rule directly, with the subject of a record, as `stablecast.evidence.trace.frame_judge` does."""

from typing import Any

from stablecast.core.protocol.effects import Broadcast, Effect, Notify, Send
from stablecast.core.protocol.inputs import Arrived, Input
from stablecast.evidence.trace.rule_protocol import EndpointRule


def ask(rule: EndpointRule, record: Input | Effect) -> str | None:
    """Return the verdict of a rule on an input or effect, None if it is fine or not judged."""
    subject: Any = record
    if isinstance(record, Arrived | Send | Broadcast):
        subject = record.message
    elif isinstance(record, Notify):
        subject = record.event
    on_input, on_effect = rule.handlers()
    handler = (on_input if isinstance(record, Input) else on_effect).get(type(subject))
    return None if handler is None else handler(subject)
