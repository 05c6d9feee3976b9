"""A capture program at an interface, which writes a ring of files that a watch follows."""

import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import attrs

from stablecast.evidence.capture.files import CaptureError

PROGRAM: Final = "dumpcap"
FILE_KIB: Final = 65_536
"""Size of a file of the ring, in KiB."""

FILES: Final = 4
"""Files of the ring; older ones are deleted."""

END_SECONDS: Final = 5
"""Time for the program to end, in seconds."""


@attrs.define
class LiveCapture:
    """The program, its directory, and the interface."""

    interface: str
    directory: Path
    process: "subprocess.Popen[str]"

    @classmethod
    def begin(cls, interface: str, wanted: str, stack: ExitStack) -> "LiveCapture":
        """Capture at an interface until the stack ends; `wanted` is a filter of captures, or empty.

        Raises:
            CaptureError: If the program is not installed.
        """
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stablecast-watch-")))
        ring = ("-b", f"filesize:{FILE_KIB}", "-b", f"files:{FILES}", "-w", str(directory / "live.pcapng"))
        command = [PROGRAM, "-q", "-i", interface, *ring, *(("-f", wanted) if wanted else ())]
        try:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # noqa: S603
        except OSError as error:
            raise CaptureError(f"an interface is captured by {PROGRAM}, which cannot be run: install it") from error
        found = cls(interface, directory, process)
        stack.callback(found.end)
        return found

    def check(self) -> None:
        """Raise CaptureError with the program's own words if it ended."""
        if self.process.poll() is not None:
            assert self.process.stderr is not None
            lines = [line.strip() for line in self.process.stderr.read().splitlines() if line.strip()]
            why = next((line for line in lines if not line.startswith(("Capturing on", "File:"))), "it ended")
            why = why.removeprefix(f"{PROGRAM}: ")
            raise CaptureError(
                f"{PROGRAM} cannot capture at {self.interface}: {why.rstrip('.')}; `{PROGRAM} -D` lists all"
            )

    def end(self) -> None:
        """End the program, by force if it takes longer than `END_SECONDS`."""
        self.process.terminate()
        try:
            self.process.communicate(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
