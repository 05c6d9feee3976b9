"""`stablecast store CONFIG` and `stablecast check`: validated, dumped, run, detached, stopped."""

import json
import os
import re
import signal
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer

from stablecast.cli import check, daemon_process, daemons
from stablecast.cli.app import app
from stablecast.config.findings import ConfigFileError
from stablecast.config.schema import NEWEST, dtd
from tests.adapters.config.test_xml_file import GUIDE
from tests.support.machine import replace
from tests.support.processes import alive
from tests.support.program import outcome, running

TWO = """
[daemon]
log = "stored.log"
pidfile = "stored.pid"
web-monitor = {{ address = "127.0.0.1:0", permission = "read-write" }}
[[store]]
name = "a"
port = 0
interface = "127.0.0.1"
context = {{ request_tcp_port_low = {low}, request_tcp_port_high = {high} }}
options = {{ disk-cache-directory = "a", disk-state-directory = "a" }}
[[store.topic]]
pattern = "."
type = "PCRE"
options = {{ repository-disk-max-write-async-cbs = 3, repository-type = "memory" }}
[[store]]
name = "b"
port = 0
interface = "127.0.0.1"
context = {{ request_tcp_port_low = {low}, request_tcp_port_high = {high} }}
options = {{ disk-cache-directory = "b", disk-state-directory = "b" }}
[[store.topic]]
pattern = "orders"
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two stores, in a directory that is the current one."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    low = 20_000 + os.getpid() % 10_000
    path = tmp_path / "stores.toml"
    path.write_text(TWO.format(low=low, high=low + 9))
    return path


@pytest.mark.rows("P-702")
def test_the_document_type_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert daemons.dump() == 0
    assert capsys.readouterr().out == dtd(NEWEST)


@pytest.mark.rows("P-703")
@pytest.mark.parametrize("as_json", [False, True])
def test_a_valid_file(as_json: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "guide.xml"
    path.write_text(GUIDE.replace("<pidfile>", "<log>again.log</log><pidfile>"))
    assert daemons.validate(path, "safe", as_json) == 0
    out, err = capsys.readouterr()
    assert out == ('{"valid": true, "stores": ["test-store"]}\n' if as_json else f"{path} is valid\n")
    assert err == f"{path}:5: <log>: log is repeated: the last one counts\n"


@pytest.mark.rows("P-703", "P-709")
def test_a_file_that_is_not_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "guide.xml"
    path.write_text(GUIDE.replace('port="14567"', 'port="x"'))
    with pytest.raises(
        ConfigFileError, match=f"{path}:9: <store>: port must be a whole number from 0 to 65535, not 'x'"
    ):
        daemons.validate(path, "safe", as_json=False)
    assert daemons.validate(path, "safe", as_json=True) == 1
    told = json.loads(capsys.readouterr().out)
    assert told == {
        "valid": False,
        "problems": [{"line": 9, "element": "store", "text": "port must be a whole number from 0 to 65535, not 'x'"}],
    }


def parsed(*words: str) -> Any:
    """Run the command line in this process; returns the exit status."""
    try:
        app([str(word) for word in words], standalone_mode=False)
    except typer.Exit as leaving:
        return leaving.exit_code
    return 0


@pytest.mark.rows("P-701", "P-704", "P-705", "P-706")
def test_the_first_word_decides(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory, a file, or a command of the group."""
    calls: list[tuple[object, ...]] = []

    def called(*what: object) -> int:
        calls.append(what)
        return 0

    monkeypatch.setattr(daemons, "run_store", lambda job: called("store", job.directory))
    monkeypatch.setattr(daemons, "run_daemon", lambda job: called("daemon", job.path, job.detach))
    monkeypatch.setattr(daemons, "validate", lambda path, *_: called("validate", path))
    monkeypatch.setattr(daemons, "dump", lambda: called("dump"))
    monkeypatch.setattr(check, "run", lambda *given: called("check", *given))
    for words in (
        ("store", config.parent), ("store", "run", config), ("store", config, "-f"), ("store", "-v", config),
        ("store", "--dump-dtd"), ("store", config.parent / "gone"), ("store", config.parent / "gone.xml"),
        ("check", config),
    ):  # fmt: skip
        assert parsed(*map(str, words)) == 0
    assert calls == [
        ("store", config.parent), ("daemon", config, False), ("daemon", config, True), ("validate", config), ("dump",),
        ("store", config.parent / "gone"), ("daemon", config.parent / "gone.xml", False),
        ("check", [config], "safe", False, "", ""),
    ]  # fmt: skip
    with pytest.raises(Exception, match="name a configuration file, or the directory of a store"):
        parsed("store", "run")


