"""No configuration hides runs: it has no constraint, and along each choice of paths faults are found."""

import re

import pytest

from stablecast.model import catalog

MODELS = catalog.folder()
EVERY = catalog.configurations(MODELS, ())
OPEN = '"open"'
"""Every process reaches every store."""

CHOSEN = sorted({one.sources["Paths"] for one in EVERY if one.sources.get("Paths", OPEN) != OPEN})


def test_no_configuration_has_a_constraint() -> None:
    """A constraint once hid all runs in which a message was stable before its source was cut off."""
    limits = re.compile(r"^(?:ACTION_)?CONSTRAINTS?\b|^VIEW\b", re.MULTILINE)
    assert [one.name for one in EVERY if limits.search(one.path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("paths", CHOSEN)
def test_faults_are_found_along_chosen_paths(paths: str) -> None:
    """Paths leave runs out as a constraint does, so a fault must be found in spite of them."""
    failing = [one.name for one in EVERY if one.sources.get("Paths") == paths and one.expected != "ok"]
    assert failing
