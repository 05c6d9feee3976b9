"""`stablecast srs` as a process: ready, configured, stopped, refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.tree import LAYERS, ROOT


def srs(*arguments: str) -> "subprocess.Popen[str]":
    path = os.pathsep.join(str(ROOT / layer) for layer in LAYERS)
    return subprocess.Popen(
        [sys.executable, "-m", "stablecast.cli.main", "srs", *arguments],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def test_ready_and_stopped(tmp_path: Path) -> None:
    """T-422, T-421: it tells where it listens, and at the end what it saw; log lines go to the file."""
    config = tmp_path / "srs.toml"
    config.write_text(f'[srs]\nport = 1\n[daemon.log]\ntype = "file"\nname = "{tmp_path / "srs.log"}"\n')
    with srs(str(config), "--interface", "127.0.0.1", "--port", "0", "--json") as process:
        ready = json.loads(line(process))
        assert ready == {"ready": True, "address": ready["address"]}
        process.terminate()
        stopped = json.loads(line(process))
        assert process.wait() == 0
    assert (stopped["stopped"], stopped["clients"], stopped["slow"]) == (True, 0, 0)
    assert (tmp_path / "srs.log").exists()


def test_for_people() -> None:
    with srs("--interface", "127.0.0.1", "--port", "0") as process:
        assert line(process).startswith("srs is ready on 127.0.0.1:")
        process.terminate()
        assert line(process).startswith("srs stopped: connections 0, clients 0")
        assert process.wait() == 0


def test_validate_checks_and_ends(tmp_path: Path) -> None:
    for form, said in ((), "the configuration is valid\n"), (("--json",), '{"valid": true}\n'):
        with srs("-v", *form) as process:
            assert process.communicate()[0] == said
            assert process.returncode == 0
    config = tmp_path / "srs.toml"
    config.write_text("[srs]\nprot = 1\n")
    with srs(str(config), "--validate") as process:
        out, err = process.communicate()
        assert (process.returncode, out) == (1, "")
    assert err.startswith(f"stablecast: {config}: [srs] has no prot")
