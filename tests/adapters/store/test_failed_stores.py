"""Why a store failed, and what brings it back."""

import errno

import pytest

from stablecast.store.failed_stores import is_no_room
from stablecast.store.journal import JournalError


@pytest.mark.parametrize(
    ("cause", "no_room"),
    [
        (OSError(errno.ENOSPC, "full"), True),
        (OSError(errno.EDQUOT, "quota"), True),
        (OSError(errno.EIO, "broken"), False),
        (ValueError("damaged"), False),
        (None, False),
    ],
)
def test_only_a_full_disk_is_waited_for(cause: Exception | None, no_room: bool) -> None:
    error = JournalError("failed")
    error.__cause__ = cause
    assert is_no_room(error) is no_room
