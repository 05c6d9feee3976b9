"""The command to type next for a finding, so that nobody has to look it up at night."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

RECOVER: Final = "stablecast store recover {where}"

STEPS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "silent": "systemctl status 'stablecast-store@*'  # on its host; start it without --new",
        "disk-failed": "stablecast store resume {where}  # after its disk is repaired",
        "damaged": "stablecast store scrub {where}",
        "burst-lost": RECOVER,
        "lost": RECOVER,
        "under-replicated": RECOVER,
        "lacking": RECOVER,
        "behind": RECOVER,
        "older-copy": RECOVER,
        "muted": RECOVER,
        "slow-disk": "stablecast top {where}",
        "source-silent": "stablecast store evict {where} {reg_id}  # only if it will not return: its messages go, too",
        "receiver-silent": "stablecast store evict {where} {reg_id}  # only if it will not return",
        "clock": "timedatectl status  # on both hosts",
    }
)
"""Commands by the code of a finding. `where` is the monitor of the store, `reg_id` that of the client."""


def step(code: str, where: str, reg_id: int = 0) -> str:
    """Return the command for a finding; empty if there is none."""
    return STEPS.get(code, "").format(where=where, reg_id=reg_id)
