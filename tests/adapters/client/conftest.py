"""A network for each test, and nothing left behind: no task, no socket."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.network import Network, network, others, sockets


@pytest.fixture
async def net(tmp_path: Path) -> AsyncIterator[Network]:
    before = sockets()
    async with network(tmp_path) as started:
        yield started
    assert not others()
    assert sockets() <= before
