"""`stablecast plan`."""

import json
from pathlib import Path

import pytest

from tests.support.program import outcome

DAEMON = """
[[store]]
name = "a"
port = 14567
limits = {{ sources = 100 }}
options = {{ disk-cache-directory = "{directory}", disk-state-directory = "{directory}" }}

[[store.topic]]
pattern = "orders"
type = "direct"
options = {{ repository-type = "disk" }}

[[store.topic]]
pattern = ".*"
type = "PCRE"
[store.topic.options]
repository-type = "memory"
repository-size-limit = 104857600
repository-size-threshold = 52428800
"""


@pytest.mark.rows("P-033")
def test_the_sums_of_the_guide() -> None:
    """Without a file, one store with default values."""
    status, out, err = outcome("plan", "--sources", "1000")
    assert (status, err) == (0, "")
    assert "memory 48 MB x 1,000 = 48 GB; disk 100 MB x 1,000 = 100 GB" in out
    assert "the guide counts 2,000 for files" in out


def test_a_configuration_with_several_types(tmp_path: Path) -> None:
    """Each pattern has its own sum, the option file of a client replaces sizes, and a limit of the store is named."""
    config, options = tmp_path / "stored.toml", tmp_path / "client.cfg"
    config.write_text(DAEMON.format(directory=tmp_path))
    status, out, err = outcome("plan", config, "--sources", "20", "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert [one["type"] for one in found["patterns"]] == ["disk", "memory"]
    assert [one["memory_bytes"] >> 20 for one in found["patterns"]] == [960, 2000]
    assert found["disk_bytes"] >> 20 == 2000
    options.write_text("source ume_store 127.0.0.1:14567\nsource ume_repository_size_limit 1048576\n")
    status, out, err = outcome("plan", config, options, "--sources", "60", "--json")
    assert status == 1
    assert json.loads(out)["memory_bytes"] >> 20 == 120
    assert err == 'store "a" registers at most 100 sources: raise its limit, or use more stores\n'
