"""`stablecast model mutants`: faults planted in the core, each of which must show in a graph or break an invariant.

The faults are tests (`tests/models`), because they name what is inside the core; so this needs a checkout, and pytest.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree as ET

import attrs

from stablecast.lab.model.errors import ModelError

CHOSEN = ("-k", "fault", "-m", "thorough or not thorough")
"""Faults, the slow ones too."""


@attrs.frozen
class Result:
    """What became of the faults.

    Attributes:
        killed: Faults that were found.
        survivors: Faults that were not, each a hole in the models.
    """

    killed: tuple[str, ...]
    survivors: tuple[str, ...]

    @property
    def rate(self) -> float:
        """Share of the faults that were found, in percent."""
        return 100 * len(self.killed) / (len(self.killed) + len(self.survivors))


def run(models: Path, only: str = "") -> Result:
    """Plant every fault whose name contains `only`, one by one. Raises ModelError if there are none to plant."""
    tests = models.parent / "tests" / "models"
    if not tests.is_dir():
        raise ModelError(f"the faults are tests, and there are none in {tests}: run this in a checkout")
    with tempfile.TemporaryDirectory(prefix="stablecast-mutants-") as folder:
        report = Path(folder, "report.xml")
        chosen = CHOSEN if not only else ("-k", f"fault and {only}", *CHOSEN[2:])
        options = ("-q", "--no-header", "-p", "no:cacheprovider", "--no-cov", f"--junit-xml={report}")
        command = [sys.executable, "-m", "pytest", *options, *chosen, str(tests)]
        done = subprocess.run(command, cwd=models.parent, capture_output=True, text=True, check=False)  # noqa: S603  # fixed arguments and names of ours
        if not report.exists() or b"<testcase" not in report.read_bytes():
            said = (done.stderr or done.stdout).strip().splitlines()
            raise ModelError(f"no fault was planted: {said[-1] if said else 'pytest said nothing'}")
        return _read(ET.parse(report).getroot())  # noqa: S314  # pytest wrote it just now


def _read(report: ET.Element) -> Result:
    cases = [
        (case.get("name", ""), case.find("failure") is None and case.find("error") is None)
        for case in report.iter("testcase")
    ]
    return Result(tuple(name for name, found in cases if found), tuple(name for name, found in cases if not found))
