"""The torture command: its messages where it cannot run, its summary and its exit status."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import until
from tests.support.tree import PYTHON_PATH
from tools.torture import __main__ as tool
from tools.torture.__main__ import Outcome, main, obstacle, summary
from tools.torture.kinds import KINDS
from tools.torture.plants import PLANTS
from tools.torture.processes import motionless


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None if name == "mkfs.ext4" else name)
    assert obstacle() == "torture needs programs that are missing: run 'sudo apt-get install -y e2fsprogs'."


def test_the_command_asks_for_root(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("shutil.which", lambda name: name)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert main([]) == 2
    assert capsys.readouterr() == (
        "",
        "torture needs root for network namespaces, mounts and loop devices: run 'sudo make torture'.\n",
    )


def test_the_command_asks_for_loop_devices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("shutil.which", lambda name: name)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(tool, "LOOP", tmp_path / "none")
    assert "run 'modprobe loop', or give them to the container." in obstacle()


def test_a_kernel_that_refuses_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 1, "", "unshare failed: Operation not permitted\n")

    monkeypatch.setattr("shutil.which", lambda name: name)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(tool, "LOOP", Path("/"))
    monkeypatch.setattr("subprocess.run", refuse)
    assert "(unshare failed: Operation not permitted): run it on a machine" in obstacle()


@pytest.mark.parametrize(("violations", "status"), [((), 0), (("lost: one", "hang: two"), 1)])
def test_the_summary_and_the_status_show_the_violations(
    violations: tuple[str, ...], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = Counter(sent=5, stable=4, delivered=8, confirmed=1)
    monkeypatch.setattr(tool, "obstacle", lambda: "")
    monkeypatch.setattr(tool, "play", lambda plan, *_: Outcome(plan, violations, counts, 9.0))
    assert main(["--histories", "2", "--seed", "1"]) == status
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 3
    assert "2 histories" in printed[-1]
    assert "10 sent, 8 stable, 16 delivered, 2 confirmations" in printed[-1]
    assert printed[-1].endswith("2 hang, 2 lost" if violations else "no violation")


def test_a_summary_without_histories_has_no_violation() -> None:
    assert summary([], 0.0).endswith("no violation")


def test_plants_name_existing_kinds() -> None:
    assert {kind for _, kind in PLANTS.values()} <= KINDS.keys()


@pytest.mark.parametrize("plant", PLANTS)
def test_a_plant_has_something_to_revert(plant: str) -> None:
    command = [sys.executable, "-c", "from tools.torture.plants import main; main()", plant]
    done = subprocess.run(
        [*command, "stablecast.cli.main", "--version"],
        env={**os.environ, "PYTHONPATH": PYTHON_PATH}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_a_frozen_program_does_not_run() -> None:
    """A power cut freezes the store before its disk stops, so that it acknowledges nothing afterwards."""
    busy = subprocess.Popen(
        [sys.executable, "-c", "import threading\nthreading.Thread(target=lambda: 1).start()\nwhile True: 1"]
    )
    try:
        busy.send_signal(signal.SIGSTOP)
        assert until(lambda: motionless(busy.pid))
        busy.send_signal(signal.SIGCONT)
        assert until(lambda: not motionless(busy.pid))
    finally:
        busy.kill()
        busy.wait()
