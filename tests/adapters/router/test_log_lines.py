"""Lines of a router's log: each tells of a change, and drops that go on are told of once a minute."""

from typing import Any

import pytest

from stablecast.core.machine.units import SECOND
from stablecast.router.log_lines import QUIET_NS, RouterLog
from stablecast.router.views import PortalView, QueueView, RouterView
from stablecast.runtime.logs import Severity


class Lines:
    """A log, and the lines that looks at one portal wrote."""

    def __init__(self) -> None:
        self.written: list[tuple[Severity, str, str, str]] = []
        self._log = RouterLog(lambda *line: self.written.append(line))

    def look(self, now: int = 0, **figures: Any) -> list[tuple[str, str]]:
        """Return severity and code of what a look at these figures writes."""
        self.written.clear()
        self._log.look(RouterView("edge", (PortalView("left", 1, **figures),)), now)
        return [(severity.value, code) for severity, _, code, _ in self.written]


def test_a_quiet_router_says_nothing() -> None:
    assert Lines().look() == []


@pytest.mark.rows("R-165")
def test_a_queue_begins_and_ends_with_published_numbers() -> None:
    lines = Lines()
    assert lines.look(queue=QueueView(8, 8, 100)) == [("INFO", "queueing")]
    assert lines.written[0][3].endswith("[6945-1]")
    assert lines.look(queue=QueueView(9, 9, 100)) == []
    assert lines.look(queue=QueueView(0, 9, 100)) == [("INFO", "flushed")]
    assert lines.written[0][3].endswith("[6945-3]")


@pytest.mark.rows("R-165")
def test_drops_that_go_on_are_told_of_once_a_minute_with_their_sum() -> None:
    lines = Lines()
    assert lines.look(dropped={"blocking": 2}) == [("WARNING", "dropping")]
    assert lines.look(SECOND, dropped={"blocking": 5}) == []
    assert lines.look(QUIET_NS, dropped={"blocking": 7}) == [("WARNING", "dropping")]
    assert lines.written[0][3] == "5 messages were dropped, because its queue is full; 7 since the start [6945-2]"
    assert lines.look(3 * QUIET_NS, dropped={"blocking": 7}) == []


def test_each_reason_has_its_code_and_duplicates_none() -> None:
    lines = Lines()
    found = lines.look(
        dropped={"duplicate": 1, "fragment size": 1, "error": 1},
        unicast_dropped={"no route": 1, "hops": 1, "blocking": 1, "duplicate": 1, "no stream": 1},
    )
    assert [code for _, code in found] == [
        "message-too-large",
        "send-failed",
        "no-route",
        "hop-limit",
        "unicast-dropping",
    ]
