"""`stablecast router`: ready, monitored, told by signals, stopped, and refused; the router itself is a stub."""

import asyncio
import io
import json
import re
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import attrs
import pytest
from typer.testing import CliRunner, Result

from stablecast.cli import router
from stablecast.cli.app import app
from stablecast.cli.configured_cluster import named_daemons
from stablecast.config.plan import LogConfig
from stablecast.core.errors import ConfigError
from stablecast.core.machine.units import SECOND
from stablecast.lab.world.process import SimulatedProcess
from stablecast.lab.world.world import World
from stablecast.router import router_files
from stablecast.router.config import RouterConfig
from stablecast.router.views import PortalView, QueueView, RouterView, RouteView, Write
from stablecast.runtime import machine
from stablecast.runtime.logs import Severity
from stablecast.store.log_lines import Log

MINUTE = 60 * SECOND
HOST = "edge"
FILE = Path("/etc/router.xml")
PID, LOG = Path("/run/router.pid"), Path("/var/log/router.log")
PORTALS = "".join(
    f"<endpoint><name>{name}</name><domain-id>{domain}</domain-id>{{}}<lbm-attributes>"
    f'<option scope="context" name="resolver_unicast_daemon" value="127.0.0.1:{domain}"/></lbm-attributes></endpoint>'
    for domain, name in enumerate(("left", "right"), 1)
)


def document(daemon: str = "", first: str = "", second: str = "") -> str:
    portals = PORTALS.format(first, second)
    return f'<tnw-gateway version="1.0"><daemon>{daemon}</daemon><portals>{portals}</portals></tnw-gateway>'


LOGGED = f'<name>r</name><log type="file">{LOG}</log><pidfile>{PID}</pidfile>'


class Stub:
    """A router that notes what happens to it."""

    def __init__(self, config: RouterConfig, write: Write) -> None:
        self.config = config
        self.closes = True
        self.closed = False
        self.waiting = 80
        write(Severity.WARNING, "left", "router", "begins")

    def snapshot(self, *, brief: bool = False) -> RouterView:
        portals = tuple(
            PortalView(one.name, one.domain, address=f"127.0.0.1:{number}", queue=QueueView(self.waiting, 80, 100))
            for number, one in enumerate(self.config.portals, 1)
        )
        return RouterView(self.config.name, portals, tuple(RouteView(one.domain, one.name) for one in portals))

    async def close(self) -> None:
        if not self.closes:
            await asyncio.Event().wait()
        self.closed = True


@attrs.define
class Run:
    """A run of the command on a host of a world; `stubs` are its routers."""

    world: World
    process: SimulatedProcess
    stubs: list[Stub]

    @property
    def lines(self) -> list[Any]:
        """What it printed for programs."""
        return [json.loads(line) for line in self.process.output if line.startswith("{")]

    def pass_second(self) -> None:
        """Let a second of the world pass."""
        self._observe(lambda: asyncio.sleep(1))

    def signal(self, number: int) -> None:
        """Send a signal, and let a second pass."""

        async def send() -> None:
            self.process.signal(number)
            await asyncio.sleep(1)

        self._observe(send)

    def _observe(self, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
        observer = self.world.start(main, "observer")
        self.world.kernel.run(lambda: observer.gone, self.world.now + MINUTE)

    def on_host(self, call: Callable[[], Any]) -> Any:
        """Return what a program on the host would get from a call."""
        returned: list[Any] = []
        self.world.call(lambda: returned.append(call()), HOST)
        self.pass_second()
        return returned[0]

    def log(self) -> str:
        return str(self.on_host(lambda: machine.read_text(LOG)))


@contextmanager
def run(text: str, *, as_json: bool = True) -> Iterator[Run]:
    stubs: list[Stub] = []

    async def start(config: RouterConfig, write: Write) -> Stub:
        stubs.append(Stub(config, write))
        return stubs[-1]

    world = World(1)
    with world.open():
        disk = world.host(HOST).disk
        for directory in (FILE.parent, PID.parent, LOG.parent):
            disk.make_directories(str(directory))
        disk.place_file(str(FILE), text.encode())
        process = world.call(lambda: router.run(router.RouterJob(FILE, as_json=as_json), start), HOST)
        made = Run(world, process, stubs)
        made.pass_second()
        yield made


@pytest.mark.rows("R-297", "R-299")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ready_and_stopped_by_a_signal(number: signal.Signals) -> None:
    with run(document(LOGGED)) as made:
        assert made.on_host(lambda: machine.read_text(PID)).strip().isdecimal()
        made.signal(number)
        assert (made.process.status, made.stubs[0].closed) == (0, True)
        log = made.log()
        assert not made.on_host(lambda: machine.files.exists(PID))
    ready, stopped = made.lines
    assert ready == {
        "ready": True,
        "router": "r",
        "portals": [
            {"name": "left", "domain": 1, "address": "127.0.0.1:1"},
            {"name": "right", "domain": 2, "address": "127.0.0.1:2"},
        ],
    }
    assert stopped == {"stopped": True}
    assert "[WARNING] left: router: begins" in log
    assert "[INFO] right: ready: serves domain 2 at 127.0.0.1:2" in log
    assert "[INFO] left: queueing: 80 of 100 bytes wait to leave for domain 1 [6945-1]" in log
    assert "[INFO] stopping: " in log


def test_for_people() -> None:
    with run(document("<name>r</name>"), as_json=False) as made:
        made.signal(signal.SIGTERM)
    text = "\n".join(made.process.output)
    assert 'router "r" is ready: left (domain 1) at 127.0.0.1:1, right (domain 2) at 127.0.0.1:2' in text
    assert text.rstrip().endswith("stopped")


@pytest.mark.rows("R-299")
def test_a_second_signal_ends_a_router_that_does_not_stop() -> None:
    with run(document(LOGGED)) as made:
        made.stubs[0].closes = False
        made.signal(signal.SIGTERM)
        assert "ended-at-once" not in made.log()
        made.signal(signal.SIGTERM)
        assert made.process.gone
        assert "ended-at-once" in made.log()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (document(LOGGED), "[INFO] configuration: /etc/router.xml is read again"),
        (document(LOGGED, "<cost>3</cost>"), "changed; restart the router to follow it"),
        (document(LOGGED, "<cost>0</cost>"), "nothing is changed, because it cannot be read"),
    ],
)
def test_a_hang_up_reads_the_file_again(text: str, line: str) -> None:
    with run(document(LOGGED)) as made:
        made.world.host(HOST).disk.place_file(str(FILE), text.encode())
        made.signal(signal.SIGHUP)
        assert line in made.log()
        assert not made.process.gone


