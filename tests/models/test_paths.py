"""Paths leave runs out as a constraint does, so a fault must be found in spite of each choice of them."""

import pytest

from stablecast.lab.model import catalog

EVERY = catalog.configurations(catalog.folder(), ())
OPEN = '"open"'
"""Every process reaches every store."""

CHOSEN = sorted({one.sources["Paths"] for one in EVERY if one.sources.get("Paths", OPEN) != OPEN})


@pytest.mark.parametrize("paths", CHOSEN)
def test_faults_are_found_along_chosen_paths(paths: str) -> None:
    """A constraint once hid all runs in which a message was stable before its source was cut off."""
    assert [one.name for one in EVERY if one.sources.get("Paths") == paths and one.expected != "ok"]
