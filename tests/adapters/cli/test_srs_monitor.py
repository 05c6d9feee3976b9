"""The statistics of a service that runs as a process: on its topic, at its monitor, and by request."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from stablecast.client import Context
from tests.support.program import Program, running

CONFIG = """<um-srs version="1.0">
  <srs><interface>127.0.0.1</interface><port>0</port><application-id>tr1</application-id></srs>
  <debug-monitor enabled="true"><interface>127.0.0.1</interface><port>0</port></debug-monitor>
  <daemon-monitor topic="/daemons/statistics">
    <publishing-interval><default>200</default><config-opts>200</config-opts></publishing-interval>
    <publish-connection-events allow="true"/>
    <remote-snapshot-request allow="true"/>
    <remote-config-changes-request allow="{changes}"/>
  </daemon-monitor>
</um-srs>
"""


@contextmanager
def service(directory: Path, changes: str = "true") -> Iterator[tuple[Program, str, str]]:
    """Run a service; yield it with its address and that of its monitor."""
    path = directory / "srs.xml"
    path.write_text(CONFIG.format(changes=changes), encoding="utf-8")
    with running("srs", path, "--json") as program:
        ready = program.json_line()
        yield program, ready["address"], f"http://{ready['monitor']}"


def text(place: str) -> str:
    with urllib.request.urlopen(place) as answer:
        found: str = answer.read().decode()
        return found


def get(place: str) -> Any:
    return json.loads(text(place))


def post(place: str, **body: object) -> tuple[int, str]:
    """Post a request; return the status and the text of the answer."""
    request = urllib.request.Request(f"{place}/api/requests", json.dumps(body).encode(), method="POST")
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.rows("T-421")
async def test_statistics_by_client_and_topic(tmp_path: Path) -> None:
    """Whole at the monitor, and on the documented topic whole at first and then as changes."""
    with service(tmp_path) as (_, address, monitor):
        async with AsyncExitStack() as stack:
            context = await stack.enter_async_context(Context(resolver_service=[address], interface="127.0.0.1"))
            await context.source("orders")
            receiver = context.receiver("/daemons/statistics")
            seen: dict[str, Any] = {}
            async for message in receiver:
                body = json.loads(message.payload)
                assert body["applicationId"] == "tr1"
                if not seen:  # The receiver has joined: a third client changes the figures.
                    await stack.enter_async_context(Context(resolver_service=[address], interface="127.0.0.1"))
                seen.setdefault(body["monitorInfoCategory"], body)
                if {"SRS_STATS", "UM_CLIENT_STATS", "CONNECTION_EVENTS", "CONFIG_OPTS"} <= seen.keys():
                    break
            assert seen["CONNECTION_EVENTS"]["events"][0]["event"] in ("connect", "disconnect")
            assert seen["CONFIG_OPTS"]["options"]["application_id"] == "tr1"
            counters = get(f"{monitor}/api/statistics/srs-stats")["counters"]
            assert counters["clients.active.SIR.count"] == 2
            assert counters["active.clients.count"] >= 2  # The third may still connect.
            clients = get(f"{monitor}/api/statistics/um-client-stats")["clients"]
            own = next(one for one in clients if one["counters"]["client.RIR.count"])
            assert (own["ip"], own["active"]) == ("127.0.0.1", True)
            assert own["counters"]["client.SIR.received.count"] == 1
            assert own["counters"]["client.SIR.sent.count"] >= 1
            assert get(f"{monitor}/api/topics/orders") == {"topic": "orders", "sources": 1, "receivers": 0}
            topics = {one["topic"]: one for one in get(f"{monitor}/api/topics")["topics"]}
            assert topics["/daemons/statistics"] == {"topic": "/daemons/statistics", "sources": 1, "receivers": 1}
            assert len(get(f"{monitor}/api/topics?first=1&count=1")["topics"]) == 1
            assert "stablecast_srs_clients_active_sir 2" in text(f"{monitor}/metrics")


@pytest.mark.rows("T-421")
def test_requests_are_answered_as_far_as_they_are_permitted(tmp_path: Path) -> None:
    with service(tmp_path) as (_, _, monitor):
        status, answer = post(monitor, request="REPORT_SRS_VERSION")
        assert (status, "version" in json.loads(answer)) == (200, True)
        status, answer = post(monitor, request="REPORT_MONITOR_INFO", monitorInfoCategory="SRS_STATS")
        assert json.loads(answer)["counters"]["active.clients.count"] == 1  # The one that publishes.
        status, answer = post(monitor, request="SET_PUBLISHING_INTERVAL", category="srs-stats", publishingInterval=0)
        assert (status, json.loads(answer)) == (200, {"category": "srs-stats", "publishingInterval": 0})
    (tmp_path / "second").mkdir()
    with service(tmp_path / "second", "false") as (_, _, monitor):
        status, answer = post(monitor, request="SET_PUBLISHING_INTERVAL", category="srs-stats", publishingInterval=0)
        assert (status, answer) == (403, "remote-config-changes-request does not permit this request\n")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"request": "REPORT_MONITOR"}, "did you mean 'REPORT_MONITOR_INFO'?"),
        ({"request": "REPORT_MONITOR_INFO", "monitorInfoCategory": "SRS_STAT"}, "did you mean 'srs-stats'?"),
        ({"request": "SET_PUBLISHING_INTERVAL", "category": "srs-stats", "publishingInterval": 5}, "must lie between"),
        ({"request": "SET_PUBLISHING_INTERVAL", "category": "srs-stats"}, "publishingInterval is a number"),
    ],
)
def test_a_wrong_request_is_refused(body: dict[str, object], told: str, tmp_path: Path) -> None:
    with service(tmp_path) as (_, _, monitor):
        status, answer = post(monitor, **body)
    assert (status, told in answer) == (400, True)
