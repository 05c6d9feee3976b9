"""What the commands share."""

import subprocess
import sys

import pytest

from stablecast.cli import common
from stablecast.config.options import OptionError


def test_options_are_name_and_value() -> None:
    assert common.parse_options(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    with pytest.raises(OptionError) as told:
        common.parse_options(["a=1", "verbose"])
    assert str(told.value) == "'verbose' is not an option: write name=value"


def test_a_line_is_a_text_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    common.say("ready")
    common.say({"ready": True})
    common.note("waiting")
    assert capsys.readouterr() == ('ready\n{"ready": true}\n', "waiting\n")


def test_what_a_daemon_loaded_is_not_looked_through_for_garbage() -> None:
    """In a process of its own: a frozen object is never collected."""
    program = (
        "import asyncio, gc\n"
        "from stablecast.cli.common import run_for_good\n"
        "run_for_good(asyncio.sleep(0))\n"
        "assert gc.get_freeze_count() > 1000\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_garbage_is_hardly_looked_for_while_a_command_is_loaded_and_as_usual_once_a_daemon_runs() -> None:
    program = (
        "import asyncio, gc, sys\n"
        "from stablecast.cli import common, main\n"
        "sys.argv = ['stablecast', '--help']\n"
        "try:\n"
        "    main.main()\n"
        "except SystemExit:\n"
        "    assert gc.get_threshold()[0] == main.YOUNG\n"
        "common.run_for_good(asyncio.sleep(0))\n"
        "assert gc.get_threshold()[0] == common.USUAL_YOUNG\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
