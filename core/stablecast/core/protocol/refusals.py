"""The sentence for a store's refusal of a registration: the store, the RegID, the cause and the remedy."""

from collections.abc import Mapping
from typing import Final

from stablecast.core.protocol.messages import UNSET, Address, Pace, Refusal, Refused, Register

_MS = 1000

_PACE: Final = ("ume_receiver_paced_persistence", "repository-allow-receiver-paced-persistence")
_WISHES: Final[Mapping[str, tuple[str, str]]] = {
    "size_threshold": ("ume_repository_size_threshold", "repository-size-threshold"),
    "size_limit": ("ume_repository_size_limit", "repository-size-limit"),
    "disk_limit": ("ume_repository_disk_file_size_limit", "repository-disk-file-size-limit"),
    "write_delay_ms": ("ume_write_delay", "repository-disk-write-delay"),
    "ack_on_reception": ("ume_repository_ack_on_reception", "repository-allow-ack-on-reception"),
    "flight_bytes": ("ume_flight_size_bytes", "source-flight-size-bytes-maximum"),
    "flight_messages": ("ume_flight_size", "the value of its registration"),
}
"""The options of a source and of a store for each wish, for people."""
_ZERO_IS_A_LIMIT: Final = ("ume_write_delay", "ume_repository_ack_on_reception")
"""Wishes for which 0 permits nothing more; elsewhere it is no limit."""

_REMEDIES = {
    Refusal.NO_PATTERN: "Add a pattern to the store's configuration, or name another store.",
    Refusal.UNKNOWN_SOURCE: "It is asked again.",
    Refusal.OTHER_TOPIC: "Give each topic a RegID of its own, or use a session id.",
    Refusal.INCOMPATIBLE: "Compare pacing and sizes with the store's configuration; its log says if it is full.",
    Refusal.NOT_PERMITTED: "Give the certificate of this process the role for the topic in policy.toml of the store.",
}


def sentence(store: Address, answer: Refused, request: Register | None = None) -> str:
    """Return the sentence for a refusal of the request by the store at this address.

    >>> from stablecast.core.protocol.messages import Role
    >>> sentence("10.0.0.7:14567", Refused(Role.SOURCE, 0, 1, 1000, 9, Refusal.HELD_BY_SOURCE, held_ms=20_001))
    'Store 10.0.0.7:14567 refused RegID 1000: another context holds it for 21 s more. Use another session id, or wait.'
    """
    what = f"RegID {answer.reg_id}" if answer.reg_id else "the registration"
    told = "" if request is None or answer.reason is not Refusal.INCOMPATIBLE else difference(request, answer)
    cause = f"{answer.reason.text}: {told}." if told else _cause(answer)
    return f"Store {store} refused {what}: {cause}"


def difference(request: Register, answer: Refused) -> str:
    """Return the first option by which a request differs from the permitted terms, with both values; else nothing."""
    if answer.permitted is None:
        return ""
    if request.pace is not answer.pace and request.pace is not Pace.SOURCE:
        return _differs(*_PACE, int(request.pace), int(answer.pace))
    both = [(*names, int(getattr(request.wishes, field)), int(getattr(answer.permitted, field)))
            for field, names in _WISHES.items()]  # fmt: skip
    beyond = (one for one in both if one[2] != UNSET and one[2] > one[3] and (one[3] or one[0] in _ZERO_IS_A_LIMIT))
    changed = (one for one in both if one[2] != one[3])
    found = next(beyond, None) or next(changed, None)
    if request.pace is not answer.pace:
        found = (*_PACE, int(request.pace), int(answer.pace))
    return "" if found is None else _differs(*found)


def _differs(ours: str, theirs: str, asked: int, permitted: int) -> str:
    """Return both values; an unset one is that of the store."""
    words = ["the default" if value == UNSET else str(value) for value in (asked, permitted)]
    return f"it asks for {ours} {words[0]}, and the store has {words[1]} ({theirs})"


def _cause(answer: Refused) -> str:
    remedy = _REMEDIES.get(answer.reason)
    if remedy is not None:
        return f"{answer.reason.text}. {remedy}"
    if not answer.held_ms:
        who = "a receiver" if answer.reason is Refusal.HELD_BY_RECEIVER else "another source"
        return f"{who} holds it. Use another RegID, or another session id."
    return f"another context holds it for {-(-answer.held_ms // _MS)} s more. Use another session id, or wait."
