"""Nothing may be left behind: no task, no socket."""

import gc
from collections.abc import AsyncIterator

import pytest

from tests.support.network import others, sockets


@pytest.fixture(scope="module", autouse=True)
def collected() -> None:
    """Collect garbage of earlier tests first: objects of Spark open a socket when they are collected."""
    gc.collect()


@pytest.fixture(autouse=True)
async def clean() -> AsyncIterator[None]:
    before = sockets()
    yield
    assert not others()
    assert sockets() <= before
