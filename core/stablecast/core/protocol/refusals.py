"""The sentence for a store's refusal of a registration: the store, the RegID, the cause and the remedy."""

from stablecast.core.protocol.messages import Address, Refusal, Refused

_MS = 1000

_REMEDIES = {
    Refusal.NO_PATTERN: "Add a pattern to the store's configuration, or name another store.",
    Refusal.UNKNOWN_SOURCE: "It is asked again.",
    Refusal.OTHER_TOPIC: "Give each topic a RegID of its own, or use a session id.",
    Refusal.INCOMPATIBLE: "Compare pacing and sizes with the store's configuration; its log says if it is full.",
}


def sentence(store: Address, answer: Refused) -> str:
    """Return the sentence for a refusal by the store at this address.

    >>> from stablecast.core.protocol.messages import Role
    >>> sentence("10.0.0.7:14567", Refused(Role.SOURCE, 0, 1, 1000, 9, Refusal.HELD_BY_SOURCE, held_ms=20_001))
    'Store 10.0.0.7:14567 refused RegID 1000: another context holds it for 21 s more. Use another session id, or wait.'
    """
    what = f"RegID {answer.reg_id}" if answer.reg_id else "the registration"
    return f"Store {store} refused {what}: {_cause(answer)}"


def _cause(answer: Refused) -> str:
    remedy = _REMEDIES.get(answer.reason)
    if remedy is not None:
        return f"{answer.reason.text}. {remedy}"
    if not answer.held_ms:
        who = "a receiver" if answer.reason is Refusal.HELD_BY_RECEIVER else "another source"
        return f"{who} holds it. Use another RegID, or another session id."
    return f"another context holds it for {-(-answer.held_ms // _MS)} s more. Use another session id, or wait."
