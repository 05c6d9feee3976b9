"""The three programs that people copy: the outbox of a web service, a worker with a database, sensors."""

import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples.programs import example
from tests.support.defaults import default_cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[None]:
    with default_cluster(tmp_path):
        yield


def test_an_outbox_feeds_a_worker_which_books_once(cluster: None, tmp_path: Path) -> None:
    """The worker is killed after its first order, and an order that is no JSON goes to the dead letters."""
    with example("outbox.py", tmp_path) as outbox:
        outbox.until("Running on")
        with example("worker.py", tmp_path) as worker:
            order('{"item": "apples"}')
            worker.until('booked {"item": "apples"}')
            worker.kill()
        order('{"item": "pears"}')
        order("no JSON")
        order('{"item": "plums"}')
        with example("worker.py", tmp_path) as worker:
            worker.until('booked {"item": "plums"}')
            assert worker.interrupt() == 0
            assert worker.lines == [f'booked {{"item": "{item}"}}' for item in ("pears", "plums")]
            assert "Warning" not in (worker.error())
        outbox.interrupt()
        assert "Warning" not in outbox.error()


def order(text: str) -> None:
    request = urllib.request.Request("http://127.0.0.1:8080/orders", text.encode())
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 201


def test_sensors_are_watched(cluster: None, tmp_path: Path) -> None:
    with example("sensors.py", tmp_path) as sensors:
        assert sensors.end() == 0
        assert not sensors.error()
    for topic in ("sensors.cellar", "sensors.roof"):
        assert [line for line in sensors.lines if topic in line] == [f"{topic} {20 + reading}" for reading in range(3)]
