"""The benchmark of services runs, its contexts find all sources, and a source costs little memory."""

import pytest

from tools.bench.processes import KIB
from tools.bench.services import main


@pytest.mark.rows("T-402", "T-407", "T-408")
def test_few_contexts_connect_and_reconnect_twice(capsys: pytest.CaptureFixture[str]) -> None:
    """T-402, T-407, T-408, over sockets. A service needs less than 2 KiB per source."""
    main(["--contexts", "20", "--topics", "100", "--interests", "50"])
    head, *rounds = capsys.readouterr().out.splitlines()
    assert head == "20 contexts, 2000 sources, 1000 wanted topics"
    names = ["all connect", "all connect again", "all connect to a new service"]
    assert [line.partition(":")[0] for line in rounds] == names
    for line in rounds:
        octets, what = line.rpartition(", ")[2].split(" ", 1)
        assert what == "bytes a source at its peak"
        assert int(octets) < 2 * KIB
