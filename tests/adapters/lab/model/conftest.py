"""A model that is small enough to be drawn, in a folder of its own, with its world."""

import sys
from pathlib import Path

import pytest

from tests.adapters.lab.model import small


@pytest.fixture
def small_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the model `Small`, whose graph is not on record."""
    monkeypatch.setitem(sys.modules, "stablecast.lab.model.worlds.small", small)
    folder = tmp_path / "tla"
    (folder / "Small").mkdir(parents=True)
    (folder / "Small" / "MCSmall.tla").write_text(small.MODEL)
    for name, limit in (("graph_one", 1), ("graph_four", 4)):
        head = f"\\* EXPECT ok\n\\* It counts to {limit}.\nINVARIANTS Small\n"
        text = f'{head}CONSTANTS\n Limit = {limit}\n Mutant = "none"\n'
        (folder / "Small" / f"{name}.cfg").write_text(text)
    (folder / "graphs.json").write_text("{}")
    return folder
