"""The benchmark of refill in its shortest form: daemons as processes, lost disks, and no lost message."""

from pathlib import Path

import pytest

from tools.bench.refill import STORES, measured


@pytest.mark.thorough
async def test_each_store_loses_its_disk_and_nothing_is_lost(tmp_path: Path) -> None:
    found = await measured(4000, 100, "off", tmp_path, "")
    assert found["wrong_or_lost"] == 0
    assert len(found["refills"]) == STORES
    assert all(one["messages"] >= 1000 for one in found["refills"])
