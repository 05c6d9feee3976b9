"""`stablecast srs` as a process: ready, configured, stopped, refused."""

import json
import signal
from pathlib import Path

import pytest

from stablecast.cli.resolution_daemons import dump, run_srs
from stablecast.resolver.srs.xml_config import XSD
from tests.support.program import running


@pytest.mark.rows("T-421", "T-422")
def test_ready_and_stopped(tmp_path: Path) -> None:
    """It tells where it listens, and at the end what it saw; log lines go to the file."""
    config = tmp_path / "srs.toml"
    pid = tmp_path / "srs.pid"
    config.write_text(
        f'[srs]\nport = 1\n[daemon]\npid-file = "{pid}"\n[daemon.log]\ntype = "file"\nname = "{tmp_path / "srs.log"}"\n'
    )
    with running("srs", config, "--interface", "127.0.0.1", "--port", "0", "--json") as process:
        ready = process.json_line()
        assert ready == {"ready": True, "address": ready["address"]}
        assert pid.read_text() == f"{process.process.pid}\n"
        process.interrupt(signal.SIGTERM)
        stopped = process.json_line()
        assert process.process.wait() == 0
    assert (stopped["stopped"], stopped["clients"], stopped["slow"]) == (True, 0, 0)
    assert (tmp_path / "srs.log").exists()
    assert not pid.exists()


def test_an_xml_file_and_what_it_comes_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "srs.xml"
    config.write_text('<um-srs version="1.0"><daemon><log type="file">x.log</log></daemon></um-srs>')
    assert run_srs(config, None, 7, validate=False, dump=True, as_json=False) == 0
    effective = json.loads(capsys.readouterr().out)
    assert (effective["port"], effective["log"]["name"], effective["log"]["frequency"]) == (7, "x.log", "disable")
    assert dump(XSD) == 0
    assert '<xs:element name="um-srs">' in capsys.readouterr().out
    config.write_text("<um-srs>")
    with running("srs", config, "-v") as process:
        _, err = process.process.communicate()
    assert process.process.returncode == 1
    assert err.startswith(f"stablecast: {config}:1: <xml>: ")
    with running("srs", "--dump-xsd") as process:
        assert process.process.communicate()[0].startswith("<?xml")


def test_for_people() -> None:
    with running("srs", "--interface", "127.0.0.1", "--port", "0") as process:
        assert process.line().startswith("srs is ready on 127.0.0.1:")
        process.interrupt(signal.SIGTERM)
        assert process.line().startswith("srs stopped: connections 0, clients 0")
        assert process.process.wait() == 0


def test_validate_checks_and_ends(tmp_path: Path) -> None:
    for form, said in ((), "the configuration is valid\n"), (("--json",), '{"valid": true}\n'):
        with running("srs", "-v", *form) as process:
            assert process.process.communicate()[0] == said
            assert process.process.returncode == 0
    config = tmp_path / "srs.toml"
    config.write_text("[srs]\nprot = 1\n")
    with running("srs", config, "--validate") as process:
        out, err = process.process.communicate()
        assert (process.process.returncode, out) == (1, "")
    assert err.startswith(f"stablecast: {config}:srs.prot: there is no 'prot' here")
