"""Nobody looks for cycles meanwhile, and then it is as it was."""

import gc

import pytest

from stablecast.trace.collecting import uncollected


def test_collections_come_back() -> None:
    with uncollected():
        assert not gc.isenabled()
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled(), "whoever switched them off switches them on"
    assert gc.isenabled()


def test_collections_come_back_after_an_error() -> None:
    with pytest.raises(KeyError), uncollected():
        raise KeyError
    assert gc.isenabled()
