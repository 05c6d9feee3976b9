"""The benchmark of simulated worlds in its shortest form: every world passes, and each crash happens."""

import pytest

from tools.bench import worlds


@pytest.mark.no_cover
def test_each_figure_is_measured() -> None:
    assert worlds.whole_worlds(2)["violations"] == 0
    small = worlds.small_worlds(2)
    assert 0 < small["median_ms"] <= small["slowest_ms"]
    assert worlds.schedules(3, jobs=1)["schedules"] == 3
