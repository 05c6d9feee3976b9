"""The manual pages: one for each command, made from its help, readable by man."""

import re
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command

from stablecast.cli.app import ORDER, app
from stablecast.cli.manual import pages
from tests.support.left_out import needs
from tests.support.program import outcome


@pytest.mark.rows("P-705", "P-712")
def test_every_command_has_a_page_with_all_its_options(tmp_path: Path) -> None:
    """The pages name each command and each option, so they are as current as the help."""
    status, out, err = outcome("manual", tmp_path / "man1")
    assert (status, err) == (0, "")
    written = {path.name: path.read_text() for path in (tmp_path / "man1").iterdir()}
    assert out.startswith(f"{len(written)} manual pages in ")
    root = get_command(app)
    assert all(f".B {name}\n" in written["stablecast.1"] for name in ORDER)
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        page = written[f"stablecast-{name}.1"]
        for parameter in command.params:
            for option in parameter.opts if parameter.param_type_name == "option" else ():
                assert option.replace("-", "\\-") in page
        for below in getattr(command, "commands", ()):
            assert f"stablecast-{name}-{below}.1" in written


def test_a_page_tells_what_the_help_tells() -> None:
    page = dict(pages(get_command(app)))["stablecast-plan.1"]
    assert "Add up the memory, disk space and descriptors" in page
    assert ".SH ARGUMENTS" in page
    assert re.search(r"\.B \\-\\-sources .*\n.*Sources of each topic pattern\..*1000", page)
    assert page.endswith(".SH SEE ALSO\nstablecast(1)\n")


@needs("groff")
def test_a_formatter_finds_nothing_wrong() -> None:
    for name, text in pages(get_command(app)):
        checked = subprocess.run(
            ["groff", "-man", "-ww", "-z", "-Tutf8"], input=text, capture_output=True, text=True, check=False
        )
        assert (checked.returncode, checked.stderr) == (0, ""), name
