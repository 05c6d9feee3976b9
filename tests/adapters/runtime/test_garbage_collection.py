"""Collections are rare in a daemon that serves, and suspended while a batch is decoded."""

import gc

import pytest

from stablecast.runtime import garbage_collection
from stablecast.runtime.machine import process


def test_objects_from_before_the_daemon_serves_are_exempt() -> None:
    before = gc.get_threshold()
    kept = [[number] for number in range(1000)]
    try:
        garbage_collection.keep_served()
        assert gc.get_freeze_count() >= len(kept)
        assert not any(one is kept[0] for one in gc.get_objects())
        assert gc.get_threshold() == (garbage_collection.YOUNG, garbage_collection.MIDDLE, garbage_collection.OLD)
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def test_collections_resume_after_a_pause() -> None:
    with garbage_collection.paused():
        assert not gc.isenabled()
        with garbage_collection.paused():
            assert not gc.isenabled()
        assert not gc.isenabled(), "only the outermost pause ends it"
    assert gc.isenabled()


def test_collections_resume_after_an_error() -> None:
    with pytest.raises(KeyError), garbage_collection.paused():
        raise KeyError
    assert gc.isenabled()


def test_a_simulated_program_changes_nothing_of_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    monkeypatch.setattr(process, "owns_interpreter", lambda: False)
    garbage_collection.keep_served()
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, frozen)