@pytest.mark.rows("P-125", "P-613", "P-706", "P-707", "P-803", "P-807")
def test_a_daemon_runs_its_stores_until_it_is_interrupted(config: Path) -> None:
    """Ready lines, log, pidfile, monitor; all gone but the log afterwards."""
    with running("store", config, "--new", "--json") as program:
        first, second, monitor = program.json_line(), program.json_line(), program.json_line()
        assert [(one["ready"], one["store"]) for one in (first, second)] == [(True, "a"), (True, "b")]
        assert first["address"] != second["address"]
        assert monitor.keys() == {"monitor"}
        assert (config.parent / "stored.pid").read_text() == f"{program.process.pid}\n"
        assert outcome("send", "orders", "--store", second["address"], typed="one\n")[0] == 0
        program.interrupt(signal.SIGINT)
        assert program.json_line() == {"stopped": True}
        status, out, err = program.end()
    assert (status, out) == (0, "")
    assert err.endswith("for all waiting messages\n")
    assert not (config.parent / "stored.pid").exists()
    log = (config.parent / "stored.log").read_text()
    first_line, second_line = log.splitlines()[:2]
    assert first_line.endswith(f"[INFO] version: stablecast {version('stablecast')}")
    assert "[INFO] build: " in second_line
    assert re.search(r"source-registered: 127\.0\.0\.1:\d+ for topic 'orders': RegID \d+ registered, life ", log)
    for line in (
        "[WARNING] configuration: ",
        "[INFO] a: ready: ",
        "[INFO] b: ready: ",
        "[INFO] b: source-registered: ",
        "[INFO] a: stopped: ",
        "[INFO] stopping: a signal asks for the end; ",
    ):
        assert line in log


@pytest.mark.rows("P-707", "P-708")
def test_the_log_tells_a_second_interrupt_from_the_first(config: Path) -> None:
    """A line for each; nothing is reported as stopped."""
    with running("store", config, "--new", "--json") as program:
        program.json_line()
        signals = (signal.SIGINT, signal.SIGTERM)  # two of a kind that come together are one
        for number in signals:
            program.process.send_signal(number)
        assert program.process.wait() == 130
    log = (config.parent / "stored.log").read_text()
    first, second = log.index("[INFO] stopping: "), log.index("[WARNING] ended-at-once: a second signal ended")
    assert first < second


def test_a_first_start_without_new_names_the_cause_at_once(config: Path) -> None:
    """The console and the log name what is missing and what to do, and neither reports that the store is ready."""
    log = config.parent / "stored.log"
    with running("store", config, "--json") as program:
        first = program.json_line()
        logged = log.read_text()
        program.interrupt()
        _, _, err = program.end()
    assert (first["ready"], first["store"], first["waits_seconds"] > 0) == (False, "a", True)
    for said in (err, logged):
        assert "a holds no journal, or a damaged one: no registration is granted for " in said
    assert 'store "a": a holds no journal' in err
    assert "[WARNING] a: waiting: " in logged
    assert ": ready: " not in logged


def test_a_store_whose_identity_is_known_is_not_new(config: Path) -> None:
    """Its journal was lost, so the advice to start it as new would be wrong."""
    with running("store", config, "--new", "--json") as program:
        program.json_line()
    for segment in (config.parent / "b").glob("*.seg"):
        segment.unlink()
    with running("store", config, "--new", "--json") as program:
        assert program.json_line()["ready"] is True
        assert program.json_line()["ready"] is False
        program.interrupt()
        _, _, err = program.end()
    assert 'store "b": b holds no journal' in err
    assert "stop it and start it with --new" not in err


@pytest.mark.rows("P-705", "P-712")
@pytest.mark.parametrize("words", [("store", "-h"), ("store", "run", "-h"), ("-h",), ("check", "-h"), ("srs", "-h")])
def test_every_command_prints_its_help(words: tuple[str, ...]) -> None:
    status, out, _ = outcome(*words)
    assert status == 0
    assert out == outcome(*words[:-1], "--help")[1]


STORE = """<ume-store version="1.3">
<daemon><log>a.log</log></daemon><stores><store name="a" port="14567">
<ume-attributes><option name="{0}" value="1"/><option type="lbm-context" name="{1}" value="1"/></ume-attributes>
<topics><topic pattern="."><ume-attributes><option name="{2}" value="1"/></ume-attributes></topic></topics>
</store></stores></ume-store>"""


