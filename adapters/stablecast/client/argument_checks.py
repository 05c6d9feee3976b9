"""Checks of arguments whose misuse would otherwise show late, or as an error from deep inside."""

import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from stablecast.core.errors import MisuseError
from stablecast.core.protocol.effects import AskLow
from stablecast.core.protocol.settings import SourceConfig
from stablecast.core.sharing.division import MAX_SHARES
from stablecast.transports.resolution.records import check_topic

MAX_SESSION_ID = (1 << 64) - 1

MAX_GROUP_NAME = 64
"""Longest name of a group, in characters."""

Payload = bytes | bytearray | memoryview
"""The payload of a message as applications give it. A buffer is copied, so that it may change after the call."""


def octets_of(payload: Payload) -> bytes:
    """Return the bytes of a payload. Raises TypeError if it is not bytes-like."""
    if payload.__class__ is bytes:
        return payload
    try:
        return memoryview(payload).tobytes()
    except TypeError:
        raise TypeError(
            f"a payload must be bytes-like, not {type(payload).__name__}: encode it, or use stablecast.typed"
        ) from None


def check_topic_name(topic: object) -> None:
    """Raise MisuseError unless this is a topic that can be encoded."""
    if not isinstance(topic, str):
        raise MisuseError(f"a topic must be a str, not {type(topic).__name__}: {topic!r}")
    check_topic(topic)


def check_list(what: str, given: Sequence[str]) -> None:
    """Raise MisuseError if one text is given in place of several."""
    if isinstance(given, str | bytes):
        raise MisuseError(f"{what} takes a list: write {what}=[{given!r}]")


def check_session_id(session_id: object) -> None:
    """Raise MisuseError unless this is a session id, or None."""
    if session_id is None:
        return
    if not isinstance(session_id, int) or isinstance(session_id, bool):
        raise MisuseError(f"a session id must be an int, not {type(session_id).__name__}: {session_id!r}")
    if not 0 <= session_id <= MAX_SESSION_ID:
        raise MisuseError(f"a session id is from 0 (none) to {MAX_SESSION_ID}, not {session_id}")


def check_group(name: object, shares: object, key: object) -> None:
    """Raise MisuseError unless these name a group, its number of shares, and the key of messages."""
    if not isinstance(name, str) or not 0 < len(name) <= MAX_GROUP_NAME:
        raise MisuseError(f"the name of a group must be text of 1 to {MAX_GROUP_NAME} characters, not {name!r}")
    if not isinstance(shares, int) or not 0 < shares <= MAX_SHARES:
        raise MisuseError(f"a topic has 1 to {MAX_SHARES} shares, not {shares!r}")
    if key is not None and not isinstance(key, str) and not callable(key):
        raise MisuseError(f"key names a property, or is a function of a message, not {type(key).__name__}")


def check_callback(name: str, callback: object) -> None:
    """Raise MisuseError unless this can be called without `await`, or is None."""
    if callback is None:
        return
    if not callable(callback):
        raise MisuseError(f"{name} must be callable, not {type(callback).__name__}")
    if inspect.iscoroutinefunction(callback):
        raise MisuseError(f"{name} must be a plain function, because nobody awaits it: iterate in a task instead")


def check_properties(properties: object) -> None:
    """Raise TypeError unless these are properties by name."""
    if not isinstance(properties, Mapping):
        raise TypeError(f"the properties of a message must be a mapping, not {type(properties).__name__}")


def checked_start(start_at: Callable[[AskLow], int] | None) -> Callable[[AskLow], int] | None:
    """Return the callback with a check of its result: no message has a negative number (P-676)."""
    if start_at is None:
        return None

    def checked(question: AskLow) -> int:
        number = operator.index(start_at(question))
        if number < 0:
            raise MisuseError(f"start_at returned {number}: return a number from 0, or question.low")
        return number

    return checked


class Claimant(Protocol):
    """A source, as far as its claims matter."""

    config: SourceConfig

    @property
    def over(self) -> bool:
        """Return whether it can send no more."""


Claim = tuple[str, str]
"""What one living source of a context has alone, in words, and the topic for which it has that; empty: for all."""


def claims_of(config: SourceConfig) -> list[Claim]:
    """Return what a source claims at its stores: its RegIDs, or the session id of its topic that replaces them."""
    if config.stores and config.session_id:
        return [(f"session id {config.session_id}", config.topic)]
    reg_ids = {(store.name or store.address, store.reg_id) for store in config.stores if store.reg_id}
    return [(f"RegID {reg_id} at store {store}", "") for store, reg_id in sorted(reg_ids)]


def check_claims(config: SourceConfig, claimed: Mapping[Claim, Claimant]) -> None:
    """Raise MisuseError if another living source has claimed the same session id or RegID.

    Without the check the later source would take the RegID over, and the earlier one would end.
    """
    for claim in claims_of(config):
        other = claimed.get(claim)
        if other is not None and not other.over:
            raise MisuseError(
                f"this context has a source of '{other.config.topic}' with {claim[0]}: use that one, or give another "
                "session id or other RegIDs"
            )
