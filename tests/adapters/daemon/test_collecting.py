"""A daemon that serves looks through what lives long no more."""

import gc

from stablecast.daemon import collecting


def test_what_is_there_when_the_daemon_serves_is_looked_through_no_more() -> None:
    before = gc.get_threshold()
    kept = [[number] for number in range(1000)]
    try:
        collecting.settle()
        assert gc.get_freeze_count() >= len(kept)
        assert not any(one is kept[0] for one in gc.get_objects())
        assert gc.get_threshold() == (collecting.YOUNG, collecting.MIDDLE, collecting.OLD)
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
