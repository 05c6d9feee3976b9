"""`stablecast lbmrd` as a process: ready, working, stopped by signals, refused."""

import json
import re
import signal
import socket
from pathlib import Path

import pytest

from stablecast.cli.resolution_daemons import configured, dump, run_lbmrd
from stablecast.resolver.lbmrd.config import DTD
from stablecast.runtime.datagrams import bind
from stablecast.transports.wire import lbmr
from tests.support.program import running

HERE = ("lbmrd", "--listen", "127.0.0.1:0")


def become_client(client: socket.socket, port: int) -> None:
    """Send a keepalive to the relay, and another with the proof of its answer."""
    trailer = lbmr.standard_options(b"instance")
    for _ in range(2):
        client.sendto(lbmr.encode(lbmr.Packet(lbmr.PacketKind.SOURCE_ALIVE, options=trailer)), ("127.0.0.1", port))
        trailer = lbmr.decode(client.recv(lbmr.MAX_DATAGRAM)).options


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ready_work_stop(number: signal.Signals) -> None:
    with running(*HERE, "--json") as process:
        ready = process.json_line()
        assert ready == {"ready": True, "port": ready["port"]}
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            become_client(client, ready["port"])
        process.interrupt(number)
        stopped = process.json_line()
        assert process.process.wait() == 0
    assert stopped["stopped"] is True
    assert (stopped["keepalives"], stopped["clients"], stopped["malformed"]) == (2, 1, 0)


def test_for_people() -> None:
    with running(*HERE) as process:
        assert process.line().startswith("lbmrd is ready on 127.0.0.1:")
        process.interrupt(signal.SIGTERM)
        assert process.line().startswith("lbmrd stopped: clients 0, received 0, forwarded 0")
        assert process.process.wait() == 0


CONFIG = """<lbmrd version="1.0">
  <daemon><interface>127.0.0.1</interface><port>1</port><ttl>1000</ttl><log>{log}</log></daemon>
  <domains><domain name="dummy"><network>0.0.0.0/32</network></domain><domain name="other"><network>0.0.0.1/32</network>
  </domain></domains>
  <transformations><transform source="dummy" destination="other">
    <rule><match address="0.0.0.0"/><replace address="0.0.0.1"/></rule></transform></transformations>
</lbmrd>
"""


@pytest.mark.rows("T-210", "T-213")
def test_a_file_and_options_that_win_over_it(tmp_path: Path) -> None:
    """The log tells of clients, and statistics as JSON."""
    config, log = tmp_path / "lbmrd.xml", tmp_path / "lbmrd.log"
    config.write_text(CONFIG.format(log=log), encoding="utf-8")
    options = ["-i", "lo", "-p", "0", "-a", "500", "-t", "2", "-r", "65536", "-s", "65536", "--statistics", "0.01"]
    with running("lbmrd", config, *options, "--json") as process:
        port = process.json_line()["port"]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            become_client(client, port)
            known = f"client 127.0.0.1:{client.getsockname()[1]} is known"
        while "statistics" not in log.read_text(encoding="utf-8"):
            pass
        process.interrupt(signal.SIGTERM)
        assert process.process.wait() == 0
    assert known in log.read_text(encoding="utf-8")


def test_a_file_is_checked_without_running(tmp_path: Path) -> None:
    config = tmp_path / "lbmrd.xml"
    config.write_text(CONFIG.format(log="x"), encoding="utf-8")
    with running("lbmrd", config, "-v") as process:
        late = "the relay looks for silent clients only every 60000 ms: set activity below ttl 1000\n"
        assert process.process.communicate() == ("the configuration is valid\n", late)
        assert process.process.returncode == 0
    config.write_text(CONFIG.replace("<ttl>1000", "<ttl>never"), encoding="utf-8")
    with running("lbmrd", config, "-v", "--json") as process:
        _, err = process.process.communicate()
    assert process.process.returncode == 1
    assert err == f"stablecast: {config}:2: <ttl>: option ttl wants a whole number, not 'never'\n"


def test_the_dtd_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert dump(DTD) == 0
    assert "<!ELEMENT lbmrd (daemon?, domains, transformations)>" in capsys.readouterr().out
    assert run_lbmrd(configured(None, None, None, None, {}), 0, validate=True, as_json=True) == 0
    assert json.loads(capsys.readouterr().out) == {"valid": True}


def test_a_hang_up_reopens_the_log(tmp_path: Path) -> None:
    """Its log begins with the release and the build, and is written anew where it was moved away."""
    log, moved = tmp_path / "lbmrd.log", tmp_path / "moved.log"
    with running(*HERE, "--log", str(log)) as process:
        assert process.line()
        log.rename(moved)
        process.interrupt(signal.SIGHUP)
        while not log.exists():
            assert process.process.poll() is None
        process.interrupt(signal.SIGINT)
        assert process.process.wait() == 0
    first, second = moved.read_text(encoding="utf-8").splitlines()[:2]
    assert "[INFO] stablecast " in first
    assert "[INFO] cpython " in second


@pytest.mark.rows("T-501")
def test_lines_on_the_console_have_time_and_severity() -> None:
    with running(*HERE, "--json") as process, bind("127.0.0.1", 0) as client:
        assert process.process.stderr is not None
        port = process.json_line()["port"]
        client.sendto(b"nonsense", ("127.0.0.1", port))
        line = process.process.stderr.readline()
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \[WARNING\] a datagram from ", line)
