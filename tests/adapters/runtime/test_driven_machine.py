"""A driven machine: the trace has every input that it accepted."""

from pathlib import Path

import pytest

from stablecast.core.errors import MisuseError
from stablecast.core.protocol.effects import Notify
from stablecast.core.protocol.inputs import Sent, Start
from stablecast.core.protocol.messages import Role
from stablecast.core.protocol.settings import SourceConfig
from stablecast.core.source import SourceEndpoint
from stablecast.evidence.trace.trace_judge import verify_file
from stablecast.evidence.trace.trace_recorder import Recorder
from stablecast.runtime.driver import Driven
from tests.adapters.evidence.trace.traced import read_frames


def new_source() -> SourceEndpoint:
    return SourceEndpoint.create(SourceConfig("orders", 1, "a:1", "a:2"))


def test_a_machine_that_is_not_traced_is_driven_all_the_same() -> None:
    driven = Driven(new_source())
    (effect,) = driven.feed(Start(), 0)
    assert isinstance(effect, Notify)
    assert driven.timeout(1) == []
    driven.close()


def test_everything_fed_is_in_the_trace(tmp_path: Path) -> None:
    source = new_source()
    driven = Driven(source, Recorder(tmp_path, Role.SOURCE, "orders", source))
    driven.feed(Start(), 0)
    driven.feed(Sent(0, 3, 30), 5)
    driven.timeout(7)
    with pytest.raises(MisuseError):
        driven.feed(Sent(7, 1, 1), 8)
    driven.feed(Sent(3, 1, 1), 9)
    driven.close()
    (path,) = tmp_path.iterdir()
    lines = [record for frame in read_frames(path) for record in frame.records]
    assert [(line["n"], line["t"], line["in"]["_"]) for line in lines] == [
        (0, 0, "Start"),
        (1, 5, "Sent"),
        (2, 7, "Tick"),
        (3, 9, "Sent"),
    ]
    assert verify_file(path).clean
