"""The units of systemd: verified by its own tools, with the program of this environment."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.left_out import needs
from tests.support.tree import ROOT, name

UNITS = sorted((ROOT / "packaging/systemd").glob("*.service"))
PROGRAM = "/usr/bin/stablecast"
CONFIG = """
[daemon]
web-monitor = "*:15304"
[[store]]
name = "orders"
interface = "127.0.0.1"
port = 14567
[[store.topic]]
pattern = "."
type = "PCRE"
"""
"""A store that names no directory. Its monitor is open to the network, which is a warning."""
MOST_EXPOSURE = 15
"""Largest exposure that systemd may find in a unit, in tenths; a unit without hardening has 96."""

pytestmark = needs("systemd-analyze")


@pytest.fixture(params=UNITS, ids=name)
def unit(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """One unit, as an instance if it is a template, with the installed program in place of the packaged one."""
    program = str(Path(sys.executable).with_name("stablecast"))
    packaged: Path = request.param
    made = tmp_path / packaged.name.replace("@.", "@orders.")
    made.write_text(packaged.read_text().replace(PROGRAM, program))
    return made


def analysis(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    command = ["systemd-analyze", "--no-pager", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_systemd_finds_no_mistake(unit: Path) -> None:
    done = analysis("verify", "--man=no", unit)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_unit_may_do_little(unit: Path) -> None:
    done = analysis("security", "--offline=true", f"--threshold={MOST_EXPOSURE}", unit)
    assert done.returncode == 0, done.stdout[-200:]


def test_the_program_reports_that_it_is_ready(unit: Path) -> None:
    assert "\nType=notify\n" in unit.read_text()


def test_a_store_with_default_directories_starts(tmp_path: Path) -> None:
    """The check before the start sees the directories that the unit made, and warnings do not stop it."""
    unit = (ROOT / "packaging/systemd/stablecast-store@.service").read_text()
    [made] = [line.removeprefix("StateDirectory=") for line in unit.splitlines() if line.startswith("StateDirectory=")]
    for directory in made.replace("%i", "orders").split():
        (tmp_path / directory).mkdir(parents=True)
    config = tmp_path / "orders.toml"
    config.write_text(CONFIG)
    working = tmp_path / "stablecast/orders"
    program = Path(sys.executable).with_name("stablecast")
    done = subprocess.run([program, "check", config], capture_output=True, text=True, check=False, cwd=working)
    assert (done.returncode, "monitor-exposed" in done.stdout) == (0, True), done.stdout + done.stderr
    (working / "umestored-state").rmdir()
    done = subprocess.run([program, "check", config], capture_output=True, text=True, check=False, cwd=working)
    assert (done.returncode, "umestored-state is missing" in done.stdout) == (1, True)
