"""Why a store fails, what brings it back, and which parts of a bad record it has to forget."""

import errno
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stablecast.core.protocol.effects import Forget
from stablecast.core.protocol.messages import Role
from stablecast.store.failed_stores import is_no_room
from stablecast.store.journal import JournalError
from stablecast.store.store import Store
from tests.adapters.store.test_store import started


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


@pytest.mark.parametrize("stopping", [False, True])
async def test_an_effect_that_fails_ends_a_store_unless_it_stops(tmp_path: Path, stopping: bool) -> None:
    """The closing journal takes no record, and nothing is answered that waits for one."""
    store = await started(tmp_path, new=True)
    error = JournalError("planted")
    store._stopping = stopping
    store._on_effect_failed(Forget(1, Role.SOURCE, 1), error)
    assert store.failed.done() is not stopping
    if store.failed.done():
        assert store.failed.result() is error
    store._stopping = False
    with nullcontext() if stopping else pytest.raises(JournalError, match="planted"):
        await store.stop()


def test_the_parts_of_a_bad_record_are_those_that_no_newer_record_has() -> None:
    runs = [(0, 5, "bad"), (5, 3, "newer"), (8, 4, "bad")]

    def find(_: int, number: int) -> SimpleNamespace | None:
        kept = (SimpleNamespace(first=one, count=count, record=record) for one, count, record in runs)
        return next((run for run in kept if run.first <= number < run.first + run.count), None)

    store: Any = SimpleNamespace(_journal=SimpleNamespace(find=find))
    piece: Any = SimpleNamespace(number=2, stop=14, record="bad")
    assert Store._parts_shown(store, 7, piece) == [(2, 5), (8, 12)]
    piece.stop = 10
    assert Store._parts_shown(store, 7, piece) == [(2, 5), (8, 10)]
