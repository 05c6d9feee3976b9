"""Errors: one base, two families."""

import pytest

from stablecast.core.errors import InvariantError, MisuseError, StablecastError


@pytest.mark.parametrize("family", [MisuseError, InvariantError])
def test_families_share_the_base_and_nothing_else(family: type[StablecastError]) -> None:
    assert family.__bases__ == (StablecastError,)
