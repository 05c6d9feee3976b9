"""The identities that the sources of one context claim: each may be claimed once."""

from collections.abc import Iterable

from stablecast.core.errors import MisuseError
from stablecast.core.protocol.settings import SourceConfig


def check_claims(config: SourceConfig, living: Iterable[SourceConfig]) -> None:
    """Raise MisuseError if another living source claims the same session id or RegID.

    Without the check the later source would take the RegID over, and the earlier one would end.
    """
    for other in living:
        if not (config.stores and other.stores):
            continue
        if config.topic == other.topic and config.session_id and config.session_id == other.session_id:
            claimed = f"session id {config.session_id}"
        elif common := sorted(_reg_ids(config) & _reg_ids(other)):
            claimed = "RegID {1} at store {0}".format(*common[0])
        else:
            continue
        raise MisuseError(
            f"this context has a source of '{other.topic}' with {claimed}: use that one, or give another session id or "
            "other RegIDs"
        )


def _reg_ids(config: SourceConfig) -> set[tuple[str, int]]:
    """Return the RegIDs that a source asks for, by store. A session id replaces them."""
    if config.session_id:
        return set()
    return {(store.name or store.address, store.reg_id) for store in config.stores if store.reg_id}
