"""The two short programs that the README shows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples.programs import example
from tests.support.defaults import default_cluster

ITEMS = ("apples", "pears", "plums")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[None]:
    with default_cluster(tmp_path):
        yield


@pytest.mark.rows("P-350", "T-002")
def test_orders_arrive_and_are_not_repeated(cluster: None, tmp_path: Path) -> None:
    """The receiver is interrupted between two runs of the source, and continues after its last message."""
    with example("quick_receiver.py", tmp_path) as receiver:
        with example("quick_source.py", tmp_path) as source:
            receiver.until("message 2: plums")
            assert receiver.interrupt() == 0
            assert source.end() == 0
            assert not receiver.error() + source.error()
        assert source.lines == [f"{item} is stable as message {number}" for number, item in enumerate(ITEMS)]
        assert receiver.lines == [f"message {number}: {item}" for number, item in enumerate(ITEMS)]
    with example("quick_source.py", tmp_path) as source, example("quick_receiver.py", tmp_path) as receiver:
        receiver.until("message 5: plums")
        assert receiver.interrupt() == 0
        assert receiver.lines[-3:] == [f"message {number}: {item}" for number, item in enumerate(ITEMS, 3)]
        assert receiver.lines[:-3] in ([], ["message 2: plums"])
        assert source.end() == 0