@pytest.mark.parametrize(
    ("names", "meant"),
    [
        (("disk-cash-directory", "request_tcp_port_low", "keepalive-interval"), "disk-cache-directory"),
        (("disk-cache-directory", "resolver_unicast_deamon", "keepalive-interval"), "resolver_unicast_daemon"),
        (("disk-cache-directory", "request_tcp_port_low", "repository-tipe"), "repository-type"),
    ],
)
def test_a_wrong_option_in_xml_gets_the_nearest_one(
    names: tuple[str, ...], meant: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "stores.xml"
    config.write_text(STORE.format(*names))
    daemons.validate(config, "safe", as_json=True)
    out, err = capsys.readouterr()
    assert f"did you mean '{meant}'?" in out + err


@pytest.mark.parametrize(
    ("command", "text", "meant"),
    [
        ("srs", '<um-srs version="1.0"><daemon><logg>x.log</logg></daemon></um-srs>', "log"),
        ("lbmrd", '<lbmrd version="1.0"><daemon><prot>1</prot></daemon></lbmrd>', "port"),
    ],
)
def test_a_wrong_element_of_a_resolver_gets_the_nearest_one(
    command: str, text: str, meant: str, tmp_path: Path
) -> None:
    config = tmp_path / "resolver.xml"
    config.write_text(text)
    status, _, err = outcome(command, "-v", config)
    assert status != 0
    assert f"did you mean '{meant}'?" in err


def test_a_refused_registration_is_logged_with_topic_and_address(config: Path) -> None:
    """Store b has no pattern for the topic."""
    with running("store", config, "--new", "--json") as program:
        program.json_line()
        address = program.json_line()["address"]
        assert outcome("send", "strange", "--store", address, "--timeout", "2", typed="one\n")[0] == 1
    log = (config.parent / "stored.log").read_text()
    assert re.search(
        r"\[WARNING\] b: source-refused: 127\.0\.0\.1:\d+ for topic 'strange': RegID \d+ is refused: no ", log
    )


@pytest.mark.rows("T-504")
def test_a_log_of_an_earlier_day_rolls_at_the_start(config: Path) -> None:
    """The daemon of that day is gone, and its lines are of that day."""
    log = config.parent / "stored.log"
    config.write_text(config.read_text().replace('"stored.log"', '{ path = "stored.log", frequency = "daily" }'))
    log.write_text("of an earlier day\n")
    os.utime(log, (1_500_000_000, 1_500_000_000))
    with running("store", config, "--new", "--json") as program:
        program.json_line()
    [rolled] = config.parent.glob("stored.log_*")
    assert ".2017-07-14." in rolled.name
    assert rolled.read_text() == "of an earlier day\n"
    assert "version" in log.read_text().splitlines()[0]


def logged(log: Path, text: str) -> None:
    """Wait until a log has a text; the limit of the test's time ends it otherwise."""
    while not log.exists() or text not in log.read_text():
        time.sleep(0.01)


def test_a_hang_up_reopens_the_log_and_reads_the_configuration_again(config: Path) -> None:
    log, moved = config.parent / "stored.log", config.parent / "moved.log"
    text = config.read_text()
    with running("store", config, "--new", "--json") as program:
        address = program.json_line()["address"]
        program.json_line()
        program.json_line()
        log.rename(moved)
        program.interrupt(signal.SIGHUP)
        logged(log, "stores.toml is read again")
        assert "restart the daemon" not in log.read_text()
        limited = text.replace('name = "a"\n', 'name = "a"\nlimits = { clients = 1, sources = 1 }\n')
        config.write_text(limited.replace('pattern = "orders"', 'pattern = "others"'))
        program.interrupt(signal.SIGHUP)
        logged(log, 'stores.toml: store "b" changed; restart the daemon to follow it')
        assert 'store "a" changed' not in log.read_text()
        assert outcome("send", "one", "--store", address, typed="one\n")[0] == 0
        assert outcome("send", "two", "--store", address, "--timeout", "2", typed="one\n")[0] == 1
        assert re.search(r"source-refused: 127\.0\.0\.1:\d+ for topic 'two' is refused: ", log.read_text())
        config.write_text("nonsense")
        program.interrupt(signal.SIGHUP)
        logged(log, "nothing is changed, because it cannot be read: ")
        program.interrupt(signal.SIGTERM)
        assert program.json_line() == {"stopped": True}
    assert "read again" not in moved.read_text()


@pytest.mark.rows("P-709")
def test_a_daemon_that_cannot_start_says_so_in_its_log(config: Path) -> None:
    (config.parent / "b").rmdir()
    status, out, err = outcome("store", config, "--new")
    assert (status, out) == (1, "")
    assert "there is no state directory b; create it or correct disk-state-directory" in err
    assert "[ERROR] daemon-failed: there is no state directory b" in (config.parent / "stored.log").read_text()


@pytest.mark.rows("P-704")
def test_a_detached_daemon_goes_on_alone(config: Path) -> None:
    log = config.parent / "stored.log"
    config.write_text(config.read_text().replace('log = "stored.log"', f'log = "{log}"'))
    status, out, _ = outcome("store", config, "--new", "--detach")
    assert status == 0
    assert 'store "b" ready to accept registrations' in out
    assert "b: ready" in log.read_text()
    number = int((config.parent / "stored.pid").read_text())
    os.kill(number, signal.SIGINT)
    while alive(number):
        pass
    assert "[INFO] b: stopped: " in log.read_text()


@pytest.mark.rows("P-704", "P-709")
def test_a_daemon_that_cannot_be_detached_says_why(config: Path) -> None:
    """The status is that of the daemon, and its last words come through."""
    (config.parent / "b").rmdir()
    status, out, err = outcome("store", config, "--new", "--detach")
    assert (status, out) == (1, "")
    assert "stablecast: there is no state directory b; create it or correct disk-state-directory" in err
    assert not (config.parent / "stored.pid").exists()


def test_what_nobody_expected_is_in_the_log(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon without a terminal has nobody to show its last words to."""

    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(daemon_process, "become", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        daemons.run_daemon(daemons.DaemonJob(config, "safe", False, False, None, False))
    assert "[ERROR] daemon-failed: RuntimeError: a bug" in (config.parent / "stored.log").read_text()


def test_a_detached_daemon_without_a_log_file_gets_a_warning(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(config.read_text().replace('log = "stored.log"', ""))
    replace(monkeypatch, "process", detach=lambda: 0)
    assert daemons.run_daemon(daemons.DaemonJob(config, "safe", True, False, None, False)) == 0
    assert "the log of a detached daemon is lost" in capsys.readouterr().err


GOOD = """source ume_store 127.0.0.1:14567
source ume_store 127.0.0.1:14568
source ume_store 127.0.0.1:14569
source ume_session_id 7
receiver ume_session_id 8
context resolver_unicast_daemon 127.0.0.1:15380
"""


def test_check_explains_with_codes(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    client = tmp_path / "client.cfg"
    client.write_text(GOOD)
    assert check.run([config, client], "safe", as_json=False) == 0
    out = capsys.readouterr().out.splitlines()
    assert any(line.startswith("advice: ") and line.endswith("[stores-together]") for line in out)
    assert any("[notice]" in line and "one write at a time" in line for line in out)
    assert out[-1].startswith("2 files, ")


def test_check_fails_for_errors_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    client = tmp_path / "client.cfg"
    client.write_text(GOOD + "source ume_store_group 0:2\n")
    assert check.run([client], "safe", as_json=True) == 1
    found = json.loads(capsys.readouterr().out)["advice"]
    assert {"code": "backup-stores", "level": "error"}.items() <= found[0].items()


LINES = {
    "source ume_flight_size many": "option",
    "receiver ume_ack_batching_interval 0": "option",
    "context resolver_unicast_daemon here": "'here' is not",
    "context resolver_unicast_deamon 127.0.0.1:15380": ".* did you mean 'resolver_unicast_daemon'",
    "context request_tcp_porthigh 14500": ".* did you mean 'request_tcp_port_high'",
    "wildcard_receiver pattern_tipe pcre": ".* did you mean 'pattern_type'",
}


@pytest.mark.parametrize("line", LINES)
def test_check_says_which_line_is_wrong(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    client = tmp_path / "client.cfg"
    client.write_text(GOOD + line)
    assert check.run([client], "safe", as_json=False) == 1
    assert re.search(f"client.cfg:7: <{line.split()[1]}>: {LINES[line]}", capsys.readouterr().out)


def test_check_gives_a_notice_for_a_context_line_without_effect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client = tmp_path / "client.cfg"
    client.write_text(GOOD + "context fd_management_type epoll\nevent_queue queue_delay_warning 1\n")
    assert check.run([client], "safe", as_json=False) == 0
    assert f"advice: {client}:7: <fd_management_type>: fd_management_type has no effect" in capsys.readouterr().out


def test_check_applies_context_lines_to_both_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    client = tmp_path / "client.cfg"
    client.write_text(GOOD + "context ume_source_liveness_timeout 1000\ncontext ume_receiver_liveness_interval 500\n")
    assert check.run([client], "safe", as_json=False) == 1
    assert "[liveness]" in capsys.readouterr().out


@pytest.mark.parametrize("first", [True, False])
def test_check_keeps_an_explicit_group_size_in_any_order(
    first: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client = tmp_path / "client.cfg"
    size = "source ume_store_group 0:1\n"
    client.write_text(size + GOOD if first else GOOD + size)
    assert check.run([client], "safe", as_json=False) == 1
    assert "[backup-stores]" in capsys.readouterr().out
