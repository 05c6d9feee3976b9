"""Nothing may be left behind: no task, no socket."""

from collections.abc import AsyncIterator

import pytest

from tests.support.network import others, sockets


@pytest.fixture(autouse=True)
async def clean() -> AsyncIterator[None]:
    before = sockets()
    yield
    assert not others()
    assert sockets() <= before
