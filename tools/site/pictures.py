"""The pictures of README and handbook: drawings, and the terminal of a real run of the demo."""

import io
import re
import subprocess
import sys
from typing import Final

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from tests.support.tree import PYTHON_PATH
from tools.site.drawings import pictures
from tools.site.pages import HANDBOOK

FOLDER: Final = HANDBOOK / "static"
COLUMNS: Final = 78
FONTS = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)
"""Fonts of another host, which a picture must not ask for."""


def save() -> None:
    """Write the pictures anew. Raises CalledProcessError if the demo fails."""
    for name, drawn in pictures().items():
        (FOLDER / name).write_text(drawn, encoding="utf-8")
    command = [sys.executable, "-m", "stablecast.cli.main", "demo"]
    ran = subprocess.run(
        command,
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={"PYTHONPATH": PYTHON_PATH, "COLUMNS": str(COLUMNS)},
    )
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text(f"$ stablecast demo\n{ran.stdout.rstrip()}"))
    drawn = console.export_svg(title="", code_format=FONTS.sub("", CONSOLE_SVG_FORMAT), unique_id="demo")
    (FOLDER / "demo.svg").write_text(drawn, encoding="utf-8")
