"""Programs in a zip archive, as `spark-submit --py-files` sends them to workers."""

import subprocess
import sys
import zipfile
from pathlib import Path

from stablecast.runtime.machine import installed_file
from tests.support.tree import ROOT

ROOMS = ("core", "transports", "adapters")

PROGRAM = """
import sys
sys.path[:] = [sys.argv[1], *(one for one in sys.path if not one.startswith(sys.argv[2]) or "site-packages" in one)]
import stablecast.evidence.spark, stablecast.spark, stablecast.config.client_xml
assert stablecast.spark.__file__.startswith(sys.argv[1]), stablecast.spark.__file__
print(len(stablecast.evidence.spark.verification_job.summarize([]).files))
"""


def pack(target: Path) -> Path:
    """Pack the packages as the chapter says: each folder has an entry of its own."""
    with zipfile.ZipFile(target, "w") as packed:
        folders = set()
        for room in ROOMS:
            for path in sorted((ROOT / room / "stablecast").rglob("*")):
                name = path.relative_to(ROOT / room)
                if path.is_file() and path.suffix != ".pyc":
                    folders |= {f"{parent.as_posix()}/" for parent in name.parents if parent.name}
                    packed.write(path, name)
        for folder in sorted(folders):
            packed.writestr(folder, b"")
    return target


def test_an_installed_file_may_lie_in_an_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("folder/text", b"here")
    assert installed_file(tmp_path / "a.zip" / "folder" / "text") == b"here"


def test_both_packages_start_from_an_archive(tmp_path: Path) -> None:
    archive = pack(tmp_path / "deps.zip")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(archive), str(ROOT)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