def test_the_notices_about_a_file_stand_in_its_log() -> None:
    with run(document(f"{LOGGED}<topicmap/>")) as made:
        assert "[WARNING] configuration: /etc/router.xml:1: <topicmap>: topicmap has no effect" in made.log()


@pytest.mark.rows("R-296")
def test_the_monitor_shows_the_router_and_ends_with_it(tmp_path: Path) -> None:
    """Over real sockets, because the HTTP server is the system's."""
    path = tmp_path / "router.xml"
    path.write_text(document("<name>r</name><web-monitor>127.0.0.1:0</web-monitor>"), encoding="utf-8")
    config = router_files.load(path)
    shown: list[Any] = []

    async def watch() -> None:
        async with AsyncExitStack() as stack:
            stub = Stub(config, lambda *_: None)
            log = Log(LogConfig(), io.StringIO())
            at = await router.monitored(config.daemon.monitor, stub, log, stack)
            async with aiohttp.ClientSession() as session, session.get(f"http://{at}/api/router") as answer:
                shown.append(await answer.json())
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientConnectionError):
                await session.get(f"http://{at}/api/router")

    asyncio.run(watch())
    assert (shown[0]["name"], [one["domain"] for one in shown[0]["portals"]]) == ("r", [1, 2])


# ---------------------------------------------------------------------------------------------------- the command line


def invoked(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["router", *arguments])


@pytest.mark.rows("R-284")
def test_a_file_is_checked_without_running(tmp_path: Path) -> None:
    path = tmp_path / "router.xml"
    path.write_text(document("<name>r</name>"), encoding="utf-8")
    assert json.loads(invoked("-v", "--json", str(path)).output) == {
        "valid": True,
        "router": "r",
        "portals": ["left", "right"],
    }
    path.write_text(document("", "<cost>0</cost>"), encoding="utf-8")
    found = invoked("-v", "--json", str(path))
    assert (found.exit_code, json.loads(found.output)["problems"][0]["element"]) == (1, "cost")


@pytest.mark.rows("R-284")
def test_the_document_type_is_printed() -> None:
    found = invoked("-d")
    assert (found.exit_code, "<!ELEMENT tnw-gateway (daemon?, portals)>" in found.output) == (0, True)


def test_a_router_that_could_find_nothing_does_not_start(tmp_path: Path) -> None:
    path = tmp_path / "router.xml"
    text = re.sub("<lbm-attributes>.*?</lbm-attributes>", "", document("<name>r</name>"))
    path.write_text(text, encoding="utf-8")
    found = invoked(str(path))
    assert isinstance(found.exception, ConfigError)
    assert 'portal "left" has no way to find sources' in str(found.exception)


def test_a_local_cluster_runs_the_routers_that_files_name(tmp_path: Path) -> None:
    path = tmp_path / "router.xml"
    path.write_text(document("<name>r</name>"), encoding="utf-8")
    (daemon,) = named_daemons([path], "", "", tmp_path)
    assert (daemon.kind, daemon.arguments) == ("router", ["router", str(path), "--json"])


def test_a_router_needs_a_file() -> None:
    assert invoked().exit_code == 2


@pytest.mark.rows("R-284")
@pytest.mark.parametrize("option", ["-d", "-f", "-h", "-u", "-v"])
def test_the_documented_options_are_known(option: str) -> None:
    assert f"{option} " in invoked("-h").output or f"{option}," in invoked("-h").output
