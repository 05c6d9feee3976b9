"""Plant faults in the core, each of which must change a graph or break an invariant, for `stablecast model mutants`.

The faults are tests (`tests/models`), because they name internals of the core. So this needs a checkout and pytest.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree as ET

import attrs

from stablecast.lab.model.errors import ModelError

CHOSEN = ("-k", "fault", "-m", "thorough or not thorough")
"""Select the tests that plant faults, including the slow ones."""


@attrs.frozen
class Result:
    """Hold the names of detected and undetected faults. Each survivor shows a gap in the models."""

    killed: tuple[str, ...]
    survivors: tuple[str, ...]

    @property
    def rate(self) -> float:
        """The share of detected faults, in percent."""
        return 100 * len(self.killed) / (len(self.killed) + len(self.survivors))


def run(models: Path, only: str = "") -> Result:
    """Plant every fault whose name contains `only`. Raises ModelError if there is none."""
    tests = models.parent / "tests" / "models"
    if not tests.is_dir():
        raise ModelError(f"the faults are tests, and there are none in {tests}: run this in a checkout")
    with tempfile.TemporaryDirectory(prefix="stablecast-mutants-") as folder:
        report = Path(folder, "report.xml")
        chosen = CHOSEN if not only else ("-k", f"fault and {only}", *CHOSEN[2:])
        options = ("-q", "--no-header", "-p", "no:cacheprovider", "--no-cov", f"--junit-xml={report}")
        command = [sys.executable, "-m", "pytest", *options, *chosen, str(tests)]
        done = subprocess.run(command, cwd=models.parent, capture_output=True, text=True, check=False)  # noqa: S603    # fixed arguments
        if not report.exists() or b"<testcase" not in report.read_bytes():
            output = (done.stderr or done.stdout).strip().splitlines()
            raise ModelError(f"no fault was planted: {output[-1] if output else 'pytest printed nothing'}")
        return _read(ET.parse(report).getroot())  # noqa: S314  # pytest wrote it just now


def _read(report: ET.Element) -> Result:
    cases = [
        (case.get("name", ""), case.find("failure") is None and case.find("error") is None)
        for case in report.iter("testcase")
    ]
    return Result(tuple(name for name, found in cases if found), tuple(name for name, found in cases if not found))
